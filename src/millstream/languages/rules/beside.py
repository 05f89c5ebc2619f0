"""Columns that stand beside the facts of a subject: what was, totals over others, distances.

Requirements read them as they read facts. Each is made of columns that are there before it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from millstream.calculus.terms import Term
from millstream.languages.rules.measured import Measured
from millstream.languages.rules.over_time import Remembered
from millstream.languages.rules.totals import Totalled

Beside = Remembered | Totalled | Measured
Kind = TypeVar("Kind", Remembered, Totalled, Measured)


@dataclass
class ColumnsBeside:
    """Mutable: all columns that the rules ask for beside the facts, in the order of making."""

    columns: dict[tuple[object, ...], Beside] = dataclasses.field(default_factory=dict)

    def of(self, kind: str, terms: tuple[Term, ...], length: int = 0) -> Remembered:
        """The column for a condition or value that looks back; equal ones share it."""
        return self.add(Remembered("", kind, terms, length), kind)

    def add(self, column: Kind, word: str) -> Kind:
        """The column, named by a word; equal ones are one column."""
        key = (type(column), *(getattr(column, f.name) for f in dataclasses.fields(column)))
        if key not in self.columns:
            name = f"{word} {len(self.columns) + 1}"
            self.columns[key] = dataclasses.replace(column, column=name)
        column_there = self.columns[key]
        assert isinstance(column_there, type(column))
        return column_there

    def all(self) -> tuple[Beside, ...]:
        return tuple(self.columns.values())


def needed(columns: Iterable[Beside], wanted: Iterable[str]) -> tuple[Beside, ...]:
    """Those that are wanted, and those that these are made of in turn."""
    names = set(wanted)
    chosen: list[Beside] = []
    for one in reversed(list(columns)):
        if names & one.made():
            chosen.append(one)
            names |= one.reads()
    return tuple(reversed(chosen))
