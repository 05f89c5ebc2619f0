"""Every example in one, four and sixteen partitions, its tasks run one after another by hand.

What Spark does with the tasks is tried on a JVM (tests/engine/spark/test_engine.py); what they
do, and how rows find their way between them, is the engine's, and is tried here without one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from millstream.cold import Start
from millstream.engine.batches import Batches
from millstream.engine.job import Job, Progress, Report
from millstream.engine.local import batches as local
from millstream.engine.planning import ReadingTask
from millstream.engine.reading import ShareTask
from millstream.engine.scratch import checkpoint_folder
from millstream.engine.settings import Settings
from millstream.engine.spark.wire import Wire, message_of, wired
from millstream.engine.spark.worker import rows_from
from millstream.engine.spec import SourceSpec
from tests.examples.folders import example_folders, name_of, program_of
from tests.examples.test_examples import table
from tests.seeds import in_turn


class InTasks(local.LocalBatches):
    """Every stage as several tasks, which are sent what Spark would send them."""

    def _run(self, spec: SourceSpec, tasks: list[ReadingTask]) -> None:
        turn, partitions = self.batches.turn(), self.batches.description.partitions
        rows: list[Wire] = []
        for task in tasks:
            sent = ShareTask(spec, self.files, task, self.memory.readings).run()
            rows += wired(sent, self.layout.driver, partitions)
        for stage in range(self.layout.driver):
            rows = [
                row
                for partition in range(partitions)
                for row in rows_from(
                    self.memory, stage, turn, partition, [r for r in rows if r[1] == partition]
                )
            ]
        self.batches.finish(-1, [message_of(row[2]) for row in rows])


def in_tasks(partitions: int) -> Callable[[Job, Progress, Path, Settings, Start | None], Report]:
    """What runs a job as several tasks, instead of `run_batches`."""

    def run(
        job: Job, progress: Progress, checkpoint: Path, settings: Settings, _: Start | None
    ) -> Report:
        spread = replace(settings, partitions=partitions, buckets=16, is_together=False)
        with checkpoint_folder(checkpoint) as place:
            return InTasks(Batches(job, progress, place, spread)).to_the_end()

    return run


@pytest.mark.parametrize("partitions", in_turn([1, 4, 16]))
@pytest.mark.parametrize("folder", in_turn(example_folders(), days=2), ids=name_of)
def test_example_gives_the_expected_output(
    folder: Path, partitions: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "run_batches", in_tasks(partitions))
    compiled = program_of(folder)
    outputs = {q: tmp_path / f"{q}.csv" for q in compiled.program.outputs}
    compiled.run(outputs=outputs, engine="local", checkpoint=tmp_path / "state")
    expected = {p.stem: table(p) for p in (folder / "expected").glob("*.csv")}
    assert expected == {q: table(path) for q, path in outputs.items()}
