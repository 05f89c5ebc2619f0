"""What a task that reads does with the rows of an input before it sends them on.

The kernels are kept from task to task; what they count is told by each task, and begins anew.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from millstream.engine.buckets import parts
from millstream.engine.layout import Layout
from millstream.engine.messages import Message
from millstream.kernels.rounds import StepRunner
from millstream.kernels.scripts.combining import combined
from millstream.plan.ahead import Ahead
from millstream.plan.batch import Array, Batch, concat_batches

#: A bucket, the number of a queue, rows.
Sendable = tuple[int, int, Batch]


class Reading:
    """Mutable: the kernels that run where the rows of an input are read."""

    def __init__(self, layout: Layout, ahead: Ahead) -> None:
        self.layout = layout
        self.ahead = ahead
        self.runner = StepRunner(layout.plan, ahead.steps)
        self.types = layout.plan.program.queue_types()
        #: The stage to which each queue goes, by its number.
        self.stages = {layout.number(q): layout.targets[q].stage for q in ahead.leaving}
        self._fresh = self.runner.snapshot()
        self._made: dict[str, list[Batch]] = {}
        #: The first and the last number of rows that follow each other.
        self._runs: list[Array] = []

    def begin(self) -> None:
        """A task begins, whatever became of the one before it."""
        self.runner.restore(self._fresh)
        self.runner.taken_figures()
        self._made, self._runs = {}, []

    def take(self, batch: Batch) -> None:
        """Rows that are in time, in the order in which they were read."""
        self._runs.append(runs_of(batch.time))
        for queues in self.runner.round({self.ahead.input: batch}, int(batch.time[-1]), {}):
            for name, made in queues.items():
                self._made.setdefault(name, []).append(made)

    def sendable(self, buckets: int, turn: int) -> Iterator[Sendable]:
        """What was made since this was asked last, cut by bucket."""
        made, self._made = self._made, {}
        for name, batches in made.items():
            batch = concat_batches(batches, self.types[name])
            table = self.layout.table_of(name)
            if table is not None:
                batch = combined(table, batch)
            for bucket, part in parts(batch, self.layout.targets[name].key, buckets, turn):
                yield bucket, self.layout.number(name), part

    def told(self) -> Message:
        """What the driver must know: which rows, and what the kernels have counted."""
        steps = self.runner.taken_figures()
        return {
            "ahead": {self.ahead.input: joined(self._runs)},
            "read_faults": self.runner.faults([True] * len(self.ahead.steps)),
            "steps": {name: one.written() for name, one in steps.items()},
        }


def told_of(readings: Sequence[Reading]) -> Message:
    """What the driver must know of all that was done where rows were read."""
    if not readings:
        return {}
    messages = [reading.told() for reading in readings]
    return {
        "ahead": {name: runs for message in messages for name, runs in message["ahead"].items()},
        "read_faults": dict(sum((one["read_faults"] for one in messages), Counter())),
        "steps": {name: figures for one in messages for name, figures in one["steps"].items()},
    }


def readings_of(layout: Layout) -> dict[str, Reading]:
    """The kernels that run where inputs are read, by input."""
    return {one.input: Reading(layout, one) for one in layout.ahead}


# --- numbers of rows ---------------------------------------------------------------------


def runs_of(numbers: Array) -> Array:
    """Increasing numbers as pairs, flat: the first and the last of those in a row."""
    breaks = np.flatnonzero(np.diff(numbers) != 1)
    firsts = numbers[np.concatenate(([0], breaks + 1))]
    lasts = numbers[np.concatenate((breaks, [len(numbers) - 1]))]
    return np.stack((firsts, lasts), axis=1).reshape(-1)


def joined(runs: Sequence[Array]) -> Array:
    """Pairs one after the other, as they are told."""
    return np.concatenate([np.zeros(0, np.int64), *runs])


def released(runs: Any, mark: int | None) -> tuple[int, Array]:
    """How many of these rows are not after a mark, and those that are."""
    pairs = np.asarray(runs, np.int64).reshape(-1, 2)
    if mark is None:
        return 0, pairs.reshape(-1)
    lasts = np.minimum(pairs[:, 1], mark)
    count = int(np.maximum(lasts - pairs[:, 0] + 1, 0).sum())
    rest = pairs[pairs[:, 1] > mark]
    rest = np.stack((np.maximum(rest[:, 0], mark + 1), rest[:, 1]), axis=1)
    return count, rest.reshape(-1)
