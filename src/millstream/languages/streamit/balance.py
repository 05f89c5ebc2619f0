"""How often each actor fires: the repetition vector, and what is done before the first period.

In a steady state every channel gets as many items as are taken off it. The initialisation lets
sources fire until every filter that looks ahead has what it looks at; all else fires whenever
it can. So does it ever after, the furthest downstream first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from millstream.errors import Fault
from millstream.languages.streamit.flat import Actor, Channel, Flat


@dataclass(frozen=True, slots=True)
class Balance:
    """Firings of each actor in a steady state and of sources at the beginning, by place."""

    repeats: tuple[int, ...]
    initially: tuple[int, ...]


class Unbalanced(Exception):
    """There is no such schedule; `fault` says why."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


def balanced(flat: Flat) -> Balance:
    """The schedule of a graph, or `Unbalanced`."""
    repeats = _repeats(flat)
    initially = _initially(flat, repeats)
    _check_cycles(flat, repeats)
    return Balance(tuple(repeats), tuple(initially))


def _repeats(flat: Flat) -> list[int]:
    places = {id(actor): n for n, actor in enumerate(flat.actors)}
    rates: list[Fraction | None] = [None] * len(flat.actors)
    ways: dict[int, tuple[Channel, ...]] = {}
    for start in range(len(flat.actors)):
        if rates[start] is not None:
            continue
        members = _spread(flat, places, rates, ways, start)
        _scale(rates, members)
    return [int(rate or 0) for rate in rates]


def _spread(
    flat: Flat, places: Mapping[int, int], rates: list[Fraction | None],
    ways: dict[int, tuple[Channel, ...]], start: int,
) -> list[int]:  # fmt: skip
    """Work out the rates of all actors that are connected with one."""
    rates[start], ways[start] = Fraction(1), ()
    reached, members = [start], []
    while reached:
        here = reached.pop()
        members.append(here)
        actor = flat.actors[here]
        for channel in (*actor.inputs, *actor.outputs):
            if channel.source is None or channel.target is None:
                continue
            other = channel.target if channel.source is actor else channel.source
            there = places[id(other)]
            rate = _across(channel, actor, rates[here] or Fraction(0))
            if rate is None:
                continue
            if rates[there] is None:
                rates[there], ways[there] = rate, (*ways[here], channel)
                reached.append(there)
            elif rates[there] != rate:
                raise Unbalanced(_clash(other, rates[there], rate, ways[there],
                                        (*ways[here], channel)))  # fmt: skip
    return members


def _across(channel: Channel, actor: Actor, rate: Fraction) -> Fraction | None:
    """How often the actor at the other end fires; None if nothing passes at all."""
    assert channel.source is not None and channel.target is not None
    push = channel.source.push(channel, is_first=False)
    pop = channel.target.pop(channel, is_first=False)
    if push == pop == 0:
        return None
    if push == 0 or pop == 0:
        giver, taker = channel.source, channel.target
        message = (f"{giver.path} gives {push or 'no'} items, but {taker.path} takes "
                   f"{pop or 'none'}: one of them can never fire again")  # fmt: skip
        raise Unbalanced(Fault(message, taker.span))
    return rate * push / pop if channel.source is actor else rate * pop / push


def _clash(
    actor: Actor, one: Fraction | None, other: Fraction, way: tuple[Channel, ...],
    other_way: tuple[Channel, ...],
) -> Fault:  # fmt: skip
    """Two ways that want an actor to fire differently often."""

    def told(channels: tuple[Channel, ...]) -> str:
        steps = [
            f"{c.source.path} gives {c.source.push(c, is_first=False)}, "
            f"{c.target.path} takes {c.target.pop(c, is_first=False)}"
            for c in channels
            if c.source is not None and c.target is not None
        ]
        return "; ".join(steps[-6:])

    return Fault(
        f"the rates do not fit: {actor.path} would fire {one} times by one way and {other} "
        "times by another",
        actor.span,
        f"one way: {told(way)}. The other: {told(other_way)}",
    )


def _scale(rates: list[Fraction | None], members: list[int]) -> None:
    """To the smallest whole numbers."""
    some = [rates[n] or Fraction(0) for n in members]
    factor = math.lcm(*(rate.denominator for rate in some))
    whole = [int(rate * factor) for rate in some]
    divisor = math.gcd(*whole) or 1
    for n, count in zip(members, whole, strict=True):
        rates[n] = Fraction(count // divisor)


def _initially(flat: Flat, repeats: list[int]) -> list[int]:
    """The fewest firings of sources after which everybody has what it looks ahead at.

    Wanted items are counted from the last actor to the first.
    """
    wanted = [0] * len(flat.channels)
    firings = [0] * len(flat.actors)
    for _ in range(1 + sum(bool(c.enqueued) for c in flat.channels)):
        for number in reversed(range(len(flat.actors))):
            actor = flat.actors[number]
            firings[number] = max([firings[number], *(
                _needed(actor, channel, wanted[channel.number] - len(channel.enqueued))
                for channel in actor.outputs)])  # fmt: skip
            if repeats[number] and isinstance(actor.inputs, list):
                _want(actor, firings[number], wanted)
    return [count if flat.actors[n].is_source else 0 for n, count in enumerate(firings)]


def _needed(actor: Actor, channel: Channel, items: int) -> int:
    """How many firings give so many items."""
    if items <= 0:
        return 0
    first, push = actor.push(channel, is_first=True), actor.push(channel, is_first=False)
    if items <= first or push == 0:
        return 1
    return 1 + -(-(items - first) // push)


def _want(actor: Actor, firings: int, wanted: list[int]) -> None:
    """What must come in for so many firings, and for the next one to look ahead."""
    for channel in actor.inputs:
        first_pop = actor.pop(channel, is_first=True)
        pop, peek = actor.pop(channel, is_first=False), actor.peek(channel, is_first=False)
        is_special = actor.peek(channel, is_first=True) != peek or first_pop != pop
        done = firings
        if is_special and firings == 0:
            done = 1  # what is done only once belongs to the beginning
        taken = (first_pop + (done - 1) * pop) if done else 0
        most = max(taken + peek - pop, actor.peek(channel, is_first=True) if done else 0)
        wanted[channel.number] = max(wanted[channel.number], most)


def _check_cycles(flat: Flat, repeats: list[int]) -> None:
    """Whether a steady state can be gone through with what is enqueued.

    Actors fire in any order until nobody can; those that have not fired often enough wait for
    items that never come.
    """
    if not any(channel.target is not None and channel.source is not None
               and flat.actors.index(channel.source) > flat.actors.index(channel.target)
               for channel in flat.channels):  # fmt: skip
        return
    held = [len(c.enqueued) for c in flat.channels]
    # Outside of cycles there is always enough.
    plenty = {c.number for c in flat.channels if not _is_back(flat, c) and c.source is None}
    fired = [0] * len(flat.actors)
    moved = True
    while moved:
        moved = False
        for number, actor in enumerate(flat.actors):
            while fired[number] < repeats[number] and _can_fire(actor, held, plenty, fired[number]):
                _move(actor, held, fired[number])
                fired[number] += 1
                moved = True
    for number, actor in enumerate(flat.actors):
        if fired[number] < repeats[number]:
            _tell_missing(flat, actor, held, fired[number])


def _is_back(flat: Flat, channel: Channel) -> bool:
    if channel.source is None or channel.target is None:
        return False
    return flat.actors.index(channel.source) > flat.actors.index(channel.target)


def _can_fire(actor: Actor, held: list[int], plenty: set[int], fired: int) -> bool:
    return all(
        channel.number in plenty or held[channel.number] >= actor.peek(channel, is_first=fired == 0)
        for channel in actor.inputs
    )


def _move(actor: Actor, held: list[int], fired: int) -> None:
    for channel in actor.inputs:
        held[channel.number] -= actor.pop(channel, is_first=fired == 0)
    for channel in actor.outputs:
        held[channel.number] += actor.push(channel, is_first=fired == 0)


def _tell_missing(flat: Flat, actor: Actor, held: list[int], fired: int) -> None:
    for channel in actor.inputs:
        missing = actor.peek(channel, is_first=fired == 0) - held[channel.number]
        if missing > 0 and _is_back(flat, channel):
            message = (f"the loop starves: {missing} more item{'s' if missing > 1 else ''} must be "
                       f"enqueued for {actor.path} to fire")  # fmt: skip
            raise Unbalanced(Fault(message, actor.span))
