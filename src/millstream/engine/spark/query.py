"""Inputs that Spark reads itself make a run one streaming query, with a chain of stages per batch.

    sources --> stage 0 --> stage 1 --> ... --> driver --> sinks

What we read ourselves beside them is a source of the same query.
"""

from __future__ import annotations

import functools
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from millstream.engine.batches import Batches
from millstream.engine.manifest import manifest_name
from millstream.engine.spark.spec import spec_to_json
from millstream.engine.spark.telling import SLOW, STARTS, told
from millstream.engine.spark.wire import SCHEMA, message_of
from millstream.engine.spark.worker import TURN, run_stage, written
from millstream.engine.spec import SourceSpec
from millstream.engine.storage.codec import DamagedState
from millstream.engine.storage.records import missing
from millstream.errors import MillstreamError

POLL_SECONDS = 0.2
POLL = "200 milliseconds"
#: Spark's own notes.
NOTES = "spark"


class StoppedError(Exception):
    """Raised inside a query to end it between two batches."""


def has_native(spec: SourceSpec) -> bool:
    """Whether Spark reads some input itself."""
    return any(one.is_native for one in spec.inputs)


def forget_notes(folder: Path) -> None:
    """Spark's notes say how far it has read what it reads itself; all else we know better."""
    shutil.rmtree(folder / NOTES, ignore_errors=True)


class Query:
    """Mutable: the query of one run."""

    def __init__(
        self, batches: Batches, spec: SourceSpec, session: Any, log: Path, *, is_own: bool
    ) -> None:
        self.batches = batches
        self.spec = spec
        self.job = batches.job
        self.folder = batches.checkpoint.folder
        self.session = session
        self.log = log
        #: Whether the session is that of this run alone.
        self.is_own = is_own
        self.shared: Any = None
        self.was_stopped = False
        self.fault: MillstreamError | None = None

    def to_the_end(self) -> None:
        self._take_up_notes()
        self._run()
        self._end_time()

    def _take_up_notes(self) -> None:
        last = self.batches.last
        commits = self.batches.checkpoint.files.names(f"{NOTES}/commits")
        newest = max((int(name) for name in commits if name.isdigit()), default=-1)
        if newest > last["batch"]:
            raise DamagedState(missing(manifest_name(last["version"] + 1)))

    def _frame(self) -> Any:
        """What all inputs have to say: those that we read and those that Spark reads."""
        from millstream.engine.spark.native import native_frame
        from millstream.engine.spark.source import NAME, MillstreamSource

        session, spec = self.session, self.spec
        frames = [native_frame(session, spec, i) for i in spec.inputs if i.is_native]
        own = replace(spec, inputs=tuple(i for i in spec.inputs if not i.is_native))
        if own.inputs:
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

    def _run(self) -> None:
        from pyspark.errors import StreamingQueryException

        self.shared = self.session.sparkContext.broadcast(self.batches.description)
        writer = (
            self._staged(self._frame())
            .writeStream.foreachBatch(self._batch)
            .option("checkpointLocation", str(self.folder / NOTES))
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
                is_slow = SLOW in str(error) and self.batches.last["version"] == begun_at
                if not is_slow or start == STARTS:
                    raise self.fault or told(error, self.log) from None
                self._take_up_notes()
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
            if not self.is_own:
                query.stop()
            raise
        except BaseException:
            query.stop()
            raise

    def _end_time(self) -> None:
        """Our own readers know the end of their input; for the others it is the run's end."""
        if not self.job.is_following and not self.was_stopped:
            self.batches.end_time()
            nothing = self.session.createDataFrame([], SCHEMA)
            self._advance(self._staged(nothing), self.batches.last["batch"])

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
