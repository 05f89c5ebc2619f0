"""Interval arithmetic and interval logic: what holds of a term whatever still comes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from millstream.calculus.terms import Call, Column, Literal, Term, columns_read, is_known
from millstream.calculus.types import BOOLEAN, INTEGER, NUMBER, Kind, Type
from millstream.languages.smile.cells import (
    FALSE,
    TRUE,
    Cell,
    Gains,
    Mask,
    both,
    choose,
    either,
    negated,
    null,
    surely,
)
from millstream.languages.smile.extent import ONE, ZERO, Extent, Size

Bound = Term | None
#: Of one argument, and never falling where it rises.
_MONOTONE = ("number", "floor", "ceil", "round", "sqrt", "exp", "ln")
#: Of these the functions that have no value below (0) or above (1) some argument.
_PARTIAL = {"sqrt": 0, "ln": 0, "exp": 1}
_COMPARED = {"<": "<", "<=": "<=", ">": "<", ">=": "<="}
_OPPOSITE = {"<": "<=", "<=": "<"}


@dataclass(frozen=True, slots=True)
class Truth:
    """A condition: what it is now, whether it is surely true, whether surely not true."""

    now: Term
    yes: Term
    no: Term
    steps: Size = ONE
    #: Whether it never becomes true again once it is not.
    stays_false: bool = False


@dataclass(frozen=True, slots=True)
class Ranges:
    """What is known of terms over the columns of a queue; `is_open` while rows may change."""

    cells: Mapping[str, Cell]
    is_open: Term

    def cell(self, name: str, term: Term) -> Cell:
        """A column that is computed."""
        known = self.cells.get(term.name) if isinstance(term, Column) else None
        if known is not None:
            return replace(known, name=name, value=term)
        extent = self.extent(term)
        if self.is_exact(term):
            return Cell(name, term, term, term, extent, ONE, is_exact=True, can_be_null=True)
        steps = Size()
        for column in sorted(columns_read(term)):
            steps += self.cells[column].steps
        low, high = (self._closed(term, b) for b in self.bounds(term))
        vanishes = self.can_vanish(term)
        return Cell(name, term, low, high, extent, steps, can_be_null=True, can_vanish=vanishes,
                    gains=self.gains(term))  # fmt: skip

    def _closed(self, term: Term, bound: Bound) -> Bound:
        """The bound, which is the value itself when nothing is open any more."""
        if bound is not None:
            return bound
        return None if self.is_open == TRUE else choose(self.is_open, null(term.type), term)

    def is_exact(self, term: Term) -> bool:
        return all(self.cells[c].is_exact for c in columns_read(term))

    def can_vanish(self, term: Term) -> bool:
        return any(self.cells[c].can_vanish for c in columns_read(term) if c in self.cells)

    # --- arithmetic ---

    def extent(self, term: Term) -> Extent:
        match term:
            case Column(name) if name in self.cells:
                return self.cells[name].extent
            case Literal(value=bool()):
                return Extent()
            case Literal(value=(int() | float()) as value) if value == value:
                return Extent(Size.number(value), Size.number(value))
            case Call("+", (a, b)):
                return self.extent(a) + self.extent(b)
            case Call("-", (a, b)):
                return self.extent(a) + -self.extent(b)
            case Call("*", (a, b)):
                return self.extent(a) * self.extent(b)
            case Call("neg", (a,)):
                return -self.extent(a)
            case Call("number", (a,)):
                return self.extent(a)
            case Call("abs", (_,)):
                return Extent(ZERO)
            case Call("if", (_, a, b)) | Call("least" | "greatest" | "coalesce", (a, b)):
                return self.extent(a).around(self.extent(b))
            case _:
                return Extent()

    def bounds(self, term: Term) -> tuple[Bound, Bound]:
        """A lower and an upper bound of a term."""
        if self.is_exact(term):
            return term, term
        match term:
            case Column(name):
                return self.cells[name].low, self.cells[name].high
            case Call("+", (a, b)):
                (a_low, a_high), (b_low, b_high) = self.bounds(a), self.bounds(b)
                return _applied(term, a_low, b_low), _applied(term, a_high, b_high)
            case Call("-", (a, b)):
                (a_low, a_high), (b_low, b_high) = self.bounds(a), self.bounds(b)
                return _applied(term, a_low, b_high), _applied(term, a_high, b_low)
            case Call("neg", (a,)):
                low, high = self.bounds(a)
                return _applied(term, high), _applied(term, low)
            case Call("*", (a, b)):
                return self._product(term, a, b)
            case Call(name, (a,)) if name in _MONOTONE:
                low, high = self.bounds(a)
                return _where_it_lasts(term, _applied(term, low), _applied(term, high))
            case Call("/" | "div", (a, Literal(value=int() | float() as value) as by)) if value > 0:
                low, high = self.bounds(a)
                return _applied(term, low, by), _applied(term, high, by)
            case Call("abs", (a,)):
                return self._size(term, *self.bounds(a))
            case Call("least" | "greatest", (a, b)):
                return self._extreme(term, a, b)
            case Call("coalesce", (a, b)):
                return self._around(a, b)
            case Call("if", (condition, a, b)):
                return self._chosen(term, condition, a, b)
            case _:
                return None, None

    def _product(self, term: Call, a: Term, b: Term) -> tuple[Bound, Bound]:
        """The bounds of a factor times one that never changes, or of two nowhere negative."""
        if self.is_exact(b):
            a, b = b, a
        (a_low, a_high), (b_low, b_high) = self.bounds(a), self.bounds(b)
        least = [self.extent(x).least for x in (a, b)]
        low, high = _applied(term, a_low, b_low), _applied(term, a_high, b_high)
        if all(x is not None and x >= 0 for x in least):
            return low, high
        if not self.is_exact(a):
            return None, None
        swapped = _applied(term, a, b_high), _applied(term, a, b_low)
        is_negative = surely(Call("<", (a, _zero(a.type)), BOOLEAN))
        if isinstance(a, Literal) and least[0] is not None:
            is_negative = Literal(least[0] < 0, BOOLEAN)
        elif least[0] is not None and least[0] >= 0:
            is_negative = FALSE
        return _either_of(term, is_negative, swapped, (low, high))

    def _size(self, term: Call, low: Bound, high: Bound) -> tuple[Bound, Bound]:
        """Of an absolute value: 0 is a bound, and one of the ends where both have a sign."""
        zero = _zero(term.type)
        least: Term = zero
        for end, order in ((low, ">"), (high, "<")):
            if end is not None:
                has_sign = surely(Call(order, (end, zero), BOOLEAN))
                least = choose(has_sign, Call("abs", (end,), term.type), least)
        ends = [e if e is None else Call("abs", (e,), term.type) for e in (low, high)]
        return least, _outermost(ends[0], ends[1], ">=")

    def _extreme(self, term: Call, a: Term, b: Term) -> tuple[Bound, Bound]:
        """One side is an end of both, unless one of them has no value and is passed over."""
        (a_low, a_high), (b_low, b_high) = self.bounds(a), self.bounds(b)
        low, high = self._around(a, b)
        if not (self._has_value(a) and self._has_value(b)):
            return low, high
        if term.function == "greatest":
            return _applied(term, a_low, b_low) or a_low or b_low, high
        return low, _applied(term, a_high, b_high) or a_high or b_high

    def _around(self, a: Term, b: Term) -> tuple[Bound, Bound]:
        """Of what is one of two."""
        (a_low, a_high), (b_low, b_high) = self.bounds(a), self.bounds(b)
        return _outermost(a_low, b_low, "<="), _outermost(a_high, b_high, ">=")

    def _chosen(self, term: Call, condition: Term, a: Term, b: Term) -> tuple[Bound, Bound]:
        """Of what is one of two, for now by a condition that is surely so or not."""
        one, other = self.bounds(a), self.bounds(b)
        if self.is_exact(condition):
            return _either_of(term, surely(condition), one, other)
        truth = self.truth(condition)
        undecided = _either_of(term, truth.no, other, self._around(a, b))
        return _either_of(term, truth.yes, one, undecided)

    def gains(self, term: Term) -> Gains | None:
        """What open ticks may add to a sum of whole numbers; None if that cannot be said."""
        if term.type != INTEGER:
            return None
        if self.is_exact(term):
            return {}
        match term:
            case Column(name):
                return self.cells[name].gains
            case Call("+" | "-" as sign, (a, b)):
                one, other = self.gains(a), self.gains(b)
                if one is None or other is None:
                    return None
                if sign == "-":
                    other = {stream: -gain for stream, gain in other.items()}
                both_of = {s: one[s] + other[s] for s in one if s in other}
                return {**one, **other, **both_of}
            case Call("neg", (a,)):
                of = self.gains(a)
                return None if of is None else {stream: -gain for stream, gain in of.items()}
            case Call("*", (a, b)) if self.is_exact(a) or self.is_exact(b):
                factor, factored = (a, b) if self.is_exact(a) else (b, a)
                of = self.gains(factored)
                return None if of is None else {s: gain * factor for s, gain in of.items()}
            case _:
                return None

    # --- logic ---

    def mask(self, condition: Term) -> Mask:
        """What a selection by a condition says of each row."""
        truth = self.truth(condition)
        is_in = surely(truth.now)
        if self.is_exact(condition):
            return Mask(is_in, TRUE, stays_out=True)
        sure = either(truth.yes, truth.no, negated(self.is_open))
        can_be_true = truth.yes != FALSE or self.is_open != TRUE
        return Mask(is_in, sure, truth.steps, can_be_true, truth.stays_false)

    def truth(self, term: Term) -> Truth:
        if self.is_exact(term):
            return Truth(term, surely(term), surely(negated(term)), stays_false=True)
        match term:
            case Call("and", (a, b)):
                one, other = self.truth(a), self.truth(b)
                yes, no = both(one.yes, other.yes), either(one.no, other.no)
                stays = one.stays_false and other.stays_false
                return Truth(term, yes, no, one.steps + other.steps, stays)
            case Call("or", (a, b)):
                one, other = self.truth(a), self.truth(b)
                yes, no = either(one.yes, other.yes), both(one.no, other.no)
                stays = one.stays_false and other.stays_false
                return Truth(term, yes, no, one.steps + other.steps, stays)
            case Call("not", (a,)):
                one = self.truth(a)
                return Truth(term, self._strictly(term, one.no), one.yes, one.steps)
            case Call(("==" | "!=") as name, (a, b)):
                return self._equal(term, a, b, is_equal=name == "==")
            case Call(name, (a, b)) if name in _COMPARED:
                a, b = (b, a) if name in (">", ">=") else (a, b)
                return self._less(term, a, b, _COMPARED[name])
            case _:
                return Truth(term, FALSE, FALSE, self.cell("", term).steps)

    def _less(self, term: Term, a: Term, b: Term, order: str) -> Truth:
        """`a < b` or `a <= b`."""
        (a_low, a_high), (b_low, b_high) = self.bounds(a), self.bounds(b)
        yes = self._strictly(term, _compared(order, a_high, b_low))
        no = _compared(_OPPOSITE[order], b_high, a_low)
        steps = self.cell("", a).steps + self.cell("", b).steps
        if (a_low == a and b_high == b) or (a_high == a and b_low == b):
            steps = Size.number(2)  # what only rises or only falls crosses once
        stays = a_low == a and b_high == b and self._has_value(a) and self._has_value(b)
        return Truth(term, yes, no, steps, stays)

    def _strictly(self, condition: Term, yes: Term) -> Term:
        """Whether it is true in all histories: what has no value yet may never have one.

        And what may lose its value is nothing to rely on before the row is closed.
        """
        if self.can_vanish(condition):
            return FALSE
        nullable = any(self.cells[c].can_be_null for c in columns_read(condition))
        return both(yes, surely(condition)) if nullable and yes != FALSE else yes

    def _has_value(self, term: Term) -> bool:
        """Whether it is null only if it is too large, as it is for ever then."""
        match term:
            case Column(name):
                return not self.cells[name].can_be_null
            case Literal(value=value):
                return value is not None
            case Call("+" | "-" | "*" | "neg" | "number", args):
                return all(self._has_value(a) for a in args)
            case _:
                return False

    def _equal(self, term: Term, a: Term, b: Term, *, is_equal: bool) -> Truth:
        (a_low, a_high), (b_low, b_high) = self.bounds(a), self.bounds(b)
        apart = either(_compared("<", a_high, b_low), _compared("<", b_high, a_low))
        same = both(*(_compared("==", x, y) for x, y in
                      ((a_low, a_high), (b_low, b_high), (a_low, b_low))))  # fmt: skip
        yes, no = (same, apart) if is_equal else (apart, same)
        return Truth(
            term, self._strictly(term, yes), no, self.cell("", a).steps + self.cell("", b).steps
        )


def _applied(term: Call, *args: Bound) -> Bound:
    known = [a for a in args if a is not None]
    return Call(term.function, tuple(known), term.type) if len(known) == len(args) else None


def _where_it_lasts(term: Call, low: Bound, high: Bound) -> tuple[Bound, Bound]:
    """The bounds of a function, while its argument cannot go where it has no value.

    Elsewhere what is surely so now would not be when the value is lost.
    """
    if term.function not in _PARTIAL:
        return low, high
    if low is None or high is None:
        lasting = (low, high)[_PARTIAL[term.function]]
        return (None, None) if lasting is None else (low, high)
    is_lasting = is_known((low, high)[_PARTIAL[term.function]])
    nothing = null(term.type)
    return choose(is_lasting, low, nothing), choose(is_lasting, high, nothing)


def _zero(type_: Type) -> Literal:
    return Literal(0.0 if type_ == NUMBER else 0, type_)


def _either_of(
    term: Call, condition: Term, one: tuple[Bound, Bound], other: tuple[Bound, Bound]
) -> tuple[Bound, Bound]:
    """Bounds by a condition that is never null."""

    def chosen(a: Bound, b: Bound) -> Bound:
        if a is None and b is None:
            return None
        nothing = null(term.type)
        made = choose(condition, a or nothing, b or nothing)
        return None if made == nothing else made

    return chosen(one[0], other[0]), chosen(one[1], other[1])


def _outermost(a: Bound, b: Bound, order: str) -> Bound:
    """The one that is so to the other; null if one of them is."""
    if a is None or b is None or a == b:
        return a if a == b else None
    first, second = (surely(Call(order, pair, BOOLEAN)) for pair in ((a, b), (b, a)))
    return choose(first, a, choose(second, b, null(a.type)))


def _compared(order: str, a: Bound, b: Bound) -> Term:
    """Whether it is so surely; what has no bound compares with nothing."""
    if a is None or b is None:
        return FALSE
    if order == "==" and a == b:
        return TRUE if isinstance(a, Literal) else negated(Call("is_null", (a,), BOOLEAN))
    return surely(Call(order, (a, b), BOOLEAN))


def can_be_bounded(cell: Cell) -> bool:
    """Only of numbers and times there is more and less."""
    return cell.type.kind in (Kind.NUMBER, Kind.INTEGER, Kind.TIME, Kind.DURATION)
