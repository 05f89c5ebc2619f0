"""Windows by time: rows come at their time and leave after a fixed while.

Rows leave in the order in which they came, so the window is a queue of batches: what
leaves up to a mark is a slice of it. A window may move in steps: with a step D a row of time t
comes at the first multiple of D from t on, and leaves at the first multiple beyond t + length.
Both grow with t, so then too rows come and leave in the order of the stream.
"""

from __future__ import annotations

import numpy as np

from millstream.calculus.functions import Now, Range
from millstream.calculus.types import INT64_MAX, INT64_MIN, QueueType
from millstream.kernels.relational.merge import merged_by_time
from millstream.kernels.runtime.kernel import Kernel, Round, Termless
from millstream.kernels.runtime.rowstore import Fifo
from millstream.plan.batch import Array, Batch

_WRAP = 1 << 64


def ends_of(time: Array, length: int) -> Array:
    """When rows leave; the sum fits, but the length alone may not, so it may wrap."""
    while_ = np.uint64((length + 1) % _WRAP)
    return (time.view(np.uint64) + while_).view(np.int64)


class RangeKernel(Termless):
    """Mutable: holds the rows that are present and will leave."""

    def __init__(
        self, function: Range | Now, input_types: tuple[QueueType, ...], output_count: int
    ) -> None:
        (self.type,) = function.output_types(input_types, output_count)
        self.length = 0 if isinstance(function, Now) else function.length
        self.rests = self.length is None  # else rows leave while time passes
        self.present = Fifo(input_types[0])
        self.parts = {"present": self.present}

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


class SlideKernel(Termless):
    """Mutable: the rows that wait for a step, and those that are present and will leave."""

    def __init__(
        self, function: Range, input_types: tuple[QueueType, ...], output_count: int
    ) -> None:
        assert function.slide is not None
        (self.type,) = function.output_types(input_types, output_count)
        self.length = function.length
        self.slide = function.slide
        self.waiting = Fifo(input_types[0])
        self.present = Fifo(input_types[0])
        self.parts = {"waiting": self.waiting, "present": self.present}

    def process(self, inputs: tuple[Batch, ...], round_: Round) -> tuple[Batch, ...]:
        (batch,) = inputs
        step = round_.mark // self.slide * self.slide
        # Rows after the last step that time has will never come.
        last = INT64_MAX // self.slide * self.slide
        self.waiting.push(batch.slice(0, int(np.searchsorted(batch.time, last, "right"))))
        come = self.waiting.pop(self.waiting.count_until(max(step, INT64_MIN)))
        come = self._seen(come)
        changes = [self._changes(come, _steps_from(come.time, self.slide), 1)]
        if self.length is not None:
            self._keep(come)
            due = max(step - self.length - 1, INT64_MIN)
            gone = self.present.pop(self.present.count_until(due))
            changes.insert(0, self._changes(gone, self._ends(gone.time), -1))
        return (merged_by_time(changes, self.type),)

    def _seen(self, come: Batch) -> Batch:
        """Rows that are present at some step; a short window may fall between two."""
        if self.length is None or self.length >= self.slide or not len(come):
            return come
        is_seen = come.time + self.length >= _steps_from(come.time, self.slide)
        return come.take(np.flatnonzero(is_seen))

    def _keep(self, come: Batch) -> None:
        """Rows that would leave after the end of time never do."""
        assert self.length is not None
        last = INT64_MAX - self.length - self.slide
        if last >= INT64_MIN:
            self.present.push(come.slice(0, int(np.searchsorted(come.time, last, "right"))))

    def _ends(self, time: Array) -> Array:
        assert self.length is not None
        ends: Array = ((time + self.length) // self.slide + 1) * self.slide
        return ends

    def _changes(self, batch: Batch, time: Array, weight: int) -> Batch:
        return Batch(self.type, time, batch.columns, np.full(len(batch), weight, np.int64))


def _steps_from(time: Array, slide: int) -> Array:
    """For each time the first step at or after it."""
    steps: Array = -(-time // slide) * slide
    return steps


def range_kernel(
    function: Range | Now, input_types: tuple[QueueType, ...], output_count: int
) -> Kernel:
    """The kernel of a window by time."""
    if isinstance(function, Range) and function.slide is not None:
        return SlideKernel(function, input_types, output_count)
    return RangeKernel(function, input_types, output_count)
