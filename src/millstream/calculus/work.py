"""`Work`: the function that has a procedure as its body, and fires on so many items at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from millstream.calculus.base import (
    Facts,
    Function,
    FunctionFault,
    facts_of_keeping,
    require_kind,
    require_same,
)
from millstream.calculus.procedures import ArrayOf, Code, RecordOf, Shape
from millstream.calculus.terms import Literal
from millstream.calculus.types import BOOLEAN, INTEGER, NUMBER, TEXT, Field, QueueType, Row, Schema
from millstream.values.types import BIT, INT32, SINGLE, Type

#: The column of an item that is one value.
VALUE = "value"
PRINTED = QueueType(Schema.of(text=TEXT))
#: What calculates like a machine travels as what is wide enough for it.
_CARRIED: dict[Type, Type] = {INT32: INTEGER, BIT: INTEGER, SINGLE: NUMBER, BOOLEAN: BOOLEAN}


@dataclass(frozen=True, slots=True)
class Rates:
    """How many items a firing takes off, looks at and sends."""

    pop: int = 0
    peek: int = 0
    push: int = 0


@dataclass(frozen=True, slots=True)
class Pace:
    """A source fires when it is told to: so often at the first tick, so often at each other."""

    initially: int
    each: int


@dataclass(frozen=True, slots=True)
class Work(Function):
    """Fires a code whenever there are enough items, the first time perhaps another part of it.

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
    output_count: ClassVar[int | None] = None
    acts_at_once: ClassVar[bool] = True

    @property
    def name(self) -> str:
        return f"wrapFilter-{self.code.name}"

    def state_count(self, inputs: int) -> int:
        return len(self.code.fields) + 1

    def output_types(self, inputs: tuple[QueueType, ...], outputs: int) -> tuple[QueueType, ...]:
        require_kind(inputs, self.name, is_relation=False)
        if self.taken is not None and inputs[0].schema != schema_of_items(self.taken):
            wanted = schema_of_items(self.taken)
            raise FunctionFault(f"{self.name} takes {wanted}, got {inputs[0].schema}")
        given = () if self.given is None else (QueueType(schema_of_items(self.given)),)
        return given + ((PRINTED,) if self.prints else ())

    def facts(self, inputs: tuple[QueueType, ...], index: int) -> Facts:
        names = () if self.given is None else schema_of_items(self.given).names
        return Facts(
            reads=frozenset(inputs[0].schema.names),
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
        return (inputs[0],)

    def facts(self, inputs: tuple[QueueType, ...], index: int) -> Facts:
        return facts_of_keeping(inputs, index, is_stateless=False, key=())

    def turn(self, number: int) -> int | None:
        """The input of the n-th item."""
        if number < len(self.begins):
            return self.begins[number]
        number -= len(self.begins)
        return self.repeats[number % len(self.repeats)] if self.repeats else None


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
            case _:
                return next(values)

    return build(shape)
