"""Expressions as written, before anything is known about their types.

Parsers build these, and so does tracing of Python lambdas; `check` turns them into
typed terms. Spans are kept for messages and take no part in equality.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from millstream.calculus.types import Type, Value
from millstream.source import Span


@dataclass(frozen=True, slots=True)
class Name:
    """A column, by name."""

    name: str
    span: Span | None = dataclasses.field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class VariableName:
    """A field of a state variable: `$variable.field`."""

    variable: str
    field: str
    span: Span | None = dataclasses.field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal. A null may have no type yet: its place decides."""

    value: Value
    type: Type | None
    span: Span | None = dataclasses.field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Apply:
    """A scalar function or operator applied to arguments."""

    function: str
    args: tuple[Expression, ...]
    span: Span | None = dataclasses.field(default=None, compare=False)
    function_span: Span | None = dataclasses.field(default=None, compare=False)


Expression = Name | VariableName | Constant | Apply


@dataclass(frozen=True, slots=True)
class Word:
    """A queue's or a variable's name at a place."""

    name: str
    span: Span
