"""Values with what is known of them before anything runs: their units and their formulas."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce

from millstream.calculus.terms import Call, Column, Literal, Term
from millstream.calculus.types import BOOLEAN, DURATION, INTEGER, NUMBER, TIME
from millstream.languages.rules.logic import (
    TOLERANCE,
    Always,
    Bound,
    Fact,
    Formula,
    Leaf,
    Linear,
    compared,
    has_limits,
    limits,
)
from millstream.languages.rules.pairs import EACH
from millstream.languages.rules.units import PLAIN, Unit


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number: the term gives it in `unit`; `linear` says what it is in base units.

    `constant` is there if it is known already.
    """

    term: Term
    unit: Unit
    linear: Linear
    constant: Fraction | None = None

    @property
    def spoken(self) -> str:
        return self.unit.spoken

    def in_unit(self, unit: Unit) -> Quantity:
        """The same quantity in another unit of its dimension."""
        if (unit.factor, unit.offset) == (self.unit.factor, self.unit.offset):
            return replace(self, unit=unit)
        if self.constant is not None:
            return constant(unit.of_base(self.unit.in_base(self.constant)), unit)
        ratio = self.unit.factor / unit.factor
        shift = (self.unit.offset - unit.offset) / unit.factor
        term = self.term
        if ratio != 1:
            term = Call("*", (term, _number(ratio)), NUMBER, term.span)
        if shift:
            term = Call("+", (term, _number(shift)), NUMBER, term.span)
        return Quantity(term, unit, self.linear)

    def measured(self, unit: Unit) -> Quantity:
        """The same number, taken to be in another unit: a difference of two points."""
        return replace(self, unit=unit)


@dataclass(frozen=True, slots=True)
class Truthful:
    """A condition."""

    term: Term
    formula: Formula

    @property
    def spoken(self) -> str:
        return "a condition"


@dataclass(frozen=True, slots=True)
class Wordy:
    """A text; `members` are those of its enumeration. A bare word has only itself."""

    term: Term
    members: tuple[str, ...] = ()
    is_bare: bool = False

    @property
    def value(self) -> str | None:
        is_known = isinstance(self.term, Literal) and isinstance(self.term.value, str)
        return str(self.term.value) if is_known and isinstance(self.term, Literal) else None

    @property
    def spoken(self) -> str:
        return f"one of {', '.join(self.members)}" if self.members else "a text"


@dataclass(frozen=True, slots=True)
class Moment:
    """A point in time, perhaps some seconds after what the term gives."""

    term: Term
    shift: Quantity | None = None

    @property
    def spoken(self) -> str:
        return "a point in time"


Typed = Quantity | Truthful | Wordy | Moment


def _number(value: Fraction) -> Literal:
    """The nearest number; beyond the largest nothing is known, so that bound does as well."""
    most = Fraction(sys.float_info.max)
    return Literal(float(max(-most, min(value, most))), NUMBER)


def constant(value: Fraction, unit: Unit) -> Quantity:
    base = unit.in_base(value)
    return Quantity(_number(value), unit, Linear((), base, abs(base)), value)


def quantity(term: Term, unit: Unit, size: Term | None = None, *, whole: bool = False) -> Quantity:
    """A quantity of which little but its unit is known: a leaf of sums."""
    return Quantity(term, unit, Linear.of(Leaf(term, size, whole), unit.factor, unit.offset))


def of_each(typed: Typed) -> Typed:
    """A column of a row that stands beside a subject."""
    match typed:
        case Quantity(Call("number", (Column() as column,)), unit):
            return quantity(Call("number", (_each(column),), NUMBER), unit, whole=True)
        case Quantity(Column() as column, unit):
            return quantity(_each(column), unit)
        case Truthful(Column() as column):
            return Truthful(_each(column), Fact(EACH + column.name))
        case Wordy(Column() as column) | Moment(Column() as column):
            return replace(typed, term=_each(column))
        case _:
            raise AssertionError(typed)


def _each(column: Column) -> Column:
    return replace(column, name=EACH + column.name)


def truth(function: str, args: tuple[Term, ...], formula: Formula) -> Truthful:
    return Truthful(Call(function, args, BOOLEAN), formula)


# --- sums and how they are compared -----------------------------------------------------


def comparison(left: Linear, relation: str, right: Linear) -> Truthful:
    """A comparison of two sums: alike is what differs by less than the tolerance."""
    formula = compared(left, relation, right)
    if isinstance(formula, Bound):
        return Truthful(_bound_term(formula), formula)
    assert isinstance(formula, Always)
    return Truthful(Literal(formula.value, BOOLEAN), formula)


def _bound_term(bound: Bound) -> Term:
    """Equal sums are one term, whatever they are compared with, so they are computed once."""
    low = high = _sum([(leaf.term, c) for leaf, c, _ in bound.form.parts if c])
    lower, upper = bound.lower, bound.upper
    if has_limits(bound.form):
        lower, upper = limits(bound)
    elif bound.tolerance:
        around = times(size_of(bound.form), TOLERANCE)
        low, high = Call("+", (low, around), NUMBER), Call("-", (high, around), NUMBER)
    if not _is_plain(low):
        low, high = finite(low), finite(high)
    match bound.relation:
        case "<" | ">=":
            return Call(bound.relation, (low, _number(lower)), BOOLEAN)
        case "<=" | ">":
            return Call(bound.relation, (high, _number(upper)), BOOLEAN)
        case "==" | "!=" if low == high and lower == upper:
            return Call(bound.relation, (low, _number(lower)), BOOLEAN)
    sides = [replace(bound, relation=r) for r in (">=", "<=")]
    both = Call("and", tuple(_bound_term(side) for side in sides), BOOLEAN)
    return both if bound.relation == "==" else Call("not", (both,), BOOLEAN)


def size_of(sum_: Linear) -> Term:
    """How large the numbers are that a sum is made of, in base units."""
    sizes = [(_size(leaf), weight) for leaf, _, weight in sum_.parts]
    return _sum(sizes, sum_.weight)


def size_in_unit(one: Quantity) -> Term | None:
    """How large the numbers are that a quantity is made of; None if as large as itself."""
    parts, is_moved = one.linear.parts, one.linear.weight != abs(one.unit.offset)
    if not is_moved and len(parts) == 1 and parts[0][0].size is None:
        return None
    return size_of(one.linear.scaled(1 / one.unit.factor))


def product_of(operator: str, one: Quantity, other: Quantity) -> Quantity:
    unit = one.unit.times(other.unit, 1 if operator == "*" else -1)
    if not unit.dimension.powers and unit.factor == 1:
        unit = PLAIN
    a, b = one.constant, other.constant
    if a is not None and b is not None and (operator == "*" or b):
        return constant(a * b if operator == "*" else a / b, unit)
    term = Call(operator, (one.term, other.term), NUMBER)
    if b is not None and b and operator == "*":
        return Quantity(term, unit, one.linear.scaled(other.unit.in_base(b)))
    if b is not None and b:
        return Quantity(term, unit, one.linear.scaled(1 / other.unit.in_base(b)))
    if a is not None and operator == "*":
        return Quantity(term, unit, other.linear.scaled(one.unit.in_base(a)))
    return quantity(term, unit, _size_of_product(operator, one, other))


def _size_of_product(operator: str, one: Quantity, other: Quantity) -> Term | None:
    first, second = size_in_unit(one), size_in_unit(other)
    if first is None and second is None:
        return None
    first = first or Call("abs", (one.term,), NUMBER)
    size = Call("abs", (other.term,), NUMBER)
    if operator == "*":
        return Call("*", (first, second or size), NUMBER)
    quotient = Call("/", (first, size), NUMBER)
    if second is None:
        return quotient
    return Call("*", (quotient, Call("/", (second, size), NUMBER)), NUMBER)


def _size(leaf: Leaf) -> Term:
    return Call("abs", (leaf.term,), NUMBER) if leaf.size is None else leaf.size


def _sum(parts: list[tuple[Term, Fraction]], more: Fraction = Fraction(0)) -> Term:
    made = [(times(term, abs(c)), "-" if c < 0 else "+") for term, c in parts]
    if more or not made:
        made.append((_number(more), "+"))
    first = made[0][0] if made[0][1] == "+" else Call("neg", (made[0][0],), NUMBER)
    return reduce(lambda sum_, part: Call(part[1], (sum_, part[0]), NUMBER), made[1:], first)


def finite(number: Term) -> Term:
    """A number, or nothing if it is infinite or none at all: that is not known."""
    is_finite = Call("<=", (Call("abs", (number,), NUMBER), _LARGEST), BOOLEAN)
    return Call("if", (is_finite, number, Literal(None, NUMBER)), NUMBER)


#: No number is larger, and in terms NaN is greater than all numbers.
_LARGEST = Literal(sys.float_info.max, NUMBER)


def _is_plain(term: Term) -> bool:
    """Columns are finite already (see `facts`), and so is what is made of integers and times."""
    is_whole = isinstance(term, Call) and term.function in ("number", "seconds")
    return is_whole or isinstance(term, (Column, Literal))


def times(term: Term, factor: Fraction) -> Term:
    return term if factor == 1 else Call("*", (term, _number(factor)), NUMBER)


def shown_term(typed: Typed) -> Term:
    """What explains an outcome: what is too small to be compared is shown as nothing."""
    match typed:
        case Quantity(Call("number", (Column() as column,))):
            return column  # all its digits
        case Quantity(term) if (size := size_in_unit(typed)) is not None:
            around = times(size, TOLERANCE)
            is_small = Call("<=", (Call("abs", (term,), NUMBER), around), BOOLEAN)
            return Call("if", (is_small, _number(Fraction(0)), finite(term)), NUMBER)
        case Quantity(term) if not _is_plain(term):
            return finite(term)
        case Moment(term, Quantity(shift)):
            micros = Call("round", (times(shift, Fraction(10**6)),), NUMBER)
            later = Call("duration", (Call("integer", (micros,), INTEGER),), DURATION)
            return Call("+", (term, later), TIME)
        case _:
            return typed.term
