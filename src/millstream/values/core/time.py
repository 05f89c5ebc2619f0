"""Scalar functions of times and durations; the calendar is Gregorian, in UTC."""

from __future__ import annotations

from millstream.values.core import rules
from millstream.values.core.plain_text import calendar
from millstream.values.core.scalar import OVERFLOW, Operation, Scalar, ScalarFault
from millstream.values.types import DURATION, INTEGER, NUMBER, TIME


def _floor_time(time: int, step: int) -> int:
    if step <= 0:
        raise ScalarFault("a step that is not positive")
    return time // step * step


_DAY = 86_400_000_000

_PARTS = {
    "year": lambda t: calendar(t)[0],
    "month": lambda t: calendar(t)[1],
    "day": lambda t: calendar(t)[2],
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
