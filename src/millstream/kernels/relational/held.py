"""Held: rows that wait for a time, alone or for the last of their key.

What is held is looked at in every round as a whole: who leaves follows from the rows alone, and
nothing is kept beside them.
"""

from __future__ import annotations

import numpy as np

from millstream.calculus.functions import Held, Now
from millstream.calculus.types import QueueType
from millstream.compiled import tight
from millstream.kernels.relational.window_time import RangeKernel
from millstream.kernels.runtime.hashing import frozen
from millstream.kernels.runtime.interning import Interner
from millstream.kernels.runtime.kernel import Round, Termless
from millstream.kernels.runtime.rowstore import Fifo
from millstream.plan.batch import Array, Batch, Vector, concat_batches

_NONE = -1


@tight
def _together(time: Array, ends: Array, keys: Array, last: Array, groups: Array) -> None:
    """Make of the time at which each row would leave alone that of all that leave with it.

    `last` has the number of the rows of a key that wait, and `groups` that of each row; the end
    of a number is kept at its first row until all are known.
    """
    for i in range(time.size):
        first = last[keys[i]]
        if first == _NONE or ends[first] < time[i]:
            first = i
            last[keys[i]] = i
        groups[i] = first
        ends[first] = max(ends[first], ends[i])
    for i in range(time.size):
        ends[i] = ends[groups[i]]


class HeldKernel(Termless):
    """Mutable: the rows that are held back, and those that have left at the last instant."""

    def __init__(
        self, function: Held, input_types: tuple[QueueType, ...], output_count: int
    ) -> None:
        self.function = function
        (self.given,) = input_types
        self.key_types = [self.given.schema[n] for n in function.by]
        self.held = Fifo(self.given)
        self.now = RangeKernel(Now(), input_types, output_count)
        self.parts = {"held": self.held, "now": self.now}

    def process(self, inputs: tuple[Batch, ...], round_: Round) -> tuple[Batch, ...]:
        rows = concat_batches([self.held.pop(len(self.held)), inputs[0]], self.given)
        ends = self._ends(rows)
        is_due = ends <= round_.mark
        due = np.flatnonzero(is_due)
        self.held.push(rows.take(np.flatnonzero(~is_due)))
        due = due[np.argsort(ends[due], kind="stable")]
        leaving, time = rows.take(due), ends[due]
        place = self.given.schema.index(self.function.until)
        columns = list(leaving.columns)
        columns[place] = Vector(columns[place].type, time)
        return self.now.process((Batch(self.given, time, tuple(columns)),), round_)

    def _ends(self, rows: Batch) -> Array:
        """When each row leaves, as far as is known by now."""
        said = rows.column(self.function.until)
        ends: Array = np.maximum(np.where(said.mask(), said.values, rows.time), rows.time)
        if self.function.is_alone or not len(rows):
            return ends
        keys = Interner(self.key_types)
        ids = keys.ids([rows.column(n) for n in self.function.by], len(rows))
        groups = np.empty(len(rows), np.int64)
        _together(frozen(rows.time), ends, ids, np.full(max(keys.bound, 1), _NONE), groups)
        return ends
