"""Join: pairs of rows with equal keys, kept up to date at every instant.

At one instant both sides may change. Let L and R be how often a row is present after it,
and l and r before: a pair changes by LR - lr. Pairs of a changed left row are told with
its list of right rows, pairs of a changed right row with those left rows that have not
changed. So each pair is told once, and nothing that undoes itself is told.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from millstream.calculus.functions import Join
from millstream.calculus.types import INTEGER, QueueType, Schema
from millstream.compiled import inlined, tight
from millstream.kernels.relational.keyed_lists import (
    AT_LEFT,
    AT_RIGHT,
    BEFORE,
    CURSOR,
    FIRST,
    IS_BEGUN,
    IS_ENTERED,
    IS_TOUCHED,
    KEY_EXTRA,
    KEY_ROWS,
    LINK,
    NEXT,
    NOW,
    ROW_EXTRA,
    ROWS,
    SIZE,
    TELLING,
    TOUCHED_LEFT,
    TOUCHED_RIGHT,
    Keys,
    Side,
    apply_changes,
    next_instant,
    settle,
)
from millstream.kernels.relational.pieces import Cursor, Piece, Piecewise, roomfuls
from millstream.kernels.runtime.hashing import dead_ids, frozen
from millstream.kernels.runtime.interning import Interner
from millstream.kernels.runtime.kernel import Round
from millstream.plan.batch import Array, Batch, Vector, empty_batch

# --- the loop ---------------------------------------------------------------------------


class Pairs(NamedTuple):
    time: Array
    left: Array
    right: Array
    weight: Array


@inlined
def _count_before(side: Side, row: Any) -> Any:
    is_touched = side.records[row, side.extra + IS_TOUCHED] != 0
    return side.records[row, side.extra + (BEFORE if is_touched else ROWS)]


@inlined
def _tell_row(row: Any, one: Side, other: Side, cursor: Array, pairs: Pairs) -> Any:
    """Tell the pairs of a touched row from LINK on; False if there is no more room."""
    records, extra = other.records, other.extra
    before, after = one.records[row, one.extra + BEFORE], one.records[row, one.extra + ROWS]
    # What changes at every pair is kept out of memory.
    link, size = cursor[LINK], cursor[SIZE]
    while link != 0:
        match = link - 1
        if one.number == 0 or records[match, extra + IS_TOUCHED] == 0:
            change = after * records[match, extra + ROWS] - before * _count_before(other, match)
            if change != 0:
                if size == pairs.time.size:
                    cursor[LINK], cursor[SIZE] = link, size
                    return False
                pairs.time[size], pairs.weight[size] = cursor[NOW], change
                pairs.left[size] = row if one.number == 0 else match
                pairs.right[size] = match if one.number == 0 else row
                size += 1
        link = records[match, extra + NEXT]
    cursor[LINK], cursor[SIZE] = link, size
    return True


@inlined
def _begin(left: Side, right: Side, keys: Keys, cursor: Array) -> Any:
    """Apply the changes of the next instant; False if there is none."""
    if not next_instant(left.time, right.time, cursor):
        return False
    i, j, now = cursor[AT_LEFT], cursor[AT_RIGHT], cursor[NOW]
    cursor[AT_LEFT], cursor[TOUCHED_LEFT] = apply_changes(left, right, i, now, keys, None)
    cursor[AT_RIGHT], cursor[TOUCHED_RIGHT] = apply_changes(right, left, j, now, keys, None)
    return True


@inlined
def _tell(k: Any, one: Side, other: Side, keys: Keys, work: tuple[Array, Pairs]) -> Any:
    """Tell the pairs of the k-th touched row of a side; False if there is no more room."""
    cursor, pairs = work
    row = one.touched[k]
    if not cursor[IS_ENTERED]:
        key = one.records[row, 0]
        cursor[LINK] = keys.records[key, keys.extra + FIRST + other.number]
        cursor[IS_ENTERED] = 1
    if not _tell_row(row, one, other, cursor, pairs):
        return False
    cursor[IS_ENTERED] = 0
    return True


@tight
def join_changes(left: Side, right: Side, keys: Keys, cursor: Array, pairs: Pairs) -> bool:
    """Tell the pairs that change; False if there is no more room: to be called again."""
    work = (cursor, pairs)
    while True:
        if not cursor[IS_BEGUN] and not _begin(left, right, keys, cursor):
            return True
        while cursor[TELLING] < cursor[TOUCHED_LEFT]:
            if not _tell(cursor[TELLING], left, right, keys, work):
                return False
            cursor[TELLING] += 1
        while cursor[TELLING] < cursor[TOUCHED_LEFT] + cursor[TOUCHED_RIGHT]:
            if not _tell(cursor[TELLING] - cursor[TOUCHED_LEFT], right, left, keys, work):
                return False
            cursor[TELLING] += 1
        settle(left, cursor[TOUCHED_LEFT], keys, None)
        settle(right, cursor[TOUCHED_RIGHT], keys, None)
        cursor[IS_BEGUN] = 0


# --- the kernel -------------------------------------------------------------------------


def null_keys(batch: Batch, names: Sequence[str]) -> Array | None:
    """Which rows have a null among their keys, which equals nothing; None if no row has."""
    keys = [batch.column(n) for n in names]
    nulls = [~k.mask() for k in keys if k.may_have_nulls]
    if not nulls or not np.any(nulls):
        return None
    has_null: Array = np.logical_or.reduce(nulls)
    return has_null


def with_keys(batch: Batch, names: Sequence[str], *, nulls_match: bool) -> Batch:
    """The rows that can have partners: null has none, unless nulls match."""
    nulls = None if nulls_match else null_keys(batch, names)
    return batch if nulls is None else batch.take(np.flatnonzero(~nulls))


def release_keys(keys: Interner, used: Array) -> None:
    """Forget those keys among the used ones that have no rows any more."""
    keys.release(dead_ids(used, keys.table.records, keys.codec.width + KEY_ROWS))


class JoinSide:
    """Mutable. The rows of one side: the number of the key, then the other columns.

    Of these the column `first` comes first, even if it is among the keys. With each row
    there is room for `extra` words.
    """

    def __init__(
        self,
        number: int,
        schema: Schema,
        keys: tuple[str, ...],
        *,
        nulls_match: bool,
        first: tuple[str, ...] = (),
        extra: int = ROW_EXTRA,
    ) -> None:
        self.number = number
        self.keys = keys
        self.nulls_match = nulls_match
        self.rest = (*first, *(n for n in schema.names if n not in (*keys, *first)))
        self.rows = Interner((INTEGER, *(schema[n] for n in self.rest)), extra)

    def changes(self, batch: Batch, interner: Interner) -> Side:
        """What the loop needs to know of the changes; those with no partner are left out."""
        batch = with_keys(batch, self.keys, nulls_match=self.nulls_match)
        keys = [batch.column(n) for n in self.keys]
        numbers = Vector(INTEGER, interner.ids(keys, len(batch)))
        rest = [batch.column(n) for n in self.rest]
        rows = self.rows.ids([numbers, *rest], len(batch))
        assert batch.weight is not None
        return Side(
            self.number,
            frozen(batch.time),
            rows,
            frozen(batch.weight),
            np.empty(len(batch), np.int64),
            self.rows.table.records,
            self.rows.codec.width,
        )

    def columns(self, names: Sequence[str], rows: Array, interner: Interner) -> list[Vector]:
        numbers, *rest = self.rows.vectors(rows)
        by_name = dict(zip(self.rest, rest, strict=True))
        if any(name in self.keys for name in names):
            by_name |= zip(self.keys, interner.vectors(numbers.values), strict=True)
        return [by_name[name] for name in names]

    def release(self, used: Array) -> None:
        column = self.rows.codec.width + ROWS
        self.rows.release(dead_ids(used, self.rows.table.records, column))


class JoinKernel(Piecewise):
    """Mutable: the rows of both sides, listed by key. Conditions are put behind it by the plan."""

    rests = True

    def __init__(
        self, function: Join, input_types: tuple[QueueType, ...], output_count: int
    ) -> None:
        assert function.where is None, function
        (self.type,) = function.output_types(input_types, output_count)
        left, right = (t.schema for t in input_types)
        self.keys = Interner([left[name] for name, _ in function.on], KEY_EXTRA)
        nulls_match = function.nulls_match
        ours, theirs = (tuple(pair[n] for pair in function.on) for n in (0, 1))
        self.left = JoinSide(0, left, ours, nulls_match=nulls_match)
        self.right = JoinSide(1, right, theirs, nulls_match=nulls_match)
        self.kept = (left.names, function.right_kept(right))
        self.parts = {"keys": self.keys, "left": self.left.rows, "right": self.right.rows}

    def pieces(self, inputs: tuple[Batch, ...], round_: Round) -> Iterator[Piece]:
        if not any(len(b) for b in inputs):
            yield Piece(empty_batch(self.type), round_.mark)
            return
        left = self.left.changes(inputs[0], self.keys)
        right = self.right.changes(inputs[1], self.keys)
        for pairs, until in self._told(left, right, round_.mark):
            batch = self._batch(pairs)
            if until == round_.mark:
                self._release(left, right)
            yield Piece(batch, until)

    def _told(self, left: Side, right: Side, mark: int) -> Iterator[tuple[Pairs, int]]:
        cursor = np.zeros(CURSOR, np.int64)
        keys = Keys(self.keys.table.records, self.keys.codec.width)
        size = self.room(len(left.time) + len(right.time))
        pairs = Pairs(*(np.empty(size, np.int64) for _ in Pairs._fields))
        return roomfuls(
            lambda: join_changes(left, right, keys, cursor, pairs),
            Cursor(cursor, SIZE, NOW), pairs, mark,
        )  # fmt: skip

    def _batch(self, pairs: Pairs) -> Batch:
        columns = self.left.columns(self.kept[0], pairs.left, self.keys)
        # Keys that have met are equal: those of the right side are those of the left.
        known = dict(zip(self.kept[0], columns, strict=True))
        equal = {b: known[a] for a, b in zip(self.left.keys, self.right.keys, strict=True)}
        own = [n for n in self.kept[1] if n not in equal]
        theirs = equal | dict(
            zip(own, self.right.columns(own, pairs.right, self.keys), strict=True)
        )
        columns += [theirs[n] for n in self.kept[1]]
        return Batch(self.type, pairs.time, tuple(columns), pairs.weight)

    def _release(self, left: Side, right: Side) -> None:
        used = np.concatenate([left.records[left.rows, 0], right.records[right.rows, 0]])
        self.left.release(left.rows)
        self.right.release(right.rows)
        release_keys(self.keys, used)
