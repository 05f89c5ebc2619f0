"""Ordered, where columns follow from the rows around a row: its neighbours, and frames of rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.calculus.functions import Ordered
from millstream.calculus.ordering import ENDS, NEIGHBOURS, PLACES, Frame, Placed, looks_back
from millstream.calculus.types import Kind, Schema, Type
from millstream.kernels.relational import framed_columns as look
from millstream.kernels.relational import framed_loop as loop
from millstream.kernels.relational.in_order import Changed, RowsInOrder
from millstream.kernels.relational.pieces import Piece
from millstream.kernels.runtime.consolidate import consolidate
from millstream.kernels.runtime.hashing import frozen
from millstream.kernels.runtime.kernel import Round
from millstream.kernels.windows.counted_list import WORDS
from millstream.kernels.windows.sums import CELL, LIMBS, Wides
from millstream.plan.batch import Array, Batch, Vector, empty_batch

#: No group has as many rows.
_ALL = 1 << 62
_KINDS = {
    "row_number": look.NUMBER, "rank": look.RANK, "dense_rank": look.DENSE, "lag": look.NEIGHBOUR,
    "lead": look.NEIGHBOUR, "first": look.FIRST, "last": look.LAST, "count": look.VALUES,
    "sum": look.SUM, "avg": look.MEAN, "min": look.LEAST, "max": look.LARGEST,
}  # fmt: skip
_ADDED = (Kind.INTEGER, Kind.NUMBER)
_ORDERED_BY = (Kind.INTEGER, Kind.NUMBER, Kind.TIME, Kind.DURATION)
#: The values of other rows, which are told by the numbers of these.
_OF_ROWS = (*NEIGHBOURS, *ENDS, "min", "max")


def has_framed_loop(function: Ordered, schema: Schema) -> bool:
    """Whether all columns are ones that the loop knows."""
    return all(_is_known(one, function, schema) for one in function.columns)


def _is_known(one: Placed, function: Ordered, schema: Schema) -> bool:
    if one.function not in _KINDS:
        return False
    is_measured = one.frame.unit == "range" and any(e not in (None, 0) for e in one.frame.ends)
    if is_measured and schema[function.on[0]].kind not in _ORDERED_BY:
        return False
    is_added = one.function in ("sum", "avg")
    return not is_added or (one.column is not None and schema[one.column].kind in _ADDED)


def reach_of(function: Ordered) -> tuple[int, int] | None:
    """How many rows before and after itself a row looks at; None if there is no such number."""
    if function.count is not None:
        return None
    back = ahead = 0
    for one in function.columns:
        if one.function in NEIGHBOURS:
            before, after = (one.offset, 0) if one.function == "lag" else (0, one.offset)
        elif one.function in PLACES or one.frame.unit != "rows":
            return None
        else:
            start, end = one.frame.ends
            if start is None or end is None:
                return None
            before, after = max(0, -start), max(0, end)
        back, ahead = max(back, before), max(ahead, after)
    return back, ahead


class FramedKernel(RowsInOrder):
    """Mutable: the rows of all groups in order. What was told of them follows from these."""

    row_words = loop.LINKS + WORDS
    group_words = loop.HEADS + WORDS
    links = loop.LINKS
    path_words = WORDS

    def forget(self) -> None:
        super().forget()
        function, schema = self.function, self.given.schema
        reach = reach_of(function)
        told = _ALL if function.count is None else function.count
        looks_back_only = all(looks_back(one) for one in function.columns)
        has_floats = bool(function.on) and schema[function.on[0]].kind is Kind.NUMBER
        self.shape = look.FramedShape(
            self.rows.codec.width, self.groups.codec.width, len(function.on), has_floats,
            reach is not None, *(reach or (0, 0)), told, told if looks_back_only else _ALL,
        )  # fmt: skip
        columns = [self._column(one) for one in function.columns]
        numbers = np.array(columns, np.int64).reshape(len(columns), 8)
        self.asked = look.FramedColumns(*(frozen(numbers[:, k]) for k in range(8)))
        self.work = self._work(0)

    def _column(self, one: Placed) -> tuple[int, ...]:
        schema = self.given.schema
        kind, source = _KINDS[one.function], 0
        if one.column is not None:
            source = self.columns.index(one.column)
        elif one.function == "count":
            kind = look.ROWS
        is_float = one.column is not None and schema[one.column].kind is Kind.NUMBER
        offset = one.offset if one.function == "lead" else -one.offset
        ends = (_end(one.frame, end) for end in one.frame.ends)
        return (kind, source, is_float, offset, *(number for end in ends for number in end))

    def _work(self, size: int) -> look.Work:
        """Room for lists of so many rows."""
        count = len(self.function.columns)

        def listing() -> look.Listing:
            first, last, kinds, rows = (np.empty(size, np.int64) for _ in range(4))
            words = np.empty((size, count), np.int64)
            return look.Listing(rows, first, last, kinds, words, np.empty((size, count), np.bool_))

        cells = np.zeros((count, CELL), np.int64)
        # Each column has one wide sum at most, and the first is for scratch.
        limbs, free = np.zeros((count + 1, LIMBS), np.int64), np.zeros(count + 1, np.int64)
        wides = Wides(limbs, free, np.array([1, 0, 0], np.int64))
        places = np.empty(size, np.int64)
        return look.Work(listing(), listing(), cells, cells.view(np.float64), wides, places)

    def pieces(self, inputs: tuple[Batch, ...], round_: Round) -> Iterator[Piece]:
        (batch,) = inputs
        if not len(batch):
            yield Piece(empty_batch(self.type), round_.mark)
            return
        changes, lists = _by_groups(self.changes(batch)), self.lists()
        cursor = np.zeros(4, np.int64)
        out = self._room(self.room(len(batch)))
        groups, is_done = self.groups.table.records, False
        while not is_done:
            cursor[loop.SIZE] = 0
            is_done = loop.tell_framed(
                changes, self.asked, self.shape, groups, lists, self.work, cursor, out
            )
            need = 0 if is_done else 2 * int(cursor[loop.NEED])
            made = self._batch(out, int(cursor[loop.SIZE]), is_mixed=bool(cursor[loop.IS_MIXED]))
            if need > len(self.work.places):
                self.work = self._work(need)
            if need > len(out.time):
                out = self._room(need)
            if is_done:
                self.release(changes)
                yield Piece(made, round_.mark)
            else:
                yield Piece(made, int(changes.time[cursor[loop.AT]]) - 1)

    def _room(self, size: int) -> loop.Framed:
        count = len(self.function.columns)
        time, rows, weight = (np.empty(size, np.int64) for _ in range(3))
        words = np.empty((size, count), np.int64)
        return loop.Framed(time, rows, weight, words, np.empty((size, count), np.bool_))

    def _batch(self, out: loop.Framed, size: int, *, is_mixed: bool) -> Batch:
        told = loop.Framed(*(a[:size].copy() for a in out))
        by_name = self.vectors(told.rows)
        columns = [by_name[n] for n in self.given.schema.names]
        for k, one in enumerate(self.function.columns):
            words, valid = told.words[:, k], ~told.nulls[:, k]
            type_ = self.type.schema[one.name]
            if one.function in _OF_ROWS:
                assert one.column is not None
                columns.append(self._of_rows(one.column, told, words, valid))
            else:
                columns.append(_numbers(type_, words, valid))
        made = Batch(self.type, told.time, tuple(columns), told.weight)
        return consolidate(made) if is_mixed else made

    def _of_rows(self, column: str, told: loop.Framed, rows: Array, valid: Array) -> Vector:
        """A column of other rows than those that are told, null where there is none."""
        if valid.all():
            return self.vectors(rows)[column]
        values = self.vectors(np.where(valid, rows, told.rows))[column]
        if values.is_text:
            there = pc.if_else(pa.array(valid), values.to_arrow(), pa.scalar(None, pa.string()))
            return Vector(values.type, there)
        return Vector(values.type, values.values, valid)


def _numbers(type_: Type, words: Array, valid: Array) -> Vector:
    plain = np.ascontiguousarray(words)
    values = plain.view(np.float64) if type_.kind is Kind.NUMBER else plain
    return Vector(type_, values, None if valid.all() else valid)


def _end(frame: Frame, distance: int | None) -> tuple[int, int]:
    """An end of a frame: which kind, and how far it is."""
    if distance is None:
        return look.OPEN, 0
    if frame.unit == "rows":
        return look.AWAY, distance
    return (look.EQUALS, 0) if distance == 0 else (look.DISTANCE, distance)


def _by_groups(changes: Changed) -> Changed:
    """The changes of each instant, those of a group together."""
    order = np.lexsort((changes.groups, changes.time))
    return Changed(*(frozen(a[order]) for a in changes))
