"""Running generated programs on generated events, on every engine."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from typing import Any

from millstream.calculus.graph import Program
from millstream.calculus.types import QueueType, Row
from millstream.connectors.chunks import Chunk
from millstream.engine.job import Job, Report
from millstream.engine.reference.feed import Event
from millstream.engine.reference.run import Schedule, default_schedule
from millstream.engine.reference.run import run as run_reference
from millstream.plan.batch import Batch, batch_of

Rows = list[tuple[int, int, Row]]


class ListReader:
    """Events as chunks that are cut at given places."""

    def __init__(self, type_: QueueType, events: list[Event], cuts: Sequence[int] = ()) -> None:
        places = sorted({min(c, len(events)) for c in cuts} | {0, len(events)})
        self.parts = [_batch(type_, events[a:b]) for a, b in itertools.pairwise(places)]

    def chunks(self) -> Any:
        return (Chunk(part) for part in self.parts)

    def close(self) -> None:
        """Nothing is open."""


def _batch(type_: QueueType, events: list[Event]) -> Batch:
    weights = [e.weight for e in events] if type_.is_relation else None
    return batch_of(type_, [e.time for e in events], [e.row for e in events], weights)


class Collector:
    """A writer that keeps rows as (time, weight, row)."""

    def __init__(self) -> None:
        self.rows: Rows = []

    def write(self, batch: Batch) -> None:
        weights = [1] * len(batch) if batch.weight is None else batch.weight.tolist()
        self.rows += zip(batch.time.tolist(), weights, batch.rows(), strict=True)

    def close(self) -> None:
        """Rows stay."""

    def abort(self) -> None:
        """Rows stay."""


def job_for(
    program: Program, events: dict[str, list[Event]], cuts: Sequence[int] = ()
) -> tuple[Job, dict[str, Collector]]:
    collectors = {q: Collector() for q in program.outputs}
    readers = {one.name: ListReader(one.type, events[one.name], cuts) for one in program.inputs}
    return Job(program, readers, collectors), collectors


def on_reference(
    program: Program, events: dict[str, list[Event]], schedule: Schedule = default_schedule
) -> tuple[dict[str, Rows], Report]:
    job, collectors = job_for(program, events)
    report = run_reference(job, schedule=schedule)
    return {q: c.rows for q, c in collectors.items()}, report


def on_local(
    program: Program, events: dict[str, list[Event]], cuts: Sequence[int] = (), threads: int = 1
) -> tuple[dict[str, Rows], Report]:
    from millstream.engine.local.run import run as run_local

    job, collectors = job_for(program, events, cuts)
    report = run_local(job, threads=threads, threads_from=0)
    return {q: c.rows for q, c in collectors.items()}, report


def check_faults(program: Program, meant: Counter[str], counted: Counter[str]) -> None:
    """What docs/semantics.md promises of the numbers of faults."""
    if not _computes_of_changes(program):
        assert meant == counted
    assert meant.keys() <= counted.keys()


def _computes_of_changes(program: Program) -> bool:
    """Whether terms are computed of changes, which are not the same everywhere."""
    types = program.queue_types()
    return any(
        types[queue].is_relation
        for op in program.operators
        if op.function.terms()
        for queue in op.inputs
    )
