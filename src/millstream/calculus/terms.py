"""Terms: typed scalar expressions, what a function computes on one row.

A term is one of four frozen nodes. Terms come out of `check`, which guarantees that
arguments have exactly the types their function wants (casts are explicit), so that
every interpretation can be a plain walk.
"""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from millstream.calculus.types import BOOLEAN, INT64_MAX, INT64_MIN, Kind, Type, Value
from millstream.source import Span

#: The one NaN inside rows: Python compares containers by identity first, so rows that
#: hold this object are equal and hash alike, which is the meaning we give NaN.
NAN = float("nan")


def canonical(value: Value) -> Value:
    """The value with NaN made the one NaN and minus zero made zero."""
    if isinstance(value, float):
        if math.isnan(value):
            return NAN
        if value == 0.0:
            return 0.0
    return value


_PYTHON_TYPES: dict[Kind, type] = {
    Kind.NUMBER: float, Kind.INTEGER: int, Kind.TEXT: str, Kind.BOOLEAN: bool,
    Kind.TIME: int, Kind.DURATION: int, Kind.INT32: int, Kind.SINGLE: float, Kind.BIT: int,
}  # fmt: skip


def fitted(value: Any, type_: Type) -> Value:
    """A value as rows of a type hold it, or a `TypeError`; an integer may stand for a number."""
    if value is None:
        return None
    wanted = _PYTHON_TYPES[type_.kind]
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    fits = is_integer if wanted is int else isinstance(value, wanted)
    if wanted is float and is_integer:
        fits = abs(value) <= sys.float_info.max
    elif wanted is int and fits:
        fits = INT64_MIN <= value <= INT64_MAX
    elif wanted is str and fits:
        fits = not any("\ud800" <= c <= "\udfff" for c in value)  # which no file can hold
    if not fits:
        raise TypeError(f"expected a {type_}, got {value!r}")
    return canonical(wanted(value))


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: Type
    span: Span | None = dataclasses.field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class VariableField:
    variable: str
    field: str
    type: Type
    span: Span | None = dataclasses.field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Literal:
    """A value of a type, held in one way only: of 1, 1.0 and true each type has its own."""

    value: Value
    type: Type
    span: Span | None = dataclasses.field(default=None, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", fitted(self.value, self.type))


@dataclass(frozen=True, slots=True)
class Call:
    function: str
    args: tuple[Term, ...]
    type: Type
    span: Span | None = dataclasses.field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Place:
    """A variable of a procedure, or a part of what it holds.

    On the way to a part an index is a term, and a part of a record a text.
    """

    variable: str
    path: tuple[Term | str, ...] = ()
    span: Span | None = dataclasses.field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Read:
    """The value that a place holds."""

    place: Place
    type: Type
    span: Span | None = dataclasses.field(default=None, compare=False)


Term = Column | VariableField | Literal | Call | Read


def walk(term: Term) -> Iterator[Term]:
    """The term and all its subterms, outermost first."""
    stack: list[Term] = [term]
    while stack:
        node = stack.pop()
        yield node
        if isinstance(node, Call):
            stack.extend(node.args[::-1])
        elif isinstance(node, Read):
            stack.extend(reversed([step for step in node.place.path if not isinstance(step, str)]))


def columns_read(term: Term) -> frozenset[str]:
    if isinstance(term, Column):  # as most terms are
        return frozenset((term.name,))
    return frozenset([t.name for t in walk(term) if isinstance(t, Column)])


def variables_read(term: Term) -> frozenset[str]:
    return frozenset(t.variable for t in walk(term) if isinstance(t, VariableField))


# --- conditions -------------------------------------------------------------------------


def conjuncts(term: Term | None) -> list[Term]:
    """A condition taken apart at `and`."""
    conditions: list[Term] = []
    stack = [] if term is None else [term]
    while stack:
        node = stack.pop()
        if isinstance(node, Call) and node.function == "and":
            stack.extend(reversed(node.args))
        else:
            conditions.append(node)
    return conditions


def all_of(terms: Iterable[Term]) -> Term | None:
    """One condition for several; None for none."""
    first: Term | None = None
    for one in terms:
        first = one if first is None else Call("and", (first, one), BOOLEAN, one.span)
    return first


def is_null(term: Term) -> Term:
    return Call("is_null", (term,), BOOLEAN, term.span)


def is_known(term: Term) -> Term:
    return Call("not", (is_null(term),), BOOLEAN)
