"""Which rows of an ordered group anybody asks for, where that follows from how many there are.

    Ordered[... emit place = row_number(), n = count(x, "range * *")]
    Filter[place == integer(floor(number(n) * 0.5)) + 1]

Whoever puts the group in order then need not tell all rows whose number a change has moved.
"""

from __future__ import annotations

from millstream.calculus.functions import Filter, Ordered
from millstream.calculus.graph import Program
from millstream.calculus.ordering import JOINED, WHOLE, Placed
from millstream.calculus.terms import Call, Column, Literal, Term

#: What a place may be computed by: none of these fails on the number of rows of a group, times
#: something moderate, so that no fault goes uncounted where a filter is given fewer rows.
_SAFE = frozenset({"+", "-", "*", "number", "integer", "floor", "ceil", "greatest", "least"})
_MODERATE = 1_000_000


def is_of_whole(one: Placed) -> bool:
    """Whether a column is the same for all rows of a group, and cheap to know of the whole."""
    return one.function in ("count", JOINED) and one.frame == WHOLE


def places_asked(program: Program, function: Ordered, queue: str) -> tuple[Term, ...] | None:
    """The numbers of the rows that are asked for, as terms of counts; None if it may be any."""
    reader = program.consumers().get(queue)
    if reader is None or not isinstance(reader[0].function, Filter):
        return None
    numbers = {column.name for column in function.columns if column.function == "row_number"}
    others = [one for one in function.columns if one.name not in numbers]
    if not all(is_of_whole(one) for one in others):
        return None
    if function.count is not None and not others:
        return None  # so few rows are told that nothing is spared
    counts = {one.name for one in others if one.function == "count"}
    asked = [_place(term, numbers, counts) for term in _any_of(reader[0].function.condition)]
    places = tuple(term for term in asked if term is not None)
    return places if len(places) == len(asked) else None


def _any_of(term: Term) -> tuple[Term, ...]:
    if isinstance(term, Call) and term.function == "or":
        return tuple(part for given in term.args for part in _any_of(given))
    return (term,)


def _place(term: Term, numbers: set[str], counts: set[str]) -> Term | None:
    """What the number of a row is said to be."""
    if not isinstance(term, Call) or term.function != "==":
        return None
    for one, other in (term.args, term.args[::-1]):
        if isinstance(one, Column) and one.name in numbers and _is_safe(other, counts):
            return other
    return None


def _is_safe(term: Term, counts: set[str]) -> bool:
    products = 0
    left = [term]
    while left:
        match left.pop():
            case Column(name=name) if name in counts:
                continue
            case Literal(value=int() | float() as value) if abs(value) <= _MODERATE:
                continue
            case Call(function=function, args=arguments) if function in _SAFE:
                products += function == "*"
                left += arguments
            case _:
                return False
    return products <= 1
