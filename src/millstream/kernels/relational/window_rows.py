"""Windows by count, and perhaps by time: the last rows of each partition that are not too old."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from millstream.calculus.functions import Latest, Rows
from millstream.calculus.types import INT64_MAX, QueueType
from millstream.compiled import inlined, tight
from millstream.kernels.relational.latest import LatestKernel
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
from millstream.kernels.runtime.interning import Interner
from millstream.kernels.runtime.interning_text import TextPool
from millstream.kernels.runtime.interning_words import Codec
from millstream.kernels.runtime.kernel import Kernel, Round, State, Termless
from millstream.plan.batch import Array, Batch, empty_batch

#: What is kept with each partition: links to its oldest and its newest row (the number
#: of the row plus one, or zero), and how many there are.
_OLDEST, _NEWEST, _COUNT = range(3)
_PARTITION_EXTRA = 3

#: What is kept with each row: a link to the next newer one of its partition, its time, and
#: where in the output its insertion stands.
_NEXT, _TIME, _TOLD_AT = range(3)
_ROW_EXTRA = 3
#: And if rows grow old: its partition, and links to the rows that came after and before it in
#: all partitions.
_GROUP, _LATER, _EARLIER = range(3, 6)
_AGEING_EXTRA = 6

#: Links to the oldest and the newest of all rows.
_FIRST, _LAST = range(2)


class Store(NamedTuple):
    """Rows of words by number, a stack of free numbers, counters, and the two ends."""

    records: Array
    free: Array
    counters: Array
    ends: Array


class RowChanges(NamedTuple):
    time: Array
    weight: Array
    words: Array
    #: The partitions that may be empty now.
    groups: Array


@inlined
def _tell(out: RowChanges, size: Any, time: Any, weight: Any, words: Array) -> Any:
    out.time[size], out.weight[size] = time, weight
    for j in range(out.words.shape[1]):
        out.words[size, j] = words[j]
    return size + 1


@inlined
def _drop(partition: Array, now: Any, limit: Any, store: Store, out: RowChanges, size: Any) -> Any:
    """Take out the oldest row of a partition; how many changes are told then."""
    records, free, counters, ends = store
    width = out.words.shape[1]
    row = partition[_OLDEST] - 1
    partition[_OLDEST] = records[row, width + _NEXT]
    partition[_COUNT] -= 1
    if limit is not None:
        later, earlier = records[row, width + _LATER], records[row, width + _EARLIER]
        if later != 0:
            records[later - 1, width + _EARLIER] = earlier
        else:
            ends[_LAST] = earlier
        if earlier != 0:
            records[earlier - 1, width + _LATER] = later
        else:
            ends[_FIRST] = later
        out.groups[size] = records[row, width + _GROUP]
    if records[row, width + _TIME] == now:
        # One that came at this very instant has never been seen.
        out.weight[records[row, width + _TOLD_AT]] = 0
    else:
        size = _tell(out, size, now, -1, records[row])
    for j in range(records.shape[1]):
        records[row, j] = 0
    free[counters[FREE]] = row
    counters[FREE] += 1
    counters[LIVE] -= 1
    return size


@inlined
def _take(i: Any, items: Any, partition: Array, limit: Any, store: Store, size: Any) -> None:
    """Take in row number i, whose insertion will be told at `size`."""
    time, groups, words = items
    records, width = store.records, words.shape[1]
    row = take_id(store.free, store.counters)
    for j in range(width):
        records[row, j] = words[i, j]
    records[row, width + _NEXT] = 0
    records[row, width + _TIME] = time[i]
    records[row, width + _TOLD_AT] = size
    if limit is not None:
        records[row, width + _GROUP] = groups[i]
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
    most: int,
    limit: tuple[int, int] | None,
    store: Store,
    out: RowChanges,
) -> int:
    """Take in rows and let old ones go, in order of time; how many changes are told.

    `most` rows are kept per partition, and if there is a limit, which is how long a row stays
    and the mark, only young ones. What comes and goes at one instant is left with weight zero.
    """
    time, groups, words = items
    records, width = store.records, words.shape[1]
    head = partitions.shape[1] - _PARTITION_EXTRA
    size, i = 0, 0
    while True:
        if limit is not None:
            length, mark = limit
            first = store.ends[_FIRST]
            # A row whose end lies beyond the end of time never leaves.
            has_end = first != 0 and records[first - 1, width + _TIME] <= INT64_MAX - length - 1
            end = records[first - 1, width + _TIME] + length + 1 if has_end else mark
            if has_end and end <= mark and (i == time.size or end <= time[i]):
                partition = partitions[records[first - 1, width + _GROUP], head:]
                size = _drop(partition, end, limit, store, out, size)
                continue
        if i == time.size:
            return size
        partition = partitions[groups[i], head:]
        _take(i, items, partition, limit, store, size)
        out.groups[size] = groups[i]
        size = _tell(out, size, time[i], 1, words[i])
        if partition[_COUNT] > most:
            size = _drop(partition, time[i], limit, store, out, size)
        i += 1


class RowsKernel(Termless):
    """Mutable: the rows of each partition, oldest first, and all of them by time if they age."""

    def __init__(
        self, function: Rows | Latest, input_types: tuple[QueueType, ...], output_count: int
    ) -> None:
        (self.type,) = function.output_types(input_types, output_count)
        self.by = function.by
        self.count = 1 if isinstance(function, Latest) else function.count
        length = None if isinstance(function, Latest) else function.length
        self.length = None if length is None else min(length, INT64_MAX - 1)
        schema = self.type.schema
        self.partitions = Interner([schema[name] for name in self.by], _PARTITION_EXTRA)
        self.codec = Codec([f.type for f in schema], TextPool())
        extra = _ROW_EXTRA if length is None else _AGEING_EXTRA
        self.store = Store(
            np.zeros((0, self.codec.width + extra), np.int64),
            np.zeros(0, np.int64),
            np.zeros(3, np.int64),
            np.zeros(2, np.int64),
        )
        self.parts = {"partitions": self.partitions, "pool": self.codec.pool}

    def process(self, inputs: tuple[Batch, ...], round_: Round) -> tuple[Batch, ...]:
        (batch,) = inputs
        if self.length is None and not len(batch):
            return (empty_batch(self.type),)
        groups = self.partitions.ids([batch.column(n) for n in self.by], len(batch))
        words = self.codec.words(batch.columns, len(batch))
        most = 2 * len(batch) + (0 if self.length is None else int(self.store.counters[LIVE]))
        self._make_room(len(batch))
        out = RowChanges(
            np.empty(most, np.int64),
            np.empty(most, np.int64),
            np.empty((most, self.codec.width), np.int64),
            np.empty(most + 1, np.int64),
        )
        size = _take_rows(
            (frozen(batch.time), groups, words),
            self.partitions.table.records,
            self.count,
            None if self.length is None else (self.length, round_.mark),
            self.store,
            out,
        )
        kept = np.flatnonzero(out.weight[:size])
        changes = Batch(
            self.type, out.time[kept], self.codec.vectors(out.words[kept]), out.weight[kept]
        )
        if self.length is not None:
            self._forget(out.groups[:size])
        if self.codec.wants_sweep():
            self.codec.sweep(self.store.records[: self.store.counters[TOP]])
        return (changes,)

    def _make_room(self, count: int) -> None:
        records, free, counters, ends = self.store
        length = int(counters[TOP] - counters[FREE]) + count
        self.store = Store(grown(records, length), grown(free, length), counters, ends)

    def _forget(self, used: Array) -> None:
        """Forget the partitions of which no row is left."""
        records = self.partitions.table.records
        column = records.shape[1] - _PARTITION_EXTRA + _COUNT
        self.partitions.release(dead_ids(used, records, column))

    def snapshot(self) -> State:
        records, free, counters, ends = self.store
        return super().snapshot() | {
            "records": records[: counters[TOP]].copy(),
            "free": free[: counters[FREE]].copy(),
            "ends": ends.copy(),
        }

    def restore(self, state: State) -> None:
        super().restore(state)
        width = self.store.records.shape[1]
        records = np.array(state["records"], np.int64).reshape(-1, width)
        free = np.array(state["free"], np.int64)
        top = len(records)
        counters = np.array([top, len(free), top - len(free)], np.int64)
        ends = np.array(state["ends"], np.int64)
        self.store = Store(records, padded(free, top), counters, ends)


def rows_kernel(
    function: Rows | Latest, input_types: tuple[QueueType, ...], output_count: int
) -> Kernel:
    """The kernel of a window by count."""
    if isinstance(function, Latest) or (function.count == 1 and function.length is None):
        return LatestKernel(function, input_types, output_count)
    return RowsKernel(function, input_types, output_count)
