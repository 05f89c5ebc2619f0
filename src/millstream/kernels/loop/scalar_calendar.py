"""The calendar in UTC, proleptic Gregorian, for every time that 64 bits can hold.

Compiled by numba; see `scalar_numbers` for what that asks of these functions.
"""

from __future__ import annotations

from numba import njit

from millstream.kernels.loop.scalar_arrays import LEAST
from millstream.kernels.loop.scalar_lift import lift, lift_faulty

_DAY = 86_400_000_000
_HOUR = 3_600_000_000
_MINUTE = 60_000_000
_SECOND = 1_000_000
_EPOCH = 719_468  # days from 0000-03-01, where leap days come last, to 1970-01-01
_ERA = 146_097  # days in 400 years, after which the calendar repeats


@njit(error_model="numpy")
def _civil(time: int) -> tuple[int, int, int]:
    """Year, month and day, by counting years from the first of March."""
    day = time // _DAY + _EPOCH
    era = day // _ERA
    day -= era * _ERA
    year = (day - day // 1460 + day // 36524 - day // 146096) // 365
    day -= 365 * year + year // 4 - year // 100
    month = (5 * day + 2) // 153
    day -= (153 * month + 2) // 5
    month = month + 3 if month < 10 else month - 9
    return year + era * 400 + (1 if month <= 2 else 0), month, day + 1


def _floor_or_fault(time: int, step: int) -> tuple[int, int]:
    if step <= 0:
        return 0, 1
    behind = time % step
    if time < LEAST + behind:
        return 0, 2
    return time - behind, 0


floor_time = lift_faulty(_floor_or_fault, "i")
year = lift(lambda time: _civil(time)[0], "i")
month = lift(lambda time: _civil(time)[1], "i")
day = lift(lambda time: _civil(time)[2], "i")
hour = lift(lambda time: time % _DAY // _HOUR, "i")
minute = lift(lambda time: time % _HOUR // _MINUTE, "i")
second = lift(lambda time: time % _MINUTE // _SECOND, "i")
weekday = lift(lambda time: (time // _DAY + 3) % 7 + 1, "i")
