"""`Work`: the function that has a procedure as its body, and fires on so many items at once."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from millstream.calculus.base import (
    Facts,
    Function,
    FunctionFault,
    facts_of_keeping,
    require_kind,
    require_same,
)
from millstream.calculus.procedure_check import code_faults
from millstream.calculus.procedures import (
    ArrayOf,
    Code,
    Let,
    Pop,
    Push,
    RecordOf,
    Shape,
    Slot,
    changed_in,
)
from millstream.calculus.terms import Literal, Place, Read, Term
from millstream.calculus.types import BOOLEAN, INTEGER, NUMBER, TEXT, Field, QueueType, Row, Schema
from millstream.errors import RunError
from millstream.source import Span
from millstream.values.core.machine import single, wrapped
from millstream.values.types import BIT, INT32, SINGLE, Kind, Type

#: The column of an item that is one value.
VALUE = "value"
PRINTED = QueueType(Schema.of(text=TEXT))
#: What calculates like a machine travels as what is wide enough for it.
_CARRIED: dict[Type, Type] = {INT32: INTEGER, BIT: INTEGER, SINGLE: NUMBER, BOOLEAN: BOOLEAN}


@dataclass(frozen=True, slots=True)
class Rates:
    """How many items a firing takes off, looks at and sends.

    If these change from firing to firing, then they are the fewest, and there are the most of
    each; None is as many as it likes.
    """

    pop: int = 0
    peek: int = 0
    push: int = 0
    most: tuple[int | None, int | None, int | None] | None = None

    @property
    def limits(self) -> tuple[int | None, int | None, int | None]:
        return (self.pop, self.peek, self.push) if self.most is None else self.most


@dataclass(frozen=True, slots=True)
class Pace:
    """A source fires when it is told to: so often at the first tick, so often at each other."""

    initially: int
    each: int


#: The number of the first output that is a message, behind items and texts.
FIRST_MESSAGE = 2
TURN = QueueType(Schema.of(turn=INTEGER))


@dataclass(frozen=True, slots=True)
class Telling:
    """What is pushed to an output is a message: a routine that another `Work` is to call.

    It lies in one of the boxes that both have as a variable, until that other one fires on what
    comes of the firing that is so many later than this one. A firing that sends now more items and
    now fewer is known by its items: who hears it counts these instead of firings.
    """

    output: int
    box: int
    routine: str
    latency: int
    by_items: bool = False


@dataclass(frozen=True, slots=True)
class Hearing:
    """How far a `Work` hears, before each of its firings, who tells it something.

    Its n-th firing comes after messages for firings of the other one up to `upto(n)`; it has to
    wait until the other has fired so often, less the least latency. They may be items instead.
    """

    begins: tuple[int, ...]
    #: After that, so many firings add so many of the other one.
    period: int
    step: int
    least: int

    def upto(self, number: int) -> int:
        rounds = max(0, -(-(number - len(self.begins)) // self.period))
        return self.begins[number - rounds * self.period - 1] + rounds * self.step

    def awaited(self, number: int) -> int:
        return self.upto(number) - self.least


@dataclass(frozen=True, slots=True)
class Work(Function):
    """Fires a code whenever there are enough items, the first time perhaps another part of it.

    If its rates change, then there are enough if the code comes to its end with them.

    An item leaves at the largest time that its firing has looked at: what is to come cannot be
    known earlier. A source has a pace and takes ticks instead of items; its n-th firing is at
    time n. If it prints, the last output
    has one text for every firing, empty if that has printed nothing.
    """

    code: Code
    #: Values of the parameters: arrays and records are tuples.
    arguments: tuple[Any, ...]
    #: The shapes of items, with their sizes.
    taken: Shape | None
    given: Shape | None
    rates: Rates
    first: Rates | None = None
    pace: Pace | None = None
    prints: bool = False
    #: Messages that it sends, and how it hears those that others send it. It has a variable for
    #: each box: first those it puts messages in, then those it hears.
    tells: tuple[Telling, ...] = ()
    hears: tuple[Hearing, ...] = ()
    #: How many of its last inputs and of its outputs are turns: an item for each firing, by which
    #: others who wait for it know that they need not.
    turns_taken: int = 0
    turns_given: int = 0
    #: Which instance it is and where that is defined, for messages only.
    path: str = field(default="", compare=False)
    span: Span | None = field(default=None, compare=False)
    output_count: ClassVar[int | None] = None
    input_count: ClassVar[int | None] = None
    acts_at_once: ClassVar[bool] = True

    @property
    def title(self) -> str:
        """As the paper calls it."""
        return f"wrapFilter-{self.code.name}"

    @property
    def changes(self) -> bool:
        """Whether the items of a firing are only known when it is done."""
        return any(r is not None and r.most is not None for r in (self.rates, self.first))

    @property
    def is_identity(self) -> bool:
        """Whether all it does is to push what it pops."""
        if self.rates != Rates(1, 1, 1) or self.first or self.pace or self.prints:
            return False
        match self.code.body:
            case (Let(Slot(name)), Pop(Place(popped, ())), Push(Place(sent, ()))) | (
                Let(Slot(name)),
                Pop(Place(popped, ())),
                Push(Read(Place(sent, ()))),
            ) if name == popped == sent:
                return self.code.first is None and not self.code.init
            case _:
                return False

    @property
    def is_fixed(self) -> bool:
        """Whether no firing changes what another one sees."""
        fields = {slot.name for slot in self.code.fields}
        bodies = (self.code.body, *(routine.body for routine in self.code.routines))
        return not any(fields & changed_in(body) for body in bodies)

    @property
    def boxes(self) -> int:
        """How many boxes it puts messages in."""
        return max((telling.box + 1 for telling in self.tells), default=0)

    @property
    def shared_count(self) -> int:
        return self.boxes + len(self.hears)

    def can_begin(self, is_there: Sequence[bool]) -> bool:
        """Who takes turns of somebody further downstream begins without them."""
        return is_there[0] if self.turns_taken else all(is_there)

    def state_count(self, inputs: int) -> int:
        return len(self.code.fields) + 1 + self.shared_count

    def terms(self) -> tuple[Term, ...]:
        return tuple(self.code.terms())

    def output_types(self, inputs: tuple[QueueType, ...], outputs: int) -> tuple[QueueType, ...]:
        require_kind(inputs, self.title, is_relation=False)
        faults = [*_faults_of(self.code), *self._misfits()]
        if faults:
            raise FunctionFault(*faults)
        if len(inputs) != 1 + self.turns_taken or any(t != TURN for t in inputs[1:]):
            raise FunctionFault(f"{self.title} takes one input and {self.turns_taken} of turns")
        if self.taken is not None and inputs[0].schema != schema_of_items(self.taken):
            wanted = schema_of_items(self.taken)
            raise FunctionFault(f"{self.title} takes {wanted}, got {inputs[0].schema}")
        given = () if self.given is None else (QueueType(schema_of_items(self.given)),)
        return given + (TURN,) * self.turns_given + ((PRINTED,) if self.prints else ())

    def _misfits(self) -> Iterator[str]:
        """What does not fit the code, and rates with which it could not go on."""
        if len(self.arguments) != len(self.code.parameters):
            count = len(self.code.parameters)
            yield f"{self.title} has {count} parameters, got {len(self.arguments)} arguments"
        for rates in (self.rates, self.first) if self.first else (self.rates,):
            if min(rates.pop, rates.peek, rates.push) < 0 or rates.peek < rates.pop:
                yield f"{self.title} cannot take {rates.pop} items and see {rates.peek}"
        if any(sum(t.box == n for t in self.tells) == 0 for n in range(self.boxes)):
            yield f"{self.title} has a box that it puts nothing in"
        if (self.taken is None) == (self.pace is None):
            yield f"{self.title} must take items, or have a pace"
        elif self.pace is None and self.rates.limits[0] == 0:
            yield f"{self.title} takes no items off, and would fire for ever"

    def facts(self, inputs: tuple[QueueType, ...], index: int) -> Facts:
        names = () if self.given is None else schema_of_items(self.given).names
        return Facts(
            reads=frozenset(inputs[index].schema.names),
            forwards=frozenset(),
            writes=frozenset(names),
            is_stateless=False,
            key=(),
        )


@dataclass(frozen=True, slots=True)
class Interleave(Function):
    """Items of several inputs in an order that is known: first one, then another over and over.

    An item leaves at its own time or that of the item before it, whichever is later.
    """

    begins: tuple[int, ...]
    repeats: tuple[int, ...]
    input_count: ClassVar[int | None] = None
    acts_at_once: ClassVar[bool] = True

    def state_count(self, inputs: int) -> int:
        return inputs + 1

    def output_types(self, inputs: tuple[QueueType, ...], outputs: int) -> tuple[QueueType, ...]:
        require_kind(inputs, self.name, is_relation=False)
        require_same(inputs, self.name)
        strange = [n for n in (*self.begins, *self.repeats) if not 0 <= n < len(inputs)]
        if strange:
            raise FunctionFault(f"Interleave: there is no input {strange[0]}, counted from 0")
        return (inputs[0],)

    def facts(self, inputs: tuple[QueueType, ...], index: int) -> Facts:
        return facts_of_keeping(inputs, index, is_stateless=False, key=())

    def turn(self, number: int) -> int | None:
        """The input of the n-th item."""
        if number < len(self.begins):
            return self.begins[number]
        number -= len(self.begins)
        return self.repeats[number % len(self.repeats)] if self.repeats else None


@functools.lru_cache(maxsize=4096)
def _faults_of(code: Code) -> tuple[str, ...]:
    return tuple(code_faults(code))


# --- items as rows -----------------------------------------------------------------------


def _parts(shape: Shape, name: str) -> Iterator[tuple[str, Type]]:
    match shape:
        case ArrayOf(element, Literal(int(size))):
            for number in range(size):
                yield from _parts(element, f"{name}_{number}" if name else f"{VALUE}_{number}")
        case RecordOf(parts):
            for part, inner in parts:
                yield from _parts(inner, f"{name}_{part}" if name else part)
        case Type():
            yield name or VALUE, shape
        case _:
            raise AssertionError(f"a size is not known: {shape}")


@functools.lru_cache(maxsize=4096)
def schema_of_items(shape: Shape) -> Schema:
    """The columns of items: `value`, or the parts of a struct or an array."""
    return Schema(tuple(Field(name, _CARRIED[type_]) for name, type_ in _parts(shape, "")))


def row_of_item(shape: Shape, value: Any) -> Row:
    """An item as the row that carries it."""
    match shape:
        case ArrayOf(element):
            return tuple(v for part in value for v in row_of_item(element, part))
        case RecordOf(parts):
            return tuple(v for name, part in parts for v in row_of_item(part, value[name]))
        case _:
            return (value,)


def item_of_row(shape: Shape, row: Row) -> Any:
    """The item that a row carries: arrays are lists, records dictionaries."""
    values = iter(row)

    def build(part: Shape) -> Any:
        match part:
            case ArrayOf(element, Literal(int(size))):
                return [build(element) for _ in range(size)]
            case RecordOf(parts):
                return {name: build(inner) for name, inner in parts}
            case ArrayOf():
                raise AssertionError(f"a size is not known: {part}")
            case _:
                return _held(part, next(values))

    return build(shape)


def _held(type_: Type, value: Any) -> Any:
    """As machines hold it: what is too large wraps, a number has single precision."""
    if value is None:
        raise RunError("an item is null: a filter takes no nulls")
    match type_.kind:
        case Kind.INT32:
            return wrapped(value)
        case Kind.SINGLE:
            return single(value)
        case Kind.BIT:
            return value & 1
        case _:
            return value
