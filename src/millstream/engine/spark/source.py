"""Our own source: all inputs that we read ourselves as one Spark streaming data source.

Batches are planned on the driver (see `planning`), and read by tasks (see `reading`). Spark
starts several processes that need nothing of this but the class, so all else is imported
where it is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, SupportsTriggerAvailableNow

if TYPE_CHECKING:
    from millstream.engine.planning import Planner, ReadingTask

NAME = "millstream"


class MillstreamSource(DataSource):
    """Registered with Spark under the name `millstream`."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        from millstream.engine.spark.wire import SCHEMA

        return SCHEMA

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802 - Spark's word
        return BatchReader(self.options["spec"])


class Task(InputPartition):
    """A task's share of a batch."""

    def __init__(self, spec: str, task: ReadingTask) -> None:
        self.spec = spec
        self.task = task


class BatchReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans batches on the driver, and on a worker reads a share of one."""

    def __init__(self, spec: str) -> None:
        self.text = spec
        self._planner: Planner | None = None

    @property
    def planner(self) -> Planner:
        from millstream.engine.planning import Planner
        from millstream.engine.spark.spec import spec_from_json
        from millstream.engine.storage.files import LocalFiles

        if self._planner is None:
            spec = spec_from_json(self.text)
            self._planner = Planner(spec, LocalFiles(spec.checkpoint))
        return self._planner

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        from millstream.engine.manifest import last_manifest

        done = last_manifest(self.planner.files)
        return {"seq": 0 if done is None else done["sources"]}

    def getDefaultReadLimit(self) -> Any:  # noqa: N802
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self.planner.freeze()

    def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:  # noqa: N802
        return {"seq": self.planner.next(int(start["seq"]))}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[Task]:
        return [
            Task(self.text, task)
            for seq in range(int(start["seq"]), int(end["seq"]))
            for task in self.planner.tasks(seq)
        ]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        from millstream.engine.reading import ShareTask
        from millstream.engine.spark.spec import spec_from_json
        from millstream.engine.spark.wire import record_batch, wired
        from millstream.engine.storage.files import LocalFiles

        assert isinstance(partition, Task)
        spec = spec_from_json(partition.spec)
        sent = ShareTask(spec, LocalFiles(spec.checkpoint), partition.task, {}).run()
        yield record_batch(wired(sent, spec.stages, spec.partitions))
