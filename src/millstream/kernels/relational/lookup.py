"""Lookup: rows that know whether another relation has a row with equal keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from millstream.calculus.functions import Lookup
from millstream.calculus.types import BOOLEAN, QueueType, Schema
from millstream.kernels.relational import keyed_lists
from millstream.kernels.relational import lookup_loop as loop
from millstream.kernels.relational.keyed_lists import ROW_EXTRA, ListKeys, Side
from millstream.kernels.relational.lookup_loop import Answers, AskedKeys, ByKeyAndValue
from millstream.kernels.relational.merge import merged_by_time
from millstream.kernels.relational.pieces import LoopCursor, Piece, Piecewise, roomfuls
from millstream.kernels.relational.sides import JoinSide, null_keys, release_keys
from millstream.kernels.runtime.consolidate import order_of
from millstream.kernels.runtime.hashing import frozen
from millstream.kernels.runtime.interning import Interner
from millstream.kernels.runtime.kernel import Round, State
from millstream.kernels.windows.skip_list import LEVELS, Lists
from millstream.plan.batch import Array, Batch, Vector, empty_batch

#: The loop of a lookup, given where it stands and room for answers.
Tell = Callable[[Array, Answers], bool]


class LookupKernel(Piecewise):
    """Mutable: the rows of the first input by key, and how many rows the second has of each."""

    rests = True
    key_extra = loop.KEY_EXTRA
    row_extra = ROW_EXTRA

    def __init__(
        self, function: Lookup, input_types: tuple[QueueType, ...], output_count: int
    ) -> None:
        (self.type,) = function.output_types(input_types, output_count)
        self.schema = input_types[0].schema
        ours = tuple(name for name, _ in function.on)
        self.asked = tuple(name for _, name in function.on)
        where = function.where
        compared = ((), ()) if where is None else ((where.ours,), (where.theirs,))
        self.keys = Interner([self.schema[name] for name in ours], self.key_extra)
        self.left = JoinSide(
            0, self.schema, ours, nulls_match=True, first=compared[0], extra=self.row_extra
        )
        self.parts = {"keys": self.keys, "left": self.left.rows}
        #: The columns of each side of which null matches nothing.
        keys = ((), ()) if function.nulls_match else (ours, self.asked)
        self.strict = (keys[0] + compared[0], keys[1] + compared[1])

    def pieces(self, inputs: tuple[Batch, ...], round_: Round) -> Iterator[Piece]:
        if not any(len(b) for b in inputs):
            yield Piece(empty_batch(self.type), round_.mark)
            return
        batch, alone = _apart(inputs[0], self.strict[0])
        other, _ = _apart(inputs[1], self.strict[1])
        left = self.left.changes(batch, self.keys)
        tell, forget = self._loop(left, other)
        for answers, until in self._told(tell, len(batch) + len(other), round_.mark):
            out = self._batch(answers)
            if until == round_.mark:
                forget()
            if alone is not None:
                count = int(np.searchsorted(alone.time, until, "right"))
                first, alone = alone.slice(0, count), alone.slice(count, len(alone))
                out = merged_by_time([self._without_match(first), out], self.type)
            yield Piece(out, until)

    def _loop(self, left: Side, other: Batch) -> tuple[Tell, Callable[[], None]]:
        """What tells the answers, and what forgets whatever is gone afterwards."""
        ids = self.keys.ids([other.column(n) for n in self.asked], len(other))
        assert other.weight is not None
        asked = AskedKeys(
            frozen(other.time), ids, frozen(other.weight), np.empty(len(other), np.int64)
        )
        # The right side may have made the table of keys grow.
        keys = ListKeys(self.keys.table.records, self.keys.codec.width)
        return (
            lambda *work: loop.lookup_changes(left, asked, keys, None, asked.touched, work),
            lambda: self._release(left, ids),
        )

    def _told(self, tell: Tell, changes: int, mark: int) -> Iterator[tuple[Answers, int]]:
        size = max(self.room(changes), loop.LEAST_ROOM)
        answers = Answers(*(np.empty(size, np.int64) for _ in Answers._fields))
        cursor = np.zeros(keyed_lists.CURSOR, np.int64)
        where = LoopCursor(cursor, keyed_lists.SIZE, keyed_lists.NOW)
        return roomfuls(lambda: tell(cursor, answers), where, answers, mark)

    def _without_match(self, batch: Batch) -> Batch:
        answer = Vector(BOOLEAN, np.zeros(len(batch), np.bool_))
        return Batch(self.type, batch.time, (*batch.columns, answer), batch.weight)

    def _batch(self, answers: Answers) -> Batch:
        columns = self.left.columns(self.schema.names, answers.rows, self.keys)
        flag = Vector(BOOLEAN, answers.found.astype(np.bool_))
        return Batch(self.type, answers.time, (*columns, flag), answers.weight)

    def _release(self, left: Side, used: Array) -> None:
        used = np.concatenate([left.records[left.rows, 0], used])
        self.left.release(left.rows)
        release_keys(self.keys, used)


class CompareKernel(LookupKernel):
    """Mutable: the rows of both inputs by key, and in the order of the values compared."""

    key_extra = loop.ORDERED_KEY_EXTRA
    row_extra = loop.ORDERED_ROW_EXTRA

    def __init__(
        self, function: Lookup, input_types: tuple[QueueType, ...], output_count: int
    ) -> None:
        super().__init__(function, input_types, output_count)
        assert function.where is not None
        needed = {*self.asked, function.where.theirs}
        theirs = Schema(tuple(f for f in input_types[1].schema if f.name in needed))
        self.right = JoinSide(
            1, theirs, self.asked, nulls_match=True, first=(function.where.theirs,),
            extra=self.row_extra,
        )  # fmt: skip
        self.parts = {**self.parts, "right": self.right.rows}
        self.allows_equal = "=" in function.where.order
        #: Rows to which a small value applies come first if they must be less than it.
        self.sign = 1 if function.where.order[0] == "<" else -1
        self.heads = np.zeros((2, LEVELS), np.int64)

    def _loop(self, left: Side, other: Batch) -> tuple[Tell, Callable[[], None]]:
        right = self.right.changes(other, self.keys)
        keys = ListKeys(self.keys.table.records, self.keys.codec.width)
        lists = (self._lists(self.left, self.sign), self._lists(self.right, -self.sign))
        order = ByKeyAndValue(*lists, right, self.allows_equal)

        def forget() -> None:
            self._release(left, right.records[right.rows, 0])
            self.right.release(right.rows)

        return (
            lambda *work: loop.lookup_changes(left, None, keys, order, right.touched, work),
            forget,
        )

    def _lists(self, side: JoinSide, sign: int) -> Lists:
        """Rows by the number of their key, then by the value compared."""
        codec = side.rows.codec
        is_text, texts = order_of(codec)
        return Lists(
            side.rows.table.records, self.heads[side.number], codec.width + loop.LINKS,
            np.array([1, sign], np.int64), is_text[:2], texts, np.empty(LEVELS, np.int64),
            codec.columns,
        )  # fmt: skip

    def snapshot(self) -> State:
        return super().snapshot() | {"heads": self.heads.copy()}

    def restore(self, state: State) -> None:
        super().restore(state)
        self.heads = np.array(state["heads"], np.int64).reshape(2, LEVELS)


def _apart(batch: Batch, names: tuple[str, ...]) -> tuple[Batch, Batch | None]:
    """The rows that can match at all, and those that cannot."""
    has_null = null_keys(batch, names)
    if has_null is None:
        return batch, None
    return batch.take(np.flatnonzero(~has_null)), batch.take(np.flatnonzero(has_null))


def lookup_kernel(
    function: Lookup, input_types: tuple[QueueType, ...], output_count: int
) -> LookupKernel:
    kernel = LookupKernel if function.where is None else CompareKernel
    return kernel(function, input_types, output_count)
