"""Messages between filters: who hears whom, and before which of its firings.

A message is for a firing of its sender: the one that sends it, or one that is so many later. To a
filter further downstream it comes before the first firing that sees something of that one; to
one further upstream, before the first whose items that one does not need. How often a filter must
have fired for another is counted as if all fired as rarely as possible.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from millstream.calculus.work import Hearing, Telling
from millstream.errors import Fault
from millstream.languages.streamit.balance import Balance, needed_firings, needed_items
from millstream.languages.streamit.flat import Actor, Flat
from millstream.languages.streamit.graph import Filter, Message

#: More than anybody would count.
_MOST_STEPS = 5_000_000


class Unheard(Exception):
    """A message can never be heard in time; `fault` says why."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


@dataclass(frozen=True, slots=True)
class Link:
    """All messages from one actor to another."""

    sender: int
    receiver: int
    tellings: tuple[tuple[Message, int], ...]
    hearing: Hearing
    #: Whether the receiver must wait for its sender, though its items do not.
    waits: bool
    #: Whether the items of the sender are counted, of which it gives now more and now fewer.
    by_items: bool = False

    @property
    def box(self) -> str:
        return f"messages_{self.sender}_{self.receiver}"


def links_of(flat: Flat, balance: Balance, faults: list[Fault]) -> list[Link]:
    """The links of a program, by sender and receiver."""
    links: list[Link] = []
    filters = [(n, actor.work) for n, actor in enumerate(flat.actors)
               if isinstance(actor.work, Filter)]  # fmt: skip
    listeners = [(n, work.portals) for n, work in filters if work.portals]
    for sender, work in filters:
        for receiver, heard in listeners:
            messages = [message for message in work.messages if message.portal in heard]
            try:
                links += [_link(flat, balance, sender, receiver, messages)] if messages else []
            except Unheard as error:
                faults.append(error.fault)
    return links


def ahead(balance: Balance, links: list[Link]) -> Balance:
    """With sources that fire before, as often as those who hear them late wait for them."""
    initially = list(balance.initially)
    for link in links:
        if link.waits and link.hearing.least < 0:
            initially[link.sender] -= link.hearing.least
    return replace(balance, initially=tuple(initially))


def tellings_of(links: list[Link], sender: int) -> tuple[Telling, ...]:
    """What a sender tells, with a box for each who hears it."""
    own = [link for link in links if link.sender == sender]
    return tuple(
        Telling(message.output, box, message.handler, latency, link.by_items)
        for box, link in enumerate(own)
        for message, latency in link.tellings
    )


def _link(
    flat: Flat, balance: Balance, sender: int, receiver: int, messages: list[Message]
) -> Link:
    places = f"{flat.actors[sender].path} and {flat.actors[receiver].path}"
    span = messages[0].span
    is_down = receiver in _after(flat, sender)
    if not is_down and sender not in _after(flat, receiver):
        raise Unheard(Fault(f"no items pass between {places}: a message has no time there", span))
    first, last = (sender, receiver) if is_down else (receiver, sender)
    is_open = any(flat.actors[first].is_open(c) for c in flat.actors[first].outputs)
    between = (_after(flat, first) & _before(flat, last)) - {first}
    is_taken_openly = any(flat.actors[last].is_open(c) for c in flat.actors[last].inputs)
    is_unknown = is_taken_openly or (is_open and not is_down)
    if is_unknown or any(flat.actors[n].changes for n in between):
        raise Unheard(Fault(f"rates change between {places}: a message has no time there", span))
    soonest = int(not is_down)
    delayed = tuple((m, m.latency if m.latency is not None else soonest) for m in messages)
    least = min(latency for _, latency in delayed)
    if not is_down and least < 1:
        raise Unheard(Fault(
            f"this message comes too late: {flat.actors[receiver].path} has fired already for "
            "the firing that sends it", span, "give it a latency of at least 1, as in [1:1]",
        ))  # fmt: skip
    period, step = balance.repeats[receiver], balance.repeats[sender]
    if period * len(flat.actors) * 3 > _MOST_STEPS:
        raise Unheard(Fault(f"the way between {places} is too long to be counted", span))
    if is_open:
        return _link_by_items(flat, balance, sender, receiver, delayed)
    count = 2 * period + 2
    upto = _down(flat, sender, receiver, count) if is_down else _up(flat, sender, receiver, count)
    hearing = Hearing(tuple(upto), period, step, least)
    return Link(sender, receiver, delayed, hearing, waits=not is_down or least < 0)


def _link_by_items(
    flat: Flat,
    balance: Balance,
    sender: int,
    receiver: int,
    delayed: tuple[tuple[Message, int], ...],
) -> Link:
    """To who comes after a filter that gives now more items and now fewer: these are counted."""
    for message, latency in delayed:
        if latency:
            raise Unheard(Fault(
                f"how many items {flat.actors[sender].path} gives changes, so that its messages "
                "come with the items of the firing that sends them", message.span,
                "leave its latency out",
            ))  # fmt: skip
    (channel,) = flat.actors[sender].outputs
    assert channel.target is not None
    period = balance.repeats[receiver]
    upto = [needed_items(flat, receiver, n, channel) for n in range(1, 2 * period + 3)]
    each = channel.target.pop(channel, is_first=False) * balance.repeats[channel.target.number]
    hearing = Hearing(tuple(upto), period, each, 0)
    return Link(sender, receiver, delayed, hearing, waits=False, by_items=True)


def _down(flat: Flat, sender: int, receiver: int, count: int) -> list[int]:
    """For each firing of the receiver, how often the sender must have fired."""
    return [needed_firings(flat, receiver, n)[sender] for n in range(1, count + 1)]


def _up(flat: Flat, sender: int, receiver: int, count: int) -> list[int]:
    """For each firing of the receiver, the last of the sender that does not need it, and one."""
    upto: list[int] = []
    firing = 0
    for number in range(1, count + 1):
        while needed_firings(flat, sender, firing)[receiver] < number:
            firing += 1
        upto.append(firing)
    return upto


def _after(flat: Flat, start: int) -> set[int]:
    """The actors that items of one come to, without going round."""
    return _reached(flat, start, is_forward=True)


def _before(flat: Flat, start: int) -> set[int]:
    return _reached(flat, start, is_forward=False)


def _reached(flat: Flat, start: int, *, is_forward: bool) -> set[int]:
    reached: set[int] = set()
    waiting = [flat.actors[start]]
    while waiting:
        actor = waiting.pop()
        for other in _neighbours(actor, is_forward=is_forward):
            if (other.number > actor.number) == is_forward and other.number not in reached:
                reached.add(other.number)
                waiting.append(other)
    return reached


def _neighbours(actor: Actor, *, is_forward: bool) -> Iterator[Actor]:
    ends = [c.target for c in actor.outputs] if is_forward else [c.source for c in actor.inputs]
    yield from (end for end in ends if end is not None)
