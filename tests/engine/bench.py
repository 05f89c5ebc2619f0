"""Batches run by hand, task after task, as Spark would, without Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from millstream.calculus.graph import Program
from millstream.connectors.location import Location
from millstream.engine.checkpoint import Checkpoint
from millstream.engine.clock import SeenOfInput
from millstream.engine.delivery import Delivery
from millstream.engine.job import Job, Report
from millstream.engine.layout import Choice, Description
from millstream.engine.manifest import (
    first_manifest,
    known_in,
    last_manifest,
    manifest_of,
    write_manifest,
)
from millstream.engine.planning import Planner
from millstream.engine.reading import ShareTask
from millstream.engine.spark.wire import Wire, message_of, wired
from millstream.engine.spark.worker import rows_from
from millstream.engine.spec import InputSpec, SourceSpec
from millstream.engine.stage import Turn
from millstream.engine.state import WorkerMemory
from millstream.engine.storage.files import LocalFiles
from millstream.plan.batch import Batch, concat_batches
from tests.laws.runs import Collector


class Kept:
    """A sink that knows its batches."""

    def __init__(self) -> None:
        self.batches: dict[int, Batch] = {}

    def open(self, job: str, *, fresh: bool) -> int:
        return len(self.batches)

    def write_batch(self, number: int, batch: Batch, more: Iterable[Batch] = ()) -> None:
        assert number not in self.batches
        self.batches[number] = concat_batches([batch, *more], batch.type)

    def write(self, batch: Batch) -> None:
        self.write_batch(len(self.batches), batch)

    def close(self) -> None:
        pass

    def abort(self) -> None:
        pass

    def items(self) -> list[Any]:
        """As the laws compare them."""
        collector = Collector()
        for batch in self.batches.values():
            collector.write(batch)
        return collector.rows

    def rows(self) -> list[tuple[Any, ...]]:
        return [row for batch in self.batches.values() for row in batch.rows()]


class Bench:
    """Mutable: a job on a checkpoint. `forgets` gives every task a worker of its own."""

    def __init__(
        self,
        program: Program,
        locations: dict[str, Location],
        checkpoint: Path,
        *,
        partitions: int = 2,
        buckets: int = 4,
        batch_bytes: int = 1 << 20,
        piece_bytes: int = 4 << 20,
        snapshot_every: int = 20,
        is_following: bool = True,
        forgets: bool = False,
        is_together: bool = False,
        copied: frozenset[str] = frozenset(),
        clock: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self.program = program
        self.checkpoint = Checkpoint(checkpoint)
        self.files = LocalFiles(checkpoint)
        self.snapshot_every = snapshot_every
        self.forgets = forgets
        self.description = Description(
            program, str(checkpoint), buckets, partitions, "test", Choice(is_together, copied)
        )
        self.layout = self.description.layout()
        self.memory = self._new_memory()
        self.sinks = {name: Kept() for name in program.outputs}
        self.late = {name: Kept() for name in program.input_names}
        self.report = Report.for_program(program)
        job = Job(program, {}, self.sinks, self.late)
        self.delivery = Delivery(job, self.layout, self.files, self.report)
        specs = [
            InputSpec(one, locations[one.name], n, self.layout.number(one.name),
                      self.layout.targets[one.name].stage, self.layout.targets[one.name].key)
            for n, one in enumerate(program.inputs)
        ]  # fmt: skip
        self.spec = SourceSpec(
            tuple(specs), checkpoint, partitions, buckets, len(self.layout.stages), batch_bytes,
            instants=self.layout.instants(), is_following=is_following, piece_bytes=piece_bytes,
        )  # fmt: skip
        self.planner = Planner(self.spec, self.files, clock)
        self.last = last_manifest(self.files) or first_manifest(program)
        self.known: Sequence[SeenOfInput] = known_in(self.last)
        self.delivery.next = dict.fromkeys(self.delivery.sinks, self.last["version"] + 1)

    def _new_memory(self) -> WorkerMemory:
        return WorkerMemory(
            self.description, self.layout, self.files, self.layout.plan.program.queue_types()
        )

    def batch(self) -> bool:
        """Plan and run the next batch; false if there is nothing to do."""
        seq = self.last["sources"]
        if self.planner.next(seq) == seq:
            return False
        self.run(seq)
        return True

    def run(self, seq: int) -> None:
        version = self.last["version"] + 1
        turn = Turn(version, tuple(self.known), version % self.snapshot_every == 0)
        rows: list[Wire] = []
        for task in self.planner.tasks(seq):
            sent = ShareTask(self.spec, self.files, task, {}).run()
            rows += wired(sent, self.layout.driver, self.description.partitions)
        for stage in range(len(self.layout.stages)):
            rows = [
                r
                for p in range(self.description.partitions)
                for r in self.stage(stage, turn, p, rows)
            ]
        messages = [message_of(row[2]) for row in rows]
        manifest = manifest_of(self.last, version, messages, self.delivery.written, {})
        write_manifest(self.files, manifest)
        self.delivery.deliver(manifest)
        self.last, self.known = manifest, known_in(manifest)
        self.checkpoint.tidy(len(self.layout.stages), manifest, manifest["version"] + 1)

    def stage(self, stage: int, turn: Turn, partition: int, rows: list[Wire]) -> list[Wire]:
        memory = self._new_memory() if self.forgets else self.memory
        mine = [row for row in rows if row[1] == partition]
        return list(rows_from(memory, stage, turn, partition, mine))
