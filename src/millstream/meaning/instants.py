"""Speaking at instants: how time functions wait for time to pass and then have their say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from millstream.meaning.firing import Result, State
from millstream.meaning.items import Bag, Entry, Item, bag_with, changes
from millstream.meaning.waiting import Side, heard, known_until, marks_due

Sides = list[Side]
#: From the sides before and after an instant to what is sent at it.
Speak = Callable[[int, Sides, Sides], list[Item]]


def waited(
    entry: Entry, index: int, state: State, instants: Callable[[Sides, int], set[int]], speak: Speak
) -> Result:
    """Take in an entry; speak at every instant that has now become known on all inputs."""
    before: Sides = list(state)
    sides = heard(before, index, entry)
    now = known_until(sides)
    sent: list[Entry] = []
    if now is not None and now != known_until(before):
        for instant in sorted(instants(sides, now)):
            later = [advanced(side, instant) for side in sides]
            sent += [replace(i, origin=entry.origin) for i in speak(instant, sides, later)]
            sides = later
    mark, sides = marks_due(before, sides, entry)
    return Result((tuple(sent) + mark,), tuple(sides))


def advanced(side: Side, instant: int) -> Side:
    """A side after all that has come up to an instant."""
    come = tuple(i for i in side.pending if i.time <= instant)
    return replace(
        side,
        pending=tuple(i for i in side.pending if i.time > instant),
        bag=bag_with(side.bag, come),
        history=side.history + come,
        has_changed=side.has_changed or bool(come),
    )


def times_of_changes(sides: Sides, now: int) -> set[int]:
    return {i.time for side in sides for i in side.pending if i.time <= now}


def from_bags(evaluate_bags: Callable[[Sides], Bag]) -> Speak:
    """Speak of the difference that an instant makes to a function of bags."""
    return lambda instant, before, after: changes(
        instant, evaluate_bags(before), evaluate_bags(after)
    )
