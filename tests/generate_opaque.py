"""Callables as a Python program may give them: pure, and known by their class."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from millstream.calculus.types import Row


@dataclass(frozen=True)
class Repeated:
    """The row some times, or never."""

    times: int

    def __call__(self, row: Row, time: int) -> list[Row]:
        return [row] * self.times


@dataclass(frozen=True)
class WithoutNulls:
    """The row, unless its first value is null."""

    def __call__(self, row: Row, time: int) -> list[Row]:
        return [] if row[0] is None else [row]


@dataclass(frozen=True)
class AtEvenTimes:
    def __call__(self, row: Row, time: int) -> list[Row]:
        return [] if time % 2 else [row]


Call = Callable[[Row, int], list[Row]]
TIMELESS: tuple[Call, ...] = (Repeated(0), Repeated(1), Repeated(2), WithoutNulls())
TIMELY: tuple[Call, ...] = (AtEvenTimes(),)


@dataclass(frozen=True)
class Counted:
    """The row and how many came before it; after so many it begins anew."""

    most: int

    def __call__(self, state: Row, row: Row) -> tuple[Row | None, Row | None]:
        (count,) = state
        assert isinstance(count, int)
        after = None if count >= self.most else (count + 1,)
        return after, None if row[0] is None else (*row, count)


COUNTERS = (Counted(1), Counted(3))
COUNTS: tuple[Row, ...] = ((0,), (1,))
