"""A filter of a net that sends or hears messages: firings with one are walked, all others compiled.

The compiled code stops where a message would be sent. What it has changed is put back then, the
firings before that one are done again, and it is fired statement by statement, which tells what is
sent. One that hears something is fired so at once.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from millstream.calculus.work import Rates, Work
from millstream.kernels.loop.code_layout import NotCompiled, memory_of
from millstream.kernels.loop.code_loop import BODY, loop_of
from millstream.kernels.nets.buffers import Buffers
from millstream.kernels.nets.filters import CALLED, FRAME_SIZE, address_of, memory_from
from millstream.kernels.nets.table import (
    DUE,
    FIRED,
    LAST_TIME,
    Q_END,
    Q_START,
    Q_WIDTH_F,
    Q_WIDTH_I,
    QF,
    QI,
)
from millstream.kernels.nets.walked import Walked
from millstream.kernels.runtime.kernel import State
from millstream.plan.batch import Array
from millstream.values.types import BOOLEAN, SINGLE, Type

#: Firings that are compiled before others have a turn.
_MOST = 1 << 12


class Talking(Walked):
    """Mutable: its variables are in the memory of the compiled code, but while it is walked."""

    def __init__(
        self, work: Work, row: Array, buffers: Buffers, taken: int | None, given: int | None
    ) -> None:
        if work.changes:
            raise NotCompiled("its rates change")
        if work.prints:
            raise NotCompiled("it prints, and sends or hears messages")
        self.loop = loop_of(work.code)
        function = self.loop.compiled()
        super().__init__(work, row, buffers, taken, given)
        self.call = CALLED(address_of(function))
        self.frame = np.zeros(FRAME_SIZE, np.int64)
        self.singles, self.integers, self.places = memory_from(self.loop, self.machine)
        self.frame[6:9] = [a.ctypes.data for a in (self.singles, self.integers, self.places)]

    def attempt(self, rates: Rates) -> bool:
        count = 0 if rates is self.work.first else self.unheard(rates)
        done = self.fire_compiled(count) if count else 0
        if done < count or not count:
            self.load()
            self.fire(rates)
            self.store()
        return True

    def unheard(self, rates: Rates) -> int:
        """How often it can fire before it has something to hear, or to wait for."""
        fired = int(self.row[FIRED])
        if self.taken is None:
            most = int(self.row[DUE]) - fired
        else:
            there = self.buffers.size(self.taken) - max(rates.peek, 1)
            most = there // rates.pop + 1 if rates.pop else 1
        most = min(most, _MOST)
        heard = zip(self.work.hears, self.own[self.work.boxes :], strict=True)
        for hearing, name in heard:
            box = self.boxes[name]
            numbers = range(fired + 1, fired + most + 1)
            limit = box.done + 1
            most = bisect_left(numbers, limit, key=hearing.awaited)
            if box.letters:
                due = min(letter.due for letter in box.letters)
                most = min(most, bisect_left(numbers, due, key=hearing.upto))
        return most

    # --- compiled firings ---

    def fire_compiled(self, count: int) -> int:
        """Fire so often, or until one would send something; how often it has."""
        held = self.singles.copy(), self.integers.copy()
        if not self.called(count):
            done = int(self.frame[17])
            self.singles[:], self.integers[:] = held
            if not done:
                return 0
            is_done = self.called(done)
            assert is_done, "what did not stop before does not stop now"
            count = done
        self.leave(count)
        return count

    def called(self, count: int) -> bool:
        rates, frame, table = self.work.rates, self.frame, self.buffers.table
        if self.taken is not None:
            frame[[0, 1, 2, 9, 10]] = table[self.taken, [QF, QI, Q_START, Q_WIDTH_F, Q_WIDTH_I]]
        if self.given is not None:
            self.buffers.reserve(self.given, count * rates.push)
            frame[[3, 4, 5, 11, 12]] = table[self.given, [QF, QI, Q_END, Q_WIDTH_F, Q_WIDTH_I]]
        frame[13:17] = rates.pop, rates.peek, rates.push, 0
        self.call(BODY, count, frame.ctypes.data)
        return not frame[16]

    def leave(self, count: int) -> None:
        """Items go and come, with their times; who listens knows how far it is."""
        rates, table, row = self.work.rates, self.buffers.table, self.row
        fired = int(row[FIRED])
        if self.taken is None:
            times = np.arange(fired + 1, fired + count + 1)
        else:
            first = int(table[self.taken, Q_START]) + max(rates.peek, 1) - 1
            came = self.buffers.arrays[self.taken][2]
            times = came[first + rates.pop * np.arange(count)]
            table[self.taken, Q_START] += count * rates.pop
        times = np.maximum(np.maximum.accumulate(times), row[LAST_TIME])
        if self.given is not None:
            end, sent = int(table[self.given, Q_END]), count * rates.push
            self.buffers.arrays[self.given][2][end : end + sent] = np.repeat(times, rates.push)
            table[self.given, Q_END] += sent
        row[FIRED] += count
        row[LAST_TIME] = times[-1]
        for name in self.own[: self.work.boxes]:
            self.boxes[name] = replace(self.boxes[name], done=fired + count)

    # --- memory ---

    def load(self) -> None:
        """The variables as the compiled code has left them."""
        memory = {"F": self.singles, "I": self.integers}
        used = {"F": 0, "I": 0}
        for name, leaf in self.loop.layout.kept:
            letter = memory_of(leaf.type)
            value = _value(memory[letter][used[letter]], leaf.type)
            used[letter] += 1
            _put(self.machine.variables, (name, *leaf.path), iter((value,)))
        for stretch in self.loop.layout.stretches.values():
            if stretch.name in self.machine.variables:
                begin = int(self.places[stretch.told_at])
                cells = memory[memory_of(stretch.leaf.type)][begin:]
                values = (_value(cell, stretch.leaf.type) for cell in cells)
                _put(self.machine.variables, (stretch.name, *stretch.leaf.path), values)

    def store(self) -> None:
        singles, integers, _ = memory_from(self.loop, self.machine)
        self.singles[:], self.integers[:] = singles, integers

    def snapshot(self) -> State:
        self.load()
        return super().snapshot()

    def restore(self, state: State) -> None:
        super().restore(state)
        self.store()


def _value(cell: Any, type_: Type) -> Any:
    if type_ == SINGLE:
        return float(cell)
    return bool(cell) if type_ == BOOLEAN else int(cell)


def _put(holder: Any, path: tuple[str, ...], values: Iterator[Any]) -> None:
    """Put values where a path leads; through arrays it leads to all their elements."""
    steps: Any = range(len(holder)) if isinstance(holder, list) else (path[0],)
    rest = path if isinstance(holder, list) else path[1:]
    for step in steps:
        if isinstance(holder[step], (list, dict)):
            _put(holder[step], rest, values)
        else:
            holder[step] = next(values)
