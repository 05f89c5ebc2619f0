"""Terms: typed scalar expressions, what a function computes on one row.

A term is one of four frozen nodes. Terms come out of `check`, which guarantees that
arguments have exactly the types their function wants (casts are explicit), so that
every interpretation can be a plain walk.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass

from millstream.calculus.types import Type, Value
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
    value: Value
    type: Type
    span: Span | None = dataclasses.field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Call:
    function: str
    args: tuple[Term, ...]
    type: Type
    span: Span | None = dataclasses.field(default=None, compare=False)


Term = Column | VariableField | Literal | Call


def walk(term: Term) -> Iterator[Term]:
    """The term and all its subterms, outermost first."""
    stack: list[Term] = [term]
    while stack:
        node = stack.pop()
        yield node
        if isinstance(node, Call):
            stack.extend(reversed(node.args))


def columns_read(term: Term) -> frozenset[str]:
    return frozenset(t.name for t in walk(term) if isinstance(t, Column))


def variables_read(term: Term) -> frozenset[str]:
    return frozenset(t.variable for t in walk(term) if isinstance(t, VariableField))
