"""What follows from what: formulas over bounds, members and facts.

A sound approximation: `implies` may fail to see that one condition follows from another,
but what it says is so, also where values are not known. The reasoning is exact, in
fractions of base units, so that 50 cm and 0.5 m are one bound.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class Linear:
    """A sum of quantities times coefficients, and a constant, in base units."""

    coefficients: tuple[tuple[str, Fraction], ...] = ()
    constant: Fraction = Fraction(0)

    @staticmethod
    def of(coefficients: Mapping[str, Fraction], constant: Fraction) -> Linear:
        kept = sorted((k, c) for k, c in coefficients.items() if c)
        return Linear(tuple(kept), constant)

    def plus(self, other: Linear, sign: int = 1) -> Linear:
        total = dict(self.coefficients)
        for key, coefficient in other.coefficients:
            total[key] = total.get(key, Fraction(0)) + sign * coefficient
        return Linear.of(total, self.constant + sign * other.constant)

    def scaled(self, factor: Fraction) -> Linear:
        return Linear.of({k: c * factor for k, c in self.coefficients}, self.constant * factor)


@dataclass(frozen=True, slots=True)
class Bound:
    """`form relation bound`; the first coefficient of the form is 1."""

    form: tuple[tuple[str, Fraction], ...]
    relation: str
    bound: Fraction


@dataclass(frozen=True, slots=True)
class Fact:
    """A truth we know nothing more about."""

    key: str
    value: bool = True


@dataclass(frozen=True, slots=True)
class Member:
    key: str
    value: str
    is_equal: bool = True


@dataclass(frozen=True, slots=True)
class All:
    parts: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class Some:
    parts: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class Always:
    value: bool


Formula = Bound | Fact | Member | All | Some | Always

_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
_NEGATED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}


def compared(left: Linear, relation: str, right: Linear) -> Formula:
    """The bound that a comparison of two sums means."""
    difference = left.plus(right, -1)
    bound = -difference.constant
    if not difference.coefficients:
        return Always(_holds(Fraction(0), relation, bound))
    first = difference.coefficients[0][1]
    form = tuple((k, c / first) for k, c in difference.coefficients)
    return Bound(form, relation if first > 0 else _TURNED[relation], bound / first)


def _holds(value: Fraction, relation: str, bound: Fraction) -> bool:
    match relation:
        case "<":
            return value < bound
        case "<=":
            return value <= bound
        case ">":
            return value > bound
        case ">=":
            return value >= bound
        case "==":
            return value == bound
        case _:
            return value != bound


def negated(formula: Formula) -> Formula:
    match formula:
        case Bound(form, relation, bound):
            return Bound(form, _NEGATED[relation], bound)
        case Fact(key, value):
            return Fact(key, not value)
        case Member(key, value, is_equal):
            return Member(key, value, not is_equal)
        case All(parts):
            return Some(tuple(negated(p) for p in parts))
        case Some(parts):
            return All(tuple(negated(p) for p in parts))
        case Always(value):
            return Always(not value)


def implies(one: Formula, other: Formula) -> bool:
    """Whether the other certainly holds where the one does."""
    if one == other or one == Always(False) or other == Always(True):
        return True
    if isinstance(other, All):
        return all(implies(one, p) for p in other.parts)
    if isinstance(one, Some):
        return all(implies(p, other) for p in one.parts)
    if isinstance(other, Some) and any(implies(one, p) for p in other.parts):
        return True
    if isinstance(one, All):
        return any(implies(p, other) for p in one.parts)
    match one, other:
        case Bound(form, relation, bound), Bound(other_form, wanted, limit) if form == other_form:
            return _bound_implies(relation, bound, wanted, limit)
        case Member(key, value, True), Member(other_key, other_value, False) if key == other_key:
            return value != other_value
    return False


def _bound_implies(relation: str, bound: Fraction, wanted: str, limit: Fraction) -> bool:
    if relation == "==":
        return _holds(bound, wanted, limit)
    match relation, wanted:
        case ("<=", "<=") | ("<", "<=") | ("<", "<") | ("<", "!="):
            return bound <= limit
        case ("<=", "<") | ("<=", "!="):
            return bound < limit
        case (">=", ">=") | (">", ">=") | (">", ">") | (">", "!="):
            return bound >= limit
        case (">=", ">") | (">=", "!="):
            return bound > limit
    return False


def excludes(one: Formula, other: Formula) -> bool:
    """Whether both certainly never hold together."""
    return implies(one, negated(other))


def is_impossible(formula: Formula) -> bool:
    """Whether it certainly never holds."""
    match formula:
        case Always(value):
            return not value
        case All(parts):
            flat = _flat(parts)
            pairs = ((p, q) for n, p in enumerate(flat) for q in flat[:n])
            return any(is_impossible(p) for p in flat) or any(excludes(p, q) for p, q in pairs)
        case Some(parts):
            return all(is_impossible(p) for p in parts)
    return False


def subjects(formula: Formula) -> frozenset[object]:
    """What a formula is about: formulas that share none say nothing about each other."""
    match formula:
        case Bound(form):
            return frozenset({form})
        case Fact(key) | Member(key):
            return frozenset({key})
        case All(parts) | Some(parts):
            return frozenset[object]().union(*(subjects(p) for p in parts))
        case Always():
            return frozenset()


def _flat(parts: tuple[Formula, ...]) -> list[Formula]:
    found: list[Formula] = []
    for part in parts:
        found += _flat(part.parts) if isinstance(part, All) else [part]
    return found


def all_of(formulas: tuple[Formula, ...]) -> Formula:
    return formulas[0] if len(formulas) == 1 else All(formulas)
