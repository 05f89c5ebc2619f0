"""What is made of the values of a group."""

from __future__ import annotations

from dataclasses import dataclass

from millstream.calculus.base import FunctionFault
from millstream.calculus.terms import Term
from millstream.calculus.types import INTEGER, NUMBER, Kind, Type


@dataclass(frozen=True, slots=True)
class Aggregation:
    """An output column of an `Aggregate`: a function over the values of a term.

    Nulls are passed over. `count` without a term counts rows. A quantile is `at` so many
    millionths. A variance may be of sums that were made elsewhere: then the term is a part of
    the total, and `beside` it are those of the squares, of what these lost by rounding, and of
    the count.
    """

    name: str
    function: str
    term: Term | None = None
    at: int | None = None
    beside: tuple[Term, ...] = ()

    @property
    def terms(self) -> tuple[Term, ...]:
        return self.beside if self.term is None else (self.term, *self.beside)

    def result_type(self) -> Type:
        accepted = AGGREGATIONS.get(self.function) or SKETCHES.get(self.function)
        if accepted is None:
            raise FunctionFault(
                f'unknown aggregate "{self.function}"; there are: {", ".join(AGGREGATIONS)}'
            )
        if self.term is None:
            if self.function != "count":
                raise FunctionFault(f"{self.function} needs a term to aggregate")
            return INTEGER
        if self.term.type.kind not in accepted:
            raise FunctionFault(f"{self.function} cannot aggregate a {self.term.type}")
        if self.function in ("count", "distinct", "approx_distinct"):
            return INTEGER
        if self.function == "quantile":
            return NUMBER
        if self.function in ("variance", "var_pop") and self.term.type != NUMBER:
            raise FunctionFault(f"{self.function} cannot aggregate a {self.term.type}")
        if self.function == "avg" and self.term.type.kind is Kind.INTEGER:
            return NUMBER
        return self.term.type


#: Variances are of values less than this in size; of others they are NaN.
SQUARABLE = 2.0**450

AGGREGATIONS: dict[str, frozenset[Kind]] = {
    "sum": frozenset({Kind.NUMBER, Kind.INTEGER, Kind.DURATION}),
    "count": frozenset(Kind),
    "avg": frozenset({Kind.NUMBER, Kind.INTEGER}),
    "min": frozenset(Kind) - {Kind.BOOLEAN},
    "max": frozenset(Kind) - {Kind.BOOLEAN},
    # Of a sample, which of one value is null, and of all there is.
    "variance": frozenset({Kind.NUMBER}),
    "var_pop": frozenset({Kind.NUMBER}),
}

#: What is counted by hidden keys (see `sketches`); of the languages only cubes have it.
SKETCHES: dict[str, frozenset[Kind]] = {
    "distinct": frozenset(Kind),
    "approx_distinct": frozenset(Kind),
    "quantile": frozenset({Kind.NUMBER, Kind.INTEGER}),
}
