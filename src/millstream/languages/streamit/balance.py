"""How often each actor fires: the repetition vector, and what is done before the first period.

In a steady state every channel gets as many items as are taken off it. The initialisation lets
sources fire until every filter that looks ahead has what it looks at; all else fires whenever
it can. So does it ever after, the furthest downstream first.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from millstream.errors import Fault
from millstream.languages.streamit.flat import Actor, Channel, Flat


@dataclass(frozen=True, slots=True)
class Balance:
    """Firings of each actor in a steady state and of sources at the beginning, by place."""

    repeats: tuple[int, ...]
    initially: tuple[int, ...]
    #: Items from outside that are taken at the beginning, and in each steady state.
    entry: tuple[int, int] = (0, 0)


class Unbalanced(Exception):
    """There is no such schedule; `faults` say why."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__(faults[0].message)
        self.faults = tuple(faults)


def balanced(flat: Flat) -> Balance:
    """The schedule of a graph, or `Unbalanced`."""
    faults: list[Fault] = []
    repeats = _repeats(flat, faults)
    if faults:
        raise Unbalanced(faults)
    initially, wanted = _initially(flat, repeats)
    _check_cycles(flat, repeats)
    entry = (0, 0)
    if flat.entry is not None and flat.entry.target is not None:
        target = flat.entry.target
        each = target.pop(flat.entry, is_first=False) * repeats[target.number]
        entry = wanted[flat.entry.number], each
    return Balance(tuple(repeats), tuple(initially), entry)


def _repeats(flat: Flat, faults: list[Fault]) -> list[int]:
    places = {id(actor): n for n, actor in enumerate(flat.actors)}
    rates: list[Fraction | None] = [None] * len(flat.actors)
    ways: dict[int, tuple[Channel, ...]] = {}
    for start in range(len(flat.actors)):
        if rates[start] is not None:
            continue
        members = _spread(flat, places, rates, ways, start, faults)
        _scale(rates, members)
    return [int(rate or 0) for rate in rates]


def _spread(
    flat: Flat, places: Mapping[int, int], rates: list[Fraction | None],
    ways: dict[int, tuple[Channel, ...]], start: int, faults: list[Fault],
) -> list[int]:  # fmt: skip
    """Work out the rates of all actors that are connected with one; clashes are noted once."""
    rates[start], ways[start] = Fraction(1), ()
    reached, members = deque([start]), []
    clashing: set[int] = set()
    while reached:
        here = reached.popleft()
        members.append(here)
        actor = flat.actors[here]
        for channel in (*actor.inputs, *actor.outputs):
            if channel.source is None or channel.target is None:
                continue
            other = channel.target if channel.source is actor else channel.source
            there = places[id(other)]
            try:
                rate = _across(channel, actor, rates[here] or Fraction(0))
            except Unbalanced as error:
                _note(faults, error.faults[0])
                continue
            if rate is None:
                continue
            if rates[there] is None:
                rates[there], ways[there] = rate, (*ways[here], channel)
                reached.append(there)
            elif rates[there] != rate and channel.number not in clashing:
                clashing.add(channel.number)  # which has another end, where it clashes as well
                _note(faults, _clash(other, rates[there], rate, ways[there],
                                     (*ways[here], channel)))  # fmt: skip
    return members


def _note(faults: list[Fault], fault: Fault) -> None:
    """One fault for a place: instances of a stream have the same, and so have both ends."""
    if all(known.span != fault.span for known in faults):
        faults.append(fault)


def _across(channel: Channel, actor: Actor, rate: Fraction) -> Fraction | None:
    """How often the actor at the other end fires; None if nothing passes, or nobody knows."""
    assert channel.source is not None and channel.target is not None
    if channel.source.is_open(channel) or channel.target.is_open(channel):
        return None
    push = channel.source.push(channel, is_first=False)
    pop = channel.target.pop(channel, is_first=False)
    if push == pop == 0:
        return None
    if push == 0 or pop == 0:
        giver, taker = channel.source, channel.target
        message = (f"{giver.path} gives {push or 'no'} items, but {taker.path} takes "
                   f"{pop or 'none'}: one of them can never fire again")  # fmt: skip
        raise Unbalanced([Fault(message, taker.span)])
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

    shared = 0
    while shared < min(len(way), len(other_way)) and way[shared] is other_way[shared]:
        shared += 1
    return Fault(
        f"the rates do not fit: {actor.path} would fire {one} times by one way and {other} "
        "times by another",
        actor.span,
        f"one way: {told(way[shared:])}. The other: {told(other_way[shared:])}",
    )


def _scale(rates: list[Fraction | None], members: list[int]) -> None:
    """To the smallest whole numbers."""
    some = [rates[n] or Fraction(0) for n in members]
    factor = math.lcm(*(rate.denominator for rate in some))
    whole = [int(rate * factor) for rate in some]
    divisor = math.gcd(*whole) or 1
    for n, count in zip(members, whole, strict=True):
        rates[n] = Fraction(count // divisor)


def _initially(flat: Flat, repeats: list[int]) -> tuple[list[int], list[int]]:
    """The fewest firings of sources after which everybody has what it looks ahead at.

    Wanted items, which are given too for each channel, are counted from the last actor to the
    first.
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
    sources = [count if flat.actors[n].is_source else 0 for n, count in enumerate(firings)]
    return sources, wanted


def _needed(actor: Actor, channel: Channel, items: int) -> int:
    """How many firings give so many items, as far as that is known."""
    if items <= 0 or actor.is_open(channel):
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
        # What is done only once belongs to the beginning.
        done = max(firings, int(actor.has_prework))
        taken = (first_pop + (done - 1) * pop) if done else 0
        most = max(taken + peek - pop, actor.peek(channel, is_first=True) if done else 0)
        wanted[channel.number] = max(wanted[channel.number], most)


def needed_firings(flat: Flat, target: int, count: int, first: int = 0) -> list[int]:
    """How often each actor must have fired for one to fire so often, without going round.

    Those before the first that counts are left out.
    """
    firings = [0] * len(flat.actors)
    firings[target] = count
    for number in range(target, first - 1, -1):
        actor = flat.actors[number]
        if not firings[number]:
            continue
        for channel in actor.inputs:
            if channel.source is None or _is_back(channel):
                continue
            source = channel.source
            if source.number >= first:
                needed = _needed(source, channel, _wanted(actor, channel, firings[number]))
                firings[source.number] = max(firings[source.number], needed)
    return firings


def needed_items(flat: Flat, target: int, count: int, channel: Channel) -> int:
    """How many items a channel must have had for an actor behind it to fire so often."""
    assert channel.source is not None and channel.target is not None
    taker = channel.target
    firings = needed_firings(flat, target, count, channel.source.number + 1)[taker.number]
    return _wanted(taker, channel, firings) if firings else 0


def _wanted(actor: Actor, channel: Channel, firings: int) -> int:
    """How many items must have come for an actor to fire so often, but for those enqueued."""
    wanted = actor.peek(channel, is_first=True)
    if firings > 1:
        taken = actor.pop(channel, is_first=True)
        taken += (firings - 2) * actor.pop(channel, is_first=False)
        wanted = max(wanted, taken + actor.peek(channel, is_first=False))
    return wanted - len(channel.enqueued)


def _check_cycles(flat: Flat, repeats: list[int]) -> None:
    """Whether steady states can be gone through with what is enqueued.

    Actors fire in any order until nobody can; those that have not fired often enough wait for
    items that never come. Two steady states are enough to see that there are more. Who is asked
    to look ahead needs others to be further, by as much as all look ahead.
    """
    if flat.changes or not any(map(_is_back, flat.channels)):
        return
    held = [len(c.enqueued) for c in flat.channels]
    # Outside of cycles there is always enough.
    plenty = {c.number for c in flat.channels if not _is_back(c) and c.source is None}
    fired = [0] * len(flat.actors)
    goal = [2 * count for count in repeats]
    limits, furthest = goal, 2 + _ahead(flat, repeats)
    missing: dict[int, int] = {}
    rounds = 2
    while True:
        _run_dry(flat, limits, held, plenty, fired)
        if all(count >= least for count, least in zip(fired, goal, strict=True)):
            break
        if rounds < furthest:
            rounds = min(2 * rounds, furthest)
            limits = [rounds * count for count in repeats]
            continue
        # What would come if it were enqueued; there may be more missing after that.
        starved = _starved(flat, goal, held, plenty, fired) or _starved(
            flat, limits, held, plenty, fired
        )
        if starved is None:
            break
        channel, count = starved
        missing[channel.number] = missing.get(channel.number, 0) + count
        held[channel.number] += count
    faults = [_starving(flat.channels[number], count) for number, count in missing.items()]
    if faults:
        raise Unbalanced(faults)


def _ahead(flat: Flat, repeats: list[int]) -> int:
    """By how many steady states somebody may have to be ahead of those who look ahead."""
    steps = 0
    for number, actor in enumerate(flat.actors):
        for channel in actor.inputs:
            each = actor.pop(channel, is_first=False) * repeats[number]
            first = actor.peek(channel, is_first=True)
            more = max(first, actor.peek(channel, is_first=False)) - min(
                actor.pop(channel, is_first=True), actor.pop(channel, is_first=False)
            )
            steps += -(-more // each) if each and more > 0 else 0
    return steps


def _run_dry(
    flat: Flat, limits: list[int], held: list[int], plenty: set[int], fired: list[int]
) -> None:
    moved = True
    while moved:
        moved = False
        for number, actor in enumerate(flat.actors):
            while fired[number] < limits[number] and _can_fire(actor, held, plenty, fired[number]):
                _move(actor, held, fired[number])
                fired[number] += 1
                moved = True


def _starved(
    flat: Flat, limits: list[int], held: list[int], plenty: set[int], fired: list[int]
) -> tuple[Channel, int] | None:
    """A channel that closes a loop, and how many items it lacks for somebody to go on."""
    for number, actor in enumerate(flat.actors):
        if fired[number] < limits[number]:
            for channel in actor.inputs:
                wanted = actor.peek(channel, is_first=fired[number] == 0)
                lacks = wanted - held[channel.number]
                if lacks > 0 and channel.number not in plenty and _is_back(channel):
                    return channel, lacks
    return None


def _starving(channel: Channel, missing: int) -> Fault:
    assert channel.target is not None
    return Fault(
        f"the loop starves: {missing} more item{'s' if missing > 1 else ''} must be enqueued "
        f"for {channel.target.path} to fire",
        channel.target.span,
    )


def _is_back(channel: Channel) -> bool:
    if channel.source is None or channel.target is None:
        return False
    return channel.source.number > channel.target.number


def _can_fire(actor: Actor, held: list[int], plenty: set[int], fired: int) -> bool:
    return all(
        # Nothing fires before something has come, be it only a prework.
        channel.number in plenty
        or held[channel.number] >= max(1, actor.peek(channel, is_first=fired == 0))
        for channel in actor.inputs
    )


def _move(actor: Actor, held: list[int], fired: int) -> None:
    for channel in actor.inputs:
        held[channel.number] -= actor.pop(channel, is_first=fired == 0)
    for channel in actor.outputs:
        held[channel.number] += actor.push(channel, is_first=fired == 0)
