"""The types of conditions and values that look back."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from millstream.calculus.terms import Column
from millstream.calculus.types import BOOLEAN
from millstream.languages.rules import logic
from millstream.languages.rules.ast import Apply, Expression, Number
from millstream.languages.rules.beside import ColumnsBeside
from millstream.languages.rules.over_time import BETWEEN, truth_of
from millstream.languages.rules.typed import Moment, Quantity, Truthful, Typed, Wordy, finite
from millstream.languages.rules.typed import quantity as quantity_of
from millstream.languages.rules.units import SECONDS

if TYPE_CHECKING:
    from millstream.languages.rules.check import Checker

#: Nobody waits a century, and instants must not pass the end of time.
_LONGEST = 100 * 366 * 24 * 3600 * 10**6


def looked_back(checker: Checker, apply: Apply) -> Typed | None:
    value, other = apply.args
    if checker.memory is None:
        checker.fail("what was before cannot be asked here", apply.span,
                     "conditions of a domain are about this moment")  # fmt: skip
        return None
    if checker.row is not None:
        checker.fail("inside a total only this moment can be asked about", apply.span,
                     "look back at the total as a whole: count(...) > 2 for 10 min")  # fmt: skip
        return None
    if apply.operator == "rate":
        change = Apply("-", (value, Apply("before", apply.args, apply.span)), apply.span)
        if length_of(checker, other) is None:
            return None
        return checker.typed(Apply("/", (change, other), apply.span))
    if apply.operator in BETWEEN:
        return _between(checker, checker.memory, apply)
    if apply.operator == "before":
        return _before(checker, checker.memory, value, other)
    condition = checker.condition(value, f"what stands before {apply.operator}")
    length = length_of(checker, other)
    if condition is None or length is None:
        return None
    remembered = checker.memory.of(apply.operator, (condition.term,), length)
    # What has lasted until now holds now, and what holds now has held within any time.
    both = (condition.formula, logic.Fact(remembered.column))
    formula = logic.All(both) if apply.operator == "for" else logic.Some(both)
    return Truthful(truth_of(remembered), formula)


def _between(checker: Checker, memory: ColumnsBeside, apply: Apply) -> Typed | None:
    value, other = apply.args
    first = checker.condition(value, f"what stands before {apply.operator}")
    second = checker.condition(other, f"what follows {apply.operator}")
    if first is None or second is None:
        return None
    remembered = memory.of(apply.operator, (first.term, second.term))
    return Truthful(truth_of(remembered), logic.Fact(remembered.column))


def _before(
    checker: Checker, memory: ColumnsBeside, value: Expression, other: Expression
) -> Typed | None:
    typed = checker.typed(value)
    length = length_of(checker, other)
    if typed is None or length is None:
        return None
    if isinstance(typed, Quantity):
        term = finite(typed.term)
        was = Column(memory.of("before", (term,), length).column, term.type)
        return quantity_of(was, typed.unit)
    if isinstance(typed, Moment) and typed.shift is not None:
        checker.fail("only what is told can be asked as it was", value.span,
                     "take before(...) of the column, and then add to it")  # fmt: skip
        return None
    column = memory.of("before", (typed.term,), length).column
    match typed:
        case Truthful():
            return Truthful(Column(column, BOOLEAN), logic.Fact(column))
        case Wordy(term, members):
            return Wordy(Column(column, term.type), members)
        case _:
            return Moment(Column(column, typed.term.type))


def length_of(checker: Checker, length: Expression) -> int | None:
    """How far to look back, in microseconds."""
    typed = checker.typed(length)
    if typed is None:
        return None
    is_time = isinstance(typed, Quantity) and typed.unit.dimension == SECONDS.dimension
    if not is_time or not isinstance(typed, Quantity) or typed.constant is None:
        hint = "write a number with a unit of time, such as 10 min"
        if isinstance(length, Number) and not length.unit:
            hint = f"of what? Write {length.value} min or {length.value} s"
        checker.fail(f"expected a length of time, got {typed.spoken}", length.span, hint)
        return None
    seconds = typed.in_unit(SECONDS).constant
    assert seconds is not None
    micros = round(seconds * Fraction(10**6))
    if not 0 < micros <= _LONGEST:
        checker.fail("a length of time is more than nothing and less than a century",
                     length.span)  # fmt: skip
        return None
    return micros
