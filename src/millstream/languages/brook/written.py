"""A program as written: what the parser gives and `elaborate` takes.

The body of every function has one shape, a list of clauses of items, so that a new
function needs no new grammar.
"""

from __future__ import annotations

from dataclasses import dataclass

from millstream.calculus.syntax import Constant, Expression, Word
from millstream.calculus.types import QueueType, Type
from millstream.source import Span


@dataclass(frozen=True, slots=True)
class WrittenInput:
    name: Word
    columns: tuple[Word, ...]
    type: QueueType
    time: Word | None
    slack: Constant | None
    is_read_once: bool = False
    values: tuple[tuple[Expression, ...], ...] | None = None
    is_early: bool = False


@dataclass(frozen=True, slots=True)
class WrittenField:
    name: Word
    type: Type
    initial: Expression | None


@dataclass(frozen=True, slots=True)
class WrittenVariable:
    name: Word
    fields: tuple[WrittenField, ...]


@dataclass(frozen=True, slots=True)
class Item:
    """`value` or `target = value`."""

    target: Expression | None
    value: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class Clause:
    """`keyword item, item`; the first clause of a body may have no keyword."""

    keyword: str | None
    items: tuple[Item, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class WrittenOperator:
    function: Word
    clauses: tuple[Clause, ...]
    inputs: tuple[Word, ...]
    reads: tuple[Word, ...]
    outputs: tuple[Word, ...]
    writes: tuple[Word, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class WrittenProgram:
    inputs: tuple[WrittenInput, ...]
    outputs: tuple[Word, ...]
    variables: tuple[WrittenVariable, ...]
    operators: tuple[WrittenOperator, ...]
    end: Span
