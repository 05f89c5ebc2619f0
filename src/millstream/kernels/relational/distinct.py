"""Distinct and Except: each row as often as a number says that is counted for it.

Distinct counts how often a row is present and shows it once; Except counts how much more often
the first relation has it than the second, and shows it that often. What is counted may fall
below nothing there, and a row of which nothing is left to count is forgotten.
"""

from __future__ import annotations

import numpy as np

from millstream.calculus.functions import Function
from millstream.calculus.types import INT64_MAX, QueueType
from millstream.compiled import tight
from millstream.kernels.relational.merge import merged_by_time
from millstream.kernels.runtime.hashing import FAR, dead_ids, frozen, prefetch
from millstream.kernels.runtime.interning import Interner
from millstream.kernels.runtime.kernel import Round, Termless
from millstream.plan.batch import Array, Batch

#: What is kept with each row: what is counted, what it was before this instant, and whether
#: this instant has changed it.
_COUNT, _BEFORE, _IS_TOUCHED = range(3)
_EXTRA = 3


@tight
def _shown(count: int, most: int) -> int:
    """How often a row is shown."""
    return min(max(count, 0), most)


@tight
def _transitions(
    changes: tuple[Array, Array, Array], records: Array, places: tuple[int, int], touched: Array,
    turns: Array,
) -> int:  # fmt: skip
    """Put a change of each row that is shown more or less often into `touched`, and how much.

    `places` are the width of a row and how often it is shown at most.
    """
    time, rows, weight = changes
    width, most = places
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
            turn = _shown(records[row, count], most) - _shown(records[row, before], most)
            if turn != 0:
                touched[size], turns[size] = touched[k], turn
                size += 1
        start = end
    return size


class DistinctKernel(Termless):
    """Mutable: the rows that are present, and how often."""

    most = 1
    rests = True

    def __init__(
        self, function: Function, input_types: tuple[QueueType, ...], output_count: int
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
        touched, turns = np.empty(len(batch), np.int64), np.empty(len(batch), np.int64)
        changes = (frozen(batch.time), rows, frozen(batch.weight))
        size = _transitions(changes, records, (width, self.most), touched, turns)
        self.rows.release(dead_ids(rows, records, width + _COUNT))
        columns = tuple(c.take(touched[:size]) for c in batch.columns)
        return (Batch(self.type, batch.time[touched[:size]], columns, turns[:size]),)


class ExceptKernel(DistinctKernel):
    """Mutable: the rows that one relation has more often than the other, and how much more."""

    most = INT64_MAX

    def process(self, inputs: tuple[Batch, ...], round_: Round) -> tuple[Batch, ...]:
        first, second = inputs
        assert second.weight is not None
        taken = Batch(self.type, second.time, second.columns, -second.weight)
        return super().process((merged_by_time([first, taken], self.type),), round_)
