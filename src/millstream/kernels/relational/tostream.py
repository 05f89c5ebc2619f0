"""From relations to streams: Istream, Dstream and Rstream."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from millstream.calculus.functions import Dstream, Istream, Rstream
from millstream.calculus.types import QueueType
from millstream.compiled import compiled
from millstream.kernels.relational.pieces import LoopCursor, Piece, Piecewise, roomfuls
from millstream.kernels.runtime.consolidate import consolidate, order_of
from millstream.kernels.runtime.hashing import frozen, grown
from millstream.kernels.runtime.interning import Interner
from millstream.kernels.runtime.kernel import Round, State, Termless
from millstream.kernels.runtime.row_order import merge_rows, sort_rows
from millstream.kernels.runtime.utf8 import Texts
from millstream.plan.batch import Array, Batch, empty_batch


def _all_of(weight: Array, sign: int) -> bool:
    return bool((np.sign(weight) == sign).all())


class DifferenceKernel(Termless):
    """Istream and Dstream: the insertions, or the deletions, of each instant.

    `input_is_net` may be set where no change of the input undoes another of its instant:
    then changes of the other sign need not be looked at.
    """

    rests = True

    def __init__(
        self, function: Istream | Dstream, input_types: tuple[QueueType, ...], output_count: int
    ) -> None:
        (self.type,) = function.output_types(input_types, output_count)
        self.sign = 1 if isinstance(function, Istream) else -1
        self.input_is_net = False

    def process(self, inputs: tuple[Batch, ...], round_: Round) -> tuple[Batch, ...]:
        batch = inputs[0]
        assert batch.weight is not None
        if self.input_is_net and not _all_of(batch.weight, self.sign):
            batch = batch.take(np.flatnonzero(np.sign(batch.weight) == self.sign))
        net = consolidate(batch)
        if self.input_is_net:
            return (Batch(self.type, net.time, net.columns),)
        wanted = np.flatnonzero(net.weight == self.sign)
        columns = tuple(c.take(wanted) for c in net.columns)
        return (Batch(self.type, net.time[wanted], columns),)


@compiled
def _update_order(
    order: Array,
    changed: Array,
    counts: Array,
    is_listed: Array,
    sorting: tuple[Array, Array, Texts],
) -> Array:
    """The numbers of the rows that are present, in order, after some have changed."""
    words, is_text, texts = sorting
    fresh = np.empty(changed.size, np.int64)
    come, gone = 0, 0
    for row in changed:
        if counts[row] > 0 and not is_listed[row]:
            is_listed[row] = True
            fresh[come] = row
            come += 1
        elif counts[row] == 0 and is_listed[row]:
            is_listed[row] = False
            gone += 1
    if come == 0 and gone == 0:
        return order
    fresh = fresh[:come]
    sort_rows(fresh, np.empty(come, np.int64), words, (is_text, texts))
    kept = np.empty(order.size - gone, np.int64)
    k = 0
    for row in order:
        if is_listed[row]:
            kept[k] = row
            k += 1
    merged = np.empty(k + come, np.int64)
    merge_rows(kept, fresh, merged, words, (is_text, texts))
    return merged


#: Where the loop stands: the next tick and the next change; the instant, and whether it has
#: been begun; the row that is told, and how often it has been; how many are told.
_TICK, _CHANGE, _NOW, _IS_BEGUN, _AT, _COPIES, _SIZE = range(7)


class _Told(NamedTuple):
    time: Array
    rows: Array


@compiled
def _replay(
    changes: tuple[Array, Array, Array],
    ticks: Array,
    order: Array,
    state: tuple[Array, Array],
    sorting: tuple[Array, Array, Texts],
    work: tuple[Array, _Told],
) -> tuple[Array, bool]:
    """Tell the whole relation at each tick; its order, and whether there was room for all."""
    time, rows, weight = changes
    counts, is_listed = state
    cursor, out = work
    while True:
        number = cursor[_TICK]
        if not cursor[_IS_BEGUN]:
            start = end = cursor[_CHANGE]
            while end < time.size and (number == ticks.size or time[end] <= ticks[number]):
                counts[rows[end]] += weight[end]
                end += 1
            if end > start:
                order = _update_order(order, rows[start:end], counts, is_listed, sorting)
            cursor[_CHANGE] = end
            if number == ticks.size:
                return order, True
            cursor[_NOW], cursor[_IS_BEGUN], cursor[_AT] = ticks[number], 1, 0
        size, at, copies = cursor[_SIZE], cursor[_AT], cursor[_COPIES]
        while at < order.size and size < out.time.size:
            while copies < counts[order[at]] and size < out.time.size:
                out.time[size], out.rows[size] = ticks[number], order[at]
                size += 1
                copies += 1
            if copies == counts[order[at]]:
                at, copies = at + 1, 0
        cursor[_SIZE], cursor[_AT], cursor[_COPIES] = size, at, copies
        if at < order.size:
            return order, False
        cursor[_TICK], cursor[_IS_BEGUN] = number + 1, 0


class RstreamKernel(Piecewise):
    """Mutable: the relation as a bag, and the order of its rows."""

    def __init__(
        self, function: Rstream, input_types: tuple[QueueType, ...], output_count: int
    ) -> None:
        (self.type,) = function.output_types(input_types, output_count)
        self.rows = Interner([f.type for f in self.type.schema])
        self.parts = {"rows": self.rows}
        self.counts = np.zeros(0, np.int64)
        self.is_listed = np.zeros(0, np.bool_)
        self.order = np.zeros(0, np.int64)
        self.every = function.every
        #: Heartbeats up to here have been dealt with; nothing before the first tick.
        self.since: int | None = None

    def _instants(self, round_: Round) -> Array:
        """The ticks of a round and the heartbeats since the last one."""
        if not self.every:
            return round_.ticks
        if self.since is None and not len(round_.ticks):
            return round_.ticks
        since = int(round_.ticks[0]) if self.since is None else self.since
        beats = [np.arange((since // e + 1) * e, round_.mark + 1, e) for e in self.every]
        self.since = max(since, round_.mark)
        return np.unique(np.concatenate([round_.ticks, *beats]))

    def pieces(self, inputs: tuple[Batch, ...], round_: Round) -> Iterator[Piece]:
        (batch,) = inputs
        ticks = self._instants(round_)
        if not len(batch) and not len(ticks):
            yield Piece(empty_batch(self.type), round_.mark)
            return
        rows = self.rows.ids(batch.columns, len(batch))
        self.counts = grown(self.counts, self.rows.bound)
        self.is_listed = grown(self.is_listed, self.rows.bound)
        assert batch.weight is not None
        changes = (frozen(batch.time), rows, frozen(batch.weight))
        for filled, until in self._told(changes, frozen(ticks), round_.mark):
            columns = self.rows.vectors(filled.rows)
            if until == round_.mark:
                touched = np.unique(rows)
                self.rows.release(touched[self.counts[touched] == 0])
            yield Piece(Batch(self.type, filled.time, columns), until)

    def _told(
        self, changes: tuple[Array, Array, Array], ticks: Array, mark: int
    ) -> Iterator[tuple[_Told, int]]:
        cursor = np.zeros(_SIZE + 1, np.int64)
        size = self.room(len(changes[0]) + len(ticks))
        out = _Told(np.empty(size, np.int64), np.empty(size, np.int64))
        sorting = (self.rows.table.records, *order_of(self.rows.codec))

        def tell() -> bool:
            self.order, is_done = _replay(
                changes, ticks, self.order, (self.counts, self.is_listed), sorting, (cursor, out)
            )
            return is_done

        return roomfuls(tell, LoopCursor(cursor, _SIZE, _NOW), out, mark)

    def snapshot(self) -> State:
        counts = self.counts[: self.rows.bound].copy()
        return super().snapshot() | {
            "counts": counts,
            "order": self.order.copy(),
            "since": np.array([] if self.since is None else [self.since], np.int64),
        }

    def restore(self, state: State) -> None:
        super().restore(state)
        self.counts = np.array(state["counts"], np.int64)
        self.is_listed = self.counts > 0
        self.order = np.array(state["order"], np.int64)
        self.since = int(state["since"][0]) if len(state["since"]) else None
