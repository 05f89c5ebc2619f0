"""A window by time and the aggregate over it, as one: a row is looked up once.

A row that is in the window counts in its group, so the group is there until the row has
left. The window therefore keeps numbers of groups and the values that are summed, not
the rows; what leaves needs no look at keys, texts or values again.
"""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

import numpy as np

from millstream.calculus.functions import Aggregate, Range
from millstream.calculus.types import INT64_MAX, INT64_MIN, QueueType
from millstream.compiled import inlined, tight
from millstream.kernels.relational.accumulators import CellValues, values_of
from millstream.kernels.relational.aggregate import AggregateKernel
from millstream.kernels.relational.aggregate_loop import Changes
from millstream.kernels.relational.window_time import ends_of
from millstream.kernels.runtime.hashing import frozen
from millstream.kernels.runtime.kernel import Round, State
from millstream.plan.batch import Array, Batch, empty_batch

#: Stretches at least this long are never copied together with others.
_LARGE = 1 << 15


class AggregatedRows(NamedTuple):
    """Rows as an aggregate counts them: time, group, and what it reads of each."""

    time: Array
    groups: Array
    words: Array
    valid: Array
    nodes: Array

    def slice(self, start: int, stop: int) -> AggregatedRows:
        return AggregatedRows(*(a[start:stop] for a in self))


def _together(parts: list[AggregatedRows]) -> AggregatedRows:
    if len(parts) == 1:
        return parts[0]
    return AggregatedRows(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


class Waiting:
    """Mutable: rows in the order in which they leave, put together as in a `Fifo`."""

    def __init__(self, nothing: AggregatedRows) -> None:
        self.nothing = nothing
        self._parts: deque[AggregatedRows] = deque()

    def push(self, rows: AggregatedRows) -> None:
        if not len(rows.time):
            return
        while self._parts and len(rows.time) < _LARGE:
            if len(self._parts[-1].time) >= 2 * len(rows.time):
                break
            rows = _together([self._parts.pop(), rows])
        self._parts.append(rows)

    def pop_until(self, time: int) -> AggregatedRows:
        """The rows of at most this time, which are removed."""
        taken: list[AggregatedRows] = []
        while self._parts and self._parts[0].time[0] <= time:
            first = self._parts.popleft()
            count = int(np.searchsorted(first.time, time, "right"))
            taken.append(first.slice(0, count))
            if count < len(first.time):
                self._parts.appendleft(first.slice(count, len(first.time)))
        return _together(taken) if taken else self.nothing

    def snapshot(self) -> State:
        rows = _together(list(self._parts)) if self._parts else self.nothing
        return {name: array.copy() for name, array in rows._asdict().items()}

    def restore(self, state: State) -> None:
        self._parts.clear()
        count = len(state["time"])
        self.push(
            AggregatedRows(
                *(
                    # There may be no columns at all, so the rows are counted elsewhere.
                    np.array(state[name], empty.dtype).reshape(count, *empty.shape[1:])
                    for name, empty in self.nothing._asdict().items()
                )
            )
        )


@inlined
def _copy(rows: AggregatedRows, at: Any, out: AggregatedRows, k: Any) -> None:
    out.groups[k] = rows.groups[at]
    for c in range(out.words.shape[1]):
        out.words[k, c] = rows.words[at, c]
        out.valid[k, c] = rows.valid[at, c]
    for c in range(out.nodes.shape[1]):
        out.nodes[k, c] = rows.nodes[at, c]


@tight
def _weave(
    gone: AggregatedRows, ends: Array, come: AggregatedRows, out: AggregatedRows, weight: Array
) -> None:
    """What leaves and what comes in order of time."""
    i, j = 0, 0
    for k in range(out.time.size):
        leaves = j == come.time.size or (i < ends.size and ends[i] <= come.time[j])
        if leaves:
            _copy(gone, i, out, k)
            out.time[k], weight[k] = ends[i], -1
            i += 1
        else:
            _copy(come, j, out, k)
            out.time[k], weight[k] = come.time[j], 1
            j += 1


class WindowAggregateKernel(AggregateKernel):
    """Mutable: groups as in an aggregate, and the rows that will leave them."""

    rests = False

    def __init__(self, window: Range, function: Aggregate, stream: QueueType) -> None:
        assert window.length is not None and window.slide is None
        super().__init__(function, window.output_types((stream,), 1), 1)
        self.length = window.length
        shape = (0, len(self.layout.cells))
        self.waiting = Waiting(
            AggregatedRows(
                np.zeros(0, np.int64),
                np.zeros(0, np.int64),
                np.zeros(shape, np.int64),
                np.zeros(shape, np.bool_),
                np.zeros((0, len(self.layout.extremes)), np.int64),
            )
        )
        self.parts = {**self.parts, "waiting": self.waiting}

    def process(self, inputs: tuple[Batch, ...], round_: Round) -> tuple[Batch, ...]:
        come = self._counted(inputs[0])
        # Rows after the last of these times would leave after the end of time: never.
        last = INT64_MAX - self.length - 1
        if last >= INT64_MIN:
            self.waiting.push(come.slice(0, int(np.searchsorted(come.time, last, "right"))))
        gone = self.waiting.pop_until(max(round_.mark - self.length - 1, INT64_MIN))
        if not len(come.time) and not len(gone.time):
            return (empty_batch(self.type),)
        return (self._told_of(self._changes(gone, come)),)

    def _counted(self, batch: Batch) -> AggregatedRows:
        groups = self.keys.ids([batch.column(n) for n in self.function.by], len(batch))
        looked_at = [batch.column(name) for _, name, _ in self.layout.extremes]
        nodes = self.extremes.node_ids(groups, looked_at)
        values = values_of(batch, self.schema, self.layout)
        return AggregatedRows(
            np.ascontiguousarray(batch.time), groups, values.words, values.valid, nodes
        )

    def _changes(self, gone: AggregatedRows, come: AggregatedRows) -> Changes:
        size = len(gone.time) + len(come.time)
        out = AggregatedRows(*(np.empty((size, *a.shape[1:]), a.dtype) for a in come))
        weight = np.empty(size, np.int64)
        ends = ends_of(gone.time, self.length)
        _weave(_read_only(gone), frozen(ends), _read_only(come), out, weight)
        values = CellValues(out.words, out.words.view(np.float64), out.valid)
        return Changes(frozen(out.time), out.groups, frozen(weight), values, out.nodes)


def _read_only(rows: AggregatedRows) -> AggregatedRows:
    return AggregatedRows(*(frozen(a) for a in rows))
