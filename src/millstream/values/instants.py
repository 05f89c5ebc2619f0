"""Times as text: ISO 8601 to microseconds since 1970 (UTC) and back."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from millstream.values.types import INT64_MAX, INT64_MIN

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")


def parse_time(text: str) -> int | None:
    """The microseconds of an ISO 8601 text, naive ones being UTC, or of a plain integer.

    None if it is neither, or does not fit.
    """
    if _INTEGER.fullmatch(text.strip()):
        micros = int(text)
        return micros if INT64_MIN <= micros <= INT64_MAX else None
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    return micros_of(moment)


def micros_of(moment: int | datetime) -> int:
    """The microseconds of a moment of Python, naive ones being UTC; of an integer, itself."""
    if isinstance(moment, int):
        return moment
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // _MICROSECOND


def micros_in(length: timedelta) -> int:
    return length // _MICROSECOND


def render_time(micros: int) -> str | None:
    """`2026-01-31T12:00:00.000000Z`, or None outside the years 1 to 9999."""
    try:
        moment = _EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        return None
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ").rjust(27, "0")
