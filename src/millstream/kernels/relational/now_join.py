"""Join of the rows of an instant with a relation: `stream [Now], relation`.

What a stream brings is there for an instant only, so none of it is kept in an index:
each row looks for its partners when it comes, and again when it leaves.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from millstream.calculus.functions import Join
from millstream.calculus.types import QueueType
from millstream.compiled import inlined, tight
from millstream.kernels.relational.keyed_lists import (
    FIRST,
    KEY_EXTRA,
    NEXT,
    ROWS,
    ListKeys,
    Side,
    apply_changes,
    count_before,
    settle,
)
from millstream.kernels.relational.merge import without_rank
from millstream.kernels.relational.pieces import LoopCursor, Piece, Piecewise, roomfuls
from millstream.kernels.relational.sides import JoinSide, release_keys, with_keys
from millstream.kernels.runtime.hashing import FAR, NEAR, frozen, prefetch
from millstream.kernels.runtime.interning import Interner
from millstream.kernels.runtime.kernel import Round, State
from millstream.kernels.runtime.rowstore import restored_batch, stored_batch
from millstream.plan.batch import Array, Batch, Vector, concat_batches, empty_batch

#: Where the loop stands: the next visitor to leave and to come, the next change of the
#: other side; the instant, whether it has been begun and how many rows of the other side
#: it touches; the link at which a visitor goes on, or that it has not begun; the pairs.
LEAVES, COMES, AT, NOW, IS_BEGUN, TOUCHED, LINK, SIZE = range(8)
CURSOR = 8
NOT_ENTERED = -1


class Visitors(NamedTuple):
    """Rows of a stream, and the numbers of their keys; `leaving` of them leave by now.

    With `only_news` they leave without a word, unless others come just then.
    """

    time: Array
    keys: Array
    leaving: int
    only_news: bool


class Visits(NamedTuple):
    """Pairs of a visitor and a row of the other side."""

    time: Array
    visitors: Array
    rows: Array
    weight: Array


@inlined
def _prefetch(visitors: Visitors, x: Any, side: Side, keys: ListKeys) -> None:
    if x + FAR < visitors.keys.size:
        prefetch(keys.records, visitors.keys[x + FAR])
        first = keys.extra + FIRST + side.number
        prefetch(side.records, keys.records[visitors.keys[x + NEAR], first] - 1)


@inlined
def _visit(key: Any, visitor: Any, sign: Any, side: Side, keys: ListKeys, work: Any) -> Any:
    """Tell the pairs of a visitor; False if there is no more room."""
    cursor, visits = work
    records, extra = side.records, side.extra
    if cursor[LINK] == NOT_ENTERED:
        cursor[LINK] = keys.records[key, keys.extra + FIRST + side.number]
    while cursor[LINK] != 0:
        row = cursor[LINK] - 1
        count = count_before(side, row) if sign < 0 else records[row, extra + ROWS]
        if count != 0:
            size = cursor[SIZE]
            if size == visits.time.size:
                return False
            visits.time[size], visits.weight[size] = cursor[NOW], sign * count
            visits.visitors[size], visits.rows[size] = visitor, row
            cursor[SIZE] = size + 1
        cursor[LINK] = records[row, extra + NEXT]
    cursor[LINK] = NOT_ENTERED
    return True


@inlined
def _begin(visitors: Visitors, side: Side, keys: ListKeys, cursor: Array) -> Any:
    """Go to the next instant and apply what it does to the other side; False if none is left."""
    comes, at = cursor[COMES], cursor[AT]
    is_there = False
    now = 0
    if comes < visitors.time.size:
        now, is_there = visitors.time[comes], True
    if at < side.time.size and (not is_there or side.time[at] < now):
        now, is_there = side.time[at], True
    if visitors.only_news:
        while cursor[LEAVES] < visitors.leaving and visitors.time[cursor[LEAVES]] < now - 1:
            cursor[LEAVES] += 1
    elif cursor[LEAVES] < visitors.leaving:
        end = visitors.time[cursor[LEAVES]] + 1
        if not is_there or end < now:
            now, is_there = end, True
    if not is_there:
        return False
    cursor[NOW], cursor[IS_BEGUN] = now, 1
    cursor[AT], cursor[TOUCHED] = apply_changes(side, side, at, now, keys, None)
    return True


@tight
def visit_rows(
    visitors: Visitors, side: Side, keys: ListKeys, cursor: Array, visits: Visits
) -> bool:
    """Tell the pairs that change; False if there is no more room: to be called again."""
    work = (cursor, visits)
    while True:
        if not cursor[IS_BEGUN] and not _begin(visitors, side, keys, cursor):
            return True
        now = cursor[NOW]
        while cursor[LEAVES] < visitors.leaving and visitors.time[cursor[LEAVES]] < now:
            x = cursor[LEAVES]
            if not _visit(visitors.keys[x], x, -1, side, keys, work):
                return False
            cursor[LEAVES] += 1
        while cursor[COMES] < visitors.time.size and visitors.time[cursor[COMES]] == now:
            x = cursor[COMES]
            _prefetch(visitors, x, side, keys)
            if not _visit(visitors.keys[x], x, 1, side, keys, work):
                return False
            cursor[COMES] += 1
        settle(side, cursor[TOUCHED], keys, None)
        cursor[IS_BEGUN] = 0


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
        self.parts = {"keys": self.keys, "rows": self.side.rows}
        #: Rows that have come and not left yet.
        self.present = empty_batch(stream)

    def tell_only_news(self) -> None:
        """Say what comes, and what goes only where something comes at the same instant."""
        self.only_news = True

    def pieces(self, inputs: tuple[Batch, ...], round_: Round) -> Iterator[Piece]:
        batch, changes = inputs
        old = len(self.present)
        known = self.keys.size
        come = with_keys(batch, self.stream_keys, nulls_match=self.nulls_match)
        rows = concat_batches([self.present, without_rank(come)], self.stream)
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

    def _told(
        self, visitors: Visitors, old: int, side: Side, mark: int
    ) -> Iterator[tuple[Visits, int]]:
        cursor = np.zeros(CURSOR, np.int64)
        cursor[COMES], cursor[LINK] = old, NOT_ENTERED
        keys = ListKeys(self.keys.table.records, self.keys.codec.width)
        size = self.room(len(visitors.time))
        visits = Visits(*(np.empty(size, np.int64) for _ in Visits._fields))
        return roomfuls(
            lambda: visit_rows(visitors, side, keys, cursor, visits),
            LoopCursor(cursor, SIZE, NOW), visits, mark,
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
        return super().snapshot() | stored_batch(self.present, "present.")

    def restore(self, state: State) -> None:
        super().restore(state)
        self.present = restored_batch(self.stream, state, "present.")
