"""Running on Spark: a job of Spark's for each batch, or one query where Spark reads an input.

A small job that has not been compiled is answered by one task, which compiles nothing.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from millstream.engine.job import Answer, Job, Progress, Report, Trial, no_progress
from millstream.engine.scratch import checkpoint_folder
from millstream.engine.settings import BATCH_BYTES, SNAPSHOT_EVERY, Settings
from millstream.engine.spark.daemon import PLAIN
from millstream.engine.spark.jobs import Jobs
from millstream.engine.spark.session import (
    DEFAULT_MASTER,
    LOG,
    Launch,
    brought_by_user,
    cores_of,
    require_spark,
    start_session,
)
from millstream.engine.spark.telling import java_ended, told
from millstream.engine.warm import note_warm
from millstream.errors import MillstreamError, Stopped

DEFAULT_BATCH_BYTES = int(os.environ.get(BATCH_BYTES, str(64 << 20)))


def run(
    job: Job,
    *,
    progress: Progress = no_progress,
    master: str = DEFAULT_MASTER,
    checkpoint: str | Path | None = None,
    rebuild: bool = False,
    relayout: bool = False,
    partitions: int | None = None,
    buckets: int | None = None,
    batch_bytes: int = DEFAULT_BATCH_BYTES,
    snapshot_every: int = SNAPSHOT_EVERY,
    ui: Callable[[str], None] | None = None,
    jars: Sequence[str] = (),
    packages: Sequence[str] = (),
    session: Any = None,
    trial: Trial | None = None,
) -> Report:
    """Run a job from where its checkpoint is to the end of its input.

    A Spark session that is given is used and left running. `ui` is told where Spark's own pages
    are, which it has only then. `jars` are files or addresses, and
    `packages` names in Maven's repositories, of what a user brings for `spark:` inputs. A job that
    may be answered without being compiled comes with its `trial`.
    """
    require_spark()
    settings = Settings(
        partitions or cores_of(master, session), buckets, batch_bytes, snapshot_every, rebuild,
        relayout, is_scratch=checkpoint is None, can_read_natives=True,
    )  # fmt: skip
    with checkpoint_folder(checkpoint) as folder:
        log = folder / LOG if checkpoint else Path(f"{folder.parent}-{folder.name}.log")
        start = functools.partial(
            start_session, master, folder, settings.partitions, ui=ui, log=log,
            brought=brought_by_user(jars, packages),
        )  # fmt: skip
        is_named = checkpoint is not None
        try:
            with Launch(session, start) as launch:
                launch.begin()  # beside what is done until it is wanted
                if trial is not None and (answer := _answered(trial, launch, job, log)) is not None:
                    return trial.publish(answer)
                report = _run_batches(job, progress, folder, settings, launch, log)
            if trial is not None:
                note_warm(job.program)  # it need not be tried again
        except MillstreamError as fault:
            # Where a run fails, somebody will want to read what Spark had to say.
            is_named = is_named or str(log) in str(fault)
            raise
        finally:
            if not is_named:
                log.unlink(missing_ok=True)
        return report


def _answered(trial: Trial, launch: Launch, job: Job, log: Path) -> Answer | None:
    """A small job, answered by a task that compiles nothing; None if that takes too long."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    ask = trial.ask  # all that a task needs of it
    context = launch.session().sparkContext
    if job.stopped():
        raise Stopped("stopped before anything was read")
    # A Python of its own, which need not load what compiles.
    context.environment[PLAIN] = "1"
    try:
        with Jobs(context) as jobs:
            task = context.parallelize([None], 1).map(lambda _: ask())
            answers: list[Answer | None] = jobs.done(task.collect, "millstream small")
    except (Py4JError, PySparkException) as error:
        raise java_ended(log) if launch.has_ended() else told(error, log) from None
    finally:
        del context.environment[PLAIN]
    return answers[0]


def _run_batches(
    job: Job, progress: Progress, folder: Path, settings: Settings, launch: Launch, log: Path
) -> Report:
    # What compiles takes a while to load, which Java needs to start.
    from millstream.engine.batches import Batches
    from millstream.engine.relayout import relaid
    from millstream.engine.spark.batches import SparkBatches

    def done(batches: Batches) -> Report:
        return SparkBatches(batches, launch, log).to_the_end()

    going_on = relaid(job, progress, folder, settings, done)
    return done(going_on.batches(progress, folder, settings))
