"""Small jobs, answered by the meanings, so that nothing is compiled for them.

By law 1 the rows are the same. The meanings take a time that grows with the square of what they
look at, and how much that is only shows on the way: so a job is tried, in memory, and given up
when it has taken more of the processor than starting the compiled engine is worth. It is read
and published by whoever runs it; in between it is a question that can be asked in any process.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import replace
from functools import partial
from typing import Any

from millstream.calculus.graph import Program
from millstream.connectors.chunks import Chunk, Reader, Rejected
from millstream.connectors.location import Location, files_now
from millstream.connectors.memory import MemoryWriter
from millstream.engine.job import Answer, Job, Progress, Report, Trial
from millstream.engine.reference.feed import entries_of, read_events
from millstream.engine.reference.run import write_outputs
from millstream.engine.warm import may_interpret, small_seconds
from millstream.meaning.items import Entry
from millstream.meaning.machine import Machine

MOST_BYTES = 64 << 10
MOST_ROWS = 2_000


class _TooLarge(Exception):
    """There are more rows than a small job has."""


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


def trial_of(job: Job, progress: Progress) -> Trial | None:
    """A job whose loops are not compiled yet, as a question; None if it is not to be tried.

    Its readers are used up then, but nothing has been written.
    """
    if not may_interpret(job.program):
        return None
    report = Report.for_program(job.program)
    rejected: list[Rejected] = []
    apart = replace(
        job,
        readers={name: _Few(reader) for name, reader in job.readers.items()},
        late_writers={name: MemoryWriter() for name in job.late_writers},
        on_rejected=rejected.extend,
    )
    try:
        events = read_events(apart, report)
    except _TooLarge:
        return None

    def publish(answer: Answer) -> Report:
        _publish(apart, job, rejected)
        write_outputs(job, report, answer.entries)
        report.take_faults(answer.faults, job)
        progress(report)
        return report

    fed = entries_of(job.program, events, end=report.mark)
    return Trial(partial(evaluated, job.program, fed, small_seconds()), publish)


def answered(job: Job, progress: Progress) -> Report | None:
    """Run a job in this process; None if it is better run by compiled loops."""
    trial = trial_of(job, progress)
    answer = None if trial is None else trial.ask()
    return None if trial is None or answer is None else trial.publish(answer)


def evaluated(
    program: Program, fed: Mapping[str, Sequence[Entry]], seconds: float
) -> Answer | None:
    """What the meanings make of all that is fed to a program; None if that takes too long."""
    until = time.thread_time() + seconds
    machine = Machine(program)
    for queue, entries in fed.items():
        machine.push(queue, entries)

    def is_late() -> bool:
        return time.thread_time() > until

    if not machine.run(is_late):
        return None
    if any(fed.values()):
        machine.end()
        if not machine.run(is_late):
            return None
    return Answer({name: list(machine.queues[name]) for name in program.outputs}, machine.faults)


def _publish(apart: Job, job: Job, rejected: list[Rejected]) -> None:
    """What was put aside while reading goes where it was to go."""
    for name, writer in apart.late_writers.items():
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
