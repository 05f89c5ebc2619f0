"""Running a job on Spark: one query, one chain of stages per batch.

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
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from millstream.engine.batches import FULL, Batches
from millstream.engine.job import Job, Progress, Report, no_progress
from millstream.engine.manifest import manifest_name
from millstream.engine.scratch import checkpoint_folder
from millstream.engine.settings import BATCH_BYTES, SNAPSHOT_EVERY, Settings
from millstream.engine.spark.session import (
    DEFAULT_MASTER,
    LOG,
    abandon,
    brought_by_user,
    cores_of,
    is_over,
    pass_over_lookup,
    require_spark,
    start_session,
)
from millstream.engine.spark.spec import spec_to_json
from millstream.engine.spark.wire import SCHEMA, message_of
from millstream.engine.spark.worker import TURN, run_stage, written
from millstream.engine.spec import SourceSpec
from millstream.engine.storage.codec import DamagedState
from millstream.engine.storage.records import missing
from millstream.errors import MillstreamError, RunError, Stopped

_PYTHON_ERROR = re.compile(r"[\w.]*(Error|Exception|State|Fault): ")

DEFAULT_BATCH_BYTES = int(os.environ.get(BATCH_BYTES, str(64 << 20)))
POLL_SECONDS = 0.2
POLL = "200 milliseconds"
#: Spark's own notes.
_NOTES = "spark"
#: It waits ten seconds for a Python that reads inputs, which is short on a busy machine: so a query
#: of which no batch is over is started again.
_SLOW, STARTS = "Python worker failed to connect back", 3


def run(
    job: Job,
    *,
    progress: Progress = no_progress,
    master: str = DEFAULT_MASTER,
    checkpoint: str | Path | None = None,
    rebuild: bool = False,
    partitions: int | None = None,
    buckets: int | None = None,
    batch_bytes: int = DEFAULT_BATCH_BYTES,
    snapshot_every: int = SNAPSHOT_EVERY,
    ui: bool = False,
    jars: Sequence[str] = (),
    packages: Sequence[str] = (),
    session: Any = None,
) -> Report:
    """Run a job from where its checkpoint is to the end of its input.

    A Spark session that is given is used and left running. `jars` are files or addresses, and
    `packages` names in Maven's repositories, of what a user brings for `spark:` inputs.
    """
    require_spark()
    settings = Settings(
        partitions or cores_of(master, session), buckets, batch_bytes, snapshot_every, rebuild,
        is_scratch=checkpoint is None, can_read_natives=True,
    )  # fmt: skip
    with checkpoint_folder(checkpoint) as folder:
        log = folder / LOG if checkpoint else Path(f"{folder.parent}-{folder.name}.log")
        start = functools.partial(
            start_session, master, folder, settings.partitions, ui=ui, log=log,
            brought=brought_by_user(jars, packages),
        )  # fmt: skip
        is_named = checkpoint is not None
        try:
            batches = Batches(job, progress, folder, settings)
            return SparkRun(batches, session, start, log).to_the_end()
        except MillstreamError as fault:
            # Where a run fails, somebody will want to read what Spark had to say.
            is_named = is_named or str(log) in str(fault)
            raise
        finally:
            if not is_named:
                log.unlink(missing_ok=True)


class StoppedError(Exception):
    """Raised inside a query to end it between two batches."""


class SparkRun:
    """Mutable: one run of a job on Spark."""

    def __init__(self, batches: Batches, session: Any, start: Callable[[], Any], log: Path) -> None:
        self.batches = batches
        self.log = log
        self.job = batches.job
        self.folder = batches.checkpoint.folder
        self.session = session
        self._start = start
        #: The session if it is this run that has started it.
        self.own: Any = None
        self.shared: Any = None
        self.was_stopped = False
        self.fault: MillstreamError | None = None

    def to_the_end(self) -> Report:
        with self.batches.running() as spec:
            try:
                self._run(spec)
            except KeyboardInterrupt:
                if self.own is not None:
                    abandon(self.own)
                    self.own = None
                raise
            except MillstreamError:
                raise
            except Exception as fault:
                is_ours = self.batches.told(fault) is not None
                if not is_ours and self.session and is_over(self.session):
                    raise self._java_ended() from None
                raise
            finally:
                if self.own is not None and is_over(self.own, 0.0):
                    abandon(self.own)
                elif self.own is not None:
                    self.own.stop()
        return self.batches.report

    def _run(self, spec: SourceSpec) -> None:
        self._take_up_notes(spec)
        if self.session is None:
            self.own = self.session = self._start()
        if self.job.stopped():
            raise Stopped("stopped before anything was read")
        self._query(spec)
        self._end_time(spec)
        self.batches.wait_for_sinks()

    def _take_up_notes(self, spec: SourceSpec) -> None:
        """Spark's notes say how far it has read what it reads itself; all else we know better.

        So they are begun anew, and it does not matter who has run the batches before.
        """
        last = self.batches.last
        notes = self.folder / _NOTES
        if not has_native(spec):
            shutil.rmtree(notes, ignore_errors=True)
            self.batches.last = {**last, "batch": -1}
            return
        commits = self.batches.checkpoint.files.names(f"{_NOTES}/commits")
        newest = max((int(name) for name in commits if name.isdigit()), default=-1)
        if newest > last["batch"]:
            raise DamagedState(missing(manifest_name(last["version"] + 1)))

    def _frame(self, spec: SourceSpec) -> Any:
        """What all inputs have to say: those that we read and those that Spark reads."""
        from millstream.engine.spark.native import native_frame
        from millstream.engine.spark.source import NAME, MillstreamSource

        session = self.session
        frames = [native_frame(session, spec, i) for i in spec.inputs if i.is_native]
        own = replace(spec, inputs=tuple(i for i in spec.inputs if not i.is_native))
        if own.inputs:
            if not frames and self.own is not None:
                pass_over_lookup(session)
            session.dataSource.register(MillstreamSource)
            text = spec_to_json(own)
            frames.append(session.readStream.format(NAME).option("spec", text).load())
        return functools.reduce(lambda one, other: one.union(other), frames)

    def _staged(self, frame: Any) -> Any:
        """What the chain of stages makes of what the inputs say."""
        description = self.batches.description
        for stage in range(len(self.batches.layout.stages)):
            frame = frame.repartitionById(description.partitions, "part")
            frame = frame.mapInArrow(run_stage(self.shared, stage), SCHEMA)
        return frame

    def _query(self, spec: SourceSpec) -> None:
        from pyspark.errors import StreamingQueryException

        self.shared = self.session.sparkContext.broadcast(self.batches.description)
        writer = (
            self._staged(self._frame(spec))
            .writeStream.foreachBatch(self._batch)
            .option("checkpointLocation", str(self.folder / _NOTES))
        )
        if self.job.is_following:
            writer = writer.trigger(processingTime=POLL)
        else:
            writer = writer.trigger(availableNow=True)
        begun_at = self.batches.last["version"]
        for start in range(1, STARTS + 1):
            try:
                self._until_over(writer)
            except StreamingQueryException as error:
                if self.was_stopped:
                    return
                is_slow = _SLOW in str(error) and self.batches.last["version"] == begun_at
                if not is_slow or start == STARTS:
                    raise self._told(error) from None
                self._take_up_notes(spec)
            else:
                return

    def _until_over(self, writer: Any) -> None:
        """Start the query and wait for its end, or for what ends it."""
        from py4j.protocol import Py4JJavaError
        from pyspark.errors import PySparkException, StreamingQueryException

        try:
            query = writer.start()
        except (Py4JJavaError, PySparkException) as error:
            cause = error.java_exception.getMessage() if isinstance(error, Py4JJavaError) else error
            reason = str(cause).splitlines()[0]
            message = f"Spark cannot read its part of the checkpoint: {reason}"
            raise DamagedState(message) from None
        try:
            while not query.awaitTermination(POLL_SECONDS):
                is_over = self.job.stopped() or self.batches.handing_over.has_failed
                if is_over and not query.status["isTriggerActive"]:
                    query.stop()
        except StreamingQueryException:
            raise
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
        if has_native(spec) and not self.job.is_following and not self.was_stopped:
            self.batches.end_time()
            nothing = self.session.createDataFrame([], SCHEMA)
            self._advance(self._staged(nothing), self.batches.last["batch"])

    def _told(self, error: Exception) -> Exception:
        """Spark's errors are pages long; the last Python error in them is the reason."""
        if isinstance(self.fault, MillstreamError):
            return self.fault
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        reasons = [line for line in lines if _PYTHON_ERROR.match(line)]
        reason = reasons[-1] if reasons else lines[0]
        if "DamagedState: " in reason:
            return DamagedState(reason.partition("DamagedState: ")[2])
        if any(FULL in line for line in lines):
            return OSError(errno.ENOSPC, FULL)
        if _SLOW in str(error):
            message = f"a Python of Spark's was not there within ten seconds, {STARTS} times"
            hint = f"this machine may have too much to do; Spark's log is {self.log}"
            return RunError(message, hint=hint)
        return RunError(f"Spark stopped: {reason}", hint=f"its log is {self.log}")

    def _java_ended(self) -> RunError:
        return RunError(
            "the Java that runs Spark has ended; somebody, or the system for want of memory, "
            "has ended it",
            hint=f"its log is {self.log}",
        )

    def _batch(self, frame: Any, number: int) -> None:
        """Run one batch of Spark's; one that was over before a crash is not run again.

        A batch that has begun is finished, one that has not is left for the next start.
        """
        last = self.batches.last
        if number <= last["batch"]:
            return
        if number > last["batch"] + 1:
            raise DamagedState(missing(manifest_name(last["version"] + 1)))
        if self.job.stopped():
            self.was_stopped = True
            raise StoppedError
        try:
            self._advance(frame, number)
        except MillstreamError as fault:
            self.fault = fault  # Spark would only tell its text
            raise

    def _advance(self, frame: Any, number: int) -> None:
        """Run the stages and gather what they have done."""
        self.session.sparkContext.setLocalProperty(TURN, written(self.batches.turn()))
        messages = [message_of(bytes(row.message)) for row in frame.collect()]
        planned = self.batches.last["sources"]
        if any(m.get("seq", planned) != planned for m in messages):
            raise DamagedState("Spark's notes of what has been read are not those of this job")
        self.batches.finish(number, messages)


def has_native(spec: SourceSpec) -> bool:
    """Whether Spark reads some input itself."""
    return any(one.is_native for one in spec.inputs)
