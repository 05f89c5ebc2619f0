"""Many requirements on one row, as a table of data rather than as columns.

A rule file has hundreds of requirements. As columns of a `Map` they would make rows
hundreds of columns wide and kernels that take minutes to compile; as a table they are
interpreted a block of rows at a time, and only what fails is put into words.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

from millstream.calculus.base import (
    Facts,
    Function,
    FunctionFault,
    columns_read_by,
    require_columns,
)
from millstream.calculus.terms import Term
from millstream.calculus.types import BOOLEAN, TEXT, Field, QueueType, Schema
from millstream.source import Span

#: The columns that a judge adds.
STATUS, FAILED, REASONS = "status", "failed", "reasons"
VERDICT = (STATUS, FAILED, REASONS)
#: And where requirements differ in how much it matters that they fail.
SEVERITY = "severity"

ALLOWED, RESTRICTED, UNDECIDED = "allowed", "restricted", "undecided"


@dataclass(frozen=True, slots=True)
class Shown:
    """A value that explains an outcome: what it is called, its unit, and itself."""

    label: str
    unit: str
    term: Term


@dataclass(frozen=True, slots=True)
class Requirement:
    """`holds` must be true wherever `when` is; a null in the way leaves it undecided.

    `place` and `text` say where and how it was written; no two have one place. `shown` are
    the values that fail it, `asked` those that only its condition reads. `level` is how much it
    matters that it fails, if its judge has levels.
    """

    place: str
    text: str
    when: Term | None
    holds: Term
    shown: tuple[Shown, ...] = ()
    asked: tuple[Shown, ...] = ()
    span: Span | None = dataclasses.field(default=None, compare=False)
    level: str = ""

    def terms(self) -> tuple[Term, ...]:
        first = () if self.when is None else (self.when,)
        return (*first, self.holds, *(s.term for s in (*self.shown, *self.asked)))


@dataclass(frozen=True, slots=True)
class Judge(Function):
    """For each row some of its columns, and which of the requirements it does not meet.

    `status` is `restricted` if one fails, else `undecided` if one cannot be decided, else
    `allowed`. `failed` has the places of those that fail; `reasons` tells in words what
    fails, with the values, or what is not known. A value that cannot be computed, such as
    a division by zero, is not known. With `levels`, the least first, `severity` is the greatest
    one of those that fail, and empty if none does.
    """

    keep: tuple[str, ...]
    requirements: tuple[Requirement, ...]
    levels: tuple[str, ...] = ()
    acts_at_once: ClassVar[bool] = True

    @property
    def added(self) -> tuple[str, ...]:
        """The columns of the verdict."""
        return (*VERDICT, SEVERITY) if self.levels else VERDICT

    def ranks(self) -> list[int]:
        """Of each requirement how high its level is among all."""
        return (
            [self.levels.index(requirement.level) for requirement in self.requirements]
            if self.levels
            else []
        )

    def terms(self) -> tuple[Term, ...]:
        return tuple(t for requirement in self.requirements for t in requirement.terms())

    def output_types(self, inputs: tuple[QueueType, ...], outputs: int) -> tuple[QueueType, ...]:
        schema = inputs[0].schema
        require_columns(self.keep, schema, "Judge")
        clash = [n for n in self.keep if n in self.added]
        if clash:
            raise FunctionFault(f'Judge adds a column "{clash[0]}" of its own; rename the other')
        for place, count in Counter(one.place for one in self.requirements).items():
            if count > 1:
                raise FunctionFault(f'there are {count} requirements at "{place}"')
        if len(set(self.levels)) < len(self.levels) or "" in self.levels:
            raise FunctionFault("levels of severity are different words")
        for requirement in self.requirements:
            if requirement.level not in (self.levels or ("",)):
                raise FunctionFault(f'"{requirement.level}" is none of the levels of severity')
            for term in (requirement.when, requirement.holds):
                if term is not None and term.type != BOOLEAN:
                    raise FunctionFault(f"a requirement must be boolean, got {term.type}")
        fields = tuple(Field(n, schema[n]) for n in self.keep)
        fields += tuple(Field(n, TEXT) for n in self.added)
        return (QueueType(Schema(fields), inputs[0].is_relation),)

    def facts(self, inputs: tuple[QueueType, ...], index: int) -> Facts:
        return Facts(
            reads=columns_read_by(self.terms()),
            forwards=frozenset(self.keep),
            writes=frozenset(self.added),
            is_stateless=True,
        )
