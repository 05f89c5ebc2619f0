"""The local engine: rounds of the plan's kernels in one process.

A round lets in all items up to a mark, the time up to which every input is known, and
runs every step once, producers before consumers. Instants are never cut, so no answer
depends on where a round happened to end.
"""

from __future__ import annotations

import functools
import os
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from millstream.calculus.ending import OVER, has_end
from millstream.calculus.graph import Program
from millstream.cold import Start
from millstream.engine.job import Job, Progress, Report, no_progress, rejected_changes
from millstream.engine.local.beside import Write, WriteBehind, write_at_once
from millstream.engine.local.changeover import started
from millstream.engine.local.sources import SourceState
from millstream.engine.local.threads import (
    LEAST_ROWS,
    ThreadedRunner,
    layout_for_threads,
    threads_wanted,
)
from millstream.engine.settings import BATCH_BYTES, SNAPSHOT_EVERY, Settings
from millstream.engine.sizes import measured
from millstream.kernels.build import why_not
from millstream.kernels.rounds import StepRunner
from millstream.kernels.runtime.consolidate import consolidate
from millstream.kernels.runtime.same import Same
from millstream.plan.batch import Array, Batch
from millstream.plan.figures import inputs_of_steps
from millstream.plan.net import consolidated_queues
from millstream.plan.steps import Plan, make_plan

DEFAULT_BATCH_BYTES = int(os.environ.get(BATCH_BYTES, str(16 << 20)))
#: As many bytes a row has at least, most likely.
_ROW_BYTES = 32


def plan_for(program: Program) -> Plan:
    """The plan this engine runs; it is made once."""
    return _plan_of(Same(program))


@functools.lru_cache(maxsize=16)
def _plan_of(program: Same[Program]) -> Plan:
    return make_plan(program.it, why_not)


class Run:
    """Mutable: an engine with its sources and writers."""

    def __init__(
        self, job: Job, progress: Progress, threads: int, threads_from: int, start: Start | None
    ) -> None:
        self.job = job
        self.progress = progress
        self.sources = [
            SourceState(one, n, job.readers[one.name]) for n, one in enumerate(job.program.inputs)
        ]
        self._write: Write = write_at_once
        self._written: WriteBehind | None = None
        layout = None
        has_many = self._has_many if start is None else self._seems_many
        if threads > 1 and has_many(threads_from):
            self._read_and_write_beside()
            sizes = measured(job.program.inputs, job.locations)
            layout = layout_for_threads(job.program, sizes, threads)
        plan = plan_for(job.program) if layout is None else layout.plan
        make: Callable[[], Any] = (
            partial(StepRunner, plan)
            if layout is None
            else partial(ThreadedRunner, layout, threads)
        )
        self.engine = make() if start is None else started(plan, plan.steps, make, job, start)
        self.consolidated = consolidated_queues(self.engine.plan)
        for source in self.sources:
            source.is_ranked = source.input.name in self.engine.plan.ranked
        #: What rounds make that are under way, the oldest first, and up to when they go.
        self._rounds: deque[tuple[Iterator[dict[str, Batch]], int]] = deque()
        self._mark: int | None = None
        self.report = Report.for_program(job.program)
        self.report.inputs = {s.input.name: s.counts for s in self.sources}
        self.report.behind = inputs_of_steps(plan)

    def _has_many(self, threads_from: int) -> bool:
        """Whether there are so many rows that threads are worth their start."""
        if any(one.is_standard for one in self.job.locations.values()):
            return False  # nobody waits for many rows of what is written at this moment
        rows = 0
        for source in self.sources:
            rows += source.look_ahead(threads_from - rows)
        return rows >= threads_from

    def _seems_many(self, threads_from: int) -> bool:
        """The same by the sizes of files, as long as reading takes long."""
        at_hand = {n: one for n, one in self.job.locations.items() if one.is_at_hand}
        inputs = [input_ for input_ in self.job.program.inputs if input_.name in at_hand]
        return sum(measured(inputs, at_hand).values()) >= threads_from * _ROW_BYTES

    def _read_and_write_beside(self) -> None:
        for source in self.sources:
            # What a caller gives may have to be asked by the thread that it was made in.
            if source.input.name in self.job.locations:
                source.read_ahead()
        self._written = WriteBehind()
        self._write = self._written.write

    def to_the_end(self) -> Report:
        try:
            report = self._to_the_end()
            if self._written is not None:
                self._written.finish()
            return report
        finally:
            self._stop()

    def _stop(self) -> None:
        """Let nobody work on, whatever has happened."""
        for source in self.sources:
            source.stop()
        if self._written is not None:
            self._written.stop()
        self.engine.close()

    def _to_the_end(self) -> Report:
        while True:
            open_sources = [s for s in self.sources if not s.is_exhausted]
            if not open_sources:
                break
            # Whoever is furthest behind holds time back, so it is read first.
            self._read(min(open_sources, key=_known_below))
            bounds = [_known_below(s) for s in self.sources if not s.is_exhausted]
            if bounds and min(bounds) > _NOTHING_KNOWN:
                self._rounds_up_to(min(bounds) - 1)
        self._finish()
        return self.report

    def _read(self, source: SourceState) -> None:
        chunk, late = source.read()
        if chunk is not None:
            self.report.take_rejected(source.input.name, chunk.rejected, self.job)
        if len(late) and source.input.name in self.job.late_writers:
            self._write(self.job.late_writers[source.input.name], late)

    def _finish(self) -> None:
        """A finite run ends time at the largest time stamp of all inputs, or where they end."""
        times = [t for s in self.sources for t in (s.largest, s.input.ends) if t is not None]
        if times:
            self._rounds_up_to(max(times))
            if has_end(self.job.program):
                self._begin_round(OVER)
        while self._rounds:
            self._end_round()
        self.report.take_faults(self.engine.faults(), self.job)
        self.progress(self.report)

    def _rounds_up_to(self, mark: int) -> None:
        """One round, or several where that spares copying what waits."""
        cuts = {cut for s in self.sources if (cut := s.first_cut()) is not None and cut < mark}
        for cut in sorted(cuts):
            self._round_up_to(cut)
        self._round_up_to(mark)

    def _round_up_to(self, mark: int) -> None:
        """Begin a round, and end those that need not be under way any longer."""
        if self._mark is not None and mark <= self._mark:
            return
        self._mark = mark
        self._begin_round(mark)

    def _begin_round(self, mark: int) -> None:
        arrivals: dict[str, Batch] = {}
        ticks: dict[str, Array] = {}
        for source in self.sources:
            name = source.input.name
            arrivals[name], unsound = source.release(mark)
            self.report.take_rejected(name, rejected_changes(name, unsound), self.job)
            ticks |= self.engine.ticks_of(name, arrivals[name], unsound)
        self._rounds.append((self.engine.round(arrivals, mark, ticks), mark))
        while len(self._rounds) >= self.engine.under_way:
            self._end_round()

    def _end_round(self) -> None:
        """Hand on what the oldest of all rounds makes."""
        made, mark = self._rounds.popleft()
        for number, queues in enumerate(made):
            if number:
                self.progress(self.report)  # a round may be long, and made in parts
            for name in self.job.program.outputs:
                batch = queues[name]
                if name not in self.consolidated:
                    batch = finished(batch)
                self.report.outputs[name] += len(batch)
                self._write(self.job.writers[name], batch)
        self.report.mark = self.report.mark if mark == OVER else mark
        self.report.take_figures(self.engine.taken_figures())
        self.report.newest = {
            s.input.name: s.largest for s in self.sources if s.largest is not None
        }
        self.progress(self.report)


def finished(batch: Batch) -> Batch:
    """The changes of a relation leave consolidated."""
    return consolidate(batch) if batch.type.is_relation else batch


#: Below every time, even after a slack has been taken off.
_NOTHING_KNOWN = -(2**80)


def _known_below(source: SourceState) -> int:
    """The bound of a source, or less than any time if nothing is known."""
    return _NOTHING_KNOWN if source.known_below is None else source.known_below


def run(
    job: Job,
    *,
    progress: Progress = no_progress,
    checkpoint: str | Path | None = None,
    rebuild: bool = False,
    relayout: bool = False,
    batch_bytes: int = DEFAULT_BATCH_BYTES,
    snapshot_every: int = SNAPSHOT_EVERY,
    threads: int | None = None,
    threads_from: int = LEAST_ROWS,
    start: Start | None = None,
) -> Report:
    """Run a job from its first row, or from where its checkpoint is, to its last.

    A run that neither has a checkpoint nor follows its inputs needs nothing on disk, and none
    of what others do there. On how many `threads` it runs changes no answer; of less than
    `threads_from` rows it is one. With a `start` it begins before its loops are
    compiled.
    """
    many = threads_wanted(threads)
    if checkpoint is None and not job.is_following:
        return Run(job, progress, many, threads_from, start).to_the_end()
    from millstream.engine.local.batches import run_batches

    settings = Settings(
        1,
        1,
        batch_bytes,
        snapshot_every,
        rebuild,
        relayout,
        is_scratch=checkpoint is None,
        is_together=True,
    )
    return run_batches(job, progress, checkpoint, settings, start)
