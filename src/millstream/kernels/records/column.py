"""What an expression of a script gives in all rows of a batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from millstream.kernels.records.slices import HeldTexts, Slices
from millstream.plan.batch import Array


class NotOnColumns(Exception):
    """Something that only single records can be asked; the message names it."""


@dataclass(frozen=True, slots=True)
class Pieces:
    """Arrays of texts: the first `count` of `most` pieces in each row, cut when asked for."""

    most: int
    cut: Callable[[int], Slices]
    count: Array


@dataclass(frozen=True, slots=True)
class TupleColumn:
    """Tuples, as a column for every field."""

    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Objects:
    """Values of Python, which only statements that are done record by record look into."""

    values: Array


@dataclass(frozen=True, slots=True)
class Column:
    """What an expression gives in each row; `bad` are the rows in which it has no value."""

    values: Array | Slices | Pieces | TupleColumn | HeldTexts | Objects
    bad: Array | None = None

    def plain(self) -> Column:
        """With texts that can be looked into."""
        return (
            Column(self.values.slices(), self.bad) if isinstance(self.values, HeldTexts) else self
        )


def either(*masks: Array | None) -> Array | None:
    known = [mask for mask in masks if mask is not None]
    if not known:
        return None
    together = known[0]
    for mask in known[1:]:
        together = together | mask
    return together
