"""Serial numbers of days: the 1900 system with its 29 February 1900, and the 1904 system.

Day 1 is 1 January 1900, and day 60 is a day that never was; from day 61 on the numbers are
days since 30 December 1899. In the 1904 system day 0 is 1 January 1904.
"""

from __future__ import annotations

import calendar
import datetime as dt

LAST_DAY = 2958465  # 31 December 9999
OFFSET_1904 = 1462

_EPOCH = dt.date(1899, 12, 30).toordinal()


def serial_of(year: int, month: int, day: int) -> float:
    """The serial number of a day of the calendar (1900 system)."""
    if (year, month, day) == (1900, 2, 29):
        return 60.0
    if day == 0:
        return serial_of(year, month, 1) - 1
    number = dt.date(year, month, day).toordinal() - _EPOCH
    return float(number if number > 60 else number - 1)


def date_of(serial: float) -> tuple[int, int, int]:
    """Year, month and day of a serial number (1900 system); day 0 is 0 January 1900."""
    day = int(serial // 1)
    if day == 60:
        return 1900, 2, 29
    if day == 0:
        return 1900, 1, 0
    date = dt.date.fromordinal(_EPOCH + day + (1 if day < 60 else 0))
    return date.year, date.month, date.day


def weekday_of(serial: float) -> int:
    """0 is Sunday. Before March 1900 Excel is a day off, as its calendar is."""
    return (int(serial // 1) - 1) % 7


def days_in_month(year: int, month: int) -> int:
    if (year, month) == (1900, 2):
        return 29
    return calendar.monthrange(year, month)[1]


def is_leap(year: int) -> bool:
    """As the 1900 system has it: 1900 is one."""
    return year == 1900 or calendar.isleap(year)


def clock_of(serial: float) -> tuple[int, int, int]:
    """Hours, minutes and seconds, rounded to the nearest second."""
    seconds = round((serial % 1) * 86400 + 1e-7) % 86400
    return seconds // 3600, seconds // 60 % 60, seconds % 60


def add_months(year: int, month: int, months: int) -> tuple[int, int]:
    total = year * 12 + month - 1 + months
    return total // 12, total % 12 + 1
