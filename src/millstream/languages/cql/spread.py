"""Variances and standard deviations: made of the number, the sum and the sum of squares."""

from __future__ import annotations

from millstream.calculus import syntax
from millstream.calculus.functions import Aggregation
from millstream.calculus.terms import Call, Term
from millstream.calculus.types import INTEGER, NUMBER
from millstream.languages.cql.ast import Total

#: The aggregates that are made here, and whether each is of a sample and has a root.
SPREADS: dict[str, tuple[bool, bool]] = {
    "variance": (True, False),
    "var_pop": (False, False),
    "stddev": (True, True),
    "stddev_pop": (False, True),
}


def spread(name: str, term: Term) -> tuple[Aggregation, ...]:
    """What must be kept of a term, under names that begin with `name`."""
    square = Call("*", (term, term), NUMBER, term.span)
    return (
        Aggregation(f"{name}.n", "count", term),
        Aggregation(f"{name}.sum", "sum", term),
        Aggregation(f"{name}.squares", "sum", square),
    )


def reading(total: Total, columns: list[str]) -> syntax.Expression:
    """How to read an aggregate from the columns that were made for it."""
    span = total.span
    if total.function.name not in SPREADS:
        return syntax.Name(columns[-1], span)
    is_sample, has_root = SPREADS[total.function.name]
    n, total_sum, squares = (syntax.Name(c, span) for c in columns)

    def apply(function: str, *args: syntax.Expression) -> syntax.Expression:
        return syntax.Apply(function, args, span)

    mean_square = apply("/", apply("*", total_sum, total_sum), n)
    least = syntax.Constant(1 if is_sample else 0, INTEGER, span)
    # Rounding may leave a little less than nothing.
    mean = apply("/", apply("-", squares, mean_square), apply("-", n, least))
    variance = apply("greatest", syntax.Constant(0.0, NUMBER, span), mean)
    value = apply("sqrt", variance) if has_root else variance
    return apply("if", apply(">", n, least), value, syntax.Constant(None, NUMBER, span))
