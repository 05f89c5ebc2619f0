"""What `Work` means: rules W-Filter-Wait and W-Filter-Ready of the paper, with rates.

The private variables are the fields of the code and a buffer. A tick of a source counts as
items for as many firings as its pace says.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from millstream.calculus.procedures import ArrayOf, RecordOf, Shape
from millstream.calculus.types import START_OF_TIME
from millstream.calculus.work import Interleave, Rates, Work, item_of_row, row_of_item
from millstream.errors import RunError
from millstream.meaning.firing import Context, Result, State, fire, initial_state
from millstream.meaning.items import Entry, Item, Mark
from millstream.meaning.procedures import Machine, Trap
from millstream.meaning.waiting import Side, heard, marks_due


@dataclass(frozen=True, slots=True)
class Buffer:
    """What has come and was not taken off, how often was fired, and the last time sent."""

    items: tuple[Item, ...] = ()
    fired: int = 0
    ticks: int = 0
    due: int = 0


class Firing:
    """Mutable: one firing of a code, as its host."""

    def __init__(self, function: Work, rates: Rates, items: Sequence[Any]) -> None:
        self.function = function
        self.rates = rates
        self.items = items
        self.popped = 0
        self.sent: list[Any] = []
        self.texts: list[str] = []

    def pop(self) -> Any:
        item = self.peek(0)
        self.popped += 1
        return item

    def peek(self, index: int) -> Any:
        place = self.popped + index
        if not 0 <= place < self.rates.peek:
            raise Trap(f"it looks at item {place}, but may see {self.rates.peek}", None)
        return self.items[place]

    def push(self, output: int, value: Any) -> None:
        if output == 0:
            if len(self.sent) == self.rates.push:
                raise Trap(f"it pushes more items than the {self.rates.push} it declares", None)
            self.sent.append(value)
        else:
            self.texts.append(value)

    def check(self) -> None:
        for what, done, declared in (
            ("pops", self.popped, self.rates.pop),
            ("pushes", len(self.sent), self.rates.push),
        ):
            if done != declared:
                raise Trap(f"it {what} {done} items, but declares {declared}", None)


@initial_state.register
def _work_state(function: Work, inputs: int) -> State:
    host = Firing(function, Rates(), ())
    machine = Machine.started(function.code, arguments_of(function), host)
    return (*_fields(function, machine), Buffer())


def arguments_of(function: Work) -> list[Any]:
    """As the machine holds them: an array is a list, a record a dictionary."""
    pairs = zip(function.code.parameters, function.arguments, strict=True)
    return [_thawed(slot.shape, value) for slot, value in pairs]


def _thawed(shape: Shape, value: Any) -> Any:
    match shape:
        case ArrayOf(element):
            return [_thawed(element, part) for part in value]
        case RecordOf(parts):
            return {
                name: _thawed(part, inner) for (name, part), inner in zip(parts, value, strict=True)
            }
        case _:
            return value


def _fields(function: Work, machine: Machine) -> tuple[Any, ...]:
    return tuple(machine.variables[slot.name] for slot in function.code.fields)


@fire.register
def _work(function: Work, entry: Entry, index: int, state: State, context: Context) -> Result:
    *fields, buffer = state
    if isinstance(entry, Mark):
        return Result(_marked(function, entry, buffer), state)
    machine = Machine(function.code)
    for slot, value in zip(function.code.parameters, arguments_of(function), strict=True):
        machine.variables[slot.name] = value
    for slot, value in zip(function.code.fields, fields, strict=True):
        machine.variables[slot.name] = copy.deepcopy(value)
    sent: list[Entry] = []
    texts: list[Entry] = []
    buffer = _heard(function, buffer, entry)
    while _can_fire(function, buffer):
        buffer = _fired(function, machine, buffer, sent, texts)
    outputs = ((tuple(sent),) if function.given is not None else ()) + (
        (tuple(texts),) if function.prints else ()
    )
    return Result(outputs, (*_fields(function, machine), buffer))


def _heard(function: Work, buffer: Buffer, entry: Item) -> Buffer:
    if function.pace is None:
        return replace(buffer, items=(*buffer.items, entry))
    more = function.pace.initially if buffer.ticks == 0 else function.pace.each
    return replace(buffer, ticks=buffer.ticks + 1, due=buffer.due + more)


def _rates(function: Work, buffer: Buffer) -> Rates:
    return function.first if buffer.fired == 0 and function.first else function.rates


def _can_fire(function: Work, buffer: Buffer) -> bool:
    if function.pace is not None:
        return buffer.fired < buffer.due
    return len(buffer.items) >= max(_rates(function, buffer).peek, 1)


def _fired(
    function: Work, machine: Machine, buffer: Buffer, sent: list[Entry], texts: list[Entry]
) -> Buffer:
    rates = _rates(function, buffer)
    seen = buffer.items[: max(rates.peek, 1)]
    items = [] if function.taken is None else [item_of_row(function.taken, i.row) for i in seen]
    firing = Firing(function, rates, items)
    code = function.code
    is_first = buffer.fired == 0 and code.first is not None
    try:
        machine.run(code.first if is_first and code.first is not None else code.body, firing)
        firing.check()
    except Trap as trap:
        place = trap.span.place if trap.span else code.name
        raise RunError(f"{place}: {trap.message}, at firing {buffer.fired + 1}") from None
    time = buffer.fired + 1 if function.pace is not None else max(i.time for i in seen)
    if function.given is not None:
        sent += [Item(time, row_of_item(function.given, value)) for value in firing.sent]
    if function.prints:
        texts.append(Item(time, ("".join(firing.texts),)))
    return replace(buffer, items=buffer.items[rates.pop :], fired=buffer.fired + 1)


def _marked(function: Work, mark: Mark, buffer: Buffer) -> tuple[tuple[Entry, ...], ...]:
    """Time passes as it does before; after a source it is the number of its firings."""
    count = (function.given is not None) + function.prints
    if function.pace is not None:
        mark = replace(mark, time=buffer.fired)
    return ((mark,),) * count


@dataclass(frozen=True, slots=True)
class Place:
    """How many items have left, and when the last one did."""

    number: int = 0
    last_time: int = START_OF_TIME


@initial_state.register
def _interleave_state(function: Interleave, inputs: int) -> State:
    return (Side(),) * inputs + (Place(),)


@fire.register
def _interleave(
    function: Interleave, entry: Entry, index: int, state: State, context: Context
) -> Result:
    before: list[Side] = list(state[:-1])
    place: Place = state[-1]
    sides = heard(before, index, entry)
    sent: list[Entry] = []
    while (turn := function.turn(place.number)) is not None and sides[turn].pending:
        first, *rest = sides[turn].pending
        sides[turn] = replace(sides[turn], pending=tuple(rest))
        time = max(first.time, place.last_time)
        sent.append(replace(first, time=time, origin=entry.origin))
        place = Place(place.number + 1, time)
    mark, sides = marks_due(before, sides, entry)
    return Result((tuple(sent) + mark,), (*sides, place))
