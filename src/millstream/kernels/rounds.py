"""Running the steps of a plan, or of one of its stages, a round at a time."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from millstream.calculus.functions import Rstream
from millstream.kernels.build import build_kernel
from millstream.kernels.runtime.kernel import Round, State
from millstream.kernels.runtime.memory import keep_freed_memory
from millstream.plan.batch import Array, Batch, distinct_times
from millstream.plan.ranks import rank_of_mark
from millstream.plan.steps import Plan, Step

NO_TICKS: Array = np.zeros(0, np.int64)


class StepRunner:
    """Mutable: the kernels of some steps and the state inside them."""

    def __init__(self, plan: Plan, steps: tuple[Step, ...] | None = None) -> None:
        keep_freed_memory()
        self.plan = plan
        self.steps = plan.steps if steps is None else steps
        self.kernels = [build_kernel(plan, step) for step in self.steps]
        self.behind = plan.inputs_behind()
        self.has_ticks = any(isinstance(op.function, Rstream) for op in plan.program.operators)

    def ticks_of(self, arrivals: dict[str, Batch]) -> dict[str, Array]:
        """The distinct instants of each program input, where something needs them."""
        if not self.has_ticks:
            return {}
        # What was always there makes no instant.
        once = {one.name for one in self.plan.program.inputs if one.is_read_once}
        return {q: NO_TICKS if q in once else distinct_times(b.time) for q, b in arrivals.items()}

    def round(
        self, arrivals: dict[str, Batch], mark: int, ticks: dict[str, Array]
    ) -> dict[str, Batch]:
        """Run every step once on all items up to a mark; returns what nobody here reads."""
        queues = dict(arrivals)
        for step, kernel in zip(self.steps, self.kernels, strict=True):
            inputs = tuple(queues.pop(q) for q in step.inputs)
            outputs = kernel.process(inputs, Round(mark, self._ticks(step, ticks)))
            for queue, batch in zip(step.outputs, outputs, strict=True):
                queues[queue] = self._ranked(queue, batch)
        return queues

    def _ticks(self, step: Step, ticks: dict[str, Array]) -> Array:
        if not any(isinstance(op.function, Rstream) for op in step.operators):
            return NO_TICKS
        names = self.plan.program.input_names
        behind = frozenset().union(*(self.behind[q] for q in step.inputs))
        return distinct_times(np.concatenate([ticks[names[n]] for n in behind]))

    def _ranked(self, queue: str, batch: Batch) -> Batch:
        """What waited for time is ranked by the mark that set it free."""
        if queue not in self.plan.ranked or batch.rank is not None:
            return batch
        rank = rank_of_mark(max(self.behind[queue]))
        return replace(batch, rank=np.full(len(batch), rank, np.int64))

    def snapshot(self) -> list[State]:
        return [kernel.snapshot() for kernel in self.kernels]

    def restore(self, states: list[State]) -> None:
        for kernel, state in zip(self.kernels, states, strict=True):
            kernel.restore(state)

    def faults(self) -> Counter[str]:
        total: Counter[str] = Counter()
        for kernel in self.kernels:
            total.update(kernel.faults())
        return total
