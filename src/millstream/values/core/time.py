"""Scalar functions of times and durations; the calendar is Gregorian, in UTC."""

from __future__ import annotations

from datetime import date

from millstream.values.core import rules
from millstream.values.core.scalar import OVERFLOW, Operation, Scalar, ScalarFault
from millstream.values.types import DURATION, INTEGER, NUMBER, TIME


def _floor_time(time: int, step: int) -> int:
    if step <= 0:
        raise ScalarFault("a step that is not positive")
    return time // step * step


_DAY = 86_400_000_000
_ERA_DAYS = 146_097  # days in 400 Gregorian years, after which the calendar repeats


def _calendar(time: int) -> tuple[int, int, int]:
    """Year, month and day of any time: whole eras are counted off first."""
    eras, day = divmod(time // _DAY, _ERA_DAYS)
    found = date.fromordinal(date(1970, 1, 1).toordinal() + day)
    return found.year + 400 * eras, found.month, found.day


_PARTS = {
    "year": lambda t: _calendar(t)[0],
    "month": lambda t: _calendar(t)[1],
    "day": lambda t: _calendar(t)[2],
    "hour": lambda t: t % _DAY // 3_600_000_000,
    "minute": lambda t: t % 3_600_000_000 // 60_000_000,
    "second": lambda t: t % 60_000_000 // 1_000_000,
    "weekday": lambda t: (t // _DAY + 3) % 7 + 1,
}

TIMES: tuple[Scalar, ...] = (
    Scalar("seconds", rules.fixed(DURATION, result=NUMBER), "seconds(duration)",
           lambda duration: duration / 1_000_000, {"i": Operation("seconds")}),
    Scalar("floor_time", rules.fixed(TIME, DURATION, result=TIME), "floor_time(time, step)",
           _floor_time,
           {"ii": Operation("floor_time", faults=("a step that is not positive", OVERFLOW))}),
    *(Scalar(part, rules.fixed(TIME, result=INTEGER), f"{part}(time): in UTC", meaning,
             {"i": Operation(part)})
      for part, meaning in _PARTS.items()),
)  # fmt: skip
