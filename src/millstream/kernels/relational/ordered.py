"""Ordered: groups in order, and what follows from the places of their rows.

Where no more than the places themselves are asked for, `places` has compiled loops for it; where
rows look at those around them, `framed` has; where it follows from the size of a group which of
its rows are asked for, `chosen` has. What is left, texts that are joined in frames and sums of
durations, is worked out here by its meaning.

A group is put in order again when it changes, and what is different from before is told. So a
change costs as much as its group is long; where only the first rows are wanted, a change behind
them costs nothing more than finding its place. Where rows look at no more than some neighbours,
only the neighbours of what changes are looked at.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from millstream.calculus.functions import Ordered
from millstream.calculus.ordering import PLACES, looks_back
from millstream.calculus.types import QueueType, Row, Schema
from millstream.kernels.relational.framed import FramedKernel, has_framed_loop, reach_of
from millstream.kernels.relational.places import PlacesKernel
from millstream.kernels.runtime.kernel import Round, State
from millstream.kernels.runtime.rowstore import restored_batch, stored_batch
from millstream.meaning.items import row_order, value_order
from millstream.meaning.ordered import with_places
from millstream.plan.batch import Batch, batch_of, empty_batch


@dataclass(frozen=True, slots=True)
class _Down:
    """A value that stands in the opposite order."""

    value: Any

    def __lt__(self, other: _Down) -> bool:
        return bool(other.value < self.value)


def _ordered_by(function: Ordered, schema: Schema) -> Callable[[Row], Any]:
    """What makes of a row something that is as much less as the row is earlier."""
    places = [(schema.index(n), n in function.descending) for n in function.on]

    def key(row: Row) -> tuple[Any, ...]:
        orders = ((value_order(row[place]), is_down) for place, is_down in places)
        return (*(_Down(o) if is_down else o for o, is_down in orders), row_order(row))

    return key


@dataclass(slots=True)
class _Group:
    """Mutable: the rows of a group in order, each as often as it is there, and what was told.

    `keys` are what rows are ordered by.
    """

    keys: list[Any] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    told: Counter[Row] = field(default_factory=Counter)


def ordered_kernel(
    function: Ordered, input_types: tuple[QueueType, ...], output_count: int
) -> OrderedKernel | PlacesKernel | FramedKernel:
    kind: type[OrderedKernel | PlacesKernel | FramedKernel]
    if all(one.function in PLACES for one in function.columns):
        kind = PlacesKernel
    elif has_framed_loop(function, input_types[0].schema):
        kind = FramedKernel
    else:
        kind = OrderedKernel
    return kind(function, input_types, output_count)


class OrderedKernel:
    """Mutable: the groups that have rows."""

    rests = False

    def __init__(
        self, function: Ordered, input_types: tuple[QueueType, ...], output_count: int
    ) -> None:
        (self.given,) = input_types
        (self.type,) = function.output_types(input_types, output_count)
        self.function = function
        schema = self.given.schema
        self.key = [schema.index(n) for n in function.by]
        self.order: Callable[[Row], Any] = _ordered_by(function, schema)
        self.groups: dict[Row, _Group] = {}
        self.looks_back = all(looks_back(one) for one in function.columns)
        self.reach = reach_of(function)

    def process(self, inputs: tuple[Batch, ...], round_: Round) -> tuple[Batch, ...]:
        (batch,) = inputs
        if not len(batch):
            return (empty_batch(self.type),)
        assert batch.weight is not None
        times, weights, rows = batch.time.tolist(), batch.weight.tolist(), batch.rows()
        columns: tuple[list[int], list[Row], list[int]] = ([], [], [])
        start = 0
        while start < len(rows):
            end = start
            changed: dict[Row, Counter[Row]] = {}
            while end < len(rows) and times[end] == times[start]:
                key = tuple(rows[end][i] for i in self.key)
                changed.setdefault(key, Counter())[rows[end]] += weights[end]
                end += 1
            for key, changes in changed.items():
                for row, weight in self._changed(key, changes).items():
                    columns[0].append(times[start])
                    columns[1].append(row)
                    columns[2].append(weight)
            start = end
        return (batch_of(self.type, *columns),)

    def _changed(self, key: Row, changes: Counter[Row]) -> dict[Row, int]:
        """Take in the changes of a group at an instant; how what is told of it changes."""
        group = self.groups.setdefault(key, _Group())
        if self.reach is not None:
            return self._changed_around(key, group, changes, *self.reach)
        first = len(group.rows)
        for row, weight in changes.items():
            if weight:
                first = min(first, self._place(group, row, weight))
        if self.looks_back and self.function.count is not None and first >= self.function.count:
            return {}  # behind the rows that are wanted
        told = self._told(group)
        different = Counter(told)
        different.subtract(group.told)
        group.told = told
        if not group.rows:
            del self.groups[key]
        return {row: weight for row, weight in different.items() if weight}

    def _changed_around(
        self, key: Row, group: _Group, changes: Counter[Row], back: int, ahead: int
    ) -> dict[Row, int]:
        """The same where a row is told by at most so many before and after it."""
        different: Counter[Row] = Counter()
        for row, weight in changes.items():
            if not weight:
                continue
            place = bisect_left(group.keys, self.order(row))
            # Whoever looks that far ahead or back sees the change.
            first, gone = max(0, place - ahead), max(0, -weight)
            different.subtract(self._around(group, first, place + gone + back, back, ahead))
            self._place(group, row, weight)
            different.update(self._around(group, first, place + weight + gone + back, back, ahead))
        if not group.rows:
            del self.groups[key]
        return {row: weight for row, weight in different.items() if weight}

    def _around(self, group: _Group, first: int, end: int, back: int, ahead: int) -> list[Row]:
        """What is told of the rows from a place on, up to another."""
        start = max(0, first - back)
        seen = with_places(self.function, self.given.schema, group.rows[start : end + ahead])
        return seen[first - start : end - start]

    def _told(self, group: _Group) -> Counter[Row]:
        """All that is to be told of a group."""
        asked = group.rows[: self.function.count] if self.looks_back else group.rows
        return Counter(with_places(self.function, self.given.schema, asked))

    def _place(self, group: _Group, row: Row, weight: int) -> int:
        """Put a row where it belongs, or take it away; its place."""
        order = self.order(row)
        place = bisect_left(group.keys, order)
        if weight > 0:
            group.keys[place:place] = [order] * weight
            group.rows[place:place] = [row] * weight
        else:
            del group.keys[place : place - weight]
            del group.rows[place : place - weight]
        return place

    def snapshot(self) -> State:
        rows = [row for group in self.groups.values() for row in group.rows]
        rows.sort(key=row_order)
        return stored_batch(batch_of(QueueType(self.given.schema), [0] * len(rows), rows))

    def restore(self, state: State) -> None:
        self.groups = {}
        for row in restored_batch(QueueType(self.given.schema), state).rows():
            key = tuple(row[i] for i in self.key)
            self._place(self.groups.setdefault(key, _Group()), row, 1)
        if self.reach is None:
            for group in self.groups.values():
                group.told = self._told(group)

    def faults(self) -> dict[str, int]:
        return {}
