"""Values with what is known of them before anything runs: their units and their formulas."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from millstream.calculus.terms import Call, Literal, Term
from millstream.calculus.text import render_term
from millstream.calculus.types import BOOLEAN, NUMBER
from millstream.languages.rules.logic import Formula, Linear
from millstream.languages.rules.units import Unit

_ONE = Fraction(1)


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
    return Literal(float(value), NUMBER)


def constant(value: Fraction, unit: Unit) -> Quantity:
    return Quantity(_number(value), unit, Linear((), unit.in_base(value)), value)


def quantity(term: Term, unit: Unit) -> Quantity:
    """A quantity of which nothing but its unit is known."""
    return Quantity(term, unit, Linear(((render_term(term), unit.factor),), unit.offset))


def truth(function: str, args: tuple[Term, ...], formula: Formula) -> Truthful:
    return Truthful(Call(function, args, BOOLEAN), formula)
