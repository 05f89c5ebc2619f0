"""Running a job on Spark: one query, one chain of stages per batch, one manifest.

    sources --> stage 0 --> stage 1 --> ... --> driver --> sinks

Messages for later stages pass through the earlier ones, so that a batch is one Spark job
and nothing is computed twice.
"""

from __future__ import annotations

import errno
import functools
import os
import re
import shutil
import tempfile
import time
import uuid
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from millstream.backends.spark.session import DEFAULT_MASTER, abandon, start_session
from millstream.backends.spark.spec import spec_to_json
from millstream.backends.spark.wire import SCHEMA, message_of
from millstream.backends.spark.worker import TURN, run_stage, written
from millstream.calculus.functions import Rstream
from millstream.calculus.graph import Input
from millstream.calculus.text import render
from millstream.connectors.location import Format, Location, parse_location
from millstream.connectors.write import open_writer
from millstream.engine.aside import Aside
from millstream.engine.checkpoint import REBUILD, Checkpoint
from millstream.engine.clock import Known
from millstream.engine.delivery import Delivery
from millstream.engine.job import BatchFigures, Job, Progress, Report, no_progress
from millstream.engine.layout import Description, Layout, layout_for
from millstream.engine.manifest import (
    Manifest,
    first_manifest,
    known_in,
    last_manifest,
    manifest_name,
    manifest_of,
    write_manifest,
)
from millstream.engine.points import reached
from millstream.engine.scratch import scratch_folder
from millstream.engine.spec import InputSpec, SourceSpec
from millstream.engine.stage import Turn
from millstream.errors import MillstreamError, RunError
from millstream.state.codec import DamagedState

#: Spark has done what we do not know of.
_MISSING = "the file {} of the checkpoint is missing"
_FULL = "No space left on device"
_PYTHON_ERROR = re.compile(r"[\w.]*(Error|Exception|State|Fault): ")

DEFAULT_BUCKETS = 16
#: Tests make batches small through the environment.
DEFAULT_BATCH_BYTES = int(os.environ.get("MILLSTREAM_SPARK_BATCH_BYTES", str(64 << 20)))
SNAPSHOT_EVERY = 20
#: A large state is written whole less often, but at least after so many times as long.
_PATIENCE = 10
#: Formats that have no file, and that tasks can read all the same.
_READ_BY_TASKS = (Format.GENERATOR, Format.SPARK)
POLL_SECONDS = 0.2
POLL = "200 milliseconds"


@dataclass(frozen=True)
class Settings:
    """How a job is run; none of it changes its results."""

    master: str
    partitions: int
    buckets: int
    batch_bytes: int
    snapshot_every: int
    ui: bool = False
    rebuild: bool = False


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
    ui: bool = False,
    session: Any = None,
) -> Report:
    """Run a job from where its checkpoint is to the end of its input.

    A Spark session that is given is used and left running.
    """
    folder = Path(checkpoint or tempfile.mkdtemp(dir=scratch_folder())).resolve()
    settings = Settings(
        master, partitions or os.cpu_count() or 2, buckets, batch_bytes, snapshot_every, ui, rebuild
    )
    try:
        return SparkRun(job, progress, folder, settings, session).to_the_end()
    finally:
        if checkpoint is None:
            shutil.rmtree(folder, ignore_errors=True)


class StoppedError(Exception):
    """Raised inside a query to end it between two batches."""


class SparkRun:
    """Mutable: one run of a job on Spark."""

    def __init__(
        self, job: Job, progress: Progress, folder: Path, settings: Settings, session: Any
    ) -> None:
        self.job = job
        self.progress = progress
        self.settings = settings
        self.checkpoint = Checkpoint(folder)
        made_by = None if settings.rebuild else self.checkpoint.made_by()
        self.layout: Layout = layout_for(
            job.program, settings.partitions, settings.buckets, made_by
        )
        self.description = Description(
            job.program, str(folder), settings.buckets, settings.partitions, uuid.uuid4().hex,
            self.layout.is_together,
        )  # fmt: skip
        self.report = Report.for_program(job.program)
        self.delivery = Delivery(job, self.layout, self.checkpoint.files, self.report)
        self.last: Manifest = first_manifest(job.program)
        self.known: tuple[Known, ...] = ()
        #: A batch is handed over to the sinks while the next one is computed.
        self.handing_over = Aside()
        self.session = session
        #: The session if it is this run that has started it.
        self.own: Any = None
        self.shared: Any = None
        self.was_stopped = False
        self.fault: MillstreamError | None = None
        self.ended = time.perf_counter()

    def to_the_end(self) -> Report:
        identity = self.layout.fingerprint(self.job.program, self.settings.buckets)
        self.checkpoint.open(identity, render(self.job.program), rebuild=self.settings.rebuild)
        try:
            self._take_up()
            spec = self._spec()
            if self.session is None:
                self.own = self.session = start_session(
                    self.settings.master, self.checkpoint.folder, self.settings.partitions,
                    ui=self.settings.ui,
                )  # fmt: skip
            self._query(spec)
            self._end_time(spec)
            self._wait_for_sinks()
        except Exception as fault:
            self.handing_over.end()  # a sink must not be closed while it is written to
            if isinstance(fault, DamagedState):
                raise self._damaged(str(fault)) from None
            raise
        except KeyboardInterrupt:
            if self.own is not None:
                abandon(self.own)
                self.own = None
            raise
        finally:
            if self.own is not None:
                self.own.stop()
            self.checkpoint.close()
        return self.report

    def _take_up(self) -> None:
        """Go on after the last batch that is over."""
        self.checkpoint.clear_claims()
        self.last = last_manifest(self.checkpoint.files) or self.last
        if self.checkpoint.newest_commit() > self.last["batch"]:
            raise DamagedState(_MISSING.format(manifest_name(self.last["version"] + 1)))
        self.checkpoint.forget_unfinished(len(self.layout.stages), self.last["version"])
        self.known = known_in(self.last)
        self.delivery.open(self.checkpoint.identity, self.last["version"])

    def _frame(self, spec: SourceSpec) -> Any:
        """What all inputs have to say: those that we read and those that Spark reads."""
        from millstream.backends.spark.native import native_frame
        from millstream.backends.spark.source import NAME, MillstreamSource

        session = self.session
        frames = [native_frame(session, spec, i) for i in spec.inputs if i.is_native]
        own = replace(spec, inputs=tuple(i for i in spec.inputs if not i.is_native))
        if own.inputs:
            session.dataSource.register(MillstreamSource)
            text = spec_to_json(own)
            frames.append(session.readStream.format(NAME).option("spec", text).load())
        return functools.reduce(lambda one, other: one.union(other), frames)

    def _staged(self, frame: Any) -> Any:
        """What the chain of stages makes of what the inputs say."""
        for stage in range(len(self.layout.stages)):
            frame = frame.repartitionById(self.settings.partitions, "part")
            frame = frame.mapInArrow(run_stage(self.shared, stage), SCHEMA)
        return frame

    def _query(self, spec: SourceSpec) -> None:
        from py4j.protocol import Py4JJavaError
        from pyspark.errors import PySparkException, StreamingQueryException

        self.ended = time.perf_counter()
        self.shared = self.session.sparkContext.broadcast(self.description)
        writer = (
            self._staged(self._frame(spec))
            .writeStream.foreachBatch(self._batch)
            .option("checkpointLocation", str(self.checkpoint.folder / "spark"))
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
                is_over = self.job.stopped() or self.handing_over.has_failed
                if is_over and not query.status["isTriggerActive"]:
                    query.stop()
        except StreamingQueryException as error:
            if not self.was_stopped:
                raise self._told(error) from None
        except KeyboardInterrupt:
            # Whoever is in such a hurry does not want to wait for a batch to be cancelled.
            if self.own is None:
                query.stop()
            raise
        except BaseException:
            query.stop()
            raise

    def _end_time(self, spec: SourceSpec) -> None:
        """Our own readers know the end of their input; for the others it is the run's end."""
        has_native = any(i.is_native for i in spec.inputs)
        if has_native and not self.job.is_following and not self.was_stopped:
            self.known = tuple(replace(k, is_silent=True) for k in self.known)
            nothing = self.session.createDataFrame([], SCHEMA)
            self._advance(self._staged(nothing), self.last["batch"])

    def _told(self, error: Exception) -> MillstreamError:
        """Spark's errors are pages long; the last Python error in them is the reason."""
        if isinstance(self.fault, MillstreamError):
            return self.fault
        log = self.checkpoint.folder / "spark.log"
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        reasons = [line for line in lines if _PYTHON_ERROR.match(line)]
        reason = reasons[-1] if reasons else lines[0]
        if "DamagedState: " in reason:
            return self._damaged(reason.partition("DamagedState: ")[2])
        if any(_FULL in line for line in lines):
            return self._full()
        return RunError(f"Spark stopped: {reason}", hint=f"its log is {log}")

    def _damaged(self, reason: str) -> RunError:
        return RunError(reason, hint=REBUILD, place=str(self.checkpoint.folder))

    def _batch(self, frame: Any, number: int) -> None:
        """Run one batch of Spark's; one that was over before a crash is not run again.

        A batch that has begun is finished, one that has not is left for the next start.
        """
        if number <= self.last["batch"]:
            return
        if number > self.last["batch"] + 1:
            raise DamagedState(_MISSING.format(manifest_name(self.last["version"] + 1)))
        if self.job.stopped():
            self.was_stopped = True
            raise StoppedError
        try:
            self._advance(frame, number)
        except MillstreamError as fault:
            self.fault = fault  # Spark would only tell its text
            raise

    def _advance(self, frame: Any, number: int) -> None:
        """Run the stages, gather what they have done, and deliver it."""
        version = self.last["version"] + 1
        turn = Turn(version, self.known, self._is_kept())
        self.session.sparkContext.setLocalProperty(TURN, written(turn))
        messages = [message_of(bytes(row.message)) for row in frame.collect()]
        if any(m.get("seq", self.last["sources"]) != self.last["sources"] for m in messages):
            raise DamagedState("Spark's notes of what has been read are not those of this job")
        self._wait_for_sinks()
        manifest = manifest_of(self.last, number, messages, self.delivery.written)
        write_manifest(self.checkpoint.files, manifest)
        reached("after-manifest", version)
        self.handing_over.start(functools.partial(self._hand_over, self.last, manifest))
        self.known = tuple(
            replace(k, is_silent=silent)
            for k, silent in zip(known_in(manifest), manifest["silent"], strict=True)
        )
        self.last = manifest
        reached("before-commit", version)

    def _hand_over(self, before: Manifest, manifest: Manifest) -> None:
        """With its manifest a batch is over: killed in here, the next run does this again."""
        self.delivery.deliver(manifest)
        self._tell(before, manifest)
        self.checkpoint.tidy(
            len(self.layout.stages), manifest["version"], manifest["sources"],
            keeps_results=self.delivery.needs_all,
        )  # fmt: skip

    def _wait_for_sinks(self) -> None:
        try:
            self.handing_over.wait()
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            raise self._full() from None

    def _full(self) -> RunError:
        hint = f"with space freed on the disk of {self.checkpoint.folder}, the next run goes on"
        return RunError(f"the disk is full: {_FULL}", hint=hint)

    def _is_kept(self) -> bool:
        """Whether the state after the next batch is written whole.

        The first time soon, so that its size is known; then when enough has changed.
        """
        last, every = self.last, self.settings.snapshot_every
        if last["version"] < 0 or last["since"] + 1 >= _PATIENCE * every:
            return True
        return bool(last["since"] + 1 >= every and 4 * last["deltas"] >= last["state"])

    def _tell(self, before: Manifest, after: Manifest) -> None:
        """The figures of a batch, for the progress report."""
        now = time.perf_counter()

        def difference(what: str) -> int:
            return sum(
                after["counts"][name][what] - before["counts"][name][what]
                for name in after["counts"]
            )

        written = sum(self.delivery.written.values()) - sum(after["written"].values())
        self.report.batch = BatchFigures(
            after["version"], now - self.ended, difference("read"), written
        )
        self.ended = now
        self.progress(self.report)

    # --- inputs ---

    def _spec(self) -> SourceSpec:
        specs = []
        for number, one in enumerate(self.job.program.inputs):
            input_, location = self._reachable(one)
            target = self.layout.targets[one.name]
            queue = self.layout.number(one.name)
            specs.append(InputSpec(input_, location, number, queue, target.stage, target.key))
        has_ticks = any(isinstance(op.function, Rstream) for op in self.job.program.operators)
        return SourceSpec(
            tuple(specs), self.checkpoint.folder, self.settings.partitions,
            self.settings.buckets, len(self.layout.stages), self.settings.batch_bytes,
            has_ticks, self.job.is_following,
        )  # fmt: skip

    def _reachable(self, one: Input) -> tuple[Input, Location]:
        """Where a task can read an input; what only we can read is put into a file first."""
        location = self.job.locations.get(one.name)
        reader = self.job.readers[one.name]
        if location is not None and (location.path or location.format in _READ_BY_TASKS):
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
