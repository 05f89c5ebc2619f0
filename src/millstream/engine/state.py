"""What a worker keeps between tasks: the state of buckets, each at some version."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from millstream.calculus.types import QueueType
from millstream.engine.ahead import Reading, readings_of
from millstream.engine.layout import Description, Layout
from millstream.engine.order import in_order
from millstream.engine.storage.files import Files
from millstream.kernels.rounds import StepRunner
from millstream.kernels.runtime.presence import Presence
from millstream.plan.batch import Array, Batch, empty_batch
from millstream.plan.blobs import decode_batch, encode_batch
from millstream.plan.steps import Plan, Step


@dataclass
class Waiting:
    """Mutable: items of a queue that are ahead of the mark, in batches each in order."""

    type: QueueType
    batches: list[Batch] = field(default_factory=list)

    def add(self, batch: Batch) -> None:
        if len(batch):
            self.batches.append(in_order([batch], self.type))

    def up_to(self, mark: int) -> Batch:
        """The items up to a mark in their order; the others wait on."""
        ready = self.taken(mark)
        return in_order(ready, self.type) if ready else nothing_of(self.type)

    def taken(self, mark: int) -> list[Batch]:
        """The items up to a mark, by whence they came; the others wait on."""
        ready: list[Batch] = []
        rest: list[Batch] = []
        for batch in self.batches:
            cut = int(np.searchsorted(batch.time, mark, side="right"))
            if cut:
                ready.append(batch.slice(0, cut))
            if cut < len(batch):
                rest.append(batch.slice(cut, len(batch)))
        self.batches = rest
        return ready

    def snapshot(self) -> list[bytes]:
        return [encode_batch(batch).to_pybytes() for batch in self.batches]

    def restore(self, blobs: list[bytes]) -> None:
        self.batches = [decode_batch(blob, self.type) for blob in blobs]


def nothing_of(type_: QueueType) -> Batch:
    """No items, which carry ranks."""
    nothing = empty_batch(type_)
    return Batch(type_, nothing.time, nothing.columns, nothing.weight, np.zeros(0, np.int64))


@dataclass
class Bucket:
    """Mutable: the state of one bucket of one stage."""

    runner: Any
    waiting: dict[str, Waiting]
    #: The rows of relations that enter here.
    presence: dict[str, Presence]
    #: Its number in its stage: the first one speaks for all of what is in all of them.
    number: int = 0
    version: int = 0
    mark: int | None = None
    #: Instants of the inputs that are not known to be complete yet.
    ticks: dict[str, Array] = field(default_factory=dict)

    def ticks_up_to(self, mark: int) -> dict[str, Array]:
        """The instants up to a mark, which are then forgotten."""
        due = {name: some[some <= mark] for name, some in self.ticks.items()}
        self.ticks = {name: some[some > mark] for name, some in self.ticks.items()}
        return due

    def snapshot(self) -> dict[str, Any]:
        return {"version": self.version, "mark": self.mark, "ticks": self.ticks,
                "waiting": {q: w.snapshot() for q, w in self.waiting.items()},
                "presence": {q: p.snapshot() for q, p in self.presence.items()},
                "kernels": self.runner.snapshot()}  # fmt: skip

    def restore(self, state: dict[str, Any]) -> None:
        self.version, self.mark, self.ticks = state["version"], state["mark"], state["ticks"]
        for queue, blobs in state["waiting"].items():
            self.waiting[queue].restore(blobs)
        for queue, rows in state["presence"].items():
            self.presence[queue].restore(rows)
        self.runner.restore(state["kernels"])


@dataclass
class WorkerMemory:
    """Mutable: what a worker process keeps between tasks, for one job."""

    description: Description
    layout: Layout
    files: Files
    types: Mapping[str, QueueType]
    #: What runs the steps of a stage.
    make: Callable[[Plan, tuple[Step, ...]], Any] = StepRunner
    buckets: dict[tuple[int, int], Bucket] = field(default_factory=dict)

    @cached_property
    def readings(self) -> dict[str, Reading]:
        """What runs where inputs are read."""
        return readings_of(self.layout)

    def new_bucket(self, stage: int, number: int) -> Bucket:
        entering = [q for q, _ in self.layout.stages[stage].keys]
        inputs = set(self.layout.plan.program.input_names)
        return Bucket(
            self.make(self.layout.plan, self.layout.stages[stage].steps),
            {q: Waiting(self.types[q]) for q in entering},
            {q: Presence(self.types[q]) for q in entering
             if q in inputs and self.types[q].is_relation},
            number,
        )  # fmt: skip

    def has_at_hand(self, stage: int, group: int, version: int) -> bool:
        """Whether some bucket of a group is here at this version."""
        some = (self.buckets.get((stage, bucket)) for bucket in self.of_group(stage, group))
        return any(state is not None and state.version == version for state in some)

    def of_group(self, stage: int, group: int) -> Iterator[int]:
        """The buckets of a group; a stage that must see all rows has one bucket."""
        count = 1 if self.layout.has_one_bucket(stage) else self.description.buckets
        yield from range(group, count, self.description.partitions)
