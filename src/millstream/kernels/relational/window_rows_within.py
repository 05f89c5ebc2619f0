"""Windows by count and time: the last rows of each partition that are not too old."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from millstream.calculus.functions import Latest, Rows
from millstream.calculus.types import INT64_MAX, QueueType
from millstream.compiled import inlined, tight
from millstream.kernels.relational.latest import LatestKernel
from millstream.kernels.relational.window_rows import RowsKernel
from millstream.kernels.runtime.hashing import (
    FREE,
    LIVE,
    TOP,
    dead_ids,
    frozen,
    grown,
    padded,
    take_id,
)
from millstream.kernels.runtime.interning import Interner, named, part
from millstream.kernels.runtime.interning_text import TextPool
from millstream.kernels.runtime.interning_words import Codec
from millstream.kernels.runtime.kernel import Kernel, Round, State
from millstream.plan.batch import Array, Batch

#: What is kept with each partition: links to its oldest and its newest row (the number
#: of the row plus one, or zero), and how many there are.
_OLDEST, _NEWEST, _COUNT = range(3)
_PARTITION_EXTRA = 3

#: What is kept with each row: its partition, its time, where in the output its insertion
#: stands, and links: to the next row of its partition, and to the rows that came after
#: and before it in all partitions.
_GROUP, _TIME, _TOLD_AT, _NEXT, _LATER, _EARLIER = range(6)
_ROW_EXTRA = 6

#: Links to the oldest and the newest of all rows.
_FIRST, _LAST = range(2)


class Store(NamedTuple):
    """Rows of words by number, a stack of free numbers, counters, and the two ends."""

    records: Array
    free: Array
    counters: Array
    ends: Array


class WithinChanges(NamedTuple):
    time: Array
    weight: Array
    groups: Array
    words: Array


@inlined
def _tell(told: WithinChanges, size: Any, time: Any, weight: Any, group: Any, words: Array) -> Any:
    told.time[size], told.weight[size], told.groups[size] = time, weight, group
    for j in range(told.words.shape[1]):
        told.words[size, j] = words[j]
    return size + 1


@inlined
def _drop(
    row: Any, now: Any, partition: Array, store: Store, told: WithinChanges, size: Any
) -> Any:
    """Take out a row, the oldest of its partition; how many changes are told then."""
    records = store.records
    width = told.words.shape[1]
    partition[_OLDEST] = records[row, width + _NEXT]
    partition[_COUNT] -= 1
    if partition[_COUNT] == 0:
        partition[_NEWEST] = 0
    later, earlier = records[row, width + _LATER], records[row, width + _EARLIER]
    if later != 0:
        records[later - 1, width + _EARLIER] = earlier
    else:
        store.ends[_LAST] = earlier
    if earlier != 0:
        records[earlier - 1, width + _LATER] = later
    else:
        store.ends[_FIRST] = later
    if records[row, width + _TIME] == now:
        told.weight[records[row, width + _TOLD_AT]] = 0
    else:
        size = _tell(told, size, now, -1, records[row, width + _GROUP], records[row])
    for j in range(records.shape[1]):
        records[row, j] = 0
    store.free[store.counters[FREE]] = row
    store.counters[FREE] += 1
    store.counters[LIVE] -= 1
    return size


@inlined
def _take(i: Any, items: Any, partition: Array, store: Store, size: Any) -> None:
    """Take in row number i, whose insertion will be told at `size`."""
    time, groups, words = items
    records, width = store.records, words.shape[1]
    row = take_id(store.free, store.counters)
    for j in range(width):
        records[row, j] = words[i, j]
    records[row, width + _GROUP] = groups[i]
    records[row, width + _TIME] = time[i]
    records[row, width + _TOLD_AT] = size
    records[row, width + _EARLIER] = store.ends[_LAST]
    if store.ends[_LAST] != 0:
        records[store.ends[_LAST] - 1, width + _LATER] = row + 1
    else:
        store.ends[_FIRST] = row + 1
    store.ends[_LAST] = row + 1
    if partition[_COUNT] == 0:
        partition[_OLDEST] = row + 1
    else:
        records[partition[_NEWEST] - 1, width + _NEXT] = row + 1
    partition[_NEWEST] = row + 1
    partition[_COUNT] += 1


@tight
def _take_rows(
    items: tuple[Array, Array, Array],
    partitions: Array,
    limits: tuple[int, int, int],
    store: Store,
    told: WithinChanges,
) -> int:
    """Take in rows and let old ones go, in order of time; how many changes are told.

    `limits` are the rows kept per partition, how long a row stays, and the mark. What
    comes and goes at one instant is left with weight zero.
    """
    time, groups, words = items
    most, length, mark = limits
    records, width = store.records, words.shape[1]
    head = partitions.shape[1] - _PARTITION_EXTRA
    size, i = 0, 0
    while True:
        first = store.ends[_FIRST]
        # A row whose end lies beyond the end of time never leaves.
        has_end = first != 0 and records[first - 1, width + _TIME] <= INT64_MAX - length - 1
        end = records[first - 1, width + _TIME] + length + 1 if has_end else mark
        if has_end and end <= mark and (i == time.size or end <= time[i]):
            partition = partitions[records[first - 1, width + _GROUP], head:]
            size = _drop(first - 1, end, partition, store, told, size)
        elif i < time.size:
            partition = partitions[groups[i], head:]
            _take(i, items, partition, store, size)
            size = _tell(told, size, time[i], 1, groups[i], words[i])
            if partition[_COUNT] > most:
                size = _drop(partition[_OLDEST] - 1, time[i], partition, store, told, size)
            i += 1
        else:
            return size


class RowsWithinKernel:
    """Mutable: the rows of each partition, oldest first, and all of them by time."""

    def __init__(
        self, function: Rows, input_types: tuple[QueueType, ...], output_count: int
    ) -> None:
        assert function.length is not None
        (self.type,) = function.output_types(input_types, output_count)
        self.by = function.by
        self.count = function.count
        self.length = min(function.length, INT64_MAX - 1)
        schema = self.type.schema
        self.partitions = Interner([schema[name] for name in self.by], _PARTITION_EXTRA)
        self.codec = Codec([f.type for f in schema], TextPool())
        self.store = Store(
            np.zeros((0, self.codec.width + _ROW_EXTRA), np.int64),
            np.zeros(0, np.int64),
            np.zeros(3, np.int64),
            np.zeros(2, np.int64),
        )

    def process(self, inputs: tuple[Batch, ...], round_: Round) -> tuple[Batch, ...]:
        (batch,) = inputs
        groups = self.partitions.ids([batch.column(n) for n in self.by], len(batch))
        words = self.codec.words(batch.columns, len(batch))
        most = 2 * len(batch) + int(self.store.counters[LIVE])
        self._make_room(len(batch))
        told = WithinChanges(
            np.empty(most, np.int64),
            np.empty(most, np.int64),
            np.empty(most, np.int64),
            np.empty((most, self.codec.width), np.int64),
        )
        size = _take_rows(
            (frozen(batch.time), groups, words),
            self.partitions.table.records,
            (self.count, self.length, round_.mark),
            self.store,
            told,
        )
        kept = np.flatnonzero(told.weight[:size])
        out = Batch(
            self.type, told.time[kept], self.codec.vectors(told.words[kept]), told.weight[kept]
        )
        self._forget(told.groups[:size])
        return (out,)

    def _make_room(self, count: int) -> None:
        records, free, counters, ends = self.store
        length = int(counters[TOP] - counters[FREE]) + count
        self.store = Store(grown(records, length), grown(free, length), counters, ends)

    def _forget(self, used: Array) -> None:
        records = self.partitions.table.records
        column = records.shape[1] - _PARTITION_EXTRA + _COUNT
        self.partitions.release(dead_ids(used, records, column))
        if self.codec.text_columns and self.codec.pool.wants_sweep():
            marks = self.codec.pool.marks()
            self.codec.mark(self.store.records[: self.store.counters[TOP]], marks)
            self.codec.pool.sweep(marks)

    def snapshot(self) -> State:
        records, free, counters, ends = self.store
        return {
            "records": records[: counters[TOP]].copy(),
            "free": free[: counters[FREE]].copy(),
            "ends": ends.copy(),
            **named("partitions.", self.partitions.snapshot()),
            **named("pool.", self.codec.pool.snapshot()),
        }

    def restore(self, state: State) -> None:
        width = self.store.records.shape[1]
        records = np.array(state["records"], np.int64).reshape(-1, width)
        free = np.array(state["free"], np.int64)
        top = len(records)
        counters = np.array([top, len(free), top - len(free)], np.int64)
        ends = np.array(state["ends"], np.int64)
        self.store = Store(records, padded(free, top), counters, ends)
        self.partitions.restore(part(state, "partitions."))
        self.codec.pool.restore(part(state, "pool."))

    def faults(self) -> dict[str, int]:
        return {}


def rows_kernel(
    function: Rows | Latest, input_types: tuple[QueueType, ...], output_count: int
) -> Kernel:
    """The kernel of a window by count."""
    if isinstance(function, Rows) and function.length is not None:
        return RowsWithinKernel(function, input_types, output_count)
    if isinstance(function, Latest) or function.count == 1:
        return LatestKernel(function, input_types, output_count)
    return RowsKernel(function, input_types, output_count)
