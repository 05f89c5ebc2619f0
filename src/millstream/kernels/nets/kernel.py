"""A net of `Work`, splits and joins as one step."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from millstream.calculus.functions import RoundRobinJoin
from millstream.calculus.graph import Operator
from millstream.calculus.types import INT64_MAX, START_OF_TIME, QueueType
from millstream.calculus.work import Work
from millstream.kernels.loop.code_layout import NotCompiled
from millstream.kernels.nets.buffers import Buffers, joined
from millstream.kernels.nets.drive import drive
from millstream.kernels.nets.edges import stamp
from millstream.kernels.nets.filters import CompiledFilter
from millstream.kernels.nets.movers import Movers, needed_again, shared_chunks
from millstream.kernels.nets.net import Net, net_of
from millstream.kernels.nets.printed import Printed
from millstream.kernels.nets.table import (
    CARRIES,
    CHUNK,
    COLUMNS,
    CURSOR,
    DUE,
    FAULT,
    FILTER,
    FIRED,
    GIVEN,
    HAS_CYCLE,
    HAS_RUN,
    IS_PACED,
    KEPT,
    KIND,
    LAST_TIME,
    MAY_MOVE,
    MOVER,
    NEEDED,
    NO_ROOM,
    POP,
    PUSH,
    Q_FIRST,
    Q_START,
    READY,
    S_COLUMNS,
    TAKEN,
    TICKS,
    TOLD_COUNT,
    TOLD_LAST,
    WALK,
    WALKED,
)
from millstream.kernels.nets.talking import Talking
from millstream.kernels.nets.walked import Walked
from millstream.kernels.runtime.hashing import frozen
from millstream.kernels.runtime.kernel import Round, State
from millstream.meaning.work import Box
from millstream.plan.batch import Array, Batch


class NetKernel:
    """Mutable: the buffers and actors of a net."""

    rests = False

    def __init__(
        self,
        operators: tuple[Operator, ...],
        inputs: tuple[tuple[str, QueueType], ...],
        outputs: tuple[str, ...],
        types: Mapping[str, QueueType],
    ) -> None:
        self.inputs = inputs
        self.outputs = outputs
        self.types = types
        net = net_of(operators, {q for q, _ in inputs}, set(outputs))
        self.moments = net.moments
        self.runs: dict[str, int] = {}
        #: Items of the one entry that came in earlier rounds, and the times of those of this one.
        self.came = 0
        self.times = np.zeros(0, np.int64)
        carries = net.moments is None
        self.buffers = Buffers(net.shapes, net.held, frozenset(outputs), carries=carries)
        works = sum(isinstance(op.function, Work) for op in net.operators)
        self.table = np.zeros((works + len(net.courses), COLUMNS), np.int64)
        self.table[:, LAST_TIME] = self.table[:, TOLD_LAST] = START_OF_TIME
        self.filters: dict[int, CompiledFilter] = {}
        self.walked: dict[int, Walked] = {}
        #: Messages that wait, by the variables of those who send and hear them.
        self.boxes: dict[str, Box] = {}
        #: Why those who are walked are not compiled.
        self.reasons: list[str] = []
        self.printed: dict[int, Printed] = {}
        self.printers: dict[str, int] = {}
        #: Sources, each with the input whose rows tell it to fire.
        self.paced: dict[int, str] = {}
        #: Movers that must wait for the firings of filters in their order.
        self.waiting: dict[int, str] = {}
        self._add_all(net)
        self.status = np.zeros(S_COLUMNS, np.int64)
        self.status[CARRIES], self.status[HAS_CYCLE] = carries, net.has_cycle

    # --- actors ---

    def _add_all(self, net: Net) -> None:
        movers, number = Movers(self.buffers.table), 0
        for op in net.operators:
            if isinstance(op.function, Work):
                self._add_filter(number, op.function, op)
                number += 1
                continue
            for queue in (q for q in op.outputs if q in net.courses):
                movers.add(self.table[number], self.buffers.number[queue], net.courses[queue])
                self.table[number, MAY_MOVE] = INT64_MAX
                if queue in net.waiting:
                    self.waiting[number] = queue
                number += 1
            if isinstance(op.function, RoundRobinJoin):
                for queue, rows in zip(op.inputs, op.function.enqueued, strict=False):
                    for item in rows:
                        self.buffers.put(self.buffers.number[queue], item, START_OF_TIME)
        self.takings, self.list = movers.tables()
        self.movers = movers.rows
        rows = self.table[self.table[:, KIND] != MOVER]
        courses = {self.buffers.number[q]: course for q, course in net.courses.items()}
        sides = rows[:, [TAKEN, GIVEN, POP, PUSH]].tolist()
        self.shares = shared_chunks(self.buffers.table, sides, courses)

    def _add_filter(self, number: int, work: Work, op: Operator) -> None:
        row = self.table[number]
        taken = None if work.pace is not None else self.buffers.number[op.inputs[0]]
        given = None if work.given is None else self.buffers.number[op.outputs[0]]
        row[TAKEN] = -1 if taken is None else taken
        row[GIVEN] = -1 if given is None else given
        row[IS_PACED] = work.pace is not None
        if work.pace is not None:
            self.paced[number] = op.inputs[0]
        if work.prints:
            self.printers[op.outputs[-1]] = number
        if work.shared_count:
            self._add_talking(number, work, op, taken, given)
            return
        try:
            if work.changes:
                raise NotCompiled("its rates change")
            compiled = self.filters[number] = CompiledFilter(work, row)
            row[KIND] = FILTER
            if work.prints:
                self.printed[number] = Printed(compiled.loop.templates, row, compiled.frame)
        except NotCompiled as reason:
            self._walk(number, Walked(work, row, self.buffers, taken, given), str(reason))

    def _add_talking(
        self, number: int, work: Work, op: Operator, taken: int | None, given: int | None
    ) -> None:
        """One that sends or hears messages; they lie in boxes, which others have too."""
        made = work, self.table[number], self.buffers, taken, given
        try:
            walked: Walked = Talking(*made)
            reason = "it sends or hears messages: only firings that do"
        except NotCompiled as why:
            walked, reason = Walked(*made), str(why)
        walked.boxes = self.boxes
        walked.own = op.variables[len(op.variables) - work.shared_count :]
        self.boxes.update({name: Box() for name in walked.own})
        self._walk(number, walked, reason)

    def _walk(self, number: int, walked: Walked, reason: str) -> None:
        work, row = walked.work, self.table[number]
        self.walked[number] = walked
        name = work.path or work.code.name
        self.reasons.append(f"# {name}: one statement at a time, because {reason}")
        row[KIND] = WALKED
        row[[POP, PUSH]] = work.rates.pop, work.rates.push

    @property
    def source(self) -> str | None:
        """What is to be said of its filters when it is explained."""
        return "\n".join(self.reasons) or None

    # --- rounds ---

    def process(self, inputs: tuple[Batch, ...], round_: Round) -> tuple[Batch, ...]:
        for (queue, _), batch in zip(self.inputs, inputs, strict=True):
            if queue in self.buffers.number:
                self.buffers.take(self.buffers.number[queue], batch)
                self._expect(self.buffers.number[queue], len(batch))
                self.times = batch.time
            else:
                self._tick(queue, len(batch))
        self._allow()
        self._drive()
        given = tuple(self._given(queue) for queue in self.outputs)
        self.came += len(self.times)
        self.times = self.times[:0]
        return given

    def _expect(self, entry: int, count: int) -> None:
        """Room in the outputs for what will come of so many items."""
        for queue in self.outputs:
            if queue in self.buffers.number and self.shares[entry] and count >= CHUNK:
                n = self.buffers.number[queue]
                self.buffers.reserve(n, int(count * self.shares[n] / self.shares[entry]))

    def _tick(self, queue: str, count: int) -> None:
        """Let sources fire for so many rows: the first is the initialisation."""
        for number in (n for n, name in self.paced.items() if name == queue and count):
            actor = self.filters.get(number) or self.walked[number]
            pace, row = actor.work.pace, self.table[number]
            assert pace is not None
            begins = int(row[TICKS] == 0)
            row[DUE] += begins * pace.initially + (count - begins) * pace.each
            row[TICKS] += count

    def _allow(self) -> None:
        """How many items may be moved that wait for others than those they are made of."""
        if self.waiting and self.moments is not None:
            sources = [int(self.table[number, DUE]) for number in self.paced]
            come = sources[0] if sources else self.came + len(self.times)
            for number, queue in self.waiting.items():
                self.table[number, MAY_MOVE] = self.moments[queue].before(come)

    def _drive(self) -> None:
        tables = (self.table, self.buffers.table, self.takings, self.list, self.status)
        while (why := int(drive(*tables))) != READY:
            number = int(self.status[CURSOR])
            if why == FAULT:
                raise self.filters[number].tell(int(self.table[number, FIRED]))
            if why == NO_ROOM:
                queue, needed = self.status[NEEDED : NEEDED + 2].tolist()
                self.buffers.resize(queue, 4 * needed)
            elif why == WALK:
                self.status[HAS_RUN] |= self.walked[number].run()
                self.status[CURSOR] += 1
            else:
                self.printed[number].grow()

    def _given(self, queue: str) -> Batch:
        if queue not in self.printers:
            n = self.buffers.number[queue]
            first = int(self.buffers.table[n, Q_FIRST] + self.buffers.table[n, Q_START])
            times = self._times(queue, first, self.buffers.size(n))
            return self.buffers.given(n, self.types[queue], times)
        number = self.printers[queue]
        actor, fired = self.walked.get(number), int(self.table[number, FIRED])
        count = int(self.table[number, TOLD_COUNT]) if actor is None else len(actor.texts)
        times = self._times(queue, fired - count, count)
        return self.printed[number].given(times) if actor is None else actor.printed(times)

    def _times(self, queue: str, first: int, count: int) -> Array | None:
        """The times of some items, by their numbers; None if they carry them."""
        if self.moments is None:
            return None
        if count == 0:
            return np.zeros(0, np.int64)
        moments = self.moments[queue]
        if self.paced:
            return moments.at(np.arange(first, first + count)) + 1
        # All that could leave earlier has: it must have waited for something of this round.
        stamps = np.empty(count, np.int64)
        if queue not in self.runs:
            self.runs[queue] = moments.run()
        sequence = frozen(moments.begins), frozen(moments.repeats), self.runs[queue], moments.step
        stamp(*sequence, first, self.came, frozen(self.times), stamps)
        return stamps

    # --- state ---

    def snapshot(self) -> State:
        memory = [(f.singles, f.integers) for f in self.filters.values()]
        state: State = {
            "actors": self.table[:, KEPT].copy(),
            "came": self.came,
            "held singles": joined([singles for singles, _ in memory], np.float32),
            "held integers": joined([integers for _, integers in memory], np.int32),
        }
        state |= {f"queues.{name}": part for name, part in self.buffers.snapshot().items()}
        return state | {f"walked.{n}": actor.snapshot() for n, actor in self.walked.items()}

    def restore(self, state: State) -> None:
        self.table[:, KEPT] = state["actors"]
        self.came = int(state["came"])
        needed_again(self.movers, self.takings)
        places = [0, 0]
        for actor in self.filters.values():
            for at, (name, array) in enumerate(
                (("held singles", actor.singles), ("held integers", actor.integers))
            ):
                array[:] = state[name][places[at] : places[at] + len(array)]
                places[at] += len(array)
        self.buffers.restore({k.removeprefix("queues."): v for k, v in state.items()})
        for n, walked in self.walked.items():
            walked.restore(state[f"walked.{n}"])

    def faults(self) -> dict[str, int]:
        return {}
