"""Join: pairs of rows with equal keys, kept up to date at every instant."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from millstream.calculus.functions import Join
from millstream.calculus.types import INTEGER, QueueType, Schema
from millstream.errors import PlanError
from millstream.kernels.relational import join_loop
from millstream.kernels.relational.join_loop import Pairs
from millstream.kernels.relational.keyed_lists import (
    KEY_EXTRA,
    KEY_ROWS,
    ROW_EXTRA,
    ROWS,
    Keys,
    Side,
)
from millstream.kernels.runtime.hashing import dead_ids, frozen, padded
from millstream.kernels.runtime.interning import Interner, named, part
from millstream.kernels.runtime.kernel import Round, State
from millstream.plan.batch import Array, Batch, Vector, empty_batch

#: Which pairs, given as rows of the output, satisfy the condition of a join.
Condition = Callable[[Batch], Array]


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
    """Mutable. The rows of one side: the number of the key, then the other columns."""

    def __init__(
        self, number: int, schema: Schema, keys: tuple[str, ...], *, nulls_match: bool
    ) -> None:
        self.number = number
        self.keys = keys
        self.nulls_match = nulls_match
        self.rest = tuple(n for n in schema.names if n not in keys)
        self.rows = Interner((INTEGER, *(schema[n] for n in self.rest)), ROW_EXTRA)

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


class JoinKernel:
    """Mutable: the rows of both sides, listed by key."""

    def __init__(
        self,
        function: Join,
        input_types: tuple[QueueType, ...],
        output_count: int,
        condition: Condition | None = None,
    ) -> None:
        if function.where is not None and condition is None:
            raise PlanError(
                "the kernel of a join is given no condition, but the join has one",
                span=function.where.span,
                hint="the plan must give an evaluator, or put a Filter after the join",
            )
        (self.type,) = function.output_types(input_types, output_count)
        self.condition = condition
        left, right = (t.schema for t in input_types)
        self.keys = Interner([left[name] for name, _ in function.on], KEY_EXTRA)
        nulls_match = function.nulls_match
        ours, theirs = (tuple(pair[n] for pair in function.on) for n in (0, 1))
        self.left = JoinSide(0, left, ours, nulls_match=nulls_match)
        self.right = JoinSide(1, right, theirs, nulls_match=nulls_match)
        self.kept = (left.names, function.right_kept(right))

    def process(self, inputs: tuple[Batch, ...], round_: Round) -> tuple[Batch, ...]:
        if not any(len(b) for b in inputs):
            return (empty_batch(self.type),)
        left = self.left.changes(inputs[0], self.keys)
        right = self.right.changes(inputs[1], self.keys)
        pairs, size = self._loop(left, right)
        out = self._batch(Pairs(*(a[:size] for a in pairs)))
        self._release(left, right)
        return (out,)

    def _loop(self, left: Side, right: Side) -> tuple[Pairs, int]:
        cursor = np.zeros(join_loop.CURSOR, np.int64)
        keys = Keys(self.keys.table.records, self.keys.codec.width)
        room = 2 * (len(left.time) + len(right.time)) + 64
        pairs = Pairs(*(np.empty(room, np.int64) for _ in Pairs._fields))
        while not join_loop.join_changes(left, right, keys, cursor, pairs):
            room *= 2
            pairs = Pairs(*(padded(a, room) for a in pairs))
        return pairs, int(cursor[join_loop.SIZE])

    def _batch(self, pairs: Pairs) -> Batch:
        columns = self.left.columns(self.kept[0], pairs.left, self.keys)
        columns += self.right.columns(self.kept[1], pairs.right, self.keys)
        batch = Batch(self.type, pairs.time, tuple(columns), pairs.weight)
        if self.condition is None:
            return batch
        return batch.take(np.flatnonzero(self.condition(batch)))

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

    def faults(self) -> dict[str, int]:
        return {}
