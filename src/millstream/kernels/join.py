"""Join: pairs of rows with equal keys, kept up to date at every instant."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from millstream.calculus.functions import Join
from millstream.calculus.types import INTEGER, QueueType, Schema
from millstream.kernels import join_loop
from millstream.kernels.interning import Interner, named, part
from millstream.kernels.join_loop import Pairs
from millstream.kernels.kernel import Round, State
from millstream.kernels.loops import dead_ids, frozen
from millstream.kernels.loops_join import KEY_EXTRA, KEY_ROWS, ROW_EXTRA, ROWS, Keys, Side
from millstream.kernels.pieces import Cursor, Piece, Piecewise, roomfuls
from millstream.plan.batch import Array, Batch, Vector, empty_batch


def null_keys(batch: Batch, names: Sequence[str]) -> Array | None:
    """Which rows have a null among their keys, which equals nothing; None if no row has."""
    keys = [batch.column(n) for n in names]
    nulls = [~k.mask() for k in keys if k.is_text or k.valid is not None]
    if not nulls or not np.any(nulls):
        return None
    found: Array = np.logical_or.reduce(nulls)
    return found


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
        if not self.nulls_match:
            has_null = null_keys(batch, self.keys)
            batch = batch if has_null is None else batch.take(np.flatnonzero(~has_null))
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
        found = dict(zip(self.rest, rest, strict=True))
        if any(name in self.keys for name in names):
            found |= zip(self.keys, interner.vectors(numbers.values), strict=True)
        return [found[name] for name in names]

    def release(self, used: Array) -> None:
        column = self.rows.codec.width + ROWS
        self.rows.release(dead_ids(used, self.rows.table.records, column))


class JoinKernel(Piecewise):
    """Mutable: the rows of both sides, listed by key. Conditions are put behind it by the plan."""

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
        cursor = np.zeros(join_loop.CURSOR, np.int64)
        keys = Keys(self.keys.table.records, self.keys.codec.width)
        size = self.room(len(left.time) + len(right.time))
        pairs = Pairs(*(np.empty(size, np.int64) for _ in Pairs._fields))
        return roomfuls(
            lambda: join_loop.join_changes(left, right, keys, cursor, pairs),
            Cursor(cursor, join_loop.SIZE, join_loop.NOW), pairs, mark,
        )  # fmt: skip

    def _batch(self, pairs: Pairs) -> Batch:
        columns = self.left.columns(self.kept[0], pairs.left, self.keys)
        columns += self.right.columns(self.kept[1], pairs.right, self.keys)
        return Batch(self.type, pairs.time, tuple(columns), pairs.weight)

    def _release(self, left: Side, right: Side) -> None:
        used = np.concatenate([left.records[left.rows, 0], right.records[right.rows, 0]])
        self.left.release(left.rows)
        self.right.release(right.rows)
        release_keys(self.keys, used)

    def snapshot(self) -> State:
        return {
            **named("keys.", self.keys.snapshot()),
            **named("left.", self.left.rows.snapshot()),
            **named("right.", self.right.rows.snapshot()),
        }

    def restore(self, state: State) -> None:
        self.keys.restore(part(state, "keys."))
        self.left.rows.restore(part(state, "left."))
        self.right.rows.restore(part(state, "right."))
