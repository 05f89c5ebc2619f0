"""Lookup: rows that know whether another relation has a row with equal keys."""

from __future__ import annotations

import numpy as np

from millstream.calculus.functions import Lookup
from millstream.calculus.types import BOOLEAN, QueueType
from millstream.kernels.relational import join_loop
from millstream.kernels.relational.join import JoinSide, null_keys, release_keys
from millstream.kernels.relational.join_loop import LOOKUP_KEY_EXTRA, Answers, Asked
from millstream.kernels.relational.keyed_lists import Keys, Side
from millstream.kernels.relational.merge import merged_by_time
from millstream.kernels.runtime.hashing import frozen, padded
from millstream.kernels.runtime.interning import Interner, named, part
from millstream.kernels.runtime.kernel import Round, State
from millstream.plan.batch import Array, Batch, Vector, empty_batch


class LookupKernel:
    """Mutable: the rows of the first input by key, and how many rows the second has of each."""

    def __init__(
        self, function: Lookup, input_types: tuple[QueueType, ...], output_count: int
    ) -> None:
        (self.type,) = function.output_types(input_types, output_count)
        self.nulls_match = function.nulls_match
        self.schema = input_types[0].schema
        ours = tuple(name for name, _ in function.on)
        self.asked = tuple(name for _, name in function.on)
        self.keys = Interner([self.schema[name] for name in ours], LOOKUP_KEY_EXTRA)
        self.left = JoinSide(0, self.schema, ours, nulls_match=True)

    def process(self, inputs: tuple[Batch, ...], round_: Round) -> tuple[Batch, ...]:
        if not any(len(b) for b in inputs):
            return (empty_batch(self.type),)
        batch, alone = self._with_keys(inputs[0], self.left.keys)
        other, _ = self._with_keys(inputs[1], self.asked)
        left = self.left.changes(batch, self.keys)
        ids = self.keys.ids([other.column(n) for n in self.asked], len(other))
        assert other.weight is not None
        asked = Asked(frozen(other.time), ids, frozen(other.weight), np.empty(len(other), np.int64))
        answers, size = self._loop(left, asked)
        out = self._batch(Answers(*(a[:size] for a in answers)))
        self._release(left, ids)
        if alone is None:
            return (out,)
        return (merged_by_time([self._without_match(alone), out], self.type),)

    def _with_keys(self, batch: Batch, names: tuple[str, ...]) -> tuple[Batch, Batch | None]:
        """The rows that can match at all, and those that cannot."""
        has_null = None if self.nulls_match else null_keys(batch, names)
        if has_null is None:
            return batch, None
        return batch.take(np.flatnonzero(~has_null)), batch.take(np.flatnonzero(has_null))

    def _without_match(self, batch: Batch) -> Batch:
        answer = Vector(BOOLEAN, np.zeros(len(batch), np.bool_))
        return Batch(self.type, batch.time, (*batch.columns, answer), batch.weight)

    def _loop(self, left: Side, asked: Asked) -> tuple[Answers, int]:
        cursor = np.zeros(join_loop.CURSOR, np.int64)
        # The right side may have made the table of keys grow.
        keys = Keys(self.keys.table.records, self.keys.codec.width)
        room = 2 * (len(left.time) + len(asked.time)) + 64
        answers = Answers(*(np.empty(room, np.int64) for _ in Answers._fields))
        while not join_loop.lookup_changes(left, asked, keys, cursor, answers):
            room *= 2
            answers = Answers(*(padded(a, room) for a in answers))
        return answers, int(cursor[join_loop.SIZE])

    def _batch(self, answers: Answers) -> Batch:
        columns = self.left.columns(self.schema.names, answers.rows, self.keys)
        found = Vector(BOOLEAN, answers.found.astype(np.bool_))
        return Batch(self.type, answers.time, (*columns, found), answers.weight)

    def _release(self, left: Side, ids: Array) -> None:
        used = np.concatenate([left.records[left.rows, 0], ids])
        self.left.release(left.rows)
        release_keys(self.keys, used)

    def snapshot(self) -> State:
        return {
            **named("keys.", self.keys.snapshot()),
            **named("left.", self.left.rows.snapshot()),
        }

    def restore(self, state: State) -> None:
        self.keys.restore(part(state, "keys."))
        self.left.rows.restore(part(state, "left."))

    def faults(self) -> dict[str, int]:
        return {}
