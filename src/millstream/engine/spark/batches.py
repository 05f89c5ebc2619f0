"""Batches as jobs of Spark: tasks that read, stage after stage, and what they say to the driver.

    tasks that read --> stage 0 --> stage 1 --> ... --> driver --> sinks

Messages for later stages pass through the earlier ones, so that a batch is one job and nothing is
computed twice. Plain RDDs carry them: there is nothing in messages that Spark could plan, and a
source of Spark's in Python would be a process more for each thing that the driver knows already.

To make a job takes some two hundred questions to Java, so while one runs the next is made ready.
Nothing in it is of one batch: which it is, tasks are told by properties and read in its plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from millstream.engine.aside import Aside
from millstream.engine.batches import Batches
from millstream.engine.job import Report
from millstream.engine.layout import Description
from millstream.engine.messages import Message
from millstream.engine.planning import ReadingTask, planned, tasks_of
from millstream.engine.reading import ShareTask
from millstream.engine.spark.jobs import Jobs
from millstream.engine.spark.query import Query, forget_notes, has_native
from millstream.engine.spark.session import Launch
from millstream.engine.spark.telling import java_ended, told
from millstream.engine.spark.wire import Wire, message_of, wired
from millstream.engine.spark.worker import (
    PLAN,
    TURN,
    files_of,
    memory_for,
    plan_of_task,
    rows_from,
    turn_of_task,
    written,
)
from millstream.engine.spec import SourceSpec
from millstream.engine.stage import Turn
from millstream.errors import MillstreamError, Stopped

#: A message on its way: the partition that must hear it, then its target and itself.
Placed = tuple[int, tuple[int, bytes]]


class SparkBatches:
    """One run of a job on its checkpoint."""

    def __init__(self, batches: Batches, launch: Launch, log: Path) -> None:
        self.batches = batches
        self.launch = launch
        self.log = log

    def to_the_end(self) -> Report:
        with self.batches.running() as spec:
            try:
                self._run(spec)
            except MillstreamError:
                raise
            except Exception as fault:
                is_ours = self.batches.told(fault) is not None
                if not is_ours and self.launch.has_ended():
                    raise java_ended(self.log) from None
                raise
        return self.batches.report

    def _run(self, spec: SourceSpec) -> None:
        session = self.launch.session()
        if self.batches.job.stopped():
            raise Stopped("stopped before anything was read")
        if has_native(spec):
            Query(self.batches, spec, session, self.log, is_own=self.launch.is_own).to_the_end()
        else:
            forget_notes(self.batches.checkpoint.folder)
            self._jobs(spec, session.sparkContext)
        self.batches.wait_for_sinks()

    def _jobs(self, spec: SourceSpec, context: Any) -> None:
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        description = self.batches.description
        with Jobs(context) as jobs:
            run = BatchJobs(context, description, spec)
            for tasks in self.batches.due(spec):
                work = partial(run.messages, tasks, self.batches.turn())
                try:
                    messages = jobs.done(work, f"millstream {description.run}")
                except (Py4JError, PySparkException) as error:
                    if self.launch.has_ended():
                        raise
                    raise told(error, self.log) from None
                self.batches.finish(-1, messages)
            run.close()


class BatchJobs:
    """Mutable: the jobs of one run; what all tasks must know is sent to them once."""

    def __init__(self, context: Any, description: Description, spec: SourceSpec) -> None:
        self._context = context
        self._description = description
        self._stages = spec.stages
        self._shared = context.broadcast((description, spec))
        self._preparing = Aside()
        #: A job that has been made ready, and how many of its tasks read.
        self._next: tuple[int, Any] | None = None

    def messages(self, tasks: Sequence[ReadingTask], turn: Turn) -> list[Message]:
        """Run a batch; what its tasks have to say to the driver."""
        self._context.setLocalProperty(TURN, written(turn))
        self._context.setLocalProperty(PLAN, str(tasks[0].seq))
        rows = self._prepared(len(tasks))
        self._preparing.start(partial(self._prepare, len(tasks)))
        return [message_of(data) for _, (_, data) in rows.collect()]

    def close(self) -> None:
        """Until nothing is asked of Java any more."""
        self._preparing.end()

    def _prepared(self, count: int) -> Any:
        """A job with so many tasks that read; most batches have as many as the one before."""
        self._preparing.wait()
        prepared, self._next = self._next, None
        return prepared[1] if prepared is not None and prepared[0] == count else self._job(count)

    def _prepare(self, count: int) -> None:
        rows = self._job(count)
        rows._jrdd  # noqa: B018, SLF001 - Java is asked only when it is looked at
        self._next = count, rows

    def _job(self, count: int) -> Any:
        rows = self._context.parallelize(range(count), count)
        rows = rows.mapPartitions(_reading(self._shared))
        for stage in range(self._stages):
            rows = rows.partitionBy(self._description.partitions, _itself)
            rows = rows.mapPartitionsWithIndex(_stage(self._shared, stage))
        return rows


def _itself(part: int) -> int:
    return part


def _reading(shared: Any) -> Callable[[Iterable[int]], Iterator[Placed]]:
    """What a task that reads does."""

    def read(numbers: Iterable[int]) -> Iterator[Placed]:
        description, spec = shared.value
        files = files_of(description)
        seq = plan_of_task()
        tasks = tasks_of(spec, seq, planned(files, seq))
        for number in numbers:
            readings = memory_for(description).readings
            sent = ShareTask(spec, files, tasks[number], readings).run()
            yield from _placed(wired(sent, spec.stages, spec.partitions))

    return read


def _stage(shared: Any, stage: int) -> Callable[[int, Iterable[Placed]], Iterator[Placed]]:
    """What a task of a stage does."""

    def run(partition: int, placed: Iterable[Placed]) -> Iterator[Placed]:
        description, _ = shared.value
        rows = ((target, part, data) for part, (target, data) in placed)
        turn = turn_of_task()
        yield from _placed(rows_from(memory_for(description), stage, turn, partition, rows))

    return run


def _placed(rows: Iterable[Wire]) -> Iterator[Placed]:
    return ((part, (target, data)) for target, part, data in rows)
