"""Relations from outside: a deletion must find the row that it deletes.

A change log that takes away what is not there has no meaning; such changes are rejected
where the relation enters, so that everything behind it can rely on bags. Within one
instant insertions come first, so that the order of lines does not matter.
"""

from __future__ import annotations

import numpy as np

from millstream.calculus.types import QueueType
from millstream.compiled import tight
from millstream.kernels.runtime.hashing import dead_ids, frozen
from millstream.kernels.runtime.interning import Interner
from millstream.kernels.runtime.kernel import State
from millstream.plan.batch import Array, Batch


@tight
def _find_rows(changes: tuple[Array, Array, Array], records: Array, count: int, kept: Array) -> int:
    """Mark the changes to keep; returns how many are not."""
    time, rows, weight = changes
    missing, start = 0, 0
    while start < time.size:
        end = start
        while end < time.size and time[end] == time[start]:
            if weight[end] > 0:
                records[rows[end], count] += weight[end]
                kept[end] = True
            end += 1
        for k in range(start, end):
            if weight[k] < 0:
                kept[k] = records[rows[k], count] > 0
                if kept[k]:
                    records[rows[k], count] += weight[k]
                else:
                    missing += 1
        start = end
    return missing


class Presence:
    """Mutable: the rows of a relation that are there, and how often."""

    def __init__(self, type_: QueueType) -> None:
        self.rows = Interner([f.type for f in type_.schema], 1)

    def sound(self, batch: Batch) -> tuple[Batch, Batch]:
        """The changes of a batch that make sense, in order, and the others."""
        assert batch.weight is not None
        kept = np.ones(len(batch), np.bool_)
        if not len(batch):
            return batch, batch
        rows = self.rows.ids(batch.columns, len(batch))
        width, records = self.rows.codec.width, self.rows.table.records
        changes = (frozen(batch.time), rows, frozen(batch.weight))
        missing = _find_rows(changes, records, width, kept)
        self.rows.release(dead_ids(rows, records, width))
        if not missing:
            return batch, batch.slice(0, 0)
        return batch.take(np.flatnonzero(kept)), batch.take(np.flatnonzero(~kept))

    def snapshot(self) -> State:
        return self.rows.snapshot()

    def restore(self, state: State) -> None:
        self.rows.restore(state)
