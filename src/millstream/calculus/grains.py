"""Grains of time: the parts, of equal length or of the calendar, that time is cut into.

    Grain(60_000_000)        minutes
    Grain(months=12)         years, in UTC

The parts are numbered; a time lies in exactly one. All of it works on one time and on a
whole NumPy column of times.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

_DAY = 86_400_000_000
_ERA = 146_097  # days in 400 years, after which the calendar repeats
_EPOCH = 719_468  # days from 0000-03-01, where leap days come last, to 1970-01-01
#: No month is longer, and no year.
_LONGEST_MONTH, _LONGEST_YEAR = 31 * _DAY, 366 * _DAY

#: Microseconds in each unit, and months.
_LENGTHS = {
    "us": 1, "ms": 1_000, "second": 1_000_000, "minute": 60_000_000, "hour": 3_600_000_000,
    "day": _DAY,
}  # fmt: skip
_MONTHS = {"month": 1, "year": 12}
UNITS = (*_LENGTHS, *_MONTHS)
#: The grains that a person would name.
GRAINS = ("Second", "Minute", "Hour", "Day", "Month", "Year")


@dataclass(frozen=True, slots=True)
class Grain:
    """Parts of so many microseconds, counted from 1970, or of so many months."""

    length: int = 0
    months: int = 0

    @staticmethod
    def named(unit: str, count: int = 1) -> Grain | None:
        """So many seconds, Minutes, hours, ...; None if there is no such unit."""
        word = unit.lower()
        word = word if word in UNITS else word.removesuffix("s")
        if word in _MONTHS:
            return Grain(months=count * _MONTHS[word])
        return Grain(count * _LENGTHS[word]) if word in _LENGTHS else None

    def __str__(self) -> str:
        if self.months:
            return _counted(self.months, _MONTHS)
        return _counted(self.length, _LENGTHS)

    @property
    def longest(self) -> int:
        """How long a part can be."""
        years, months = divmod(self.months, 12)
        return self.length + years * _LONGEST_YEAR + months * _LONGEST_MONTH

    def index(self, time: Any) -> Any:
        """The number of the part that a time lies in."""
        return _month(time) // self.months if self.months else time // self.length

    def start(self, index: Any) -> Any:
        """When a part begins."""
        return _start_of_month(index * self.months) if self.months else index * self.length

    def is_within(self, coarser: Grain) -> bool:
        """Does every part lie in one part of the other grain?"""
        if self.months and coarser.months:
            return coarser.months % self.months == 0
        if coarser.months:
            return _DAY % self.length == 0
        return not self.months and coarser.length % self.length == 0


def _counted(count: int, units: dict[str, int]) -> str:
    unit = next(u for u in reversed(units) if count % units[u] == 0)
    word = unit if unit in ("us", "ms") else unit.capitalize()
    return word if count == units[unit] else f"{count // units[unit]} {word}"


def _month(time: Any) -> Any:
    """Months since January of the year 0, by counting years from the first of March."""
    day = time // _DAY + _EPOCH
    era = day // _ERA
    day = day - era * _ERA
    year = (day - day // 1460 + day // 36524 - day // 146096) // 365
    day = day - (365 * year + year // 4 - year // 100)
    return (year + era * 400) * 12 + (5 * day + 2) // 153 + 2


def _start_of_month(month: Any) -> Any:
    year, since_march = (month - 2) // 12, (month - 2) % 12
    era = year // 400
    year = year - era * 400
    days = year * 365 + year // 4 - year // 100 + (153 * since_march + 2) // 5
    return (era * _ERA + days - _EPOCH) * _DAY
