"""What follows from what: formulas over bounds, members and facts.

A sound approximation: `implies` may fail to see that one condition follows from another,
but what it says is so, also where values are not known: the other is at least as true, of
false, not known and true. The reasoning is exact, in fractions of base units, so that 50 cm
and 0.5 m are one bound.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from millstream.calculus.terms import Term
from millstream.calculus.text import render_term

#: Numbers are alike if they differ by no more than this part of what they are computed from.
TOLERANCE = Fraction(1, 10**9)
_ZERO = Fraction(0)


@dataclass(frozen=True, slots=True)
class Leaf:
    """A number that is not a sum: a column, a product, the size of something.

    `size` is how large the numbers are that it is computed from, if it may be much smaller
    itself. What is counted is whole.
    """

    term: Term
    size: Term | None = None
    is_whole: bool = False


@dataclass(frozen=True, slots=True)
class Linear:
    """A sum of quantities times coefficients, and a constant, in base units.

    Beside each coefficient stands its weight: what it was before anything cancelled. So
    what is read is there even if it does not count, and what may be lost to rounding is known.
    """

    parts: tuple[tuple[Leaf, Fraction, Fraction], ...] = ()
    constant: Fraction = _ZERO
    weight: Fraction = _ZERO

    @staticmethod
    def of(leaf: Leaf, factor: Fraction, offset: Fraction) -> Linear:
        return Linear(((leaf, factor, abs(factor)),), offset, abs(offset))

    def plus(self, other: Linear, sign: int = 1) -> Linear:
        total = {leaf: (c, w) for leaf, c, w in self.parts}
        for leaf, coefficient, weight in other.parts:
            before, above = total.get(leaf, (_ZERO, _ZERO))
            total[leaf] = (before + sign * coefficient, above + weight)
        parts = sorted(((leaf, *both) for leaf, both in total.items()), key=_written)
        constant = self.constant + sign * other.constant
        return Linear(tuple(parts), constant, self.weight + other.weight)

    def scaled(self, by: Fraction) -> Linear:
        parts = tuple((leaf, c * by, w * abs(by)) for leaf, c, w in self.parts)
        return Linear(parts, self.constant * by, self.weight * abs(by))


def _written(part: tuple[Leaf, Fraction, Fraction]) -> str:
    return render_term(part[0].term)


@dataclass(frozen=True, slots=True)
class Bound:
    """`form relation bound`, to within the tolerance; the first coefficient of the form is 1.

    The bound lies between `lower` and `upper`, which are apart by the tolerance of what is
    constant; what the leaves add to it, the data tell.
    """

    form: Linear
    relation: str
    lower: Fraction
    upper: Fraction

    @property
    def tolerance(self) -> Fraction:
        """What is counted is compared exactly."""
        return TOLERANCE if _is_rounded(self.form) else _ZERO


def _is_rounded(form: Linear) -> bool:
    return not all(leaf.is_whole and c and c.denominator == 1 for leaf, c, _ in form.parts)


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
    if not difference.parts:
        return Always(_holds(difference.constant, relation))
    first = next((c for _, c, _ in difference.parts if c), Fraction(1))
    scaled = difference.scaled(1 / first)
    form = Linear(scaled.parts)
    middle, around = -scaled.constant, TOLERANCE * scaled.weight
    if not _is_rounded(form):
        around = _ZERO
    turned = relation if first > 0 else _TURNED[relation]
    return Bound(form, turned, middle - around, middle + around)


def _holds(difference: Fraction, relation: str) -> bool:
    """Whether something that is so much greater than another stands in a relation to it."""
    match relation:
        case "<":
            return difference < 0
        case "<=":
            return difference <= 0
        case ">":
            return difference > 0
        case ">=":
            return difference >= 0
        case "==":
            return difference == 0
        case _:
            return difference != 0


def negated(formula: Formula) -> Formula:
    match formula:
        case Bound():
            return replace(formula, relation=_NEGATED[formula.relation])
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


def implies(one: Formula, other: Formula, *, roughly: bool = False) -> bool:
    """Whether the other certainly holds where the one does.

    Roughly, as far as a person would say: whatever the tolerance, and what has cancelled.
    """
    if one == other or one == Always(False) or other == Always(True):
        return True
    if isinstance(other, All):
        return all(implies(one, p, roughly=roughly) for p in other.parts)
    if isinstance(one, Some):
        return all(implies(p, other, roughly=roughly) for p in one.parts)
    if isinstance(other, Some) and any(implies(one, p, roughly=roughly) for p in other.parts):
        return True
    if isinstance(one, All):
        return any(implies(p, other, roughly=roughly) for p in one.parts)
    match one, other:
        case Bound(), Bound() if one.form == other.form:
            return _zones(one, other, is_sharp=roughly) <= _ZONES[other.relation]
        case Bound(), Bound() if roughly and _sum(one.form) == _sum(other.form):
            return _zones(one, other, is_sharp=True) <= _ZONES[other.relation]
        case Member(key, value, True), Member(other_key, other_value, False) if key == other_key:
            return value != other_value
    return False


#: Where values lie that stand in a relation to a bound: below it, alike to it, above it.
_ZONES = {"<": {"<"}, "<=": {"<", "="}, "==": {"="}, ">=": {"=", ">"}, ">": {">"},
          "!=": {"<", ">"}}  # fmt: skip


def _zones(one: Bound, other: Bound, *, is_sharp: bool) -> set[str]:
    """The zones of the other in which values lie that satisfy the one.

    The leaves widen both bounds alike by what is not known, unless that is nothing or there
    is a single one: so bounds that are apart may touch.
    """
    (low, high), (lower, upper) = (one.lower, one.upper), (other.lower, other.upper)
    if has_limits(one.form):
        is_sharp = True
        (low, high), (lower, upper) = limits(one), limits(other)
    zones: set[str] = set()
    if "<" in _ZONES[one.relation]:
        zones |= {"<"} | ({"="} if low > lower else set()) | ({">"} if low > upper else set())
    if ">" in _ZONES[one.relation]:
        zones |= {">"} | ({"="} if high < upper else set()) | ({"<"} if high < lower else set())
    if "=" in _ZONES[one.relation]:
        zones |= ({"<"} if low < lower else set()) | ({">"} if high > upper else set())
        zones |= set() if is_sharp and (high < lower or low > upper) else {"="}
    return zones


def has_limits(form: Linear) -> bool:
    """Whether the values that are alike to a bound are known: those of one plain leaf."""
    return len(form.parts) == 1 and all(not leaf.size and c == w for leaf, c, w in form.parts)


def limits(bound: Bound) -> tuple[Fraction, Fraction]:
    """The least and the greatest value of one plain leaf that are alike to the bound."""
    part = bound.tolerance
    lower, upper = bound.lower, bound.upper
    return (lower / (1 + part if lower > 0 else 1 - part),
            upper / (1 - part if upper > 0 else 1 + part))  # fmt: skip


def _sum(form: Linear) -> tuple[tuple[Leaf, Fraction], ...]:
    """What is left once everything has cancelled."""
    return tuple((leaf, c) for leaf, c, _ in form.parts if c)


def excludes(one: Formula, other: Formula) -> bool:
    """Whether both never hold together, as far as a person would say."""
    return implies(one, negated(other), roughly=True)


def is_impossible(formula: Formula) -> bool:
    """Whether it certainly never holds."""
    match formula:
        case Always(value):
            return not value
        case Bound() if not _sum(formula.form):
            return not _holds(-(formula.lower + formula.upper), formula.relation)
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
            return frozenset({_sum(form)})
        case Fact(key) | Member(key):
            return frozenset({key})
        case All(parts) | Some(parts):
            return frozenset[object]().union(*(subjects(p) for p in parts))
        case Always():
            return frozenset()


def _flat(parts: tuple[Formula, ...]) -> list[Formula]:
    flat: list[Formula] = []
    for part in parts:
        flat += _flat(part.parts) if isinstance(part, All) else [part]
    return flat


def all_of(formulas: tuple[Formula, ...]) -> Formula:
    return formulas[0] if len(formulas) == 1 else All(formulas)
