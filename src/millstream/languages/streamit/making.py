"""What lowering stands on: faults, shapes, and the statements that come before a value."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NoReturn, TypeVar

from millstream.calculus.procedures import (
    ArrayOf,
    Assign,
    Body,
    Let,
    Operand,
    Routine,
    Shape,
    Slot,
    Statement,
)
from millstream.calculus.terms import Literal, Place, Read, Term
from millstream.errors import listing, suggest
from millstream.languages.streamit import ast
from millstream.languages.streamit.scope import Names, Program, Variable, expressions_in
from millstream.languages.streamit.shapes import (
    PLAIN,
    portal_of,
)
from millstream.languages.streamit.tokens import ELSEWHERE
from millstream.source import Span
from millstream.values.types import BOOLEAN, INT32, Type

_Node = TypeVar("_Node")
_Made = TypeVar("_Made")


class Stop(Exception):
    """A statement cannot be lowered any further; what is wrong is among the faults."""


@dataclass(frozen=True, slots=True)
class Lowered:
    """An expression: a term if it is one value, else the place of an array or a record."""

    operand: Operand
    shape: Shape

    @property
    def term(self) -> Term:
        assert not isinstance(self.operand, Place)
        return self.operand

    @property
    def place(self) -> Place:
        assert isinstance(self.operand, Place)
        return self.operand


#: What a function without a result gives.
NOTHING = Lowered(Literal(False, BOOLEAN), BOOLEAN)


@dataclass
class Making(ABC):
    """Mutable: the names of a code, and the statements that are being made."""

    program: Program
    names: Names
    #: The shape of items of the input, if it has any.
    taken: Shape | None
    #: Functions that can be called, by name: those of the filter and of helpers.
    callable: dict[str, ast.Routine] = field(default_factory=dict)
    routines: dict[str, Routine] = field(default_factory=dict)
    made: list[Statement] = field(default_factory=list)
    counts_firings: bool = False
    #: Whether something was left out that has faults.
    has_stopped: bool = False

    def fail(self, message: str, span: Span | None, hint: str | None = None) -> NoReturn:
        self.program.fault(message, span, hint)
        raise Stop

    def tried(self, make: Callable[[_Node], _Made], node: _Node) -> _Made | None:
        """What is made of a node; None if it has faults, all of which are told."""
        try:
            return make(node)
        except Stop:
            self.has_stopped = True
            self.look_inside(node)
            return None

    def look_inside(self, node: object) -> None:
        """Find the faults of all expressions in a node: the first one has hidden the others."""
        made = self.made
        whole = node.expression if isinstance(node, ast.Do) else None
        for expression in expressions_in(node):
            # A call alone may give nothing, and a list is of the type that is wanted.
            if expression is not whole and not isinstance(expression, ast.Listed):
                self.made = []
                with suppress(Stop):
                    self.value(expression)
        self.made = made

    # --- shapes ---

    def shape(self, type_: ast.TypeName) -> Shape:
        """What a type is here; its sizes are worked out when the code starts."""
        if type_.name == "void":
            self.fail("nothing can be void but the side of a stream", type_.span)
        if type_.name == "portal":
            return self.portal(type_)
        shape = PLAIN.get(type_.name) or self.struct(type_.name)
        if shape is None and type_.name in self.program.spoilt:
            raise Stop
        if shape is None:
            known = (*PLAIN, *(struct.name for struct in self.program.text.structs))
            other = ELSEWHERE.get(type_.name)
            hint = f"write {other}" if other else suggest(type_.name, known)
            hint = hint or f"types are: {listing(known)}"
            self.fail(f'unknown type "{type_.name}"', type_.span, hint)
        for size in reversed(type_.sizes):
            shape = ArrayOf(shape, self.converted(self.value(size), INT32, size.span).term)
        return shape

    def portal(self, type_: ast.TypeName) -> Shape:
        listener = type_.argument or ""
        if listener not in self.program.streams:
            hint = suggest(listener, self.program.streams)
            self.fail(f'unknown stream "{listener}"', type_.span, hint)
        return portal_of(listener)

    # --- statements that come before ---

    def keep(self, lowered: Lowered) -> Lowered:
        """The value as it is now, whatever happens afterwards."""
        if isinstance(lowered.operand, Literal):
            return lowered
        if isinstance(lowered.operand, Read) and lowered.operand.place.variable.startswith("t$"):
            return lowered
        variable = self.fresh(lowered.shape)
        self.made.append(Assign(Place(variable.name), lowered.operand))
        return self.held(variable)

    def fresh(self, shape: Shape) -> Variable:
        variable = self.names.temporary(shape)
        self.made.append(Let(Slot(variable.name, shape)))
        return variable

    def held(self, variable: Variable, span: Span | None = None) -> Lowered:
        return self.at(Place(variable.name, (), span), variable.shape, span)

    def at(self, place: Place, shape: Shape, span: Span | None = None) -> Lowered:
        """What a place holds: a term if it is one value."""
        operand = Read(place, shape, span) if isinstance(shape, Type) else place
        return Lowered(operand, shape)

    def operands(self, expressions: Sequence[ast.Expression]) -> list[Lowered]:
        """From left to right: what comes later must not change what came before."""
        values: list[Lowered] = []
        for expression in expressions:
            before = len(self.made)
            value = self.value(expression)
            effects = self.made[before:]
            if effects:
                del self.made[before:]
                values = [self.keep(v) for v in values]
                self.made += effects
            values.append(value)
        return values

    def apart(self, expression: ast.Expression, shape: Shape | None) -> tuple[Lowered, Body]:
        """An expression with its statements, which are not done yet."""
        before = len(self.made)
        value = self.value(expression)
        if shape is not None:
            value = self.converted(value, shape, expression.span)
        effects = tuple(self.made[before:])
        del self.made[before:]
        return value, effects

    # --- what is made of expressions elsewhere ---

    @abstractmethod
    def value(self, expression: ast.Expression) -> Lowered:
        """An expression as a value."""

    @abstractmethod
    def converted(self, value: Lowered, wanted: Shape, span: Span | None) -> Lowered:
        """A value as a type."""

    @abstractmethod
    def struct(self, name: str) -> Shape | None:
        """The shape of a struct, if there is one of this name."""
