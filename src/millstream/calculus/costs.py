"""What terms cost, and how many rows they keep: guesses, which are always the same.

Costs are nanoseconds for one row, as compiled loops were measured to take. They need not be right;
they must tell a comparison of numbers from a search in a text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from millstream.calculus.terms import Call, Literal, Term, walk
from millstream.calculus.types import Kind
from millstream.values.core.table import SCALARS

#: A part of a term, and one that makes or looks into a text.
_TERM, _TEXT = 1.0, 40.0
#: Of rows that are asked something of which nothing is known, so many are kept.
_SELECTED = 0.5
#: Few rows are equal to one value, most differ from it, and an order cuts off a part.
_KEPT_BY = {"==": 0.1, "!=": 0.9, "is_null": 0.1, "<": 0.3, "<=": 0.3, ">": 0.3, ">=": 0.3}


def cost_of(term: Term) -> float:
    """A text is dear where it is made or compared, not where it is handed on or always the same."""
    return sum(_TEXT if part is not term and _is_dear(part) else _TERM for part in walk(term))


def _is_dear(part: Term) -> bool:
    return part.type.kind is Kind.TEXT and not isinstance(part, Literal)


#: What conditions have kept of a sample, where there is one.
Shares = Mapping[Term, float]
NO_SAMPLE: Shares = {}


def cost_in_turn(conditions: Iterable[Term], sample: Shares = NO_SAMPLE) -> float:
    """Of conditions in a row, each is asked about what those before it have kept."""
    cost, rows = 0.0, 1.0
    for condition in conditions:
        cost += rows * cost_of(condition)
        rows *= kept_by(condition, sample)
    return cost


def kept_by(condition: Term, sample: Shares = NO_SAMPLE) -> float:
    """Which part of all rows a condition is true of."""
    if condition in sample:
        return sample[condition]
    match condition:
        case Call("and", (left, right)):
            return kept_by(left, sample) * kept_by(right, sample)
        case Call("or", (left, right)):
            return 1 - (1 - kept_by(left, sample)) * (1 - kept_by(right, sample))
        case Call("not", (one,)):
            return 1 - kept_by(one, sample)
        case Call(function):
            return _KEPT_BY.get(function, _SELECTED)
        case Literal(value):
            return float(value is True)
        case _:
            return _SELECTED


def never_fails(term: Term) -> bool:
    """Whether a term surely has a value, or null, of every row, and no fault is counted."""
    return all(_is_total(part) for part in walk(term) if isinstance(part, Call))


def _is_total(call: Call) -> bool:
    """What is compiled for every kind of argument it takes says all its faults."""
    scalar = SCALARS[call.function]
    if scalar.sees_nulls:
        return True
    if all(arg.type.kind is Kind.NUMBER for arg in call.args):
        # Numbers become infinite where integers overflow.
        of_numbers = scalar.loop.get("f" * len(call.args))
        if of_numbers is not None:
            return not of_numbers.faults
    return bool(scalar.loop) and not any(one.faults for one in scalar.loop.values())
