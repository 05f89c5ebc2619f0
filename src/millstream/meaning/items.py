"""What lies on queues: items and marks; and bags of rows."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from millstream.calculus.types import Row, Value

#: (time, phase, declaration, position): where an item comes from, for the default
#: schedule. Phase 0 is a row of an input, phase 1 what a mark sets free.
Origin = tuple[int, int, int, int]
NOWHERE: Origin = (0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Item:
    """A row of a stream, or with a weight a change of a relation."""

    time: int
    row: Row
    weight: int = 1
    origin: Origin = dataclasses.field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Mark:
    """Time has passed: no further item of this queue has a time up to `time`.

    `ticks` are the instants since the last mark at which a program input behind the
    queue had an item. The paper has every operator send something at every time stamp;
    a mark is that, for the time stamps at which there is nothing to say.
    """

    time: int
    ticks: tuple[int, ...] = ()
    origin: Origin = dataclasses.field(default=NOWHERE, compare=False, repr=False)


Entry = Item | Mark
Bag = Mapping[Row, int]


def value_order(value: Value) -> tuple[int, bool, Value]:
    """The canonical order of values of one type: null first, NaN last."""
    if value is None:
        return (0, False, 0)
    return (1, value != value, 0 if value != value else value)


def row_order(row: Row) -> tuple[tuple[int, bool, Value], ...]:
    return tuple(value_order(v) for v in row)


def bag_with(bag: Bag, changes: Iterable[Item]) -> Bag:
    """The bag after some changes; a row may for a moment be there less than no time."""
    result = Counter(dict(bag))
    for change in changes:
        result[change.row] += change.weight
    return {row: count for row, count in result.items() if count}


def rows_in_order(bag: Bag) -> list[Row]:
    """The rows of a bag in canonical order, repeated as often as they are there."""
    return [row for row in sorted(bag, key=row_order) for _ in range(bag[row])]


def difference(after: Bag, before: Bag) -> Bag:
    """What `after` has more of than `before`."""
    return {
        row: count - before.get(row, 0)
        for row, count in after.items()
        if count > before.get(row, 0)
    }


def changes(time: int, before: Bag, after: Bag) -> list[Item]:
    """The changes that turn one bag into the other at an instant: first what leaves."""
    gone = [Item(time, row, -1) for row in rows_in_order(difference(before, after))]
    return gone + [Item(time, row, 1) for row in rows_in_order(difference(after, before))]


def consolidated(items: Iterable[Item]) -> list[Item]:
    """Changes of a relation with no +1 and -1 of an equal row at one instant."""
    by_time: dict[int, list[Item]] = {}
    for item in items:
        by_time.setdefault(item.time, []).append(item)
    result: list[Item] = []
    for time in sorted(by_time):
        net = bag_with({}, by_time[time])
        result += changes(time, {r: -c for r, c in net.items() if c < 0}, {})
        result += changes(time, {}, {r: c for r, c in net.items() if c > 0})
    return result
