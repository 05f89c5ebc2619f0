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

from millstream.calculus.functions import Rstream
from millstream.calculus.graph import Input
from millstream.calculus.text import render
from millstream.connectors.location import Location, parse_location
from millstream.engine.job import BatchFigures, Job, Progress, Report, no_progress
from millstream.engine.spark.arrangement import FOLDER, Arrangement, Taken
from millstream.engine.spark.aside import Aside
from millstream.engine.spark.checkpoint import REBUILD, Checkpoint
from millstream.engine.spark.clock import Known
from millstream.engine.spark.delivery import Delivery
from millstream.engine.spark.layout import DEFAULT_BUCKETS, Description, Layout, layout_for
from millstream.engine.spark.manifest import (
    Manifest,
    first_manifest,
    known_in,
    last_manifest,
    manifest_name,
    manifest_of,
    write_manifest,
)
from millstream.engine.spark.planning import taken_so_far
from millstream.engine.spark.points import reached
from millstream.engine.spark.scratch import scratch_folder
from millstream.engine.spark.session import (
    DEFAULT_MASTER,
    LOG,
    abandon,
    is_over,
    require_spark,
    start_session,
)
from millstream.engine.spark.spec import InputSpec, SourceSpec, spec_to_json
from millstream.engine.spark.wire import SCHEMA, message_of
from millstream.engine.spark.worker import TURN, Turn, run_stage
from millstream.engine.storage.codec import DamagedState
from millstream.errors import MillstreamError, RunError, Stopped

#: Spark has done what we do not know of.
_MISSING = "the file {} of the checkpoint is missing"
_FULL = "No space left on device"
_PYTHON_ERROR = re.compile(r"[\w.]*(Error|Exception|State|Fault): ")

#: Tests make batches small through the environment.
DEFAULT_BATCH_BYTES = int(os.environ.get("MILLSTREAM_SPARK_BATCH_BYTES", str(64 << 20)))
SNAPSHOT_EVERY = 20
#: A large state is written whole less often, but at least after so many times as long.
_PATIENCE = 10
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
    #: What Spark has to say; where a run fails, somebody will want to read it.
    log: Path
    #: Whether the checkpoint is there for later runs.
    is_lasting: bool
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
    require_spark()
    folder = Path(checkpoint or tempfile.mkdtemp(dir=scratch_folder())).resolve()
    log = folder / LOG if checkpoint else Path(f"{folder.parent}-{folder.name}.log")
    settings = Settings(
        master, partitions or os.cpu_count() or 2, buckets, batch_bytes, snapshot_every, log,
        checkpoint is not None, ui, rebuild,
    )  # fmt: skip
    is_named = False
    try:
        return SparkRun(job, progress, folder, settings, session).to_the_end()
    except MillstreamError as fault:
        is_named = str(log) in str(fault)
        raise
    finally:
        if checkpoint is None:
            shutil.rmtree(folder, ignore_errors=True)
            if not is_named:
                log.unlink(missing_ok=True)


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
        self.delivery = Delivery(
            job, self.layout, self.checkpoint.files, self.report, is_lasting=settings.is_lasting
        )
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
                    ui=self.settings.ui, log=self.settings.log,
                )  # fmt: skip
            if self.job.stopped():
                raise Stopped("stopped before anything was read")
            self._query(spec)
            self._end_time(spec)
            self._wait_for_sinks()
            if not self.job.is_following and not self.was_stopped:
                Arrangement(self.checkpoint.files).forget_copies()
        except Exception as fault:
            self.handing_over.end()  # a sink must not be closed while it is written to
            if isinstance(fault, DamagedState):
                raise self._damaged(str(fault)) from None
            if not isinstance(fault, MillstreamError) and self.session and is_over(self.session):
                raise self._java_ended() from None
            raise
        except KeyboardInterrupt:
            if self.own is not None:
                abandon(self.own)
                self.own = None
            self.handing_over.end()
            raise
        finally:
            if self.own is not None and is_over(self.own, 0.0):
                abandon(self.own)
            elif self.own is not None:
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
        from millstream.engine.spark.native import native_frame
        from millstream.engine.spark.source import NAME, MillstreamSource

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
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        reasons = [line for line in lines if _PYTHON_ERROR.match(line)]
        reason = reasons[-1] if reasons else lines[0]
        if "DamagedState: " in reason:
            return self._damaged(reason.partition("DamagedState: ")[2])
        if any(_FULL in line for line in lines):
            return self._full()
        return RunError(f"Spark stopped: {reason}", hint=f"its log is {self.settings.log}")

    def _java_ended(self) -> RunError:
        return RunError(
            "the Java that runs Spark has ended; somebody, or the system for want of memory, "
            "has ended it",
            hint=f"its log is {self.settings.log}",
        )

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
        self.session.sparkContext.setLocalProperty(TURN, turn.written())
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
        arrangement = Arrangement.of(self.checkpoint.files)
        taken = taken_so_far(self.checkpoint.files)
        for number, one in enumerate(self.job.program.inputs):
            location = self._reachable(one, arrangement, taken.get(one.name, {}))
            target = self.layout.targets[one.name]
            queue = self.layout.number(one.name)
            specs.append(InputSpec(one, location, number, queue, target.stage, target.key))
        arrangement.save()
        has_ticks = any(isinstance(op.function, Rstream) for op in self.job.program.operators)
        return SourceSpec(
            tuple(specs), self.checkpoint.folder, self.settings.partitions,
            self.settings.buckets, len(self.layout.stages), self.settings.batch_bytes,
            has_ticks, self.job.is_following,
        )  # fmt: skip

    def _reachable(self, one: Input, arrangement: Arrangement, taken: Taken) -> Location:
        """Where tasks can read an input, in time order unless they are to follow it."""
        location = self.job.locations.get(one.name)
        reader = self.job.readers[one.name]
        if location is None or (location.path is None and not location.is_in_order):
            arrangement.keep(one, reader, is_following=self.job.is_following)
            return parse_location(f"parquet:{FOLDER}/{one.name}", self.checkpoint.folder)
        reader.close()
        if location.is_at_hand and not self.job.is_following and not one.is_read_once:
            arrangement.arrange(one, location, taken)
        return location
