"""A filter of a net that is not compiled: it is fired statement by statement."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, overload

from millstream.calculus.procedures import Shape
from millstream.calculus.work import PRINTED, Rates, Work, item_of_row, row_of_item
from millstream.kernels.nets.buffers import Buffers
from millstream.kernels.nets.table import DUE, FIRED, LAST_TIME
from millstream.kernels.runtime.kernel import State
from millstream.meaning.work import (
    Box,
    Starved,
    check_idle,
    fired_once,
    frozen,
    hears_enough,
    started,
    thawed,
)
from millstream.plan.batch import Array, Batch, batch_of

#: Firings before others have a turn.
_AT_A_TIME = 1000


@dataclass(frozen=True)
class _Items(Sequence[Any]):
    """What lies in a queue, as a code holds it."""

    buffers: Buffers
    queue: int
    shape: Shape

    def __len__(self) -> int:
        return self.buffers.size(self.queue)

    @overload
    def __getitem__(self, place: int) -> Any: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[Any]: ...

    def __getitem__(self, place: int | slice) -> Any:
        if isinstance(place, slice):
            return [self[n] for n in range(*place.indices(len(self)))]
        return item_of_row(self.shape, self.buffers.row(self.queue, place))


class Walked:
    """Mutable: the variables of a code, and what it has printed in a round."""

    def __init__(
        self, work: Work, row: Array, buffers: Buffers, taken: int | None, given: int | None
    ) -> None:
        self.work = work
        self.row = row
        self.buffers = buffers
        self.taken = taken
        self.given = given
        self.texts: list[tuple[int, str]] = []
        self.machine = started(work)
        #: The items that were too few, and the firings in a row that have taken none.
        self.too_few = -1
        self.idle = 0
        #: The boxes of its messages, by the names of the variables, which others have too.
        self.boxes: dict[str, Box] = {}
        self.own: tuple[str, ...] = ()

    def run(self) -> bool:
        """Fire as often as it can, up to a limit; tells whether it has."""
        begun = int(self.row[FIRED])
        while self.row[FIRED] < begun + _AT_A_TIME:
            is_first = self.row[FIRED] == 0
            rates = self.work.first if is_first and self.work.first else self.work.rates
            heard = [self.boxes[name] for name in self.own]
            is_heard = hears_enough(self.work, heard, int(self.row[FIRED]) + 1)
            if not (is_heard and self.is_ready(rates) and self.attempt(rates)):
                break
        return bool(self.row[FIRED] > begun)

    def is_ready(self, rates: Rates) -> bool:
        if self.taken is None:
            return bool(self.row[FIRED] < self.row[DUE])
        size = self.buffers.size(self.taken)
        is_begun = self.work.changes and self.row[FIRED] > 0
        return size != self.too_few and size >= (rates.peek if is_begun else max(rates.peek, 1))

    def attempt(self, rates: Rates) -> bool:
        """Fire, unless that needs more items; then nothing has happened."""
        if not self.work.changes:
            self.fire(rates)
            return True
        before = copy.deepcopy(self.machine.variables)
        size = 0 if self.taken is None else self.buffers.size(self.taken)
        try:
            self.fire(rates)
        except Starved:
            self.machine.variables, self.too_few = before, size
            return False
        is_idle = self.taken is not None and self.buffers.size(self.taken) == size
        self.idle = self.idle + 1 if is_idle else 0
        check_idle(self.work, self.idle, int(self.row[FIRED]))
        self.too_few = -1
        return True

    def fire(self, rates: Rates) -> None:
        seen = max(rates.peek, 1)
        items: Sequence[Any] = ()
        if self.taken is not None:
            assert self.work.taken is not None
            items = _Items(self.buffers, self.taken, self.work.taken)
        number = int(self.row[FIRED]) + 1
        boxes = [self.boxes[name] for name in self.own]
        firing = fired_once(self.work, self.machine, rates, items, number, boxes)
        self.boxes.update(zip(self.own, boxes, strict=True))
        if self.work.changes:
            seen = max(firing.looked_at, number == 1)
        time = int(self.row[LAST_TIME])
        if self.taken is None:
            time = max(time, number)
        else:
            time = max(time, self.buffers.time(self.taken, seen - 1)) if seen else time
            self.buffers.skip(self.taken, firing.popped)
        if self.work.prints:
            self.texts.append((time, "".join(firing.texts)))
        if self.given is not None:
            assert self.work.given is not None
            for value in firing.sent:
                self.buffers.put(self.given, row_of_item(self.work.given, value), time)
        self.row[FIRED] += 1
        self.row[LAST_TIME] = time

    def printed(self, times: Array | None) -> Batch:
        stamps = [t for t, _ in self.texts] if times is None else times.tolist()
        batch = batch_of(PRINTED, stamps, [(text,) for _, text in self.texts])
        self.texts.clear()
        return batch

    def snapshot(self) -> State:
        slots = self.work.code.parameters + self.work.code.fields
        boxes = {f"box.{name}": self.boxes[name].kept for name in self.own}
        return boxes | {s.name: frozen(s.shape, self.machine.variables[s.name]) for s in slots}

    def restore(self, state: State) -> None:
        for slot in self.work.code.parameters + self.work.code.fields:
            self.machine.variables[slot.name] = thawed(slot.shape, state[slot.name])
        self.boxes.update({name: Box.of(state[f"box.{name}"]) for name in self.own})
        self.too_few, self.idle = -1, 0
