"""Running the steps of a plan, or of one of its stages, a round at a time."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from millstream.calculus.ending import OVER, ending
from millstream.calculus.sheets import Sheet
from millstream.calculus.tables import END_OF_TIME
from millstream.kernels import watch
from millstream.kernels.build import build_kernel
from millstream.kernels.relational.pieces import Piecewise
from millstream.kernels.runtime.gathered import Gathered, cut_queues, cut_ticks
from millstream.kernels.runtime.kernel import Kernel, Round, State
from millstream.kernels.runtime.memory import keep_freed_memory
from millstream.plan.batch import Array, Batch, distinct_times, empty_batch
from millstream.plan.figures import StepFigures, name_of, together
from millstream.plan.ranks import freed, rank_of_mark, with_positions
from millstream.plan.steps import Plan, Step

NO_TICKS: Array = np.zeros(0, np.int64)


class StepRunner:
    """Mutable: the kernels of some steps and the state inside them."""

    #: A round is run when it is asked for.
    under_way = 1

    def __init__(self, plan: Plan, steps: tuple[Step, ...] | None = None) -> None:
        keep_freed_memory()
        self.plan = plan
        self.steps = plan.steps if steps is None else steps
        self.kernels = [build_kernel(plan, step) for step in self.steps]
        self.followed = _followed(self.steps, self.kernels)
        self.followers = frozenset(self.followed.values())
        self.behind = plan.inputs_behind()
        late = ending(plan.program)
        #: The steps that have something to tell when all inputs are over, and those behind them.
        self.at_end = frozenset(
            number
            for number, step in enumerate(self.steps)
            if any(op.id in late for op in step.operators)
        )
        #: What comes of a step that is given nothing, of those for which that is sure.
        self.nothing = {
            number: self._nothing_from(number)
            for number, kernel in enumerate(self.kernels)
            if kernel.rests
        }
        self.figures = [StepFigures() for _ in self.steps]
        self.has_ticks = any(step.looks_at_instants for step in plan.steps)

    def close(self) -> None:
        """Nothing is open."""

    def ticks_of(self, name: str, *came: Batch) -> dict[str, Array]:
        """The distinct instants at which a program input has told something, if they are needed."""
        if not self.has_ticks:
            return {}
        # What was always there makes no instant.
        if any(input_.name == name and input_.is_read_once for input_ in self.plan.program.inputs):
            return {name: NO_TICKS}
        return {name: distinct_times(np.concatenate([batch.time for batch in came]))}

    def round(
        self, arrivals: dict[str, Batch], mark: int, ticks: dict[str, Array]
    ) -> Iterator[dict[str, Batch]]:
        """Run every step on all items up to a mark; gives what nobody here reads.

        Where a step makes very much, it comes in parts of whole instants, one after the other.
        """
        if mark == OVER:
            silent = dict.fromkeys(self.plan.program.input_names, NO_TICKS)
            return self._from(0, dict(arrivals), END_OF_TIME, silent, is_over=True)
        return self._from(0, dict(arrivals), mark, ticks)

    def _from(
        self,
        first: int,
        queues: dict[str, Batch],
        mark: int,
        ticks: dict[str, Array],
        *,
        is_over: bool = False,
    ) -> Iterator[dict[str, Batch]]:
        """Run the steps from some number on; when all is over, those that wait for that."""
        for number in range(first, len(self.steps)):
            if number in self.followers:
                continue  # it has run with the step that it follows
            step = self.steps[number]
            if is_over and number not in self.at_end:
                for queue in step.inputs:
                    del queues[queue]
                queues.update(self._nothing_from(number))
                continue
            if number in self.nothing and not any(len(queues[q]) for q in step.inputs):
                for queue in step.inputs:
                    del queues[queue]
                queues.update(self.nothing[number])
                continue
            inputs = self._taken(step, [queues.pop(q) for q in step.inputs])
            round_ = Round(mark, self._ticks(step, ticks))
            for made, until in self._watched(number, inputs, round_):
                if until == mark:
                    queues.update(made)
                    continue
                early, queues = cut_queues(queues, until)
                soon, ticks = cut_ticks(ticks, until)
                yield from self._from(number + 1, early | made, until, soon, is_over=is_over)
        yield queues

    def _watched(
        self, number: int, inputs: tuple[Batch, ...], round_: Round
    ) -> Iterator[tuple[dict[str, Batch], int]]:
        """What a step makes; how much, and how long that takes, is noted."""
        watch.here = watch.At(number + 1, len(self.steps))
        figures = self.figures[number]
        figures.taken += sum(map(len, inputs))
        pieces = self._made(number, inputs, round_)
        while True:
            start = time.perf_counter()
            made = next(pieces, None)
            figures.seconds += time.perf_counter() - start
            if made is None:
                return
            figures.made += sum(map(len, made[0].values()))
            yield made

    def taken_figures(self, counted: Sequence[bool] | None = None) -> dict[str, StepFigures]:
        """What the steps have done since this was asked last; faults are all that there were."""
        figures, self.figures = self.figures, [StepFigures() for _ in self.steps]
        for one, kernel in zip(figures, self.kernels, strict=True):
            one.faults = sum(kernel.faults().values())
        return together(
            {name_of(step): one}
            for number, (step, one) in enumerate(zip(self.steps, figures, strict=True))
            if counted is None or counted[number]
        )

    def _nothing_from(self, number: int) -> dict[str, Batch]:
        types = self.plan.program.queue_types()
        return {q: self._ranked(q, empty_batch(types[q])) for q in self._last(number).outputs}

    def _last(self, number: int) -> Step:
        """The step that gives what another makes: itself, or the one that follows it."""
        return self.steps[self.followed.get(number, number)]

    def _made(
        self, number: int, inputs: tuple[Batch, ...], round_: Round
    ) -> Iterator[tuple[dict[str, Batch], int]]:
        """What a step makes, by queue, and up to when that is all; to the mark at last."""
        kernel = self.kernels[number]
        if not isinstance(kernel, Piecewise):
            yield self._named(number, kernel.process(inputs, round_)), round_.mark
            return
        gathered = Gathered()
        follower = self.followed.get(number)
        for batch, until in kernel.pieces(inputs, round_):
            made = self._named(number, (batch,))
            if follower is not None:
                rows = self.kernels[follower].process(tuple(made.values()), round_)
                made = self._named(follower, rows)
            if until == round_.mark and not gathered.size:
                yield made, until
                return
            gathered.add(made)
            if until == round_.mark or gathered.size > gathered.most:
                early = gathered.up_to(until)
                if until == round_.mark or any(map(len, early.values())):
                    yield early, until

    def _named(self, number: int, outputs: tuple[Batch, ...]) -> dict[str, Batch]:
        step = self.steps[number]
        named = {q: self._ranked(q, b) for q, b in zip(step.outputs, outputs, strict=True)}
        if step.makes(self.plan.placed):
            named = {q: _with_positions(batch) for q, batch in named.items()}
        return named

    def _taken(self, step: Step, inputs: list[Batch]) -> tuple[Batch, ...]:
        """What a step takes in; a sheet gives the rank of a tuple to what it makes of it."""
        if not isinstance(step.operators[0].function, Sheet) or step.fallback is not None:
            return tuple(inputs)
        last = max(self.behind[step.outputs[0]])
        return tuple(
            batch if batch.rank is None else replace(batch, rank=freed(batch.rank, last, number))
            for number, batch in enumerate(inputs)
        )

    def _ticks(self, step: Step, ticks: dict[str, Array]) -> Array:
        if not step.looks_at_instants:
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

    def faults(self, counted: Sequence[bool] | None = None) -> Counter[str]:
        """The faults of all steps, or of some of them."""
        total: Counter[str] = Counter()
        for number, kernel in enumerate(self.kernels):
            if counted is None or counted[number]:
                total.update(kernel.faults())
        return total


def _with_positions(batch: Batch) -> Batch:
    """Items of a stream in the order of their ranks, whatever places they will come from."""
    if batch.rank is None or batch.type.is_relation:
        return batch
    return replace(batch, rank=with_positions(batch.rank))


def _followed(steps: Sequence[Step], kernels: Sequence[Kernel]) -> dict[int, int]:
    """The steps that give pieces, each with the one that takes these row by row, if any.

    What it makes of them is often much less, and no instant needs to be whole for it.
    """
    readers = {
        step.inputs: n for n, step in enumerate(steps) if step.is_row_step and step.fallback is None
    }
    return {
        number: readers[step.outputs]
        for number, (step, kernel) in enumerate(zip(steps, kernels, strict=True))
        if isinstance(kernel, Piecewise) and step.outputs in readers
    }
