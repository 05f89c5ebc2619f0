"""How times are written in a source: what numbers count, the zone of local times, a format.

Local times that a clock shows twice (in autumn) are taken the first time; those that it never
shows (in spring) are refused.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, available_timezones

from millstream.errors import UsageError, suggest

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_DIRECTIVE = re.compile(r"%(-?.)", re.DOTALL)
#: What Python's `strptime` knows; the rest of a format stands for itself.
_DIRECTIVES = frozenset("aAwdbBmyYHIpMSfzZjUWcxX%GuV")


class NoSuchTime(ValueError):
    """A text is no time in this style; the reason."""


@dataclass(frozen=True, slots=True)
class TimeStyle:
    """`unit` is what numbers count; without a `zone` a time that names none is UTC."""

    unit: str | None = None
    zone: str | None = None
    format: str | None = None

    @property
    def is_plain(self) -> bool:
        """Whether times are numbers or ISO 8601 in UTC, which compiled parsers know."""
        return self.zone is None and self.format is None


PLAIN = TimeStyle()


def check_style(style: TimeStyle) -> None:
    """Raise a `UsageError` if a zone is unknown or a format cannot be one."""
    if style.zone is not None and style.zone not in available_timezones():
        near = suggest(style.zone, available_timezones())
        raise UsageError(
            f'unknown time zone "{style.zone}"', hint=near or "such as Europe/Amsterdam"
        )
    if style.format is not None:
        for sign in _DIRECTIVE.findall(style.format):
            if sign not in _DIRECTIVES:
                raise UsageError(
                    f'unknown "%{sign}" in the format of times "{style.format}"',
                    hint="write it as Python's strptime does, such as %d/%m/%Y %H:%M:%S",
                )
        if not _DIRECTIVE.search(style.format):
            raise UsageError(f'the format of times "{style.format}" has no % in it',
                             hint="such as %d/%m/%Y %H:%M:%S")  # fmt: skip


def instant_of(text: str, style: TimeStyle) -> int | None:
    """Microseconds since 1970 of a text by the format or ISO 8601; None if it is no such text."""
    moment = _moment_of(text.strip(), style.format)
    if moment is None:
        return None
    if moment.tzinfo is None:
        moment = _in_zone(moment, style.zone)
    return (moment - _EPOCH) // _MICROSECOND


def _moment_of(text: str, format_: str | None) -> datetime | None:
    """A time of the format; or of ISO 8601 with a zone, as we write what was late."""
    if format_ is not None:
        try:
            return datetime.strptime(text, format_)  # noqa: DTZ007 - the zone comes later
        except ValueError:
            pass
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if format_ is None or moment.tzinfo is not None else None


def _in_zone(moment: datetime, zone: str | None) -> datetime:
    if zone is None:
        return moment.replace(tzinfo=UTC)
    local = moment.replace(tzinfo=_zone(zone))
    try:
        back = local.astimezone(UTC).astimezone(_zone(zone)).replace(tzinfo=None)
    except OverflowError:  # the first and the last day of all years
        raise NoSuchTime(f"{moment.isoformat(' ')} is too far away for a time zone") from None
    if back != moment:
        raise NoSuchTime(f"there was no {moment.isoformat(' ')} in {zone}")
    return local


@functools.lru_cache
def _zone(name: str) -> ZoneInfo:
    return ZoneInfo(name)
