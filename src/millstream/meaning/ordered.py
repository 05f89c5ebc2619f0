"""What rows of a group are, in order: their places, their neighbours, the frames around them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from millstream.calculus.aggregation import Aggregation
from millstream.calculus.ordering import ENDS, JOINED, NEIGHBOURS, PLACES, Frame, Ordered, Placed
from millstream.calculus.terms import Column
from millstream.calculus.types import Row, Schema, Value
from millstream.meaning.firing import Context, Result, State, fire
from millstream.meaning.instants import Sides, from_bags, times_of_changes, waited
from millstream.meaning.items import Bag, Entry, row_order, rows_in_order, value_order
from millstream.meaning.relations import aggregate_of


@fire.register
def _ordered(function: Ordered, entry: Entry, index: int, state: State, context: Context) -> Result:
    schema = context.input_types[0].schema

    def placed(sides: Sides) -> Bag:
        groups: dict[Row, list[Row]] = {}
        there = {row: count for row, count in sides[0].bag.items() if count > 0}
        for row in rows_in_order(there):
            key = tuple(row[schema.index(name)] for name in function.by)
            groups.setdefault(key, []).append(row)
        bag: dict[Row, int] = {}
        for rows in groups.values():
            for row in with_places(function, schema, in_order(function, schema, rows)):
                bag[row] = bag.get(row, 0) + 1
        return bag

    return waited(entry, index, state, times_of_changes, from_bags(placed))


def in_order(function: Ordered, schema: Schema, rows: Iterable[Row]) -> list[Row]:
    """The rows of a group as they follow each other."""
    ordered = sorted(rows, key=row_order)
    for name in reversed(function.on):
        place = schema.index(name)
        ordered.sort(key=lambda row: value_order(row[place]), reverse=name in function.descending)
    return ordered


def with_places(function: Ordered, schema: Schema, rows: Sequence[Row]) -> list[Row]:
    """The rows of a group, which are in order, with what follows from their places."""
    order = GroupOrder(function, schema, rows)
    columns = [order.column(column) for column in function.columns]
    made = list(zip(*columns, strict=True)) if columns else [()] * len(rows)
    return [(*row, *more) for row, more in zip(rows[: function.count], made, strict=False)]


class GroupOrder:
    """The rows of one group in order, and which of them are equal in it."""

    def __init__(self, function: Ordered, schema: Schema, rows: Sequence[Row]) -> None:
        self.function = function
        self.schema = schema
        self.rows = rows
        #: How many rows are asked for.
        self.count = len(rows) if function.count is None else min(len(rows), function.count)
        self.first, self.last, self.kinds = self._peers()

    def _peers(self) -> tuple[list[int], list[int], list[int]]:
        """For each row the places of the first and the last of its equals, and which kind it is."""
        places = [self.schema.index(name) for name in self.function.on]
        keys = [row_order(tuple(row[p] for p in places)) for row in self.rows]
        first, kinds = [0] * len(keys), [0] * len(keys)
        for i in range(len(keys)):
            is_new = i == 0 or keys[i] != keys[i - 1]
            first[i] = i if is_new else first[i - 1]
            kinds[i] = 1 if i == 0 else kinds[i - 1] + is_new
        last = list(range(len(keys)))
        for i in range(len(keys) - 2, -1, -1):
            last[i] = last[i + 1] if keys[i] == keys[i + 1] else i
        return first, last, kinds

    def column(self, placed: Placed) -> list[Value]:
        if placed.function in PLACES:
            return self._places(placed.function)
        values = self._values(placed)
        if placed.function in NEIGHBOURS:
            step = placed.offset if placed.function == "lead" else -placed.offset
            inside = range(len(values))
            return [values[i + step] if i + step in inside else None for i in range(self.count)]
        return self._framed(placed, values)

    def _places(self, function: str) -> list[Value]:
        if function == "row_number":
            return [i + 1 for i in range(self.count)]
        if function == "rank":
            return [self.first[i] + 1 for i in range(self.count)]
        return list(self.kinds[: self.count])

    def _values(self, placed: Placed) -> list[Value]:
        if placed.column is None:
            return [True] * len(self.rows)
        place = self.schema.index(placed.column)
        return [row[place] for row in self.rows]

    def _framed(self, placed: Placed, values: list[Value]) -> list[Value]:
        made: list[Value] = []
        before: tuple[int, int] | None = None
        for i in range(self.count):
            ends = self._ends(placed.frame, i)
            # Rows that have the same frame have the same answer.
            made.append(made[-1] if ends == before else self._of(placed, values[ends[0] : ends[1]]))
            before = ends
        return made

    def _of(self, placed: Placed, values: list[Value]) -> Value:
        if placed.function in ENDS:
            return None if not values else values[0 if placed.function == "first" else -1]
        if placed.function == JOINED:
            texts = [str(v) for v in values if v is not None]
            return placed.between.join(texts) if texts else None
        bag: dict[Row, int] = {}
        for value in values:
            bag[(value,)] = bag.get((value,), 0) + 1
        if placed.column is None:
            return len(values)
        type_ = self.schema[placed.column]
        asked = Aggregation(placed.name, placed.function, Column(placed.column, type_))
        return aggregate_of(asked, bag, Schema.of(**{placed.column: type_}))

    # --- frames ---

    def _ends(self, frame: Frame, i: int) -> tuple[int, int]:
        """The place of the first row of the frame of a row, and of the first behind it."""
        if frame.unit == "rows":
            size = len(self.rows)
            start = 0 if frame.start is None else max(0, i + frame.start)
            end = size if frame.end is None else min(size, i + frame.end + 1)
        else:
            start = self._start(frame.start, i)
            end = self._end(frame.end, i)
        return start, max(start, end)

    def _start(self, distance: int | None, i: int) -> int:
        if distance is None:
            return 0
        if distance == 0 or self._place(i) is None:
            return self.first[i]
        return bisect_left(self.rows, self._moved(distance, i), key=self._key)

    def _end(self, distance: int | None, i: int) -> int:
        if distance is None:
            return len(self.rows)
        if distance == 0 or self._place(i) is None:
            return self.last[i] + 1
        return bisect_right(self.rows, self._moved(distance, i), key=self._key)

    def _place(self, i: int) -> Any:
        return self.rows[i][self.schema.index(self.function.on[0])]

    @property
    def _sign(self) -> int:
        return -1 if self.function.descending else 1

    @property
    def _key(self) -> Callable[[Row], Any]:
        """What rows are ordered by, as something that grows; nulls and NaN stand at the ends."""
        place, sign = self.schema.index(self.function.on[0]), self._sign

        def key(row: Row) -> tuple[int, Any]:
            value: Any = row[place]
            if value is None:
                return (-sign, 0)
            return (sign, 0) if value != value else (0, sign * value)

        return key

    def _moved(self, distance: int, i: int) -> tuple[int, Any]:
        value = self._place(i)
        return (self._sign, 0) if value != value else (0, self._sign * value + distance)
