"""Join of the rows of an instant with a relation: `stream [Now], relation`.

What a stream brings is there for an instant only, so none of it is kept in an index:
each row looks for its partners when it comes, and again when it leaves.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from millstream.calculus.functions import Join
from millstream.calculus.types import QueueType
from millstream.kernels import now_join_loop as loop
from millstream.kernels.interning import Interner, named, part
from millstream.kernels.join import JoinSide, null_keys, release_keys
from millstream.kernels.kernel import Round, State
from millstream.kernels.loops import frozen
from millstream.kernels.loops_join import KEY_EXTRA, Keys, Side
from millstream.kernels.merge import without_rank
from millstream.kernels.now_join_loop import Visitors, Visits
from millstream.kernels.pieces import Cursor, Piece, Piecewise, roomfuls
from millstream.kernels.rowstore import restored_batch, stored_batch
from millstream.plan.batch import Array, Batch, Vector, concat_batches, empty_batch


class NowJoinKernel(Piecewise):
    """Mutable: the rows of the relation by key, and the stream's rows of the last instant.

    `stream_side` says which input of the join the window is. The step's inputs are the
    stream, then the relation.
    """

    def __init__(
        self, function: Join, stream: QueueType, relation: QueueType, stream_side: int
    ) -> None:
        present = QueueType(stream.schema, is_relation=True)
        sides = (present, relation) if stream_side == 0 else (relation, present)
        (self.type,) = function.output_types(sides, 1)
        ours, theirs = (tuple(pair[n] for pair in function.on) for n in (0, 1))
        if stream_side == 1:
            ours, theirs = theirs, ours
        self.nulls_match = function.nulls_match
        self.stream = stream
        self.stream_side = stream_side
        self.stream_keys = ours
        left, right = (side.schema for side in sides)
        kept = (left.names, function.right_kept(right))
        self.kept, self.kept_of_relation = kept[stream_side], kept[1 - stream_side]
        self.keys = Interner([stream.schema[name] for name in ours], KEY_EXTRA)
        self.side = JoinSide(1 - stream_side, relation.schema, theirs, nulls_match=self.nulls_match)
        self.only_news = False
        #: Rows that have come and not left yet.
        self.present = empty_batch(stream)

    def tell_only_news(self) -> None:
        """Say what comes, and what goes only where something comes at the same instant."""
        self.only_news = True

    def pieces(self, inputs: tuple[Batch, ...], round_: Round) -> Iterator[Piece]:
        batch, changes = inputs
        old = len(self.present)
        known = self.keys.size
        rows = concat_batches([self.present, without_rank(self._with_keys(batch))], self.stream)
        if not len(rows) and not len(changes):
            yield Piece(empty_batch(self.type), round_.mark)
            return
        ids = self.keys.ids([rows.column(n) for n in self.stream_keys], len(rows))
        has_strangers = self.keys.size > known
        side = self.side.changes(changes, self.keys)
        leaving = int(np.searchsorted(rows.time, round_.mark, "left"))
        visitors = Visitors(frozen(rows.time), ids, leaving, self.only_news)
        for visits, until in self._told(visitors, old, side, round_.mark):
            out = self._batch(rows, visits)
            if until == round_.mark:
                self._release(ids if has_strangers else ids[:0], side)
                self.present = rows.slice(leaving, len(rows))
            yield Piece(out, until)

    def _with_keys(self, batch: Batch) -> Batch:
        """Null has no partner."""
        nulls = None if self.nulls_match else null_keys(batch, self.stream_keys)
        return batch if nulls is None else batch.take(np.flatnonzero(~nulls))

    def _told(
        self, visitors: Visitors, old: int, side: Side, mark: int
    ) -> Iterator[tuple[Visits, int]]:
        cursor = np.zeros(loop.CURSOR, np.int64)
        cursor[loop.COMES], cursor[loop.LINK] = old, loop.NOT_ENTERED
        keys = Keys(self.keys.table.records, self.keys.codec.width)
        size = self.room(len(visitors.time))
        visits = Visits(*(np.empty(size, np.int64) for _ in Visits._fields))
        return roomfuls(
            lambda: loop.visit_rows(visitors, side, keys, cursor, visits),
            Cursor(cursor, loop.SIZE, loop.NOW), visits, mark,
        )  # fmt: skip

    def _batch(self, rows: Batch, visits: Visits) -> Batch:
        ours: list[Vector] = [rows.column(n).take(visits.visitors) for n in self.kept]
        theirs = self.side.columns(self.kept_of_relation, visits.rows, self.keys)
        columns = ours + theirs if self.stream_side == 0 else theirs + ours
        return Batch(self.type, visits.time, tuple(columns), visits.weight)

    def _release(self, ids: Array, side: Side) -> None:
        """Forget rows that are gone, and keys without rows; those of visitors have none."""
        used = np.concatenate([ids, side.records[side.rows, 0]])
        self.side.release(side.rows)
        release_keys(self.keys, used)

    def snapshot(self) -> State:
        return {
            **named("keys.", self.keys.snapshot()),
            **named("rows.", self.side.rows.snapshot()),
            **named("present.", stored_batch(self.present)),
        }

    def restore(self, state: State) -> None:
        self.keys.restore(part(state, "keys."))
        self.side.rows.restore(part(state, "rows."))
        self.present = restored_batch(self.stream, part(state, "present."))
