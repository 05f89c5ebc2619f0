"""From relations to streams: Istream, Dstream and Rstream."""

from __future__ import annotations

import numpy as np

from millstream.calculus.functions import Dstream, Istream, Rstream
from millstream.calculus.types import QueueType
from millstream.compiled import compiled
from millstream.kernels.relational.merge import Stateless
from millstream.kernels.runtime.consolidate import consolidate, order_of
from millstream.kernels.runtime.hashing import extended, frozen, grown
from millstream.kernels.runtime.interning import Interner, named, part
from millstream.kernels.runtime.kernel import Round, State
from millstream.kernels.runtime.row_order import merge_rows, sort_rows
from millstream.kernels.runtime.utf8 import Texts
from millstream.plan.batch import Array, Batch, empty_batch


def _all_of(weight: Array, sign: int) -> bool:
    return bool((np.sign(weight) == sign).all())


class DifferenceKernel(Stateless):
    """Istream and Dstream: the insertions, or the deletions, of each instant.

    `input_is_net` may be set where no change of the input undoes another of its instant:
    then changes of the other sign need not be looked at.
    """

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


@compiled
def _replay(
    changes: tuple[Array, Array, Array],
    ticks: Array,
    order: Array,
    state: tuple[Array, Array],
    sorting: tuple[Array, Array, Texts],
) -> tuple[Array, Array, Array]:
    """Row numbers and times of the whole relation at each tick, and the order at the end."""
    time, rows, weight = changes
    counts, is_listed = state
    out_rows, out_times = np.empty(64, np.int64), np.empty(64, np.int64)
    size, start = 0, 0
    for number in range(ticks.size + 1):
        end = start
        while end < time.size and (number == ticks.size or time[end] <= ticks[number]):
            counts[rows[end]] += weight[end]
            end += 1
        if end > start:
            order = _update_order(order, rows[start:end], counts, is_listed, sorting)
        start = end
        if number == ticks.size:
            break
        for row in order:
            if size + counts[row] > out_rows.size:
                out_rows = extended(out_rows, size + counts[row])
                out_times = extended(out_times, size + counts[row])
            for _ in range(counts[row]):
                out_rows[size], out_times[size] = row, ticks[number]
                size += 1
    return out_rows[:size].copy(), out_times[:size].copy(), order


class RstreamKernel:
    """Mutable: the relation as a bag, and the order of its rows."""

    def __init__(
        self, function: Rstream, input_types: tuple[QueueType, ...], output_count: int
    ) -> None:
        (self.type,) = function.output_types(input_types, output_count)
        self.rows = Interner([f.type for f in self.type.schema])
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

    def process(self, inputs: tuple[Batch, ...], round_: Round) -> tuple[Batch, ...]:
        (batch,) = inputs
        ticks = self._instants(round_)
        if not len(batch) and not len(ticks):
            return (empty_batch(self.type),)
        rows = self.rows.ids(batch.columns, len(batch))
        self.counts = grown(self.counts, self.rows.bound)
        self.is_listed = grown(self.is_listed, self.rows.bound)
        assert batch.weight is not None
        out_rows, out_times, self.order = _replay(
            (frozen(batch.time), rows, frozen(batch.weight)),
            frozen(ticks),
            self.order,
            (self.counts, self.is_listed),
            (self.rows.table.records, *order_of(self.rows.codec)),
        )
        columns = self.rows.vectors(out_rows)
        touched = np.unique(rows)
        self.rows.release(touched[self.counts[touched] == 0])
        return (Batch(self.type, out_times, columns),)

    def snapshot(self) -> State:
        counts = self.counts[: self.rows.bound].copy()
        return named("rows.", self.rows.snapshot()) | {
            "counts": counts,
            "order": self.order.copy(),
            "since": np.array([] if self.since is None else [self.since], np.int64),
        }

    def restore(self, state: State) -> None:
        self.rows.restore(part(state, "rows."))
        self.counts = np.array(state["counts"], np.int64)
        self.is_listed = self.counts > 0
        self.order = np.array(state["order"], np.int64)
        self.since = int(state["since"][0]) if len(state["since"]) else None

    def faults(self) -> dict[str, int]:
        return {}
