"""Join of tables: the row of each key with the one it refers to, at every instant.

Rows are kept with their keys, so that a change costs one look at each table. The plan
chooses this kernel where both sides are known to be tables.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from millstream.calculus.functions import Join
from millstream.calculus.types import QueueType
from millstream.kernels.relational import table_join_loop as loop
from millstream.kernels.relational.keyed_rows import KeyedRows
from millstream.kernels.relational.pieces import LoopCursor, Piece, Piecewise, roomfuls
from millstream.kernels.relational.sides import with_keys
from millstream.kernels.relational.table_join_loop import Changes, PairChanges, TableKeys
from millstream.kernels.runtime.hashing import dead_ids, frozen
from millstream.kernels.runtime.kernel import Round, State
from millstream.plan.batch import Array, Batch, empty_batch

_LINE_WORDS = 8
_NOBODY = np.zeros(0, np.int64)


class TableSide(KeyedRows):
    """Mutable: the rows of one table by key."""

    #: How many keys have something to keep; the others are forgotten.
    needed = 0

    def loop_keys(self) -> TableKeys:
        records = self.records
        depth = max(1, records.shape[1] // _LINE_WORDS)
        return TableKeys(
            records,
            self.keys.codec.width,
            records.reshape(len(records) * depth, records.shape[1] // depth),
            depth,
        )

    def release(self, used: Array, column: int) -> None:
        """Forget the keys of which nothing is left, and texts that no row has."""
        if self.keys.size > self.needed:
            self.keys.release(dead_ids(used, self.records, self.keys.codec.width + column))
        self.sweep()

    def restore(self, state: State) -> None:
        super().restore(state)
        self.needed = self.keys.size


class TableJoinKernel(Piecewise):
    """Mutable: both tables, and for each key of the second the rows that refer to it."""

    rests = True

    def __init__(
        self, function: Join, input_types: tuple[QueueType, ...], key: tuple[str, ...]
    ) -> None:
        (self.type,) = function.output_types(input_types, 1)
        left, right = (t.schema for t in input_types)
        self.on = tuple(one for one, _ in function.on)
        theirs = tuple(other for _, other in function.on)
        self.nulls_match = function.nulls_match
        self.left = TableSide(left, key, left.names, loop.LEFT_EXTRA)
        kept = function.right_kept(right)
        self.right = TableSide(right, theirs, kept, loop.RIGHT_EXTRA)
        self.parts = {"left": self.left, "right": self.right}
        # A key of the second table that has another name leaves as a copy of the first's.
        self.copies = {b: a for a, b in function.on if a != b}

    def pieces(self, inputs: tuple[Batch, ...], round_: Round) -> Iterator[Piece]:
        # Null refers to nothing, and nothing refers to it.
        left = with_keys(inputs[0], self.on, nulls_match=self.nulls_match)
        right = with_keys(inputs[1], self.right.key, nulls_match=self.nulls_match)
        if not len(left) and not len(right):
            yield Piece(empty_batch(self.type), round_.mark)
            return
        a, b = self._changes(left, right)
        cursor = np.zeros(loop.CURSOR, np.int64)
        for filled, until in self._told(a, b, cursor, round_.mark):
            out = self._batch(filled)
            if until == round_.mark:
                self._release(a, b, cursor)
            yield Piece(out, until)

    def _release(self, a: Changes, b: Changes, cursor: Array) -> None:
        self.left.needed += int(cursor[loop.MORE_LEFT])
        self.right.needed += int(cursor[loop.MORE_RIGHT])
        self.left.release(a.ids, loop.REFERS)
        self.right.release(np.concatenate([a.refers, b.ids]), loop.NEEDED)

    def _changes(self, left: Batch, right: Batch) -> tuple[Changes, Changes]:
        refers = self.right.keys.ids([left.column(n) for n in self.on], len(left))
        ids, rows = self.right.ids(right), self.left.ids(left)
        assert left.weight is not None and right.weight is not None
        words = self.left.words(left), self.right.words(right)
        return (
            Changes(frozen(left.time), rows, frozen(left.weight), words[0], refers),
            Changes(frozen(right.time), ids, frozen(right.weight), words[1], _NOBODY),
        )

    def _told(
        self, a: Changes, b: Changes, cursor: Array, mark: int
    ) -> Iterator[tuple[PairChanges, int]]:
        width = self.left.keys.codec.width + self.left.codec.width + self.right.codec.width
        size = self.room(len(a.time) + len(b.time))
        out = PairChanges(
            np.empty(size, np.int64), np.empty(size, np.int64), np.empty((size, width), np.int64)
        )
        keys = self.left.loop_keys(), self.right.loop_keys()
        return roomfuls(
            lambda: loop.join_tables(a, b, *keys, cursor, out),
            LoopCursor(cursor, loop.SIZE, loop.NOW), out, mark,
        )  # fmt: skip

    def _batch(self, out: PairChanges) -> Batch:
        left, right = self.left, self.right
        second = left.keys.codec.width + left.codec.width
        by_name = left.vectors(out.words[:, :second])
        by_name |= zip(right.rest, right.codec.vectors(out.words[:, second:]), strict=True)
        by_name |= {theirs: by_name[ours] for theirs, ours in self.copies.items()}
        columns = tuple(by_name[n] for n in self.type.schema.names)
        return Batch(self.type, out.time, columns, out.weight)
