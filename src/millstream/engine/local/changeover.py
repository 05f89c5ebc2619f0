"""A plan that runs at once, by its meanings, and on compiled kernels as soon as there are any.

Loops that are not in the cache are compiled by another process. Until that is done, what comes is
run in small parts by the meanings of its steps, and kept. Then kernels are made, which finds all
loops in the cache, they are given again what has come so far, and what they make of that is
dropped. By law 1 the rows are the same, and by law 2 the change can be made between any two
instants.

The meanings may take a time that grows with the square of what they look at. So they are asked
for little at a time, and where that takes too long, or there is too much to be kept, one waits.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from millstream.cold import Start
from millstream.engine.job import Job
from millstream.engine.local.compile_aside import CompileAside, Given, Read
from millstream.engine.warm import note_warm
from millstream.kernels.rounds import StepRunner
from millstream.kernels.runtime.consolidate import consolidate
from millstream.kernels.runtime.gathered import cut_queues, cut_ticks
from millstream.kernels.runtime.kernel import State
from millstream.plan.batch import Array, Batch, concat_batches
from millstream.plan.figures import StepFigures
from millstream.plan.steps import Plan, Step

#: A part should take so many seconds, and is given up where a single instant takes so many.
_SECONDS = 0.2
_PATIENCE = 2.0
_FEWEST, _MOST = 16, 4_096
#: So many rows are kept to be run again.
_KEPT_ROWS = 200_000
#: So many rows, in so many rounds, are given to who compiles.
_TRIED_ROWS, _TRIED_ROUNDS = 2_000, 3
_WHY = "its loops are being compiled"

Made = dict[str, Batch]


def interpreted(plan: Plan, steps: Sequence[Step]) -> StepRunner:
    """The steps of a plan, all of them run by what they mean."""
    walked = tuple(replace(step, fallback=step.fallback or _WHY) for step in steps)
    return StepRunner(replace(plan, steps=walked), walked)


def started(
    plan: Plan, steps: tuple[Step, ...], make: Callable[[], Any], job: Job, start: Start
) -> Changeover:
    """Steps of a job whose program was never compiled."""
    at_hand = {name: one for name, one in job.locations.items() if one.is_at_hand}
    read = [
        (input_, at_hand[input_.name]) for input_ in job.program.inputs if input_.name in at_hand
    ]
    return Changeover(plan, steps, make, read, start, partial(note_warm, job.program))


class Changeover:
    """Mutable: what has come so far and who compiles for it, or the kernels that took over."""

    #: A round is run when it is asked for.
    under_way = 1

    def __init__(
        self, plan: Plan, steps: tuple[Step, ...], make: Callable[[], Any], read: Sequence[Read],
        start: Start, on_compiled: Callable[[], None],
    ) -> None:  # fmt: skip
        self.plan = plan
        self.steps = steps
        self._make = make
        self._read = read
        self._on_compiled = on_compiled
        self._walked = interpreted(plan, steps)
        self._kernels: Any = None
        self._aside: CompileAside | None = None
        #: All that has come, to be given to the kernels.
        self._past: list[Given] = []
        self._rows = 0
        self._part = _FEWEST
        self._start = start

    @property
    def is_compiled(self) -> bool:
        return self._kernels is not None

    def close(self) -> None:
        self._start.over()
        if self._aside is not None:
            self._aside.close()
        if self._kernels is not None:
            self._kernels.close()

    def ticks_of(self, name: str, *came: Batch) -> dict[str, Array]:
        return self._walked.ticks_of(name, *came)

    def round(self, arrivals: Made, mark: int, ticks: dict[str, Array]) -> Iterator[Made]:
        """As `StepRunner.round`; many rows come out in parts of whole instants."""
        until = None
        while until != mark and not self._takes_over(arrivals, mark, ticks):
            until = self._end_of_part(arrivals, mark)
            early, arrivals = cut_queues(arrivals, until)
            soon, ticks = cut_ticks(ticks, until)
            yield from self._walk(early, until, soon)
        if until != mark:
            yield from self._kernels.round(arrivals, mark, ticks)

    def _walk(self, arrivals: Made, mark: int, ticks: dict[str, Array]) -> Iterator[Made]:
        """A part by its meanings; what takes long is given less the next time."""
        start = time.thread_time()
        made = list(self._walked.round(arrivals, mark, ticks))
        seconds = time.thread_time() - start
        rows = sum(map(len, arrivals.values()))
        self._past.append((arrivals, mark, ticks))
        self._rows += rows
        if seconds > _PATIENCE:
            self._rows = _KEPT_ROWS  # one waits from now on
        pace = _SECONDS / max(seconds, 1e-6)
        self._part = int(min(max(rows, _FEWEST) * min(pace, 4.0), _MOST)) or 1
        for queues in made:
            yield {q: consolidate(b) if b.type.is_relation else b for q, b in queues.items()}

    def _end_of_part(self, arrivals: Made, mark: int) -> int:
        """The time up to which there are about as many rows as are to be run at once."""
        ends = [int(b.time[self._part - 1]) for b in arrivals.values() if len(b) > self._part]
        return min([*ends, mark])

    def _takes_over(self, arrivals: Made, mark: int, ticks: dict[str, Array]) -> bool:
        """Whether the kernels run from now on; they are made as soon as they can be."""
        if self._kernels is not None:
            return True
        if self._aside is None and any(map(len, arrivals.values())):
            self._aside = CompileAside(
                self._make, [*self._past, *_tried((arrivals, mark, ticks))], self._read
            )
        if self._aside is None:
            return False
        while self._rows >= _KEPT_ROWS and not self._aside.is_over():
            self._aside.wait(0.1)
        if self._aside.is_over():
            self._change_over()
        return self._kernels is not None

    def _change_over(self) -> None:
        self._start.over()
        self._kernels = self._make()
        for arrivals, mark, ticks in _joined(self._past):
            for _ in self._kernels.round(arrivals, mark, ticks):
                pass  # it has been handed on before
        self._kernels.taken_figures()
        self._past = []
        if self._aside is not None:
            self._aside.close()
            self._aside = None
        self._on_compiled()

    def faults(self, counted: Sequence[bool] | None = None) -> Counter[str]:
        return _asked(self._kernels or self._walked, "faults", counted)  # type: ignore[no-any-return]

    def taken_figures(self, counted: Sequence[bool] | None = None) -> dict[str, StepFigures]:
        return _asked(self._kernels or self._walked, "taken_figures", counted)  # type: ignore[no-any-return]

    def snapshot(self) -> list[State]:
        """Only kernels can be taken up again, so one waits for them."""
        while self._aside is not None and not self._aside.is_over():
            self._aside.wait(0.1)
        if self._kernels is None:
            self._change_over()
        states: list[State] = self._kernels.snapshot()
        return states

    def restore(self, states: list[State]) -> None:
        self._start.over()
        self._kernels = self._make()
        self._kernels.restore(states)


def _asked(runner: Any, what: str, counted: Sequence[bool] | None) -> Any:
    """Kernels on threads know themselves which of them count."""
    ask = getattr(runner, what)
    return ask() if counted is None else ask(counted)


def _tried(given: Given) -> Iterator[Given]:
    """The first rows in several rounds, so that what is done between rounds is tried too."""
    arrivals, mark, ticks = given
    rows = _TRIED_ROWS // _TRIED_ROUNDS
    for _ in range(_TRIED_ROUNDS):
        ends = [int(b.time[rows - 1]) for b in arrivals.values() if len(b) > rows]
        until = min([*ends, mark])
        early, arrivals = cut_queues(arrivals, until)
        soon, ticks = cut_ticks(ticks, until)
        yield early, until, soon
        if until == mark:
            return


def _joined(rounds: Sequence[Given]) -> Iterator[Given]:
    """Many small rounds as one."""
    if not rounds:
        return
    first = rounds[0]
    arrivals = {
        queue: concat_batches([given[0][queue] for given in rounds], batch.type)
        for queue, batch in first[0].items()
    }
    ticks = {name: np.concatenate([given[2][name] for given in rounds]) for name in first[2]}
    yield arrivals, rounds[-1][1], ticks
