"""The latest row of each key, kept with its key: one place in memory for each change.

What a key changes from and to at an instant is told in this order, and once; a row that
is replaced by an equal one is not told.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from millstream.calculus.functions import Latest, Rows
from millstream.calculus.types import QueueType
from millstream.compiled import inlined, tight
from millstream.kernels.relational.keyed_rows import KeyedRows
from millstream.kernels.runtime.hashing import NEAR, dead_ids, frozen, prefetch
from millstream.kernels.runtime.kernel import Round, Termless
from millstream.plan.batch import Array, Batch, empty_batch

#: What is kept with each key: whether it has a row, the time of its last change, where in
#: the output that was told, and then the words of its other columns.
_IS_THERE, _TIME, _TOLD_AT = range(3)
_EXTRA = 3


class Items(NamedTuple):
    """Rows: when, of which key, the words of the other columns, and whether the key is gone."""

    time: Array
    ids: Array
    words: Array
    gone: Array


class LatestChanges(NamedTuple):
    """Changes; the words are those of the key, then of the other columns."""

    time: Array
    weight: Array
    words: Array


@inlined
def _tell(out: LatestChanges, size: Any, change: Any, record: Array, width: Any) -> Any:
    """Tell a change of what a record holds."""
    out.time[size], out.weight[size] = change
    for j in range(width):
        out.words[size, j] = record[j]
    for j in range(width, out.words.shape[1]):
        out.words[size, j] = record[j + _EXTRA]
    return size + 1


@inlined
def _holds(record: Array, start: Any, words: Array, i: Any) -> Any:
    for j in range(words.shape[1]):  # noqa: SIM110  numba does not compile all()
        if record[start + j] != words[i, j]:
            return False
    return True


@inlined
def _forget(record: Array, width: Any, now: Any, out: LatestChanges, size: Any) -> Any:
    """Take the row of a key away, if it has one."""
    if record[width + _IS_THERE] == 0:
        return size
    record[width + _IS_THERE] = 0
    if record[width + _TIME] == now:
        out.weight[record[width + _TOLD_AT]] = 0
        return size
    return _tell(out, size, (now, -1), record, width)


@tight
def take_latest(items: Items, records: Array, width: int, out: LatestChanges) -> int:
    """Take in rows of ids; how many changes are told. Keys are `width` words wide.

    What has come and gone at one instant is left with weight zero.
    """
    time, ids, words, gone = items
    start = width + _EXTRA
    size = 0
    for i in range(time.size):
        if i + NEAR < time.size:
            prefetch(records, ids[i + NEAR])
        record = records[ids[i]]
        if gone[i]:
            size = _forget(record, width, time[i], out, size)
            continue
        if record[width + _IS_THERE] != 0 and record[width + _TIME] == time[i]:
            # A row that came at this very instant has never been seen.
            at = record[width + _TOLD_AT]
            for j in range(words.shape[1]):
                record[start + j] = words[i, j]
                out.words[at, width + j] = words[i, j]
            continue
        if record[width + _IS_THERE] != 0:
            if _holds(record, start, words, i):
                continue
            size = _tell(out, size, (time[i], -1), record, width)
        for j in range(words.shape[1]):
            record[start + j] = words[i, j]
        record[width + _IS_THERE] = 1
        record[width + _TIME] = time[i]
        record[width + _TOLD_AT] = size
        size = _tell(out, size, (time[i], 1), record, width)
    return size


class LatestKernel(Termless):
    """Mutable: the latest row of each key."""

    rests = True

    def __init__(
        self, function: Rows | Latest, input_types: tuple[QueueType, ...], output_count: int
    ) -> None:
        (self.type,) = function.output_types(input_types, output_count)
        schema = self.type.schema
        self.unless = function.unless if isinstance(function, Latest) else None
        self.rows = KeyedRows(schema, function.by, schema.names, _EXTRA)
        self.parts = self.rows.parts

    def process(self, inputs: tuple[Batch, ...], round_: Round) -> tuple[Batch, ...]:
        (batch,) = inputs
        most = 2 * len(batch)
        if not most:
            return (empty_batch(self.type),)
        ids, words = self.rows.ids(batch), self.rows.words(batch)
        keys = self.rows.keys
        width = keys.codec.width
        out = LatestChanges(
            np.empty(most, np.int64),
            np.empty(most, np.int64),
            np.empty((most, width + words.shape[1]), np.int64),
        )
        gone = self._gone(batch)
        items = Items(frozen(batch.time), ids, words, gone)
        size = take_latest(items, self.rows.records, width, out)
        out = LatestChanges(*(a[:size] for a in out))
        if gone.any():
            kept = np.flatnonzero(out.weight)
            out = LatestChanges(*(a[kept] for a in out))
            keys.release(dead_ids(ids, self.rows.records, width + _IS_THERE))
        columns = self.rows.vectors(out.words)
        self.rows.sweep()
        ordered = tuple(columns[n] for n in self.type.schema.names)
        return (Batch(self.type, out.time, ordered, out.weight),)

    def _gone(self, batch: Batch) -> Array:
        if self.unless is None:
            return np.zeros(len(batch), np.bool_)
        column = batch.column(self.unless)
        return np.ascontiguousarray(column.values & column.mask())
