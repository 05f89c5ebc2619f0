"""Small jobs of the local engine, answered by the meanings, so that nothing is compiled for them.

By law 1 the rows are the same. The meanings take a time that grows with the square of what they
look at, and how much that is only shows on the way: so a job is tried, in memory, and given up
when it has taken more of the processor than starting the compiled engine is worth.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sized
from dataclasses import replace
from typing import Any

from millstream.calculus.graph import Program
from millstream.connectors.chunks import Chunk, Reader, Rejected
from millstream.connectors.location import Location, files_now
from millstream.connectors.memory import MemoryWriter
from millstream.engine.job import Job, Progress, Report
from millstream.engine.reference.feed import entries_of, read_events
from millstream.engine.reference.run import write_outputs
from millstream.engine.warm import is_warm
from millstream.meaning.machine import Machine

#: The setting: how many seconds of the processor a small job may take; 0 for none.
SETTING = "MILLSTREAM_SMALL"
SECONDS = 1.5
MOST_BYTES = 64 << 10
MOST_ROWS = 2_000
#: A large program takes long for each row; trying it would only make its start longer.
MOST_OPERATORS = 500


class _TooLarge(Exception):
    """There are more rows than a small job has."""


def is_large(program: Program) -> bool:
    """Whether a program is never answered without being compiled, however few its rows are."""
    return len(program.operators) > MOST_OPERATORS


def is_small(inputs: Iterable[Any]) -> bool:
    """Whether inputs, places or rows, can be read twice and look as if they held few rows."""
    size = rows = 0
    for given in inputs:
        if not isinstance(given, Location):
            if not isinstance(given, Sized) or isinstance(given, Iterator):
                return False
            rows += len(given)
        elif given.generator is not None:
            rows += given.generator.rows
        elif given.is_at_hand:
            size += sum(path.stat().st_size for path in files_now(given))
        else:
            return False
    return size <= MOST_BYTES and rows <= MOST_ROWS


def answered(job: Job, progress: Progress) -> Report | None:
    """Run a job whose loops are not compiled yet; None if it is better run by compiled loops.

    Then nothing has been written, and its readers are used up.
    """
    seconds = float(os.environ.get(SETTING, SECONDS))
    if seconds <= 0 or is_large(job.program) or is_warm(job.program):
        return None
    until = time.thread_time() + seconds
    report = Report.for_program(job.program)
    rejected: list[Rejected] = []
    trial = replace(
        job,
        readers={name: _Few(reader) for name, reader in job.readers.items()},
        late_writers={name: MemoryWriter() for name in job.late_writers},
        on_rejected=rejected.extend,
    )
    try:
        events = read_events(trial, report)
    except _TooLarge:
        return None
    machine = Machine(job.program)
    for queue, entries in entries_of(job.program, events, end=report.mark).items():
        machine.push(queue, entries)
    if not machine.run(lambda: time.thread_time() > until):
        return None
    _publish(trial, job, rejected)
    write_outputs(job, report, {name: list(machine.queues[name]) for name in job.program.outputs})
    report.take_faults(machine.faults, job)
    progress(report)
    return report


def _publish(trial: Job, job: Job, rejected: list[Rejected]) -> None:
    """What was put aside while reading goes where it was to go."""
    for name, writer in trial.late_writers.items():
        assert isinstance(writer, MemoryWriter)
        for batch in writer.batches:
            job.late_writers[name].write(batch)
    if rejected and job.on_rejected is not None:
        job.on_rejected(rejected)


class _Few:
    """Mutable: a reader that gives up when there is more than a little."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._left = MOST_ROWS

    def chunks(self) -> Iterator[Chunk]:
        for chunk in self._reader.chunks():
            self._left -= chunk.read
            if self._left < 0:
                self.close()
                raise _TooLarge
            yield chunk

    def close(self) -> None:
        self._reader.close()
