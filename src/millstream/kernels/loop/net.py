"""A net of `Work`, splits and joins as one step: flat buffers, and loops that fire many times.

Every queue inside has a buffer of plain values and the times of its items. In a round each
actor fires as often as it can, in the order in which data passes them; where there is a cycle
this is done again until nobody can. What cannot be compiled is walked, item by item.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from millstream.calculus.functions import Duplicate, RoundRobinJoin, RoundRobinSplit
from millstream.calculus.graph import Operator
from millstream.calculus.procedures import ArrayOf, RecordOf, Shape
from millstream.calculus.terms import Literal
from millstream.calculus.types import START_OF_TIME, QueueType
from millstream.calculus.work import Rates, Work, item_of_row, row_of_item
from millstream.compiled import compiled
from millstream.errors import RunError
from millstream.kernels.loop.cache import compiled as compiled_source
from millstream.kernels.loop.code import Compiled, NotCompiled, emitted
from millstream.kernels.runtime.kernel import Round, State, Termless
from millstream.meaning.procedures import Frame, Machine, Trap
from millstream.plan.batch import Array, Batch, Vector, batch_of
from millstream.values.types import BOOLEAN as _BOOLEAN
from millstream.values.types import SINGLE, Type

#: Items of a queue that are worked on at a time: so few that they stay near the processor.
CHUNK = 1 << 15


_HEADER = """import math
from numba import float32, float64, int32, int64, types, uint64
from millstream.kernels.loop.machine import (
    int32_quotient, int32_remainder, least, most, round_half_away, whole_of,
)
nan = math.nan
MAKES_ARRAYS = False
_f, _i, _l = float32[::1], int32[::1], int64[::1]
SIGNATURE = types.UniTuple(int64, 2)(
    int64, int64, int64, int64, _f, _i, int64, _f, _i, int64, _f, _i, _l, _l, _l)
"""


class Buffer:
    """Mutable: the items of a queue that were not taken yet."""

    def __init__(self, singles: int, integers: int) -> None:
        self.widths = (singles, integers)
        self.singles = np.zeros(max(singles, 1) * 64, np.float32)
        self.integers = np.zeros(max(integers, 1) * 64, np.int32)
        self.times = np.zeros(64, np.int64)
        self.start = self.end = 0

    def __len__(self) -> int:
        return self.end - self.start

    def reserve(self, more: int) -> None:
        """Room for so many items behind the last one; what was taken is forgotten."""
        if self.end + more <= len(self.times):
            return
        kept = len(self)
        room = max(2 * (kept + more), 64)
        for name, width in (("singles", self.widths[0]), ("integers", self.widths[1]),
                            ("times", 1)):  # fmt: skip
            old = getattr(self, name)
            new = np.zeros(room * max(width, 1), old.dtype)
            new[: kept * width] = old[self.start * width : self.end * width]
            setattr(self, name, new)
        self.start, self.end = 0, kept

    def snapshot(self) -> State:
        singles, integers = self.widths
        return {
            "singles": self.singles[self.start * singles : self.end * singles].copy(),
            "integers": self.integers[self.start * integers : self.end * integers].copy(),
            "times": self.times[self.start : self.end].copy(),
        }

    def restore(self, state: State) -> None:
        self.start = self.end = 0
        count = len(state["times"])
        self.reserve(count)
        self.singles[: len(state["singles"])] = state["singles"]
        self.integers[: len(state["integers"])] = state["integers"]
        self.times[:count] = state["times"]
        self.end = count


def types_of(shape: Shape) -> list[Type]:
    """The plain values of an item, in the order of its columns."""
    match shape:
        case ArrayOf(element, Literal(int(size))):
            return types_of(element) * size
        case RecordOf(parts):
            return [type_ for _, part in parts for type_ in types_of(part)]
        case Type():
            return [shape]
        case _:
            raise AssertionError(f"a size is not known: {shape}")


# --- actors -----------------------------------------------------------------------------


@compiled
def _times_of_firings(taken, first, count, pop, peek, given, place, push):
    """An item has the time of the last one that its firing looks at."""
    for k in range(count):
        time = taken[first + k * pop + peek - 1]
        for n in range(push):
            given[place + k * push + n] = time


class _Filter:
    """Mutable: a code with its memory, fired in a loop."""

    def __init__(self, work: Work, taken: Buffer | None, given: Buffer | None) -> None:
        self.work = work
        self.taken = taken
        self.given = given
        self.fired = 0
        self.due = 0
        self.loops: dict[bool, tuple[Compiled, Any]] = {}
        for is_first in (True, False) if work.code.first is not None else (False,):
            body = work.code.first if is_first else work.code.body
            assert body is not None
            loop = emitted(work.code, body)
            text = _HEADER + loop.text.replace("def fire(", "def run(")
            self.loops[is_first] = loop, compiled_source(text)
        arguments = _thawed_arguments(work)
        self.machine = Machine.started(work.code, arguments, _Silent())
        self.memory = {key: _memory(loop, self.machine) for key, (loop, _) in self.loops.items()}
        self.share(self.memory)
        nothing = (0, 0)
        widths = (
            *(taken.widths if taken is not None else nothing),
            *(given.widths if given is not None else nothing),
        )
        self.widths = np.array(widths, np.int64)
        self.control = np.zeros(4, np.int64)

    def share(self, memory: dict[bool, tuple[Array, Array, Array]]) -> None:
        """Both loops see the same fields: the larger memory serves both where they agree."""
        if len(memory) == 2:
            raise NotCompiled("prework")

    def run(self) -> bool:
        is_first = self.fired == 0 and self.work.code.first is not None
        rates = self.work.first if is_first and self.work.first else self.work.rates
        count = self.ready(rates)
        if is_first:
            count = min(count, 1)
        if count:
            self.fire(count, rates, is_first=is_first)
        return count > 0

    def ready(self, rates: Rates) -> int:
        if self.work.pace is not None:
            return min(self.due - self.fired, max(1, CHUNK // max(rates.push, 1)))
        assert self.taken is not None
        held = len(self.taken)
        if held < max(rates.peek, 1):
            return 0
        most = max(1, CHUNK // max(rates.push, rates.pop, 1))
        return min(most, (held - rates.peek) // rates.pop + 1 if rates.pop else 1)

    def fire(self, count: int, rates: Rates, *, is_first: bool) -> None:
        loop, run = self.loops[is_first]
        singles, integers, places = self.memory[is_first]
        taken, given = self.taken, self.given
        none = _NOTHING
        if given is not None:
            given.reserve(count * rates.push)
        begin = taken.start if taken is not None else 0
        end = given.end if given is not None else 0
        self.control[0] = 0
        run(count, rates.pop, rates.peek, rates.push,
            taken.singles if taken is not None else none[0], taken.integers if taken is not None else none[1], begin,
            given.singles if given is not None else none[0], given.integers if given is not None else none[1], end,
            singles, integers, places, self.widths, self.control)  # fmt: skip
        if self.control[0]:
            self.tell(loop)
        self.stamp(count, rates, begin, end)
        self.fired += count

    def stamp(self, count: int, rates: Rates, begin: int, end: int) -> None:
        """Times of what was given, and what was taken is gone."""
        if self.given is not None:
            if self.work.pace is not None:
                numbers = np.arange(self.fired + 1, self.fired + count + 1)
                times = np.repeat(numbers, rates.push)
                self.given.times[end : end + len(times)] = times
            else:
                assert self.taken is not None
                _times_of_firings(self.taken.times, begin, count, rates.pop, max(rates.peek, 1),
                                  self.given.times, end, rates.push)  # fmt: skip
            self.given.end += count * rates.push
        if self.taken is not None and self.work.pace is None:
            self.taken.start += count * rates.pop

    def tell(self, loop: Compiled) -> None:
        site, firing, first, second = self.control.tolist()
        message, span = loop.sites[site - 1]
        place = span.place if span else self.work.code.name
        number = self.fired + firing + 1
        raise RunError(f"{place}: {message.format(first, second)}, at firing {number}")

    def snapshot(self) -> State:
        singles, integers, _ = self.memory[False]
        return {"fired": self.fired, "due": self.due, "singles": singles.copy(),
                "integers": integers.copy()}  # fmt: skip

    def restore(self, state: State) -> None:
        self.fired, self.due = int(state["fired"]), int(state["due"])
        singles, integers, places = self.memory[False]
        singles[:], integers[:] = state["singles"], state["integers"]


class _Silent:
    """The host of `init`, which has no items."""

    def pop(self) -> Any:
        raise AssertionError("init has no items")

    def peek(self, index: int) -> Any:
        raise AssertionError("init has no items")

    def push(self, output: int, value: Any) -> None:
        """What `init` prints is not kept."""


_NOTHING = (np.zeros(1, np.float32), np.zeros(1, np.int32))


def _thawed_arguments(work: Work) -> list[Any]:
    from millstream.meaning.work import arguments_of

    return arguments_of(work)


def _memory(loop: Compiled, machine: Machine) -> tuple[Array, Array, Array]:
    """The values of a machine as the loop wants them laid out."""
    cells: dict[str, list[Any]] = {"F": [], "I": []}
    places: list[int] = []
    for name, leaf in loop.scalars:
        value = machine.variables[name]
        for part in leaf.path:
            value = value[part]
        cells["F" if leaf.type == SINGLE else "I"].append(value)
    frame = Frame(machine, None, {})
    for stretch in loop.stretches:
        sizes = [frame.value(size) for size in stretch.leaf.sizes]
        held = cells["F" if stretch.leaf.type == SINGLE else "I"]
        places += [len(held), *sizes]
        if stretch.name in machine.variables:
            held += _flat(machine.variables[stretch.name], stretch.leaf.path)
        else:
            held += [0] * int(np.prod(sizes))
    return (np.array(cells["F"] or [0], np.float32), np.array(cells["I"] or [0], np.int32),
            np.array(places or [0], np.int64))  # fmt: skip


def _flat(value: Any, path: tuple[str, ...]) -> list[Any]:
    """The values of an array, of whose elements a part may be meant."""
    if isinstance(value, list):
        return [v for element in value for v in _flat(element, path)]
    if isinstance(value, dict):
        return _flat(value[path[0]], path[1:])
    return [value]


class _Walked:
    """Mutable: a filter that is not compiled, such as one that prints."""

    def __init__(
        self, work: Work, taken: Buffer | None, given: Buffer | None, texts: list[tuple[int, str]]
    ) -> None:
        self.work = work
        self.taken = taken
        self.given = given
        self.texts = texts
        self.fired = 0
        self.due = 0
        self.machine = Machine.started(work.code, _thawed_arguments(work), _Silent())
        self.taken_types = [] if work.taken is None else types_of(work.taken)
        self.given_types = [] if work.given is None else types_of(work.given)

    def run(self) -> bool:
        ran = False
        while True:
            is_first = self.fired == 0 and self.work.code.first is not None
            rates = self.work.first if is_first and self.work.first else self.work.rates
            if not self.is_ready(rates):
                return ran
            self.fire(rates, is_first=is_first)
            ran = True

    def is_ready(self, rates: Rates) -> bool:
        if self.work.pace is not None:
            return self.fired < self.due
        assert self.taken is not None
        return len(self.taken) >= max(rates.peek, 1)

    def fire(self, rates: Rates, *, is_first: bool) -> None:
        from millstream.meaning.work import Firing

        items = []
        if self.taken is not None and self.work.taken is not None:
            items = [self.item(n) for n in range(max(rates.peek, 1))]
        firing = Firing(self.work, rates, items)
        code = self.work.code
        try:
            self.machine.run(code.first if is_first and code.first else code.body, firing)
            firing.check()
        except Trap as trap:
            place = trap.span.place if trap.span else code.name
            message = f"{place}: {trap.message}, at firing {self.fired + 1}"
            raise RunError(message) from None
        self.fired += 1
        time = self.fired
        if self.taken is not None and self.work.pace is None:
            time = int(self.taken.times[self.taken.start + max(rates.peek, 1) - 1])
            self.taken.start += rates.pop
        if self.work.prints:
            self.texts.append((time, "".join(firing.texts)))
        if self.given is not None and self.work.given is not None:
            self.given.reserve(len(firing.sent))
            for value in firing.sent:
                _put(self.given, self.given_types, row_of_item(self.work.given, value), time)

    def item(self, number: int) -> Any:
        assert self.taken is not None and self.work.taken is not None
        return item_of_row(self.work.taken, _row(self.taken, self.taken_types, number))

    def snapshot(self) -> State:
        from millstream.kernels.fallback import plain

        return {"fired": self.fired, "due": self.due, "variables": plain(self.machine.variables)}

    def restore(self, state: State) -> None:
        from millstream.kernels.fallback import unplain

        self.fired, self.due = int(state["fired"]), int(state["due"])
        self.machine.variables = unplain(state["variables"])


def _row(buffer: Buffer, types: list[Type], number: int) -> tuple[Any, ...]:
    singles, integers = buffer.widths
    f, i = (buffer.start + number) * singles, (buffer.start + number) * integers
    row: list[Any] = []
    for type_ in types:
        if type_ == SINGLE:
            row.append(float(buffer.singles[f]))
            f += 1
        else:
            value = int(buffer.integers[i])
            row.append(bool(value) if type_ == _BOOLEAN else value)
            i += 1
    return tuple(row)


def _put(buffer: Buffer, types: list[Type], row: tuple[Any, ...], time: int) -> None:
    singles, integers = buffer.widths
    f, i = buffer.end * singles, buffer.end * integers
    for type_, value in zip(types, row, strict=True):
        if type_ == SINGLE:
            buffer.singles[f] = value
            f += 1
        else:
            buffer.integers[i] = value
            i += 1
    buffer.times[buffer.end] = time
    buffer.end += 1


@compiled
def _moved(source, begin, target, place, count, width):
    for n in range(count * width):
        target[place * width + n] = source[begin * width + n]


def _move(taken: Buffer, offset: int, given: Buffer, count: int) -> None:
    """Items at an offset to the end of another queue, with their times."""
    begin, end = taken.start + offset, given.end
    singles, integers = taken.widths
    if singles:
        _moved(taken.singles, begin, given.singles, end, count, singles)
    if integers:
        _moved(taken.integers, begin, given.integers, end, count, integers)
    _moved(taken.times, begin, given.times, end, count, 1)
    given.end += count


@compiled
def _dealt(source, begin, step, target, place, stride, turns, count, width):
    """So many items of each turn, which are `step` apart, to places `stride` apart."""
    for turn in range(turns):
        a = (begin + turn * step) * width
        b = (place + turn * stride) * width
        for n in range(count * width):
            target[b + n] = source[a + n]


@compiled
def _rising(times, begin, end, last):
    for n in range(begin, end):
        last = max(last, times[n])
        times[n] = last
    return last


def _deal(
    taken: Buffer, begin: int, step: int, given: Buffer, place: int, stride: int, turns: int,
    count: int | None = None,
) -> None:  # fmt: skip
    count = stride if count is None else count
    singles, integers = taken.widths
    if singles:
        _dealt(taken.singles, begin, step, given.singles, place, stride, turns, count, singles)
    if integers:
        _dealt(taken.integers, begin, step, given.integers, place, stride, turns, count, integers)
    _dealt(taken.times, begin, step, given.times, place, stride, turns, count, 1)


class _Copies:
    """Every item to every output."""

    def __init__(self, taken: Buffer, given: Sequence[Buffer]) -> None:
        self.taken = taken
        self.given = given

    def run(self) -> bool:
        count = len(self.taken)
        for buffer in self.given:
            buffer.reserve(count)
            _move(self.taken, 0, buffer, count)
        self.taken.start += count
        return count > 0

    def snapshot(self) -> State:
        return {}

    def restore(self, state: State) -> None:
        """There is nothing to keep."""


class _Turns:
    """Mutable: whose turn it is, and how many items of the turn are done."""

    def __init__(
        self, weights: tuple[int, ...], taken: Sequence[Buffer], given: Sequence[Buffer],
        *, is_split: bool,
    ) -> None:  # fmt: skip
        self.weights = weights
        self.taken = taken
        self.given = given
        self.turn = self.done = 0
        self.last_time = START_OF_TIME
        self.is_split = is_split

    def run(self) -> bool:
        """What is left of a turn, then whole turns at once, then what begins a turn."""
        ran = False
        while self.some():
            ran = True
            if self.turn == self.done == 0:
                self.whole()
        return ran

    def some(self) -> bool:
        """Items of the one whose turn it is, as many as there are."""
        source = self.taken[0 if self.is_split else self.turn]
        target = self.given[self.turn if self.is_split else 0]
        count = min(len(source), self.weights[self.turn] - self.done)
        if count == 0:
            return False
        target.reserve(count)
        begin = target.end
        _move(source, 0, target, count)
        source.start += count
        self.settle(target, begin)
        self.done += count
        if self.done == self.weights[self.turn]:
            self.turn, self.done = (self.turn + 1) % len(self.weights), 0
        return True

    def whole(self) -> None:
        """All turns that can be gone through to their end."""
        total = sum(self.weights)
        if self.is_split:
            turns = len(self.taken[0]) // total
        else:
            pairs = zip(self.taken, self.weights, strict=True)
            turns = min(len(buffer) // weight for buffer, weight in pairs)
        if turns == 0:
            return
        begin = self.given[0].end
        if not self.is_split:
            self.given[0].reserve(turns * total)
            begin = self.given[0].end
        offset = 0
        for number, weight in enumerate(self.weights):
            source = self.taken[0 if self.is_split else number]
            target = self.given[number if self.is_split else 0]
            if self.is_split:
                target.reserve(turns * weight)
                _deal(source, source.start + offset, total, target, target.end, weight, turns)
                target.end += turns * weight
            else:
                _deal(source, source.start, weight, target, begin + offset, total, turns, weight)
                source.start += turns * weight
            offset += weight
        if self.is_split:
            self.taken[0].start += turns * total
        else:
            self.given[0].end += turns * total
            self.settle(self.given[0], begin)

    def settle(self, target: Buffer, begin: int) -> None:
        """What is joined leaves no earlier than what has left before."""
        if not self.is_split:
            self.last_time = int(_rising(target.times, begin, target.end, self.last_time))

    def snapshot(self) -> State:
        return {"turn": self.turn, "done": self.done, "last_time": self.last_time}

    def restore(self, state: State) -> None:
        self.turn, self.done = int(state["turn"]), int(state["done"])
        self.last_time = int(state["last_time"])


# --- the kernel -------------------------------------------------------------------------


class NetKernel(Termless):
    """Mutable: the buffers and actors of a net."""

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
        self.texts: dict[str, list[tuple[int, str]]] = {}
        shapes = _shapes(operators)
        self.value_types = {queue: types_of(shape) for queue, shape in shapes.items()}
        self.buffers = {queue: _buffer(some) for queue, some in self.value_types.items()}
        self.actors = [self._actor(op) for op in operators]
        self.has_cycle = _has_cycle(operators)
        self.paced = [
            (actor, op.inputs[0])
            for actor, op in zip(self.actors, operators, strict=True)
            if isinstance(op.function, Work) and op.function.pace is not None
        ]
        self.ticks = 0
        self.parts = {
            **{f"queue {name}": buffer for name, buffer in self.buffers.items()},
            **{f"actor{number}": actor for number, actor in enumerate(self.actors)},
        }

    def _actor(self, op: Operator) -> Any:
        function = op.function
        if isinstance(function, Work):
            return self._filter(function, op)
        taken = [self.buffers[q] for q in op.inputs]
        given = [self.buffers[q] for q in op.outputs]
        if isinstance(function, Duplicate):
            return _Copies(taken[0], given)
        assert isinstance(function, (RoundRobinSplit, RoundRobinJoin))
        weights = function.weights or (1,) * max(len(taken), len(given))
        if isinstance(function, RoundRobinJoin):
            for queue, rows in zip(op.inputs, function.enqueued, strict=False):
                self.buffers[queue].reserve(len(rows))
                for row in rows:
                    _put(self.buffers[queue], self.value_types[queue], row, START_OF_TIME)
        is_split = isinstance(function, RoundRobinSplit)
        return _Turns(weights, taken, given, is_split=is_split)

    def _filter(self, work: Work, op: Operator) -> Any:
        taken = None if work.pace is not None else self.buffers[op.inputs[0]]
        given = None if work.given is None else self.buffers[op.outputs[0]]
        texts: list[tuple[int, str]] = []
        if work.prints:
            self.texts[op.outputs[-1]] = texts
        try:
            return _Filter(work, taken, given)
        except NotCompiled:
            return _Walked(work, taken, given, texts)

    def process(self, inputs: tuple[Batch, ...], round_: Round) -> tuple[Batch, ...]:
        ticks = 0
        for (queue, _), batch in zip(self.inputs, inputs, strict=True):
            if queue in self.buffers:
                self._take(queue, batch)
            else:
                ticks = len(batch)
        while ticks:
            ticks -= self._tick(ticks)
            self._run()
        self._run()
        return tuple(self._given(queue) for queue in self.outputs)

    def _tick(self, most: int) -> int:
        """Some steady states more, as many as are worked on at a time; tells how many."""
        is_first = self.ticks == 0
        each = max((actor.work.pace.each for actor, _ in self.paced), default=1)
        count = 1 if is_first else min(most, max(1, CHUNK // max(each, 1)))
        for actor, _ in self.paced:
            pace = actor.work.pace
            actor.due += pace.initially if is_first else count * pace.each
        self.ticks += count
        return count

    def _run(self) -> None:
        """Until nobody can fire."""
        ran = True
        while ran:
            ran = False
            for actor in self.actors:
                ran |= actor.run()

    def _take(self, queue: str, batch: Batch) -> None:
        buffer, types = self.buffers[queue], self.value_types[queue]
        count = len(batch)
        buffer.reserve(count)
        singles, integers = buffer.widths
        f = i = 0
        for type_, column in zip(types, batch.columns, strict=True):
            if type_ == SINGLE:
                begin, end = buffer.end * singles + f, (buffer.end + count) * singles
                buffer.singles[begin:end:singles] = column.values
                f += 1
            else:
                begin, end = buffer.end * integers + i, (buffer.end + count) * integers
                buffer.integers[begin:end:integers] = column.values
                i += 1
        buffer.times[buffer.end : buffer.end + count] = batch.time
        buffer.end += count

    def _given(self, queue: str) -> Batch:
        type_ = self.types[queue]
        if queue in self.texts:
            texts = self.texts[queue]
            batch = batch_of(type_, [time for time, _ in texts], [(text,) for _, text in texts])
            texts.clear()
            return batch
        buffer = self.buffers[queue]
        singles, integers = buffer.widths
        columns = []
        f = i = 0
        for value_type, field in zip(self.value_types[queue], type_.schema, strict=True):
            if value_type == SINGLE:
                some = buffer.singles[buffer.start * singles + f : buffer.end * singles : singles]
                columns.append(Vector(field.type, some.astype(np.float64)))
                f += 1
            else:
                some = buffer.integers[buffer.start * integers + i : buffer.end * integers
                                       : integers]  # fmt: skip
                wanted = np.bool_ if value_type == _BOOLEAN else np.int64
                columns.append(Vector(field.type, some.astype(wanted)))
                i += 1
        times = buffer.times[buffer.start : buffer.end].copy()
        buffer.start = buffer.end
        return Batch(type_, times, tuple(columns))

    def snapshot(self) -> State:
        return {"ticks": self.ticks, **super().snapshot()}

    def restore(self, state: State) -> None:
        self.ticks = int(state["ticks"])
        super().restore(state)


def _buffer(types: list[Type]) -> Buffer:
    singles = sum(type_ == SINGLE for type_ in types)
    return Buffer(singles, len(types) - singles)


def _shapes(operators: tuple[Operator, ...]) -> dict[str, Shape]:
    """What travels on each queue of a net; splits and joins pass on what they get."""
    shapes: dict[str, Shape] = {}
    for op in operators:
        if isinstance(op.function, Work):
            if op.function.taken is not None and op.function.pace is None:
                shapes[op.inputs[0]] = op.function.taken
            if op.function.given is not None:
                shapes[op.outputs[0]] = op.function.given
    changed = True
    while changed:
        changed = False
        for op in operators:
            known = [shapes[q] for q in (*op.inputs, *op.outputs) if q in shapes]
            if isinstance(op.function, Work) or not known:
                continue
            for queue in (*op.inputs, *op.outputs):
                changed |= queue not in shapes
                shapes.setdefault(queue, known[0])
    return shapes


def _has_cycle(operators: tuple[Operator, ...]) -> bool:
    made: set[str] = set()
    inside = {queue for op in operators for queue in op.outputs}
    for op in operators:
        if any(queue in inside and queue not in made for queue in op.inputs):
            return True
        made.update(op.outputs)
    return False


def why_not(operators: tuple[Operator, ...]) -> str | None:
    """Why a net cannot be run on buffers."""
    shapes = _shapes(operators)
    for op in operators:
        if isinstance(op.function, Work):
            continue
        missing = [q for q in (*op.inputs, *op.outputs) if q not in shapes]
        if missing:
            return f"nothing is known of the items of {missing[0]}"
    return None
