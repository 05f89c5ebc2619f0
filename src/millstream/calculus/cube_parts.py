"""A cube by parts: cells are made wherever rows are, and put together by their groups.

    before  (out) <- Cubify[...](rows)
    after   (out.parts) <- Cubify[..., parts](rows)                wherever the rows are
            (out.sums) <- Aggregate[by group, time; ...](out.parts)    by group
            (out) <- Map[...](out.sums)

A part of a cell has how many rows it has, and of every column that is measured how many values,
their sum, that of their squares, and their extremes. Sums are told exactly, in several rows where
one number does not suffice, so that nothing is rounded before all is together. What is counted by
hidden keys is told in rows of its own: a value that has the key, as often as the key was counted;
they add nothing to sums.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from millstream.calculus.aggregation import SKETCHES, Aggregation
from millstream.calculus.terms import Call, Column, Literal, Term
from millstream.calculus.types import BOOLEAN, INTEGER, NUMBER, Type

#: How many rows a part has.
ROWS = ".rows"
_SPREADS = ("variance", "var_pop")


@dataclass(frozen=True, slots=True)
class PartColumn:
    """A column of parts, and what it tells of which column."""

    name: str
    what: str
    column: str
    type: Type

    @property
    def is_key(self) -> bool:
        """Whether it has values that stand for hidden keys."""
        return self.what in SKETCHES


def part_columns(measures: tuple[Aggregation, ...]) -> tuple[PartColumn, ...]:
    """What must be known of a part for some measures."""
    return tuple(dict.fromkeys(c for m in measures for c in _of_measure(m)))


def _of_measure(measure: Aggregation) -> Iterator[PartColumn]:
    if measure.term is None:
        yield PartColumn(ROWS, "rows", "", INTEGER)
        return
    assert isinstance(measure.term, Column)
    name, type_, function = measure.term.name, measure.term.type, measure.function
    if function in SKETCHES:
        stands = {"distinct": type_, "approx_distinct": INTEGER, "quantile": NUMBER}
        yield PartColumn(f"{name}.{function}", function, name, stands[function])
        return
    if function in ("min", "max"):
        yield PartColumn(f"{name}.{function}", function, name, type_)
        return
    yield PartColumn(f"{name}.count", "count", name, INTEGER)
    if function == "sum":
        yield PartColumn(f"{name}.sum", "sum", name, type_)
    elif function != "count":
        # A mean of integers is of a sum that may be too large for one of them.
        yield PartColumn(f"{name}.total", "total", name, NUMBER)
    if function in _SPREADS:
        yield PartColumn(f"{name}.squares", "squares", name, NUMBER)
        yield PartColumn(f"{name}.rests", "rests", name, NUMBER)


def together(measures: tuple[Aggregation, ...]) -> tuple[Aggregation, ...]:
    """How parts are put together: columns that add up, and what is made of several at once."""
    made: dict[str, Aggregation] = {}
    for measure in measures:
        columns = tuple(_of_measure(measure))
        terms = [Column(c.name, c.type) for c in columns]
        if measure.function in SKETCHES:
            partial = Aggregation(_whole(measure), measure.function, terms[0], measure.at)
            made[partial.name] = partial
        elif measure.function in _SPREADS:
            count, total, squares, rests = terms
            beside = (squares, rests, count)
            partial = Aggregation(_whole(measure), measure.function, total, beside=beside)
            made[partial.name] = partial
        else:
            for column, term in zip(columns, terms, strict=True):
                how = column.what if column.what in ("min", "max") else "sum"
                made[column.name] = Aggregation(column.name, how, term)
    return tuple(made.values())


def _whole(measure: Aggregation) -> str:
    """What a measure is called that is told as a whole."""
    return f"{measure.name}.whole"


def result_of(measure: Aggregation) -> Term:
    """A measure, of the columns of parts that have been put together."""
    if measure.term is None:
        return Column(ROWS, INTEGER)
    assert isinstance(measure.term, Column)
    name, type_ = measure.term.name, measure.term.type
    if measure.function in SKETCHES or measure.function in _SPREADS:
        return Column(_whole(measure), measure.result_type())
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
