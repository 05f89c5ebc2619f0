"""Distinct: each row once, however often it is present."""

from __future__ import annotations

import numpy as np

from millstream.calculus.functions import Distinct
from millstream.calculus.types import QueueType
from millstream.compiled import tight
from millstream.kernels.runtime.hashing import FAR, dead_ids, frozen, prefetch
from millstream.kernels.runtime.interning import Interner
from millstream.kernels.runtime.kernel import Round, Termless
from millstream.plan.batch import Array, Batch

#: What is kept with each row: how often it is present, how often it was before this
#: instant, and whether this instant has changed that.
_COUNT, _BEFORE, _IS_TOUCHED = range(3)
_EXTRA = 3


@tight
def _transitions(
    changes: tuple[Array, Array, Array], records: Array, width: int, touched: Array, signs: Array
) -> int:
    """Put the changes that first or last bring a row into `touched`, with their signs."""
    time, rows, weight = changes
    count, before, is_touched = width + _COUNT, width + _BEFORE, width + _IS_TOUCHED
    size, start = 0, 0
    while start < time.size:
        end, last = start, size
        while end < time.size and time[end] == time[start]:
            row = rows[end]
            if end + FAR < time.size:
                prefetch(records, rows[end + FAR])
            if records[row, is_touched] == 0:
                records[row, is_touched] = 1
                records[row, before] = records[row, count]
                touched[last] = end
                last += 1
            records[row, count] += weight[end]
            end += 1
        for k in range(size, last):
            row = rows[touched[k]]
            records[row, is_touched] = 0
            sign = int(records[row, count] > 0) - int(records[row, before] > 0)
            if sign != 0:
                touched[size], signs[size] = touched[k], sign
                size += 1
        start = end
    return size


class DistinctKernel(Termless):
    """Mutable: the rows that are present, and how often."""

    def __init__(
        self, function: Distinct, input_types: tuple[QueueType, ...], output_count: int
    ) -> None:
        (self.type,) = function.output_types(input_types, output_count)
        self.rows = Interner([f.type for f in self.type.schema], _EXTRA)
        self.parts = {"rows": self.rows}

    def process(self, inputs: tuple[Batch, ...], round_: Round) -> tuple[Batch, ...]:
        (batch,) = inputs
        if not len(batch):
            return inputs
        assert batch.weight is not None
        rows = self.rows.ids(batch.columns, len(batch))
        width, records = self.rows.codec.width, self.rows.table.records
        touched, signs = np.empty(len(batch), np.int64), np.empty(len(batch), np.int64)
        changes = (frozen(batch.time), rows, frozen(batch.weight))
        size = _transitions(changes, records, width, touched, signs)
        self.rows.release(dead_ids(rows, records, width + _COUNT))
        columns = tuple(c.take(touched[:size]) for c in batch.columns)
        return (Batch(self.type, batch.time[touched[:size]], columns, signs[:size]),)
