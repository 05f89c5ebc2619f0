"""Windows by time: rows come at their time and leave after a fixed while.

Rows leave in the order in which they came, so the window is a queue of batches: what
leaves up to a mark is a slice of it.
"""

from __future__ import annotations

import numpy as np

from millstream.calculus.functions import Now, Range
from millstream.calculus.types import INT64_MAX, INT64_MIN, QueueType
from millstream.kernels.relational.merge import merged_by_time
from millstream.kernels.runtime.kernel import Round, State
from millstream.kernels.runtime.rowstore import Fifo
from millstream.plan.batch import Array, Batch

_WRAP = 1 << 64


def ends_of(time: Array, length: int) -> Array:
    """When rows leave; the sum fits, but the length alone may not, so it may wrap."""
    while_ = np.uint64((length + 1) % _WRAP)
    return (time.view(np.uint64) + while_).view(np.int64)


class RangeKernel:
    """Mutable: holds the rows that are present and will leave."""

    def __init__(
        self, function: Range | Now, input_types: tuple[QueueType, ...], output_count: int
    ) -> None:
        (self.type,) = function.output_types(input_types, output_count)
        self.length = 0 if isinstance(function, Now) else function.length
        self.present = Fifo(input_types[0])

    def process(self, inputs: tuple[Batch, ...], round_: Round) -> tuple[Batch, ...]:
        (batch,) = inputs
        come = self._changes(batch, batch.time, 1)
        if self.length is None:
            return (come,)
        # Rows after the last of these times would leave after the end of time: never.
        last = INT64_MAX - self.length - 1
        if last >= INT64_MIN:
            self.present.push(batch.slice(0, int(np.searchsorted(batch.time, last, "right"))))
        due = max(round_.mark - self.length - 1, INT64_MIN)
        gone = self.present.pop(self.present.count_until(due)) if len(self.present) else None
        if gone is None or not len(gone):
            return (come,)
        return (
            merged_by_time(
                [self._changes(gone, ends_of(gone.time, self.length), -1), come], self.type
            ),
        )

    def _changes(self, batch: Batch, time: Array, weight: int) -> Batch:
        return Batch(self.type, time, batch.columns, np.full(len(batch), weight, np.int64))

    def snapshot(self) -> State:
        return self.present.snapshot()

    def restore(self, state: State) -> None:
        self.present.restore(state)

    def faults(self) -> dict[str, int]:
        return {}
