"""Functions of times; each takes a time zone as its last argument, or the usual one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from millstream.values.records import zones
from millstream.values.records.intrinsic import Intrinsic, RecordSurroundings, Signature, fixed
from millstream.values.records.types import INT, STRING, TIME


def _part(
    read: Callable[[Any], int],
) -> Callable[[RecordSurroundings, Signature], Callable[..., int]]:
    def bind(settings: RecordSurroundings, signature: Signature) -> Callable[..., int]:
        usual = settings.timezone
        return lambda micros, zone=usual: read(zones.local(micros, zone or usual))

    return bind


def _truncate(unit: str) -> Callable[[RecordSurroundings, Signature], Callable[..., int]]:
    def bind(settings: RecordSurroundings, signature: Signature) -> Callable[..., int]:
        usual = settings.timezone
        return lambda micros, zone=usual: zones.truncated(micros, unit, zone or usual)

    return bind


def _add(**units: int) -> Callable[[RecordSurroundings, Signature], Callable[..., int]]:
    def bind(settings: RecordSurroundings, signature: Signature) -> Callable[..., int]:
        usual = settings.timezone

        def later(micros: int, count: int = 1, zone: str = usual) -> int:
            steps = {name: each * count for name, each in units.items()}
            return zones.shifted(micros, zone or usual, **steps)

        return later

    return bind


def _formattime(settings: RecordSurroundings, signature: Signature) -> Callable[..., str]:
    usual = settings.timezone
    return lambda form, micros, zone=usual: zones.formatted(form, micros, zone or usual)


_PARTS: dict[str, Callable[[Any], int]] = {
    "yearof": lambda c: c.year, "monthof": lambda c: c.month, "dayofmonth": lambda c: c.day,
    "dayofweek": lambda c: c.isoweekday(), "dayofyear": lambda c: c.timetuple().tm_yday,
    "hourof": lambda c: c.hour, "minuteof": lambda c: c.minute, "secondof": lambda c: c.second,
}  # fmt: skip
_UNITS = ("second", "minute", "hour", "day", "week", "month", "year")
_STEPS = {
    "addday": {"days": 1}, "addweek": {"days": 7}, "addmonth": {"months": 1},
    "addyear": {"months": 12},
}  # fmt: skip

TIMES: tuple[Intrinsic, ...] = (
    *(Intrinsic(name, f"{name}(t, zone)", fixed(TIME, STRING, result=INT, optional=1), _part(read))
      for name, read in _PARTS.items()),
    *(Intrinsic(f"truncto{unit}", f"truncto{unit}(t, zone)",
                fixed(TIME, STRING, result=TIME, optional=1), _truncate(unit)) for unit in _UNITS),
    *(Intrinsic(name, f"{name}(t, count, zone)",
                fixed(TIME, INT, STRING, result=TIME, optional=2), _add(**steps))
      for name, steps in _STEPS.items()),
    Intrinsic("formattime", "formattime(form, t, zone)",
              fixed(STRING, TIME, STRING, result=STRING, optional=1), _formattime),
    Intrinsic("now", "now()", fixed(result=TIME),
              lambda settings, _signature: settings.now, pure=False),
)  # fmt: skip
