"""A cube by parts: cells are made wherever rows are, and put together by their groups.

    before  (out) <- Cubify[...](rows)
    after   (out.parts) <- Cubify[..., parts](rows)                wherever the rows are
            (out.sums) <- Aggregate[by group, time; ...](out.parts)    by group
            (out) <- Map[...](out.sums)

A part of a cell has how many rows it has, and of every column that is measured how many values,
their sum and their extremes. Sums are told exactly, in several rows where one number does not
suffice, so that nothing is rounded before all is together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from millstream.calculus.aggregation import Aggregation
from millstream.calculus.terms import Call, Column, Literal, Term
from millstream.calculus.types import BOOLEAN, INTEGER, NUMBER, Type

#: How many rows a part has.
ROWS = ".rows"


@dataclass(frozen=True, slots=True)
class PartColumn:
    """A column of parts: what it tells of which column, and how those of parts are one."""

    name: str
    what: str
    column: str
    type: Type

    @property
    def together(self) -> Aggregation:
        how = self.what if self.what in ("min", "max") else "sum"
        return Aggregation(self.name, how, Column(self.name, self.type))


def can_be_in_parts(measures: tuple[Aggregation, ...]) -> bool:
    """Whether all measures can be made of parts."""
    return all(m.function in ("count", "sum", "avg", "min", "max") for m in measures)


def part_columns(measures: tuple[Aggregation, ...]) -> tuple[PartColumn, ...]:
    """What must be known of a part for some measures."""
    return tuple(dict.fromkeys(c for m in measures for c in _of_measure(m)))


def _of_measure(measure: Aggregation) -> Iterator[PartColumn]:
    if measure.term is None:
        yield PartColumn(ROWS, "rows", "", INTEGER)
        return
    assert isinstance(measure.term, Column)
    name, type_ = measure.term.name, measure.term.type
    if measure.function in ("min", "max"):
        yield PartColumn(f"{name}.{measure.function}", measure.function, name, type_)
        return
    yield PartColumn(f"{name}.count", "count", name, INTEGER)
    if measure.function == "sum":
        yield PartColumn(f"{name}.sum", "sum", name, type_)
    elif measure.function == "avg":
        # A mean of integers is of a sum that may be too large for one of them.
        yield PartColumn(f"{name}.total", "total", name, NUMBER)


def result_of(measure: Aggregation) -> Term:
    """A measure, of the columns of parts that have been put together."""
    if measure.term is None:
        return Column(ROWS, INTEGER)
    assert isinstance(measure.term, Column)
    name, type_ = measure.term.name, measure.term.type
    if measure.function in ("min", "max"):
        return Column(f"{name}.{measure.function}", type_)
    count = Column(f"{name}.count", INTEGER)
    if measure.function == "count":
        return count
    if measure.function == "avg":
        # Of no values there is none: to divide by zero gives null.
        total = Column(f"{name}.total", NUMBER)
        return Call("/", (total, Call("number", (count,), NUMBER)), NUMBER)
    is_any = Call(">", (count, Literal(0, INTEGER)), BOOLEAN)
    return Call("if", (is_any, Column(f"{name}.sum", type_), Literal(None, type_)), type_)
