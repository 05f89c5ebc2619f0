"""Running a job on Spark: one query, one chain of stages per batch, one file of results.

    source --> exchange --> stage 0 --> exchange --> stage 1 --> ... --> sink

Rows for later stages pass through the earlier ones, so that a batch is one Spark job and
nothing is computed twice.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from millstream.backends.job import Job, Progress, Report, no_progress
from millstream.backends.spark.blobs import decode_batch
from millstream.backends.spark.checkpoint import REBUILD, Checkpoint
from millstream.backends.spark.layout import Description, Layout, layout_of
from millstream.backends.spark.session import DEFAULT_MASTER, start_session
from millstream.calculus.functions import Rstream
from millstream.calculus.graph import Input
from millstream.calculus.text import render
from millstream.connectors.chunks import Rejected
from millstream.connectors.location import Format, Location, parse_location
from millstream.connectors.parts import PartsWriter
from millstream.connectors.write import open_writer
from millstream.errors import RunError
from millstream.state.codec import DamagedState
from millstream.state.records import read_record

_PYTHON_ERROR = re.compile(r"[\w.]*(Error|Exception|State|Fault): ")

DEFAULT_BUCKETS = 16
#: Tests make batches small through the environment.
DEFAULT_BATCH_BYTES = int(os.environ.get("MILLSTREAM_SPARK_BATCH_BYTES", str(64 << 20)))
SNAPSHOT_EVERY = 20
POLL_SECONDS = 0.2
POLL = "200 milliseconds"


def run(
    job: Job,
    *,
    progress: Progress = no_progress,
    master: str = DEFAULT_MASTER,
    checkpoint: str | Path | None = None,
    rebuild: bool = False,
    partitions: int | None = None,
    buckets: int = DEFAULT_BUCKETS,
    batch_bytes: int = DEFAULT_BATCH_BYTES,
    snapshot_every: int = SNAPSHOT_EVERY,
    session: Any = None,
) -> Report:
    """Run a job from where its checkpoint is to the end of its input.

    A Spark session that is given is used and left running.
    """
    folder = Path(checkpoint or tempfile.mkdtemp(prefix="millstream-")).resolve()
    try:
        return SparkRun(
            job, progress, master, folder, partitions or os.cpu_count() or 2,
            buckets, batch_bytes, snapshot_every, session,
        ).to_the_end(rebuild=rebuild)  # fmt: skip
    finally:
        if checkpoint is None:
            shutil.rmtree(folder, ignore_errors=True)


class StoppedError(Exception):
    """Raised inside a query to end it between two batches."""


class SparkRun:
    """Mutable: one run of a job on Spark."""

    def __init__(
        self,
        job: Job,
        progress: Progress,
        master: str,
        folder: Path,
        partitions: int,
        buckets: int,
        batch_bytes: int,
        snapshot_every: int,
        session: Any,
    ) -> None:
        self.job = job
        self.progress = progress
        self.master = master
        self.checkpoint = Checkpoint(folder)
        self.layout: Layout = layout_of(job.program)
        self.description = Description(
            job.program, str(folder), buckets, partitions, snapshot_every
        )
        self.batch_bytes = batch_bytes
        self.report = Report.for_program(job.program)
        self.delivered = 0
        self.session = session
        self.was_stopped = False

    def to_the_end(self, *, rebuild: bool) -> Report:
        program = render(self.job.program)
        self.checkpoint.open(self.description.fingerprint, program, rebuild=rebuild)
        own = None
        try:
            spec = self._spec()
            if self.session is None:
                own = start_session(
                    self.master, self.checkpoint.folder, self.description.partitions
                )
            self._query(self.session or own, spec)
            self._deliver()
        except DamagedState as reason:
            raise self._damaged(str(reason)) from None
        finally:
            if own is not None:
                own.stop()
            self.checkpoint.close()
        return self.report

    def _query(self, session: Any, spec: str) -> None:
        from py4j.protocol import Py4JJavaError
        from pyspark.errors import PySparkException, StreamingQueryException

        from millstream.backends.spark.source import NAME, MillstreamSource

        session.dataSource.register(MillstreamSource)
        frame = session.readStream.format(NAME).option("spec", spec).load()
        writer = frame.writeStream.foreachBatch(self._batch).option(
            "checkpointLocation", str(self.checkpoint.folder / "spark")
        )
        if self.job.is_following:
            writer = writer.trigger(processingTime=POLL)
        else:
            writer = writer.trigger(availableNow=True)
        try:
            query = writer.start()
        except (Py4JJavaError, PySparkException) as error:
            cause = error.java_exception.getMessage() if isinstance(error, Py4JJavaError) else error
            reason = str(cause).splitlines()[0]
            message = f"Spark cannot read its part of the checkpoint: {reason}"
            raise self._damaged(message) from None
        try:
            while not query.awaitTermination(POLL_SECONDS):
                if self.job.stopped() and not query.status["isTriggerActive"]:
                    query.stop()
        except StreamingQueryException as error:
            if not self.was_stopped:
                raise self._told(error) from None
        except BaseException:
            query.stop()
            raise

    def _told(self, error: Exception) -> RunError:
        """Spark's errors are pages long; the last Python error in them is the reason."""
        log = self.checkpoint.folder / "spark.log"
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        reasons = [line for line in lines if _PYTHON_ERROR.match(line)]
        reason = reasons[-1] if reasons else lines[0]
        if "DamagedState: " in reason:
            return self._damaged(reason.partition("DamagedState: ")[2])
        return RunError(f"Spark stopped: {reason}", hint=f"its log is {log}")

    def _damaged(self, reason: str) -> RunError:
        return RunError(reason, hint=REBUILD, place=str(self.checkpoint.folder))

    def _batch(self, frame: Any, number: int) -> None:
        """Chain the stages of one batch; the last task writes the results.

        A batch that has begun is finished, one that has not is left for the next start.
        """
        if self.job.stopped():
            self.was_stopped = True
            raise StoppedError
        from millstream.backends.spark.wire import SCHEMA
        from millstream.backends.spark.worker import run_sink, run_stage

        partitions = self.description.partitions
        for stage in range(len(self.layout.stages)):
            frame = frame.repartitionById(partitions, "bucket")
            frame = frame.mapInArrow(run_stage(self.description, stage, number), SCHEMA)
        frame = frame.repartitionById(1, "bucket").mapInArrow(
            run_sink(self.description, number), SCHEMA
        )
        frame.collect()
        self._deliver()
        self.checkpoint.tidy(len(self.layout.stages), number)

    # --- results ---

    def _deliver(self) -> None:
        """Hand over every batch of results that has not been handed over yet."""
        types = self.job.program.queue_types()
        for name in self.checkpoint.files.names("outputs"):
            number = int(name)
            if number < self.delivered:
                continue
            if number > self.delivered:
                raise DamagedState(
                    f"the file outputs/{self.delivered:09} of the checkpoint is missing"
                )
            results = read_record(self.checkpoint.files, f"outputs/{name}")
            for queue, blob in results["outputs"].items():
                batch = decode_batch(blob, types[queue])
                self.report.outputs[queue] += len(batch)
                writer = self.job.writers[queue]
                if isinstance(writer, PartsWriter):
                    writer.begin(number + 1)  # written again, a batch is the same file again
                writer.write(batch)
            self._count(results)
            self.delivered = number + 1
            self.report.mark = results["mark"]
            self.progress(self.report)

    def _count(self, results: dict[str, Any]) -> None:
        for name, blobs in results["late"].items():
            writer = self.job.late_writers.get(name)
            type_ = next(i.type for i in self.job.program.inputs if i.name == name)
            for blob in blobs if writer is not None else ():
                assert writer is not None
                writer.write(replace(decode_batch(blob, type_), rank=None))
        rejected = [Rejected(*row) for row in results["rejected"]]
        faults: dict[str, int] = {}
        for done in results["done"]:
            if "input" in done:
                counts = self.report.inputs[done["input"]]
                counts.read += done["read"]
                counts.late += done["late"]
                counts.waiting += done["accepted"]
                mine = [r for r in rejected if done["rejected"]]
                self.report.take_rejected(done["input"], mine[: done["rejected"]], self.job)
                rejected = rejected[done["rejected"] :]
                continue
            for name, count in done["unsound"].items():
                self.report.inputs[name].waiting -= count
                mine = [Rejected(*row) for row in done["rejected"] if row[0] == name]
                self.report.take_rejected(name, mine, self.job)
            for name, count in done["released"].items():
                self.report.inputs[name].waiting -= count
                self.report.inputs[name].processed += count
            for what, count in done["faults"].items():
                faults[what] = faults.get(what, 0) + count
        self.report.faults.clear()
        self.report.faults.update(faults)

    # --- inputs ---

    def _spec(self) -> str:
        from millstream.backends.spark.source import InputSpec, SourceSpec, spec_to_json

        specs = []
        for number, one in enumerate(self.job.program.inputs):
            input_, location = self._reachable(one)
            target = self.layout.targets[one.name]
            queue = self.layout.number(one.name)
            specs.append(InputSpec(input_, location, number, queue, target.stage, target.key))
        has_ticks = any(isinstance(op.function, Rstream) for op in self.job.program.operators)
        return spec_to_json(
            SourceSpec(
                tuple(specs), self.checkpoint.folder, self.description.partitions,
                self.description.buckets, len(self.layout.stages), self.batch_bytes,
                has_ticks, self.job.is_following,
            )
        )  # fmt: skip

    def _reachable(self, one: Input) -> tuple[Input, Location]:
        """Where a task can read an input; what only we can read is put into a file first."""
        location = self.job.locations.get(one.name)
        reader = self.job.readers[one.name]
        if location is not None and (location.path or location.format is Format.GENERATOR):
            reader.close()
            return one, location
        target = parse_location(f"inputs/{one.name}.parquet", self.checkpoint.folder)
        assert target.path is not None
        target.path.parent.mkdir(exist_ok=True)
        writer = open_writer(target, one.type)
        for chunk in reader.chunks():
            self.report.inputs[one.name].read += len(chunk.rejected)
            self.report.take_rejected(one.name, chunk.rejected, self.job)
            writer.write(chunk.batch)
        reader.close()
        writer.close()
        return replace(one, time=None), target
