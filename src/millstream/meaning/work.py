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
from millstream.calculus.work import (
    FIRST_MESSAGE,
    Interleave,
    Rates,
    Work,
    item_of_row,
    row_of_item,
)
from millstream.errors import RunError
from millstream.meaning.firing import Context, Result, State, fire, initial_state
from millstream.meaning.items import Entry, Item, Mark
from millstream.meaning.procedures import Machine, Trap
from millstream.meaning.waiting import Side, heard, marks_due
from millstream.source import Span


@dataclass(frozen=True, slots=True)
class Buffer:
    """What has come and was not taken off, how often was fired, and the last time sent.

    A code may change its parameters: they are kept as its fields are.
    """

    items: tuple[Item, ...] = ()
    fired: int = 0
    ticks: int = 0
    due: int = 0
    last_time: int = START_OF_TIME
    parameters: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Letter:
    """A message: the firing or the item of its sender that it is for, and what is to be called."""

    due: int
    routine: str
    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Box:
    """How far its sender is, in firings or items, and the messages that were not delivered yet."""

    done: int = 0
    letters: tuple[Letter, ...] = ()

    @staticmethod
    def of(kept: tuple[Any, ...]) -> Box:
        done, letters = kept
        return Box(done, tuple(Letter(*letter) for letter in letters))

    @property
    def kept(self) -> tuple[Any, ...]:
        """As plain values."""
        return self.done, tuple(
            (letter.due, letter.routine, letter.values) for letter in self.letters
        )

    def after(self, function: Work, number: int, place: int, firing: Firing) -> Box:
        """With what a firing has put into it."""
        tells = [telling for telling in function.tells if telling.box == place]
        by_items = any(telling.by_items for telling in tells)
        here = self.done + 1 if by_items else number
        new = [
            Letter(here + telling.latency, telling.routine, values)
            for output, values in firing.messages
            for telling in tells
            if telling.output == output
        ]
        return Box(self.done + len(firing.sent) if by_items else number, (*self.letters, *new))

    def heard(self, upto: int) -> tuple[tuple[Letter, ...], Box]:
        """The messages for firings up to one, and the box without them."""
        due = tuple(letter for letter in self.letters if letter.due <= upto)
        return due, replace(self, letters=tuple(one for one in self.letters if one not in due))


#: The number of the output and the values of what is sent.
Message = tuple[int, tuple[Any, ...]]


class Starved(Exception):
    """A firing needs more items than there are."""


#: Firings in a row that take nothing, before it is said that they never will.
_MOST_IDLE = 100_000


class Firing:
    """Mutable: one firing of a code, as its host."""

    def __init__(self, function: Work, rates: Rates, items: Sequence[Any]) -> None:
        self.function = function
        self.rates = rates
        self.items = items
        self.popped = 0
        self.looked_at = 0
        self.sent: list[Any] = []
        self.texts: list[str] = []
        self.messages: list[Message] = []

    def pop(self) -> Any:
        item = self.peek(0)
        self.popped += 1
        return item

    def peek(self, index: int) -> Any:
        place = self.popped + index
        most = self.rates.limits[1]
        if place < 0 or (most is not None and place >= most):
            raise Trap(f"it looks at item {place}, but may see {most}", None)
        if place >= len(self.items):
            raise Starved
        self.looked_at = max(self.looked_at, place + 1)
        return self.items[place]

    def push(self, output: int, value: Any) -> None:
        if output == 0:
            if len(self.sent) == self.rates.limits[2]:
                raise Trap(f"it pushes more items than the {len(self.sent)} it declares", None)
            self.sent.append(value)
        elif output < FIRST_MESSAGE:
            self.texts.append(value)
        else:
            self.messages.append((output, _still(value)))

    def check(self) -> None:
        most_popped, _, most_pushed = self.rates.limits
        for what, done, least, most in (
            ("pops", self.popped, self.rates.pop, most_popped),
            ("pushes", len(self.sent), self.rates.push, most_pushed),
        ):
            if done < least or (most is not None and done > most):
                declared = least if least == most else f"{least} to {most or 'any number'}"
                raise Trap(f"it {what} {done} items, but declares {declared}", None)


def _still(value: Any) -> Any:
    """What a machine holds as a value that nothing changes."""
    match value:
        case dict():
            return tuple(map(_still, value.values()))
        case list():
            return tuple(map(_still, value))
        case _:
            return value


@initial_state.register
def _work_state(function: Work, inputs: int) -> State:
    machine = started(function)
    boxes = (Box(),) * function.shared_count
    return (*_fields(function, machine), Buffer(parameters=_parameters(function, machine)), *boxes)


def started(function: Work) -> Machine:
    """A machine with its fields as `init` leaves them."""
    try:
        host = Firing(function, Rates(), ())
        return Machine.started(function.code, arguments_of(function), host)
    except Trap as trap:
        raise broken(function, trap.message, trap.span, 0) from None


def arguments_of(function: Work) -> list[Any]:
    """As the machine holds them: an array is a list, a record a dictionary."""
    pairs = zip(function.code.parameters, function.arguments, strict=True)
    return [thawed(slot.shape, value) for slot, value in pairs]


def thawed(shape: Shape, value: Any) -> Any:
    """As a machine holds it."""
    match shape:
        case ArrayOf(element):
            return [thawed(element, part) for part in value]
        case RecordOf(parts):
            return {n: thawed(part, v) for (n, part), v in zip(parts, value, strict=True)}
        case _:
            return value


def frozen(shape: Shape, value: Any) -> Any:
    """As a variable of a program holds it: arrays and records are tuples."""
    match shape:
        case ArrayOf(element):
            return tuple(frozen(element, part) for part in value)
        case RecordOf(parts):
            return tuple(frozen(part, value[name]) for name, part in parts)
        case _:
            return value


def _fields(function: Work, machine: Machine) -> tuple[Any, ...]:
    return tuple(frozen(s.shape, machine.variables[s.name]) for s in function.code.fields)


def _parameters(function: Work, machine: Machine) -> tuple[Any, ...]:
    return tuple(frozen(s.shape, machine.variables[s.name]) for s in function.code.parameters)


@fire.register
def _work(function: Work, entry: Entry, index: int, state: State, context: Context) -> Result:
    count = len(function.code.fields)
    fields, buffer, boxes = state[:count], state[count], list(state[count + 1 :])
    if isinstance(entry, Mark):
        return Result(_marked(function, entry, index, buffer), state)
    machine = Machine(function.code)
    slots = function.code.parameters + function.code.fields
    for slot, value in zip(slots, (*buffer.parameters, *fields), strict=True):
        machine.variables[slot.name] = thawed(slot.shape, value)
    sent: list[Entry] = []
    texts: list[Entry] = []
    buffer = _heard(function, buffer, entry) if index == 0 else buffer
    fired = buffer.fired
    buffer = _fired_out(function, machine, buffer, boxes, sent, texts)
    turns = tuple(Item(entry.time, (n + 1,)) for n in range(fired, buffer.fired))
    outputs = (
        ((tuple(sent),) if function.given is not None else ())
        + (turns,) * function.turns_given
        + ((tuple(texts),) if function.prints else ())
    )
    buffer = replace(buffer, parameters=_parameters(function, machine))
    return Result(outputs, (*_fields(function, machine), buffer, *boxes))


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
    rates = _rates(function, buffer)
    # Nothing begins before something has come.
    is_begun = function.changes and buffer.fired > 0
    return len(buffer.items) >= (rates.peek if is_begun else max(rates.peek, 1))


def _fired_out(
    function: Work, machine: Machine, buffer: Buffer, boxes: list[Box], sent: list[Entry],
    texts: list[Entry],
) -> Buffer:  # fmt: skip
    """After as many firings as there are items for."""
    idle = 0
    while _can_fire(function, buffer) and hears_enough(function, boxes, buffer.fired + 1):
        before = copy.deepcopy(machine.variables) if function.changes else machine.variables
        try:
            after = _fired(function, machine, buffer, boxes, sent, texts)
        except Starved:
            machine.variables = before
            return buffer
        idle = idle + 1 if len(after.items) == len(buffer.items) else 0
        check_idle(function, idle, after.fired)
        buffer = after
    return buffer


def hears_enough(function: Work, boxes: Sequence[Box], number: int) -> bool:
    """Whether all who may have something to say before a firing have fired often enough."""
    heard = zip(function.hears, boxes[function.boxes :], strict=True)
    return all(box.done >= hearing.awaited(number) for hearing, box in heard)


def check_idle(function: Work, idle: int, fired: int) -> None:
    """Whether a filter that takes items off can be thought to do so once more."""
    if function.changes and function.pace is None and idle > _MOST_IDLE:
        raise broken(function, f"it fires {_MOST_IDLE:,} times and takes nothing", None, fired)


def _fired(
    function: Work, machine: Machine, buffer: Buffer, boxes: list[Box], sent: list[Entry],
    texts: list[Entry],
) -> Buffer:  # fmt: skip
    rates = _rates(function, buffer)
    seen = buffer.items if function.changes else buffer.items[: max(rates.peek, 1)]
    items = [] if function.taken is None else [item_of_row(function.taken, i.row) for i in seen]
    number = buffer.fired + 1
    firing = fired_once(function, machine, rates, items, number, boxes)
    if function.changes:
        seen = seen[: max(firing.looked_at, number == 1)]
    times = [number] if function.pace is not None else [i.time for i in seen]
    time = max([*times, buffer.last_time])
    if function.given is not None:
        sent += [Item(time, row_of_item(function.given, value)) for value in firing.sent]
    if function.prints:
        texts.append(Item(time, ("".join(firing.texts),)))
    return replace(buffer, items=buffer.items[firing.popped :], fired=number, last_time=time)


def fired_once(
    function: Work, machine: Machine, rates: Rates, items: Sequence[Any], number: int,
    boxes: list[Box],
) -> Firing:  # fmt: skip
    """One firing on some items, after the messages for it; the first may do something else.

    One whose rates change is `Starved` if they are too few, and has then changed variables.
    """
    firing = Firing(function, rates, items)
    code = function.code
    heard = list(boxes)
    try:
        for place, hearing in enumerate(function.hears, function.boxes):
            letters, heard[place] = heard[place].heard(hearing.upto(number))
            for letter in letters:
                routine = next(r for r in code.routines if r.name == letter.routine)
                pairs = zip(routine.parameters, letter.values, strict=True)
                values = [thawed(slot.shape, value) for slot, value in pairs]
                machine.called(routine, values, firing)
        machine.run(code.first if number == 1 and code.first is not None else code.body, firing)
        firing.check()
    except Trap as trap:
        raise broken(function, trap.message, trap.span, number) from None
    for place in range(function.boxes):
        heard[place] = heard[place].after(function, number, place, firing)
    boxes[:] = heard
    return firing


def broken(function: Work, message: str, span: Span | None, number: int) -> RunError:
    """What ends a run: where, who, what and at which firing; none is what is done before them."""
    place = span or function.span
    where = f"{place.place}: " if place else ""
    when = f"at firing {number}" if number else "in init"
    return RunError(f"{where}{function.path or function.code.name}: {message}, {when}")


def _marked(
    function: Work, mark: Mark, index: int, buffer: Buffer
) -> tuple[tuple[Entry, ...], ...]:
    """Time passes as it does before; after a source it is the number of its firings."""
    count = (function.given is not None) + function.turns_given + function.prints
    if index:
        return ((),) * count  # who takes turns knows the time by its items
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
