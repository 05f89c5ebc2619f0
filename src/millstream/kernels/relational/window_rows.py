"""Windows by count: the last rows of each partition."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from millstream.calculus.functions import Latest, Rows
from millstream.calculus.types import QueueType
from millstream.compiled import inlined, tight
from millstream.kernels.runtime.hashing import FREE, TOP, frozen, grown, padded, take_id
from millstream.kernels.runtime.interning import Interner, named, part
from millstream.kernels.runtime.interning_text import TextPool
from millstream.kernels.runtime.interning_words import Codec
from millstream.kernels.runtime.kernel import Round, State
from millstream.plan.batch import Array, Batch, empty_batch

#: What is kept with each partition: links to its oldest and its newest row (the number
#: of the row plus one, or zero), and how many there are.
_OLDEST, _NEWEST, _COUNT = range(3)
_PARTITION_EXTRA = 3

#: What is kept with each row: a link to the next newer one, its time, and where in the
#: output its insertion stands.
_NEXT, _TIME, _TOLD_AT = range(3)
_ROW_EXTRA = 3


class Store(NamedTuple):
    """Rows of words by number, a stack of free numbers, and counters."""

    records: Array
    free: Array
    counters: Array


class RowChanges(NamedTuple):
    time: Array
    weight: Array
    words: Array


@inlined
def _tell(told: RowChanges, size: Any, time: Any, weight: Any, words: Array) -> Any:
    told.time[size], told.weight[size] = time, weight
    for j in range(told.words.shape[1]):
        told.words[size, j] = words[j]
    return size + 1


@inlined
def _evict(partition: Array, now: Any, store: Store, told: RowChanges, size: Any) -> Any:
    """Take the oldest row out; one that came at this very instant has never been seen."""
    records, free, counters = store
    width = told.words.shape[1]
    row = partition[_OLDEST] - 1
    partition[_OLDEST] = records[row, width + _NEXT]
    partition[_COUNT] -= 1
    if records[row, width + _TIME] == now:
        told.weight[records[row, width + _TOLD_AT]] = 0
    else:
        size = _tell(told, size, now, -1, records[row])
    for j in range(records.shape[1]):
        records[row, j] = 0
    free[counters[FREE]] = row
    counters[FREE] += 1
    return size


@tight
def _take_rows(
    items: tuple[Array, Array, Array], partitions: Array, most: int, store: Store, told: RowChanges
) -> int:
    """Take in rows, keeping `most` per partition; how many changes are told.

    Those that undo each other at one instant are left with weight zero.
    """
    time, groups, words = items
    records = store.records
    width = words.shape[1]
    head = partitions.shape[1] - _PARTITION_EXTRA
    size = 0
    for i in range(time.size):
        partition = partitions[groups[i], head:]
        row = take_id(store.free, store.counters)
        for j in range(width):
            records[row, j] = words[i, j]
        records[row, width + _NEXT] = 0
        records[row, width + _TIME] = time[i]
        records[row, width + _TOLD_AT] = size
        if partition[_COUNT] == 0:
            partition[_OLDEST] = row + 1
        else:
            records[partition[_NEWEST] - 1, width + _NEXT] = row + 1
        partition[_NEWEST] = row + 1
        partition[_COUNT] += 1
        size = _tell(told, size, time[i], 1, words[i])
        if partition[_COUNT] > most:
            size = _evict(partition, time[i], store, told, size)
    return size


class RowsKernel:
    """Mutable: the rows of each partition, oldest first."""

    def __init__(
        self, function: Rows | Latest, input_types: tuple[QueueType, ...], output_count: int
    ) -> None:
        (self.type,) = function.output_types(input_types, output_count)
        self.by = function.by
        self.count = 1 if isinstance(function, Latest) else function.count
        schema = self.type.schema
        self.partitions = Interner([schema[name] for name in self.by], _PARTITION_EXTRA)
        self.codec = Codec([f.type for f in schema], TextPool())
        self.store = Store(
            np.zeros((0, self.codec.width + _ROW_EXTRA), np.int64),
            np.zeros(0, np.int64),
            np.zeros(3, np.int64),
        )

    def process(self, inputs: tuple[Batch, ...], round_: Round) -> tuple[Batch, ...]:
        (batch,) = inputs
        if not len(batch):
            return (empty_batch(self.type),)
        groups = self.partitions.ids([batch.column(n) for n in self.by], len(batch))
        words = self.codec.words(batch.columns, len(batch))
        self._make_room(len(batch))
        most = 2 * len(batch)
        told = RowChanges(
            np.empty(most, np.int64),
            np.empty(most, np.int64),
            np.empty((most, self.codec.width), np.int64),
        )
        size = _take_rows(
            (frozen(batch.time), groups, words),
            self.partitions.table.records,
            self.count,
            self.store,
            told,
        )
        kept = np.flatnonzero(told.weight[:size])
        out = Batch(
            self.type, told.time[kept], self.codec.vectors(told.words[kept]), told.weight[kept]
        )
        self._sweep()
        return (out,)

    def _make_room(self, count: int) -> None:
        records, free, counters = self.store
        length = int(counters[TOP] - counters[FREE]) + count
        self.store = Store(grown(records, length), grown(free, length), counters)

    def _sweep(self) -> None:
        if self.codec.text_columns and self.codec.pool.wants_sweep():
            marks = self.codec.pool.marks()
            self.codec.mark(self.store.records[: self.store.counters[TOP]], marks)
            self.codec.pool.sweep(marks)

    def snapshot(self) -> State:
        records, free, counters = self.store
        return {
            "records": records[: counters[TOP]].copy(),
            "free": free[: counters[FREE]].copy(),
            **named("partitions.", self.partitions.snapshot()),
            **named("pool.", self.codec.pool.snapshot()),
        }

    def restore(self, state: State) -> None:
        width = self.store.records.shape[1]
        records = np.array(state["records"], np.int64).reshape(-1, width)
        free = np.array(state["free"], np.int64)
        top = len(records)
        counters = np.array([top, len(free), top - len(free)], np.int64)
        self.store = Store(records, padded(free, top), counters)
        self.partitions.restore(part(state, "partitions."))
        self.codec.pool.restore(part(state, "pool."))

    def faults(self) -> dict[str, int]:
        return {}
