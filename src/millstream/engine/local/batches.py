"""The local engine on a checkpoint: the batches of the engine, run by one process.

Everything lies in one bucket of one stage, unless a run on Spark has begun the checkpoint:
then it is gone on with as it is.
"""

from __future__ import annotations

from pathlib import Path

from millstream.engine.batches import Batches
from millstream.engine.job import Job, Progress, Report
from millstream.engine.messages import Message
from millstream.engine.planning import ReadingTask
from millstream.engine.points import reached
from millstream.engine.reading import ShareTask
from millstream.engine.scratch import checkpoint_folder
from millstream.engine.settings import Settings
from millstream.engine.spec import SourceSpec
from millstream.engine.stage import StageTask
from millstream.engine.state import Memory


def run_batches(
    job: Job, progress: Progress, checkpoint: str | Path | None, settings: Settings
) -> Report:
    """Run a job on a checkpoint, or on one that goes with the run."""
    with checkpoint_folder(checkpoint) as folder:
        return LocalBatches(Batches(job, progress, folder, settings)).to_the_end()


class LocalBatches:
    """Mutable: the state of a job, and who plans its batches."""

    def __init__(self, batches: Batches) -> None:
        self.batches = batches
        self.layout = batches.layout
        self.files = batches.checkpoint.files
        types = self.layout.plan.program.queue_types()
        self.memory = Memory(batches.description, self.layout, self.files, types)

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
            for target, message in ShareTask(spec, self.files, task).run():
                inboxes[target].append(message)
        for stage in range(self.layout.driver):
            for target, message in StageTask(self.memory, stage, turn, 0).run(inboxes[stage]):
                inboxes[target].append(message)
        self.batches.finish(-1, inboxes[self.layout.driver])
