"""What aggregates need of a window, kept up to date as values come and go.

For sheets that are walked. Nothing is kept before an aggregate asks for it: the exact sums of
numbers and of their squares as long integers, the numbers in order in short blocks, the places of
each value.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial

from millstream.values.excel.functions_order import percentile_of
from millstream.values.excel.gather import has_wildcards
from millstream.values.excel.rounding import SQUARABLE
from millstream.values.excel.values import (
    DIV0,
    NA,
    REF,
    VALUE,
    ErrorValue,
    Scalar,
    checked,
    fail,
    fail_if,
    finite,
    folded,
    to_number,
)

_BLOCK = 512
#: Every float is a whole number of two to this power, less than zero.
_BITS = 1074
_UNITS = 1 << _BITS


class SortedNumbers:
    """Mutable: numbers in order, in blocks that are short enough to be shifted quickly."""

    def __init__(self, values: Iterable[float]) -> None:
        ordered = sorted(values)
        self.blocks = [ordered[n : n + _BLOCK] for n in range(0, len(ordered), _BLOCK)]
        self.highest = [b[-1] for b in self.blocks]
        self.count = len(ordered)

    def add(self, value: float) -> None:
        self.count += 1
        if not self.blocks:
            self.blocks, self.highest = [[value]], [value]
            return
        place = min(bisect_left(self.highest, value), len(self.blocks) - 1)
        block = self.blocks[place]
        insort(block, value)
        if len(block) > 2 * _BLOCK:
            self.blocks[place : place + 1] = [block[:_BLOCK], block[_BLOCK:]]
            self.highest[place : place + 1] = [block[_BLOCK - 1], block[-1]]
        else:
            self.highest[place] = block[-1]

    def remove(self, value: float) -> None:
        self.count -= 1
        place = bisect_left(self.highest, value)
        block = self.blocks[place]
        del block[bisect_left(block, value)]
        if block:
            self.highest[place] = block[-1]
        else:
            del self.blocks[place], self.highest[place]

    def at(self, index: int) -> float:
        for block in self.blocks:
            if index < len(block):
                return block[index]
            index -= len(block)
        raise IndexError(index)

    def below(self, value: float) -> int:
        """How many numbers are smaller."""
        place = bisect_left(self.highest, value)
        before = sum(len(b) for b in self.blocks[:place])
        return before + (bisect_left(self.blocks[place], value) if place < len(self.blocks) else 0)

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> float:
        return self.at(index if index >= 0 else self.count + index)


class WindowSummary:
    """Mutable: belongs to a window and is told what enters and leaves it."""

    def __init__(self, values: list[Scalar], first: int) -> None:
        self.values = deque(values)
        self.first = first
        self.numbers = self.given = self.errors = 0
        self.total = 0
        #: The sum of squares, once it is asked for, and how many numbers are too large for one.
        self.squared: int | None = None
        self.huge = 0
        self.order: SortedNumbers | None = None
        self.places: dict[tuple[type, Scalar], deque[int]] | None = None
        for value in values:
            self._count(value, 1)

    def _count(self, value: Scalar, weight: int) -> None:
        if value is None:
            return
        self.given += weight
        if type(value) is float:
            self.numbers += weight
            over, under = value.as_integer_ratio()
            self.total += weight * over << _BITS + 1 - under.bit_length()
            if self.squared is not None:
                self._square(value, weight)
        elif type(value) is ErrorValue:
            self.errors += weight

    def _square(self, value: float, weight: int) -> None:
        assert self.squared is not None
        if abs(value) < SQUARABLE:
            over, under = value.as_integer_ratio()
            self.squared += weight * over * over << 2 * (_BITS + 1 - under.bit_length())
        else:
            self.huge += weight

    def variance(self, less: int) -> float:
        """That of `variance_of_window`, to the last digit."""
        if self.squared is None:
            self.squared = 0
            for value in self.values:
                if type(value) is float:
                    self._square(value, 1)
        fail_if(self.numbers <= less, DIV0)
        fail_if(self.huge)
        upper = self.numbers * self.squared - self.total * self.total
        return upper / _UNITS**2 / (self.numbers * (self.numbers - less))

    def enter(self, value: Scalar) -> None:
        self._count(value, 1)
        if self.order is not None and type(value) is float:
            self.order.add(value)
        if self.places is not None:
            self.places.setdefault(_key(value), deque()).append(self.first + len(self.values))
        self.values.append(value)

    def leave(self) -> None:
        value = self.values.popleft()
        self.first += 1
        self._count(value, -1)
        if self.order is not None and type(value) is float:
            self.order.remove(value)
        if self.places is not None:
            positions = self.places[_key(value)]
            positions.popleft()
            if not positions:
                del self.places[_key(value)]

    def ordered(self) -> SortedNumbers:
        if self.order is None:
            self.order = SortedNumbers(v for v in self.values if type(v) is float)
        return self.order

    def place(self, wanted: Scalar) -> int | None:
        if self.places is None:
            self.places = {}
            for n, value in enumerate(self.values):
                self.places.setdefault(_key(value), deque()).append(self.first + n)
        positions = self.places.get(_key(wanted))
        return None if positions is None else positions[0] - self.first

    # --- aggregates ---

    def aggregate(self, function: str, count: int) -> Callable[..., tuple[Scalar] | None] | None:
        """An aggregate of so many other values, which gives a tuple of one; None if not kept."""
        if self.errors and function not in _WITH_ERRORS:
            return None
        return partial(_AGGREGATES[function, count], self)


def is_kept(function: str, count: int) -> bool:
    """Is an aggregate of so many other values kept for windows?"""
    return (function, count) in _AGGREGATES


def _key(value: Scalar) -> tuple[type, Scalar]:
    return type(value), folded(value) if type(value) is str else value


def _sum(window: WindowSummary) -> tuple[Scalar]:
    return (finite(_total(window)),)


def _total(window: WindowSummary) -> float:
    try:
        return window.total / _UNITS
    except OverflowError:
        return math.inf


def _average(window: WindowSummary) -> tuple[Scalar]:
    return (finite(_total(window) / window.numbers) if window.numbers else fail(DIV0),)


def _kth(window: WindowSummary, k: Scalar, *, is_largest: bool) -> tuple[Scalar]:
    wanted = to_number(k)
    fail_if(not 1 <= wanted <= window.numbers)
    place = math.ceil(wanted)
    return (window.ordered()[-place if is_largest else place - 1],)


def _median(window: WindowSummary) -> tuple[Scalar]:
    values, count = window.ordered(), window.numbers
    fail_if(not count)
    if count % 2:
        return (values[count // 2],)
    return ((values[count // 2 - 1] + values[count // 2]) / 2,)


def _percentile(window: WindowSummary, share: Scalar) -> tuple[Scalar]:
    return (percentile_of(window.ordered(), to_number(share)),)


def _quartile(window: WindowSummary, which: Scalar) -> tuple[Scalar]:
    number = to_number(which)
    fail_if(not 0 <= number < 5)
    return (percentile_of(window.ordered(), int(number) / 4),)


def _rank(window: WindowSummary, x: Scalar, order: Scalar = 0.0) -> tuple[Scalar]:
    value = to_number(x)
    if window.place(value) is None:
        fail(NA)
    values = window.ordered()
    if to_number(order):
        return (1.0 + values.below(value),)
    return (1.0 + window.numbers - values.below(math.nextafter(value, math.inf)),)


def _match(window: WindowSummary, wanted: Scalar, mode: Scalar) -> tuple[Scalar] | None:
    value = checked(wanted)
    is_pattern = type(value) is str and has_wildcards(value)
    if to_number(mode) != 0 or is_pattern:
        return None
    place = window.place(0.0 if value is None else value)
    return (float(place + 1) if place is not None else fail(NA),)


def _index(window: WindowSummary, place: Scalar) -> tuple[Scalar] | None:
    number = int(to_number(place))
    if number == 0:
        return None
    fail_if(number < 0, VALUE)
    return (window.values[number - 1] if number <= len(window.values) else fail(REF),)


def _spread(*, less: int, is_root: bool) -> Callable[[WindowSummary], tuple[Scalar]]:
    def spread(window: WindowSummary) -> tuple[Scalar]:
        value = window.variance(less)
        return (math.sqrt(value) if is_root else value,)

    return spread


_WITH_ERRORS = frozenset({"COUNT", "COUNTA", "INDEX", "MATCH"})
_AGGREGATES: dict[tuple[str, int], Callable[..., tuple[Scalar] | None]] = {
    ("SUM", 0): _sum,
    ("AVERAGE", 0): _average,
    ("COUNT", 0): lambda w: (float(w.numbers),),
    ("COUNTA", 0): lambda w: (float(w.given),),
    ("MIN", 0): lambda w: (w.ordered()[0] if w.numbers else 0.0,),
    ("MAX", 0): lambda w: (w.ordered()[-1] if w.numbers else 0.0,),
    ("LARGE", 1): lambda w, k: _kth(w, k, is_largest=True),
    ("SMALL", 1): lambda w, k: _kth(w, k, is_largest=False),
    ("MEDIAN", 0): _median,
    ("PERCENTILE", 1): _percentile,
    ("PERCENTILE.INC", 1): _percentile,
    ("QUARTILE", 1): _quartile,
    ("QUARTILE.INC", 1): _quartile,
    ("RANK", 1): _rank,
    ("RANK", 2): _rank,
    ("RANK.EQ", 1): _rank,
    ("RANK.EQ", 2): _rank,
    ("MATCH", 2): _match,
    ("INDEX", 1): _index,
    **{(n, 0): _spread(less=1, is_root=False) for n in ("VAR", "VAR.S")},
    **{(n, 0): _spread(less=0, is_root=False) for n in ("VARP", "VAR.P")},
    **{(n, 0): _spread(less=1, is_root=True) for n in ("STDEV", "STDEV.S")},
    **{(n, 0): _spread(less=0, is_root=True) for n in ("STDEVP", "STDEV.P")},
}
