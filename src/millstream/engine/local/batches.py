"""The local engine on a checkpoint: the batches of the engine, run by one process.

Everything lies in one bucket of one stage, unless a run on Spark has begun the checkpoint:
then it is gone on with as it is.
"""

from __future__ import annotations

from contextlib import closing
from functools import partial
from pathlib import Path

from millstream.cold import Start
from millstream.engine.batches import Batches
from millstream.engine.job import Job, Progress, Report
from millstream.engine.local.changeover import Changeover, started
from millstream.engine.messages import Message
from millstream.engine.planning import ReadingTask
from millstream.engine.points import reached
from millstream.engine.reading import ShareTask
from millstream.engine.relayout import relaid
from millstream.engine.scratch import checkpoint_folder
from millstream.engine.settings import Settings
from millstream.engine.spec import SourceSpec
from millstream.engine.stage import StageTask
from millstream.engine.state import WorkerMemory
from millstream.kernels.rounds import StepRunner
from millstream.plan.steps import Plan, Step


def run_batches(
    job: Job,
    progress: Progress,
    checkpoint: str | Path | None,
    settings: Settings,
    start: Start | None = None,
) -> Report:
    """Run a job on a checkpoint, or on one that goes with the run.

    With a `start` it begins before its loops are compiled.
    """
    with checkpoint_folder(checkpoint) as folder:
        going_on = relaid(job, progress, folder, settings, _done)
        batches = going_on.batches(progress, folder, settings)
        is_as_it_was = going_on.job.program is job.program
        if start is not None and not (is_as_it_was and batches.layout.is_together):
            # It is for the program as it was, all of it in one place.
            start.over()
            start = None
        return _done(batches, start)


def _done(batches: Batches, start: Start | None = None) -> Report:
    with closing(LocalBatches(batches, start)) as local:
        return local.to_the_end()


class LocalBatches:
    """Mutable: the state of a job, and who plans its batches."""

    def __init__(self, batches: Batches, start: Start | None = None) -> None:
        self.batches = batches
        self.start = start
        self.layout = batches.layout
        self.files = batches.checkpoint.files
        types = self.layout.plan.program.queue_types()
        make = StepRunner if start is None else self._started
        self.memory = WorkerMemory(batches.description, self.layout, self.files, types, make)
        batches.has_state = self._has_state

    def _started(self, plan: Plan, steps: tuple[Step, ...]) -> Changeover:
        assert self.start is not None
        make = partial(StepRunner, plan, steps)
        return started(plan, steps, make, self.batches.job, self.start)

    def _has_state(self) -> bool:
        """Whether what is kept can be written whole: only kernels can be taken up again."""
        runners = [bucket.runner for bucket in self.memory.buckets.values()]
        return self.start is None or (
            bool(runners) and all(runner.is_compiled for runner in runners)
        )

    def close(self) -> None:
        for bucket in self.memory.buckets.values():
            bucket.runner.close()

    def to_the_end(self) -> Report:
        with self.batches.running() as spec:
            for tasks in self.batches.due(spec):
                self._run(spec, tasks)
        return self.batches.report

    def _run(self, spec: SourceSpec, tasks: list[ReadingTask]) -> None:
        """A batch: its tasks one after another."""
        turn = self.batches.turn()
        reached("before-tasks", turn.version)
        #: The messages for each stage, and in the last place those for us.
        inboxes: list[list[Message]] = [[] for _ in range(self.layout.driver + 1)]
        for task in tasks:
            for target, message in ShareTask(spec, self.files, task, self.memory.readings).run():
                inboxes[target].append(message)
        for stage in range(self.layout.driver):
            for target, message in StageTask(self.memory, stage, turn, 0).run(inboxes[stage]):
                inboxes[target].append(message)
        self.batches.finish(-1, inboxes[self.layout.driver])
