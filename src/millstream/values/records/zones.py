"""Times of a calendar: microseconds since 1970 in a time zone, and as text."""

from __future__ import annotations

import functools
import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

from millstream.values.undefined import Undefined

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
#: Short names that say how far from UTC; in a text they win over the zone that is asked for.
_ABBREVIATIONS = {
    "UTC": 0, "GMT": 0, "UT": 0, "Z": 0, "WET": 0, "WEST": 1, "BST": 1, "CET": 1, "CEST": 2,
    "EET": 2, "EEST": 3, "MSK": 3, "JST": 9, "EST": -5, "EDT": -4, "CST": -6, "CDT": -5,
    "MST": -7, "MDT": -6, "PST": -8, "PDT": -7, "AKST": -9, "AKDT": -8, "HST": -10,
}  # fmt: skip
_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])(\d{2}):?(\d{2})")


@functools.lru_cache(maxsize=256)
def zone(name: str) -> tzinfo:
    """A zone by its name, such as `America/Los_Angeles`, `PST8PDT`, `PST`, `UTC` or `+0200`."""
    offset = _OFFSET.fullmatch(name)
    if offset is not None:
        minutes = int(offset[2]) * 60 + int(offset[3])
        if minutes < 24 * 60:
            return timezone(timedelta(minutes=minutes if offset[1] == "+" else -minutes))
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        hours = _ABBREVIATIONS.get(name)
    if hours is None:
        raise Undefined(f"the time zone {name!r} is not known")
    return timezone(timedelta(hours=hours), name)


def local(micros: int, zone_name: str) -> datetime:
    """A moment as clocks in a zone show it."""
    try:
        return (_EPOCH + timedelta(microseconds=micros)).astimezone(zone(zone_name))
    except OverflowError:
        raise Undefined(f"no calendar has the time {micros}") from None


def moment(clock: datetime) -> int:
    """The microseconds of what a clock shows; an hour that comes twice is the first of the two."""
    return (clock - _EPOCH) // _MICROSECOND


def shifted(micros: int, zone_name: str, *, months: int = 0, days: int = 0) -> int:
    """Later by months, then days, at the same hour; the 31st of a short month lies in the next."""
    clock = local(micros, zone_name)
    count = clock.year * 12 + clock.month - 1 + months
    try:
        first = clock.replace(year=count // 12, month=count % 12 + 1, day=1)
        return moment(first + timedelta(days=clock.day - 1 + days))
    except (OverflowError, ValueError):
        raise Undefined("the time is out of range") from None


_UNITS = ("year", "month", "day", "hour", "minute", "second", "microsecond")


def truncated(micros: int, unit: str, zone_name: str) -> int:
    """The first moment of the year, month, week, day, hour, minute or second."""
    clock = local(micros, zone_name)
    if unit == "week":  # Monday is its first day
        return shifted(truncated(micros, "day", zone_name), zone_name, days=-clock.weekday())
    lower = {name: int(name in ("month", "day")) for name in _UNITS[_UNITS.index(unit) + 1 :]}
    return moment(clock.replace(**lower))  # type: ignore[arg-type]


def time_text(micros: int, zone_name: str) -> str:
    """As C's ctime with the zone: `Tue Feb 10 12:00:00 PST 2026`."""
    c = local(micros, zone_name)
    day, month = DAYS[c.weekday()], MONTHS[c.month - 1]
    return f"{day} {month} {c.day:2d} {c:%H:%M:%S} {zone_letters(c)} {c.year}"


def zone_letters(clock: datetime) -> str:
    name = clock.tzname() or "UTC"
    # A zone that is only an offset is written as one: -0500.
    offset = name.removeprefix("UTC")
    return offset.replace(":", "") if offset[:1] in ("+", "-") else name


_CLOCK = r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?P<fraction>\.\d+)?)?"
_ZONE = r"(?P<zone>Z|[A-Z]{2,5}|(?:UTC|GMT)?[+-]\d{2}:?\d{2}|[A-Z][A-Za-z]+/[A-Za-z_/]+)"
_MONTH = r"(?P<month>[A-Za-z]{3})[a-z]*"
_DAY = r"(?:[A-Z][a-z]{2,8},? +)?"
_AT = rf"{_CLOCK}(?: *{_ZONE})?"
_FORMS = [
    re.compile(form)
    for form in (
        # As ctime and date(1) write it.
        rf"{_DAY}{_MONTH} +(?P<day>\d{{1,2}}) +{_CLOCK}(?: +{_ZONE})? +(?P<year>\d{{4}})",
        # As e-mails and web servers do: Tue, 10 Feb 2026 12:00:00 -0800; 10/Feb/2026:12:00:00
        rf"{_DAY}(?P<day>\d{{1,2}})[ /-]{_MONTH}[ /-](?P<year>\d{{4}})(?:[ :]+{_AT})?",
        # Feb 10, 2026 12:00:00
        rf"{_DAY}{_MONTH} +(?P<day>\d{{1,2}}),? +(?P<year>\d{{4}})(?: +{_AT})?",
        # ISO 8601, and the same with slashes
        rf"(?P<year>\d{{4}})[-/](?P<month>\d{{1,2}})[-/](?P<day>\d{{1,2}})(?:[T :]+{_AT})?",
        # 02/10/2026 12:00:00, the month first
        rf"(?P<month>\d{{1,2}})/(?P<day>\d{{1,2}})/(?P<year>\d{{4}})(?: +{_AT})?",
    )
]


def time_of_text(text: str, zone_name: str) -> int:
    """The moment a text tells; a zone in the text wins over the one that is asked for."""
    stripped = text.strip()
    for form in _FORMS:
        match = form.fullmatch(stripped)
        if match is not None:
            return _told(match.groupdict(), text, zone_name)
    raise Undefined(f"{text!r} is not a time")


def _told(parts: dict[str, str | None], text: str, zone_name: str) -> int:
    month = parts["month"] or ""
    if not month.isdigit():
        if month.title() not in MONTHS:
            raise Undefined(f"{text!r} is not a time: there is no month {month!r}")
        month = str(MONTHS.index(month.title()) + 1)
    fraction = ((parts["fraction"] or ".")[1:] + "000000")[:6]
    try:
        clock = datetime(
            int(parts["year"] or 0), int(month), int(parts["day"] or 0), int(parts["hour"] or 0),
            int(parts["minute"] or 0), int(parts["second"] or 0), int(fraction),
            tzinfo=zone(parts["zone"] or zone_name),
        )  # fmt: skip
    except ValueError as error:
        raise Undefined(f"{text!r} is not a time: {error}") from None
    return moment(clock)


def formatted(form: str, micros: int, zone_name: str) -> str:
    """As C's strftime writes it, in English."""
    clock = local(micros, zone_name)
    names = {
        "a": DAYS[clock.weekday()], "b": MONTHS[clock.month - 1], "h": MONTHS[clock.month - 1],
        "A": _LONG_DAYS[clock.weekday()], "B": _LONG_MONTHS[clock.month - 1],
        "p": "AM" if clock.hour < 12 else "PM", "Z": zone_letters(clock),
        "c": f"{DAYS[clock.weekday()]} {MONTHS[clock.month - 1]} {clock.day:2d} "
             f"{clock:%H:%M:%S} {clock.year}",
        "x": f"{clock:%m/%d/%y}", "X": f"{clock:%H:%M:%S}", "Y": f"{clock.year}",
        "s": str(moment(clock) // 10**6), "n": "\n", "t": "\t", "%": "%",
    }  # fmt: skip
    return re.sub(r"%(.)", lambda m: names.get(m[1]) or _digits(clock, m[0]), form, flags=re.DOTALL)


_LONG_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_LONG_MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August",
                "September", "October", "November", "December")  # fmt: skip
_NUMERIC = "CdDeFgGHIjklmMRrSTuUVwWyz"


def _digits(clock: datetime, verb: str) -> str:
    if verb[1] not in _NUMERIC:
        raise Undefined(f"formattime: {verb} is not known")
    return clock.strftime(verb)
