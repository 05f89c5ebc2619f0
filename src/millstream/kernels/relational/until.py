"""Until: rows that are there up to a time of their own.

The rows that will leave lie in runs, each in the order of the times at which they leave, so that
what leaves is a slice of each. A new run is put together with those before it that are not
much longer: there are few, and a row is moved seldom.
"""

from __future__ import annotations

import numpy as np

from millstream.calculus.functions import Until
from millstream.calculus.types import QueueType
from millstream.kernels.relational.merge import merged_by_time
from millstream.kernels.runtime.kernel import Round, State, Termless
from millstream.kernels.runtime.rowstore import restored_batch, stored_batch
from millstream.plan.batch import Array, Batch, concat_batches


class Runs:
    """Mutable: rows by the times at which they leave, which stand in the place of their own."""

    def __init__(self, type_: QueueType) -> None:
        self.type = type_
        self._runs: list[Batch] = []

    def push(self, rows: Batch) -> None:
        if not len(rows):
            return
        shorter = [rows]
        while self._runs and len(self._runs[-1]) <= 2 * sum(map(len, shorter)):
            shorter.append(self._runs.pop())
        self._runs.append(self._in_order(shorter[::-1]))

    def pop_until(self, time: int) -> Batch:
        """The rows that leave up to a time, in that order."""
        leaving: list[Batch] = []
        staying: list[Batch] = []
        for run in self._runs:
            cut = int(np.searchsorted(run.time, time, side="right"))
            leaving.append(run.slice(0, cut))
            if cut < len(run):
                staying.append(run.slice(cut, len(run)))
        self._runs = staying
        return self._in_order(leaving)

    def _in_order(self, batches: list[Batch]) -> Batch:
        rows = concat_batches(batches, self.type)
        return rows.take(np.argsort(rows.time, kind="stable"))

    def snapshot(self) -> State:
        return stored_batch(self._in_order(self._runs))

    def restore(self, state: State) -> None:
        rows = restored_batch(self.type, state)
        self._runs = [rows] if len(rows) else []


class UntilKernel(Termless):
    """Mutable: holds the rows that are present and will leave."""

    def __init__(
        self, function: Until, input_types: tuple[QueueType, ...], output_count: int
    ) -> None:
        (self.given,) = input_types
        (self.type,) = function.output_types(input_types, output_count)
        self.until = function.until
        self.present = Runs(self.given)
        self.parts = {"present": self.present}

    def process(self, inputs: tuple[Batch, ...], round_: Round) -> tuple[Batch, ...]:
        (rows,) = inputs
        ends = rows.column(self.until)
        leaves = ends.mask()
        come = rows.take(np.flatnonzero(~leaves | (ends.values > rows.time)))
        will_leave = np.flatnonzero(leaves & (ends.values > rows.time))
        times: Array = ends.values[will_leave]
        self.present.push(Batch(self.given, times, rows.take(will_leave).columns))
        gone = self.present.pop_until(round_.mark)
        return (merged_by_time([self._changes(gone, -1), self._changes(come, 1)], self.type),)

    def _changes(self, rows: Batch, weight: int) -> Batch:
        return Batch(self.type, rows.time, rows.columns, np.full(len(rows), weight, np.int64))
