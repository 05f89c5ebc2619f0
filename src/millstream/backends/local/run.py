"""The local engine: rounds of the plan's kernels in one process.

A round lets in all items up to a mark, the time up to which every input is known, and
runs every step once, producers before consumers. Instants are never cut, so no answer
depends on where a round happened to end.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from millstream.backends.job import Job, Progress, Report, no_progress
from millstream.backends.local.sources import SourceState
from millstream.calculus.functions import Rstream
from millstream.calculus.graph import Program
from millstream.kernels.build import build_kernel, why_not
from millstream.kernels.consolidate import consolidate
from millstream.kernels.kernel import Round
from millstream.plan.batch import Array, Batch
from millstream.plan.ranks import rank_of_mark
from millstream.plan.steps import Plan, Step, make_plan

NO_TICKS: Array = np.zeros(0, np.int64)


def plan_for(program: Program) -> Plan:
    """The plan this engine runs."""
    return make_plan(program, why_not)


class Engine:
    """Mutable: the kernels of a plan and the state inside them."""

    def __init__(self, program: Program) -> None:
        self.plan = plan_for(program)
        self.kernels = [build_kernel(self.plan, step) for step in self.plan.steps]
        self.behind = self.plan.inputs_behind()
        self.has_ticks = any(isinstance(op.function, Rstream) for op in self.plan.program.operators)

    def round(self, arrivals: dict[str, Batch], mark: int) -> dict[str, Batch]:
        """Run every step once on all items up to a mark; returns the output batches."""
        queues = dict(arrivals)
        instants = {q: np.unique(b.time) for q, b in arrivals.items()} if self.has_ticks else {}
        for step, kernel in zip(self.plan.steps, self.kernels, strict=True):
            inputs = tuple(queues.pop(q) for q in step.inputs)
            outputs = kernel.process(inputs, Round(mark, self._ticks(step, instants)))
            for queue, batch in zip(step.outputs, outputs, strict=True):
                queues[queue] = self._ranked(queue, batch)
        return {q: self._finished(queues[q]) for q in self.plan.program.outputs}

    def _ticks(self, step: Step, instants: dict[str, Array]) -> Array:
        if not self.has_ticks or not step.inputs:
            return NO_TICKS
        names = self.plan.program.input_names
        behind = frozenset().union(*(self.behind[q] for q in step.inputs))
        return np.unique(np.concatenate([instants[names[n]] for n in behind]))

    def _ranked(self, queue: str, batch: Batch) -> Batch:
        """What waited for time is ranked by the mark that set it free."""
        if queue not in self.plan.ranked or batch.rank is not None:
            return batch
        rank = rank_of_mark(max(self.behind[queue]))
        return replace(batch, rank=np.full(len(batch), rank, np.int64))

    @staticmethod
    def _finished(batch: Batch) -> Batch:
        return consolidate(batch) if batch.type.is_relation else batch

    def faults(self) -> Counter[str]:
        total: Counter[str] = Counter()
        for kernel in self.kernels:
            total.update(kernel.faults())
        return total


class Run:
    """Mutable: an engine with its sources and writers."""

    def __init__(self, job: Job, progress: Progress) -> None:
        self.job = job
        self.progress = progress
        self.engine = Engine(job.program)
        self.sources = [
            SourceState(one, n, job.readers[one.name],
                        is_ranked=one.name in self.engine.plan.ranked)
            for n, one in enumerate(job.program.inputs)
        ]  # fmt: skip
        self.report = Report.for_program(job.program)
        self.report.inputs = {s.input.name: s.counts for s in self.sources}

    def to_the_end(self) -> Report:
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
            self.job.late_writers[source.input.name].write(late)

    def _finish(self) -> None:
        """A finite run ends time at the largest time stamp of all inputs.

        Following has no end: what still waits for time to pass goes on waiting.
        """
        times = [s.largest for s in self.sources if s.largest is not None]
        if times and not self.job.is_following:
            self._rounds_up_to(max(times))
        self.report.faults = self.engine.faults()
        self.progress(self.report)

    def _rounds_up_to(self, mark: int) -> None:
        """One round, or several where that spares copying what waits."""
        cuts = {cut for s in self.sources if (cut := s.first_cut()) is not None and cut < mark}
        for cut in sorted(cuts):
            self._round_up_to(cut)
        self._round_up_to(mark)

    def _round_up_to(self, mark: int) -> None:
        if self.report.mark is not None and mark <= self.report.mark:
            return
        arrivals = {s.input.name: s.release(mark) for s in self.sources}
        for name, batch in self.engine.round(arrivals, mark).items():
            self.report.outputs[name] += len(batch)
            self.job.writers[name].write(batch)
        self.report.mark = mark
        self.progress(self.report)


#: Below every time, even after a slack has been taken off.
_NOTHING_KNOWN = -(2**80)


def _known_below(source: SourceState) -> int:
    """The bound of a source, or less than any time if nothing is known."""
    return _NOTHING_KNOWN if source.known_below is None else source.known_below


def run(job: Job, *, progress: Progress = no_progress) -> Report:
    """Run a job from its first row to its last."""
    return Run(job, progress).to_the_end()
