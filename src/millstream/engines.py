"""The engines there are, and how one of them runs a job."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from millstream.connectors.chunks import Reader
from millstream.engine.given import location_of
from millstream.engine.job import Job, Progress, Report, refuse_no_result
from millstream.errors import UsageError, listing

ENGINES: dict[str, str] = {
    "reference": "millstream.engine.reference.run:run",
    "actors": "millstream.engine.reference.actors:run",
    "local": "millstream.engine.local.run:run",
    "spark": "millstream.engine.spark.run:run",
}
DEFAULT_ENGINE = "local"
#: The engines that small jobs are tried on before they are compiled, and the options with which
#: that makes no difference.
_FOR_SMALL = {
    "local": frozenset({"threads", "start"}),
    "spark": frozenset({"master", "session", "partitions", "buckets", "jars", "packages"}),
}


def check_engine(name: str) -> None:
    if name not in ENGINES:
        raise UsageError(f'unknown engine "{name}"', hint=f"engines are: {listing(ENGINES)}")


def run_job(
    engine: str,
    job: Job,
    given: Sequence[Any],
    opened_again: Callable[[], dict[str, Reader]],
    progress: Progress,
    options: Mapping[str, Any],
) -> Report:
    """Run a job on an engine; a finite one that can have no result is refused.

    What is given for its inputs tells how large it is, and is opened again if it was tried.
    """
    if job.is_following:
        return engine_named(engine)(job, progress=progress, **options)
    if options.keys() <= _FOR_SMALL.get(engine, frozenset()):
        report = _run_unless_small(engine, job, given, opened_again, progress, options)
    else:
        report = engine_named(engine)(job, progress=progress, **options)
    refuse_no_result(report, job)
    return report


def _run_unless_small(
    engine: str,
    job: Job,
    given: Sequence[Any],
    opened_again: Callable[[], dict[str, Reader]],
    progress: Progress,
    options: Mapping[str, Any],
) -> Report:
    """A small job whose loops are not compiled yet is answered without any."""
    from millstream.engine.reference.small import answered, is_small, trial_of
    from millstream.engine.warm import is_large, note_warm

    if is_small(location_of(one) if isinstance(one, (str, Path)) else one for one in given):
        if engine == "spark":
            options = {**options, "trial": trial_of(job, progress)}
        elif (report := answered(job, progress)) is not None:
            return report
        job = replace(job, readers=opened_again())
    report = engine_named(engine)(job, progress=progress, **options)
    if engine == "local" and options["start"] is None and not is_large(job.program):
        # To know a large one by its text would take long, and help nobody. One that was not
        # compiled at first notes it when it is.
        note_warm(job.program)
    return report


def engine_named(name: str) -> Callable[..., Report]:
    module, _, function = ENGINES[name].partition(":")
    engine: Callable[..., Report] = getattr(importlib.import_module(module), function)
    return engine
