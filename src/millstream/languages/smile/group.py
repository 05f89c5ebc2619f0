"""Aggregates: a sure row gives its range, an unsure one that or nothing, an open tick anything.

Of each aggregate the groups keep what its value and its bounds are computed of; where rows are
sure and their values exact, that is the value alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from millstream.calculus.functions import Aggregate, Aggregation, Assign, Map
from millstream.calculus.terms import Call, Column, Literal, Term, columns_read
from millstream.calculus.types import BOOLEAN, INT64_MAX, INT64_MIN, INTEGER, NUMBER, Kind, Type
from millstream.calculus.wiring import Queue
from millstream.errors import Fault
from millstream.languages.smile.build import OVER, STEPS, Build, NoRule
from millstream.languages.smile.cells import (
    FALSE,
    TRUE,
    Cell,
    Gain,
    Gains,
    Mask,
    View,
    both,
    choose,
    either,
    negated,
    null,
)
from millstream.languages.smile.extent import MAXTIME, ONE, ZERO, Extent, Size
from millstream.languages.smile.flows import tallied
from millstream.languages.smile.ranges import Ranges
from millstream.languages.smile.windows import over, with_over
from millstream.queries import ast
from millstream.queries.tokens import stop

_RULES = ("sum", "count", "avg", "min", "max")
#: How many rows of a group by a tick can still change.
_OPEN_ROWS = ".open_rows"
_TICKS = Size.named(MAXTIME)


@dataclass(frozen=True, slots=True)
class Wanted:
    """An aggregate of a query: its function, what it is of, and the name of its column."""

    total: ast.Total
    term: Term | None
    name: str


@dataclass
class Groups:
    """Mutable: the groups of the rows of a view."""

    build: Build
    faults: list[Fault]
    view: View
    ranges: Ranges
    name: str
    #: The windows that are over, if a key is a window that was made for these groups.
    ended: Queue | None = None

    def __post_init__(self) -> None:
        self.kept: list[Aggregation] = []
        self.mask = self.view.mask
        self.is_sure_in = both(self.mask.is_in, self.mask.is_sure)
        #: The streams that may still bring rows into a group.
        self.coming: frozenset[str] = self.view.streams

    def grouped(self, keys: Sequence[tuple[str, Term]], wanted: Sequence[Wanted]) -> View:
        """One row for each group; its cells are the keys and the aggregates, by their names."""
        if not all(self.ranges.is_exact(term) for _, term in keys):
            raise NoRule("a grouping by columns that can still change")
        cells = [self.ranges.cell(name, term) for name, term in keys]
        self.coming = self.view.streams - _ticks_of(cells)
        is_open = self._open(cells)
        self._keep(STEPS, "sum", self.view.steps)
        group_mask = self._mask(is_open, is_global=not keys)
        made = [self._cell(one, is_open) for one in wanted]
        if _OPEN_ROWS in columns_read(is_open):
            self.kept.append(Aggregation(_OPEN_ROWS, "count", _counted(self._changing(cells))))
        flow = self._rows(keys)
        by = tuple(name for name, _ in keys)
        queue = self.build.wiring.add(
            Aggregate(by, tuple(self.kept)), flow, name=f"{self.name}_groups"
        )
        empty = {a.name: _of_nothing(a) for a in self.kept}
        ends = OVER in columns_read(is_open)
        if ends:
            empty[OVER] = Column(OVER, BOOLEAN)  # of that window, when it is looked up
            queue = self._ending(queue, cells)
        groups = View(
            self.name, queue, tuple(_on(c, queue.schema[c.name]) for c in cells),
            self.view.streams, steps=Column(STEPS, INTEGER), mask=group_mask, is_open=is_open,
            keys=by,
        )  # fmt: skip
        if not by:
            groups = replace(groups, queue=self.build.never_empty(queue, empty, self.name))
        if _OPEN_ROWS in empty:  # the tick of a group that is not there may still come
            come = self.build.open_ticks(_ticks_of(cells))
            empty[_OPEN_ROWS] = choose(come, Literal(1, INTEGER), Literal(0, INTEGER))
        groups = replace(groups, cells=(*groups.cells, *made))
        if len(keys) == 1 and self.mask.is_certain and not ends:
            tally = tallied(self.view.flow, *keys[0], tuple(self.kept))
            groups = replace(groups, flow=tally)
        return replace(groups, defaults=empty) if by else groups

    # --- rows and groups ---

    def _ending(self, queue: Queue, cells: Sequence[Cell]) -> Queue:
        """The groups, and whether their windows are over."""
        begin, window = next((c.name, c.window) for c in cells if c.window is not None)
        # Of groups of groups nobody has asked yet.
        ended = self.ended or over(self.build, queue, begin, window)
        return with_over(self.build, queue, begin, ended, self.name)

    def _rows(self, keys: Sequence[tuple[str, Term]]) -> Queue:
        """The rows of the view with keys of the names that groups have."""
        terms = [a.term for a in self.kept]
        queue = self.build.timed(self.view.queue, terms)
        if all(isinstance(t, Column) and t.name == n for n, t in keys):
            return queue
        own = dict(keys)
        read = frozenset().union(*(columns_read(t) for t in terms if t is not None))
        for name in read & set(own):
            if own[name] != queue.column(name):
                raise NoRule(f'a key "{name}" beside another column of that name')
        columns = [Assign(n, t) for n, t in own.items()]
        columns += [Assign(n, queue.column(n)) for n in sorted(read - set(own))]
        return self.build.wiring.add(Map(tuple(columns)), queue, name=f"{self.name}_keys")

    def _open(self, keys: Sequence[Cell]) -> Term:
        """Whether an open tick may still change a group, or bring a row into it."""
        windows = self.coming & {c.window.stream for c in keys if c.window is not None}
        others = self.coming - windows
        is_open = self.build.open_ticks(others) if others else FALSE
        if windows:
            is_coming = self.build.open_ticks(windows)
            is_open = either(both(is_coming, negated(Column(OVER, BOOLEAN))), is_open)
        can_change = self.view.is_open != FALSE or self.mask.is_sure != TRUE
        if not can_change if windows else self.coming == self.view.streams:
            return is_open
        # Groups by a tick get no more rows of it; those that they have can be open.
        rows = Call(">", (Column(_OPEN_ROWS, INTEGER), Literal(0, INTEGER)), BOOLEAN)
        return either(is_open, rows)

    def _changing(self, keys: Sequence[Cell]) -> Term:
        """Whether a row itself can still change, or whether it is in."""
        if self.coming - {c.window.stream for c in keys if c.window is not None}:
            return FALSE  # the group is open anyway, as long as its other streams are
        return either(self.view.is_open, negated(self.mask.is_sure))

    def _mask(self, is_open: Term, *, is_global: bool) -> Mask:
        """A group is there if it has a row."""
        if self.mask.is_certain or is_global:
            return Mask()
        now = self._keep(".rows", "count", _counted(self.mask.is_in))
        sure = self._keep(".sure_rows", "count", _counted(self.is_sure_in))
        zero = Literal(0, INTEGER)
        is_sure = either(Call(">", (sure, zero), BOOLEAN), negated(is_open))
        return Mask(Call(">", (now, zero), BOOLEAN), is_sure, _TICKS)

    def _keep(self, name: str, function: str, term: Term | None) -> Term:
        """A column of the groups."""
        if function == "sum" and isinstance(term, Literal) and term.value == 1:
            function, term = "count", None
        one = Aggregation(name, function, term)
        same = next((a for a in self.kept if (a.function, a.term) == (function, term)), None)
        if same is None or name == STEPS:
            self.kept.append(one)
            same = one
        return Column(same.name, same.result_type())

    # --- aggregates ---

    def _cell(self, wanted: Wanted, is_open: Term) -> Cell:
        function = wanted.total.function.name
        if wanted.total.is_distinct or wanted.total.where is not None or function not in _RULES:
            what = "DISTINCT in an aggregate" if wanted.total.is_distinct else function.upper()
            raise NoRule(what if wanted.total.where is None else "FILTER")
        if function == "count":
            return self._count(wanted, is_open)
        assert wanted.term is not None
        kinds = (Kind.INTEGER, Kind.NUMBER) if function in ("sum", "avg") else tuple(Kind)
        if wanted.term.type.kind not in kinds:
            message = f"{function.upper()} cannot aggregate a {wanted.term.type}"
            stop(self.faults, message, wanted.total.span)
        if function == "sum":
            return self._sum(wanted, wanted.term, is_open)
        if function == "avg":
            return self._average(wanted, wanted.term, is_open)
        return self._extreme(wanted, wanted.term, is_open, is_least=function == "min")

    def _count(self, wanted: Wanted, is_open: Term) -> Cell:
        """Rows without nulls are all counted: of streams no column is ever null."""
        if wanted.term is not None and not self._has_values(wanted.term):
            raise NoRule("COUNT of what may be null")
        value = self._keep(wanted.name, "count", _counted(self.mask.is_in))
        low = self._keep(f"{wanted.name}.low", "count", _counted(self.is_sure_in))
        possible = negated(self.mask.is_out)
        most = self._keep(f"{wanted.name}.high", "count", _counted(possible))
        extent = Extent(ZERO, _TICKS)
        return Cell(wanted.name, value, low, _until(is_open, most), extent, self._steps(),
                    gains=self._gains(Extent(ONE, ONE)))  # fmt: skip

    def _gains(self, extent: Extent) -> Gains | None:
        """What an open tick adds to a sum: nothing, or all its rows within the type.

        That can be said where rows do not change, and of streams whose open ticks can be counted.
        """
        least, most, brings = extent.least, extent.most, self.view.brings
        is_sure = self.mask.is_certain and self.view.is_open == FALSE
        if brings is None or not is_sure or not self.coming <= set(self.build.until):
            return None
        if not isinstance(least, int) or not isinstance(most, int):
            return None
        gain = brings * min(least, 0), brings * max(most, 0)
        if not INT64_MIN < gain[0] <= gain[1] <= INT64_MAX:
            return None
        low, high = (Literal(end, INTEGER) for end in gain)
        return dict.fromkeys(sorted(self.coming), Gain(low, high))

    def _sum(self, wanted: Wanted, term: Term, is_open: Term) -> Cell:
        cell = self.ranges.cell(wanted.name, term)
        zero = _zero(term.type)
        value = self._summed(wanted.name, choose(self.mask.is_in, term, zero))
        low, high = (
            self._bound(f"{wanted.name}.{end}", bound, choose_end, zero)
            for end, bound, choose_end in (
                ("low", cell.low, "least"), ("high", cell.high, "greatest"))
        )  # fmt: skip
        least, most = cell.extent.least, cell.extent.most
        if least is None or least < 0:
            low = None if low is None else _until(is_open, low)
        if most is None or most > 0:
            high = None if high is None else _until(is_open, high)
        low, high = (_closed(is_open, bound, value) for bound in (low, high))
        return Cell(wanted.name, value, low, high, cell.extent.times(_TICKS), self._steps(),
                    gains=self._gains(cell.extent) if term.type == INTEGER else None)  # fmt: skip

    def _extreme(self, wanted: Wanted, term: Term, is_open: Term, *, is_least: bool) -> Cell:
        """The least or the largest: a sure row is a bound on one side, the type on the other."""
        function = "min" if is_least else "max"
        cell = self.ranges.cell(wanted.name, term)
        nothing = null(term.type)
        value = self._keep(wanted.name, function, choose(self.mask.is_in, term, nothing))
        inner = cell.high if is_least else cell.low
        sure: Term | None = None
        if inner is not None:
            given = choose(self.is_sure_in, inner, nothing)
            sure = self._keep(f"{wanted.name}.sure", function, given)
        far = limit(cell.extent.least if is_least else cell.extent.most, term.type)
        outer = settled(is_open, far, value)
        low, high = (outer, sure) if is_least else (sure, outer)
        return Cell(wanted.name, value, low, high, cell.extent, self._steps(), can_be_null=True,
                    can_vanish=self._can_vanish(term))  # fmt: skip

    def _average(self, wanted: Wanted, term: Term, is_open: Term) -> Cell:
        """Between the bounds of the type, until nothing is open any more."""
        extent = self.ranges.extent(term)
        value = self._keep(wanted.name, "avg", choose(self.mask.is_in, term, null(term.type)))
        ends = (limit(end, NUMBER) for end in (extent.least, extent.most))
        low, high = (settled(is_open, end, value) for end in ends)
        return Cell(wanted.name, value, low, high, extent, self._steps(), can_be_null=True,
                    can_vanish=self._can_vanish(term))  # fmt: skip

    def _can_vanish(self, term: Term) -> bool:
        """Whether all rows that give an aggregate its value may still go, or their values may."""
        return self.mask.is_sure != TRUE or self.ranges.can_vanish(term)

    def _bound(self, name: str, bound: Term | None, end: str, zero: Term) -> Term | None:
        """The sum of what every row gives at the least, or at the most; null if one has no end."""
        if bound is None:
            return None
        unsure = Call(end, (bound, zero), bound.type)
        given = choose(self.is_sure_in, bound, choose(self.mask.is_out, zero, unsure))
        has_end = negated(Call("is_null", (bound,), BOOLEAN))
        is_known = TRUE if self._is_never_null(bound) else either(self.mask.is_out, has_end)
        summed = self._summed(name, choose(is_known, given, zero))
        if is_known == TRUE:
            return summed
        endless = self._keep(f"{name}less", "count", _counted(negated(is_known)))
        none = Call("==", (endless, Literal(0, INTEGER)), BOOLEAN)
        return choose(none, summed, null(bound.type))

    def _is_never_null(self, bound: Term) -> bool:
        """Columns that are exact are never null: they are there with their rows."""
        cells = self.ranges.cells
        return all(c in cells and cells[c].is_exact for c in columns_read(bound)) and (
            self._has_values(bound)
        )

    def _has_values(self, term: Term) -> bool:
        """Whether a column is never null."""
        cells = self.ranges.cells
        is_there = all(not cells[c].can_be_null for c in columns_read(term) if c in cells)
        return _is_never_null(term) and is_there

    def _summed(self, name: str, term: Term) -> Term:
        return self._keep(name, "sum", term)

    def _steps(self) -> Size:
        read = [c.steps for c in self.view.cells]
        largest = max(read, key=lambda s: len(s.products), default=ONE)
        return _TICKS * largest


def _ticks_of(keys: Sequence[Cell]) -> frozenset[str]:
    """The streams whose ticks are among the keys."""
    return frozenset(c.tick_of for c in keys if c.tick_of is not None)


def _until(is_open: Term, bound: Term) -> Term | None:
    """A bound that holds when nothing is open any more."""
    if is_open == TRUE:
        return None
    return choose(is_open, null(bound.type), bound)


def _closed(is_open: Term, bound: Term | None, value: Term) -> Term | None:
    if bound is not None:
        return bound
    return None if is_open == TRUE else choose(is_open, null(value.type), value)


def limit(end: float | None, type_: Type) -> Term | None:
    """The end of a type as a bound."""
    if end is None or type_ not in (INTEGER, NUMBER):
        return None
    return Literal(end, type_)


def settled(is_open: Term, far: Term | None, value: Term) -> Term | None:
    """A bound by the type, and by the value when nothing is open any more, if there is one."""
    if far is None:
        return _closed(is_open, None, value)
    return choose(is_open, far, Call("coalesce", (value, far), value.type))


def _counted(condition: Term) -> Term | None:
    """What to count for the rows of which a condition is true."""
    if condition == TRUE:
        return None
    return choose(condition, TRUE, null(BOOLEAN))


def _of_nothing(one: Aggregation) -> Term:
    """What an empty group has: sums and counts are 0, of others nothing is known."""
    type_ = one.result_type()
    return _zero(type_) if one.function in ("sum", "count") else null(type_)


def _zero(type_: Type) -> Literal:
    return Literal(0.0 if type_ == NUMBER else 0, type_)


def _is_never_null(term: Term) -> bool:
    """Columns, and sums of them, have values; a quotient may have none."""
    match term:
        case Column():
            return True
        case Literal(value=value):
            return value is not None
        case _:
            return False


def _on(cell: Cell, type_: Type) -> Cell:
    value = Column(cell.name, type_)
    return replace(cell, value=value, low=value, high=value)
