"""Procedures: a small typed statement language whose expressions are terms.

A `Code` is written once and works for any arguments: sizes of arrays are terms over its
parameters, so that all operators with the same code share what is compiled of it. It has
variables that are kept (`fields`), what is done once (`init`), what is done the first time
instead of the rest (`first`), and what is done at every firing (`body`), with routines that
all of these may call.

Items are taken from the input by `Pop` and `Peek` and leave by `Push`. Everything is held by
value and is zero at first.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from millstream.calculus.terms import Place, Term
from millstream.source import Span
from millstream.values.types import Type

# --- what is held ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ArrayOf:
    """So many of one shape, numbered from 0."""

    element: Shape
    size: Term

    def __str__(self) -> str:
        return f"{self.element}[...]"


@dataclass(frozen=True, slots=True)
class RecordOf:
    """Named parts, in order."""

    parts: tuple[tuple[str, Shape], ...]

    def part(self, name: str) -> Shape | None:
        return dict(self.parts).get(name)

    def __str__(self) -> str:
        return "{" + ", ".join(f"{name} {shape}" for name, shape in self.parts) + "}"


Shape = Type | ArrayOf | RecordOf


@dataclass(frozen=True, slots=True)
class Slot:
    """A name and the shape of what is held under it."""

    name: str
    shape: Shape


#: What is assigned, pushed or handed over: a term, or all that a place holds.
Operand = Term | Place


# --- statements ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Let:
    """A new variable, zero everywhere, until the end of the block it stands in."""

    slot: Slot
    span: Span | None = dataclasses.field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Assign:
    target: Place
    value: Operand
    span: Span | None = dataclasses.field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Choose:
    condition: Term
    then: Body
    otherwise: Body = ()
    span: Span | None = dataclasses.field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Repeat:
    """While `condition` holds (no condition: until left), `body`, then `after`.

    `continue` goes to `after`. One that does not test first does `body` at least once.
    """

    condition: Term | None
    body: Body
    after: Body = ()
    tests_first: bool = True
    span: Span | None = dataclasses.field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Leave:
    """The nearest `Repeat`, or this round of it."""

    word: Literal["break", "continue"]
    span: Span | None = dataclasses.field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Scope:
    """Statements with variables of their own."""

    body: Body


@dataclass(frozen=True, slots=True)
class Pop:
    """Take the oldest item of the input; without a target it is only passed over."""

    target: Place | None = None
    span: Span | None = dataclasses.field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Peek:
    """Look at an item of the input: number 0 is the oldest."""

    index: Term
    target: Place
    span: Span | None = dataclasses.field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Push:
    """Send an item to an output, by number."""

    value: Operand
    output: int = 0
    span: Span | None = dataclasses.field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Invoke:
    """Call a routine; what it returns is kept in the target."""

    routine: str
    arguments: tuple[Operand, ...]
    target: Place | None = None
    span: Span | None = dataclasses.field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Return:
    value: Operand | None = None
    span: Span | None = dataclasses.field(default=None, compare=False)


Statement = (
    Let | Assign | Choose | Repeat | Leave | Scope | Pop | Peek | Push | Invoke | Return
)  # fmt: skip
Body = tuple[Statement, ...]


# --- code ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Routine:
    name: str
    parameters: tuple[Slot, ...]
    result: Shape | None
    body: Body


@dataclass(frozen=True, slots=True)
class Code:
    """What an operator does, for any arguments."""

    name: str
    parameters: tuple[Slot, ...]
    fields: tuple[Slot, ...]
    #: The shapes of items; None where there is no such side.
    taken: Shape | None
    given: Shape | None
    init: Body
    first: Body | None
    body: Body
    routines: tuple[Routine, ...] = ()
    #: Codes are large, and what is made of one is looked up by it, once for each operator.
    digest: int = dataclasses.field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        sides = (self.parameters, self.fields, self.taken, self.given, self.routines)
        digest = hash((self.name, *sides, self.init, self.first, self.body))
        object.__setattr__(self, "digest", digest)

    def __hash__(self) -> int:
        return self.digest

    def bodies(self) -> Iterator[Body]:
        yield self.init
        if self.first is not None:
            yield self.first
        yield self.body
        for routine in self.routines:
            yield routine.body

    def terms(self) -> Iterator[Term]:
        """Every term of a statement; those of places stand in what reads them."""
        for body in self.bodies():
            for statement in statements_in(body):
                yield from terms_of(statement)


def terms_of(statement: Statement) -> Iterator[Term]:
    """The terms of a statement itself, in the order in which they are worked out."""
    match statement:
        case Assign(target, value):
            operands: tuple[Operand | None, ...] = (value, target)
        case Choose(condition) | Repeat(condition):
            operands = (condition,)
        case Pop(target):
            operands = (target,)
        case Peek(index, target):
            operands = (index, target)
        case Push(value) | Return(value):
            operands = (value,)
        case Invoke(_, arguments, target):
            operands = (*arguments, target)
        case _:
            operands = ()
    for operand in operands:
        if isinstance(operand, Place):
            yield from (step for step in operand.path if not isinstance(step, str))
        elif operand is not None:
            yield operand


def statements_in(body: Body) -> Iterator[Statement]:
    """Every statement, inner ones after the one they stand in."""
    for statement in body:
        yield statement
        match statement:
            case Choose(_, then, otherwise):
                yield from statements_in(then)
                yield from statements_in(otherwise)
            case Repeat(_, inner, after):
                yield from statements_in(inner)
                yield from statements_in(after)
            case Scope(inner):
                yield from statements_in(inner)
            case _:
                continue


def changed_in(body: Body) -> set[str]:
    """The variables that statements give another value, as a whole or in part."""
    changed: set[str] = set()
    for statement in statements_in(body):
        match statement:
            case Assign(target) | Pop(Place() as target) | Peek(_, target):
                changed.add(target.variable)
            case Invoke(_, _, Place() as target):
                changed.add(target.variable)
            case _:
                continue
    return changed
