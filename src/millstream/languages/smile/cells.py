"""A view: a relation whose rows say what is known, and how surely.

A row has, for every column, a *value*, and bounds that are true whatever still comes. A column
whose value never changes *is exact*: its bounds are its value. Bounds are terms over the
columns of the queue; None stands for no bound, and so does a null that a bound comes to. Where
a value can only rise its lower bound is the value itself, so that most views need no column
more than the query of SQL would.

A row is *open* while an open tick may still change it. Its mask is two truths: is it in now,
and can that still change? Rows that are surely not in are dropped.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from millstream.calculus.rename import substitute
from millstream.calculus.terms import Call, Column, Literal, Term
from millstream.calculus.types import BOOLEAN, INTEGER, Type
from millstream.calculus.wiring import Queue
from millstream.languages.smile.extent import ANY, ONE, Extent, Size
from millstream.languages.smile.flows import FlowGroups, RowFlow, renamed

TRUE, FALSE = Literal(True, BOOLEAN), Literal(False, BOOLEAN)


def both(*terms: Term) -> Term:
    """Whether all are true; none of them is null."""
    kept = [t for t in dict.fromkeys(terms) if t != TRUE]
    if FALSE in kept:
        return FALSE
    made: Term = kept[0] if kept else TRUE
    for one in kept[1:]:
        made = Call("and", (made, one), BOOLEAN)
    return made


def either(*terms: Term) -> Term:
    """Whether any is true; none of them is null."""
    kept = [t for t in dict.fromkeys(terms) if t != FALSE]
    if TRUE in kept:
        return TRUE
    made: Term = kept[0] if kept else FALSE
    for one in kept[1:]:
        made = Call("or", (made, one), BOOLEAN)
    return made


def negated(term: Term) -> Term:
    match term:
        case Literal(value=value):
            return Literal(not value, BOOLEAN)
        case Call("not", (inner,)):
            return inner
        case _:
            return Call("not", (term,), BOOLEAN)


def surely(term: Term) -> Term:
    """Whether it is true, and not null."""
    if isinstance(term, Literal):
        return TRUE if term.value is True else FALSE
    return Call("coalesce", (term, FALSE), BOOLEAN)


def choose(condition: Term, then: Term, otherwise: Term) -> Term:
    if condition in (TRUE, FALSE):
        return then if condition == TRUE else otherwise
    return then if then == otherwise else Call("if", (condition, then, otherwise), then.type)


def null(type_: Type) -> Term:
    return Literal(None, type_)


def added(*terms: Term) -> Term:
    """The sum of integers."""
    number = sum(t.value for t in terms if isinstance(t, Literal) and isinstance(t.value, int))
    made: Term | None = None
    for one in (t for t in terms if not isinstance(t, Literal)):
        made = one if made is None else Call("+", (made, one), INTEGER)
    if made is None:
        return Literal(number, INTEGER)
    return Call("+", (made, Literal(number, INTEGER)), INTEGER) if number else made


_ON_NUMBERS: dict[str, Callable[..., int]] = {
    "neg": operator.neg, "*": operator.mul, "least": min, "greatest": max,
}  # fmt: skip


def _applied(function: str, *args: Term) -> Term:
    """A function of integers, which is worked out at once if these are known."""
    numbers = [a.value for a in args if isinstance(a, Literal) and isinstance(a.value, int)]
    if len(numbers) == len(args):
        return Literal(_ON_NUMBERS[function](*numbers), INTEGER)
    return Call(function, args, INTEGER)


@dataclass(frozen=True, slots=True)
class TickWindows:
    """Windows of the ticks of a stream: so long, and one begins at every step.

    Those of another time are over when no tick is open, and not before.
    """

    stream: str | None
    length: int
    step: int


@dataclass(frozen=True, slots=True)
class Gain:
    """What one open tick adds to a value, at the least and at the most; integers that are terms."""

    low: Term
    high: Term

    def __neg__(self) -> Gain:
        return Gain(_applied("neg", self.high), _applied("neg", self.low))

    def __add__(self, other: Gain) -> Gain:
        return Gain(added(self.low, other.low), added(self.high, other.high))

    def __mul__(self, factor: Term) -> Gain:
        """So many times as much, where the number of times may be negative."""
        low, high = (_applied("*", end, factor) for end in (self.low, self.high))
        return Gain(_applied("least", low, high), _applied("greatest", low, high))


#: By stream: the value lies between what it is now and its gains, times the open ticks.
Gains = Mapping[str, Gain]


@dataclass(frozen=True, slots=True)
class Cell:
    """A column; `tick_of` a stream, if it is its tick, and of a `window`, if it is its begin."""

    name: str
    value: Term
    low: Term | None
    high: Term | None
    extent: Extent = ANY
    steps: Size = ONE
    is_exact: bool = False
    domain: str = ""
    tick_of: str | None = None
    can_be_null: bool = False
    window: TickWindows | None = None
    #: Whether it may have a value now and none later, because the rows it is of may go.
    can_vanish: bool = False
    #: What an open tick of a stream may still add to the value, where that can be said.
    gains: Gains | None = None

    @property
    def type(self) -> Type:
        return self.value.type

    @property
    def only_rises(self) -> bool:
        return self.low == self.value

    @property
    def only_falls(self) -> bool:
        return self.high == self.value


@dataclass(frozen=True, slots=True)
class Mask:
    """Is a row in now, and is that so for ever? Neither is ever null."""

    is_in: Term = TRUE
    is_sure: Term = TRUE
    #: How often it may change, and whether it may come to be true for ever.
    steps: Size = ONE
    can_be_true: bool = True
    #: Whether a row that is not in now is out for ever.
    stays_out: bool = False

    def __and__(self, other: Mask) -> Mask:
        if self == Mask():
            return other
        if other == Mask():
            return self
        out = either(both(self.is_sure, negated(self.is_in)),
                     both(other.is_sure, negated(other.is_in)))  # fmt: skip
        sure = either(both(self.is_sure, other.is_sure), out)
        can_be_true = self.can_be_true and other.can_be_true
        steps = self.steps + other.steps
        stays_out = self.stays_out and other.stays_out
        return Mask(both(self.is_in, other.is_in), sure, steps, can_be_true, stays_out)

    @property
    def is_certain(self) -> bool:
        """Is every row in, whatever comes?"""
        return self.is_in == TRUE == self.is_sure

    @property
    def is_out(self) -> Term:
        """Is the row surely not in?"""
        return both(self.is_sure, negated(self.is_in))


CERTAIN = Mask()
_ONE_ROW = Literal(1, INTEGER)


@dataclass(frozen=True, slots=True)
class Account:
    """Rows with the tally of their tick, and the conditions on both so far."""

    rows: RowFlow
    entries: FlowGroups
    #: The columns of both that are the tick.
    tick: str
    key: str
    mask: Mask = CERTAIN

    def selected(self, mask: Mask) -> Account:
        return replace(self, mask=self.mask & mask)


@dataclass(frozen=True, slots=True)
class View:
    """The rows of a view, and how to read its queue.

    `streams` may bring new rows. Keys that are not shown need no columns: rows that look alike
    are counted. If the view is total, `defaults` has for each column of the queue what it is
    where no row is, and `keys` names the columns that tell rows apart. `stream` are the same
    rows as they come, where each is a row of one stream. A view without a rule says why in
    `as_of`.
    """

    name: str
    queue: Queue
    cells: tuple[Cell, ...]
    streams: frozenset[str]
    steps: Term = _ONE_ROW
    mask: Mask = CERTAIN
    is_open: Term = FALSE
    keys: tuple[str, ...] = ()
    defaults: dict[str, Term] | None = None
    stream: Queue | None = None
    as_of: str | None = None
    #: With the rows that are out for ever, where steps are counted; None if there are none.
    whole: View | None = None
    #: How its rows follow from those of a stream, if they do so one by one.
    flow: RowFlow | FlowGroups | None = None
    account: Account | None = None
    #: The account that it is, if nothing is kept of rows that are out.
    closed: Account | None = None
    #: How far behind a tick all must be known until the rows of it are final, if that is so.
    lasts: int | None = None
    #: How many rows an open tick of one of its streams brings at most, if that is known.
    brings: int | None = None

    @property
    def is_final(self) -> Term:
        return both(self.mask.is_sure, negated(self.is_open))

    def moved(self, queue: Queue, names: dict[str, str]) -> View:
        """The same view on another queue, where its columns have other names."""
        columns: dict[str, Term] = {
            old: Column(new, self.queue.schema[old]) for old, new in names.items()
        }

        def there(term: Term) -> Term:
            return substitute(term, columns)

        def cell(one: Cell) -> Cell:
            low, high = (b if b is None else there(b) for b in (one.low, one.high))
            gains = one.gains and {
                stream: Gain(there(gain.low), there(gain.high))
                for stream, gain in one.gains.items()
            }
            return replace(one, value=there(one.value), low=low, high=high, gains=gains)

        mask = replace(self.mask, is_in=there(self.mask.is_in), is_sure=there(self.mask.is_sure))
        defaults = self.defaults
        if defaults is not None:
            defaults = {names[n]: t for n, t in defaults.items()}
        return replace(
            self, queue=queue, cells=tuple(map(cell, self.cells)),
            steps=there(self.steps), mask=mask, is_open=there(self.is_open), defaults=defaults,
            keys=tuple(names[k] for k in self.keys), stream=None, flow=renamed(self.flow, names),
            account=None, closed=None,
        )  # fmt: skip
