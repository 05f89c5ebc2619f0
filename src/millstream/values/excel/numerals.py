"""Numbers, dates and times written as text, as `VALUE` and arithmetic read them (en-US)."""

from __future__ import annotations

import re

from millstream.values.excel.dates import serial_of

_NUMBER = re.compile(
    r"(?P<sign>[-+]?)\s*(?P<dollar>\$?)\s*(?P<sign2>[-+]?)"
    r"(?P<digits>\d{1,3}(?:,\d{3})+(?:\.\d*)?|\d+\.?\d*|\.\d+)"
    r"(?P<exponent>[eE][-+]?\d+)?\s*(?P<percent>%*)"
)
_DIGIT = re.compile(r"\d")
_FRACTION = re.compile(r"([-+]?)(\d+)\s+(\d+)/(\d+)")
_CLOCK = re.compile(
    r"(?P<h>\d{1,4}):(?P<m>\d{1,2})(?::(?P<s>\d{1,2}(?:\.\d+)?))?\s*(?P<half>[AaPp](?:[Mm])?)?"
)
_HOUR = re.compile(r"(?P<h>\d{1,2})\s*(?P<half>[AaPp][Mm]?)")
_NUMERIC_DATE = re.compile(r"(\d{1,4})([-/.])(\d{1,2})(?:\2(\d{1,4}))?")
_NAMED_DATE = re.compile(
    r"(?:(?P<day>\d{1,2})[-\s/]*+)?(?P<month>[A-Za-z]{3,9})[-\s/,.]*+(?P<rest>\d{1,4})?"
    r"(?:[\s,]+(?P<year>\d{4}|\d{2}))?"
)
#: No fraction, date or time is written in more characters.
_LONGEST = 255
MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september",
    "october", "november", "december",
)  # fmt: skip
DAYS = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")


def number_in_text(text: str) -> float | None:
    """The number a text stands for, or None."""
    if _DIGIT.search(text) is None:
        return None
    stripped = text.strip(" \u00a0\t\r\n")
    if not stripped or not stripped.isascii():
        return None
    number = _plain(stripped)
    if number is not None:
        return number
    if len(stripped) > _LONGEST:
        return None
    fraction = _FRACTION.fullmatch(stripped)
    if fraction:
        sign, whole, over, under = fraction.groups()
        if int(under) == 0:
            return None
        value = int(whole) + int(over) / int(under)
        return -value if sign == "-" else value
    return moment_in_text(stripped)


def _plain(text: str) -> float | None:
    is_bracketed = text.startswith("(") and text.endswith(")")
    match = _NUMBER.fullmatch(text[1:-1].strip() if is_bracketed else text)
    if match is None or (match["sign"] and match["sign2"]):
        return None
    if is_bracketed and (match["sign"] or match["sign2"]):
        return None
    try:
        value = float(match["digits"].replace(",", "") + (match["exponent"] or ""))
    except OverflowError:
        return None
    if value in (float("inf"), float("-inf")) or len(match["percent"]) > 1:
        return None
    if match["percent"]:
        value /= 100
    is_negative = is_bracketed or "-" in (match["sign"], match["sign2"])
    return -value if is_negative else value


def moment_in_text(text: str) -> float | None:
    """The serial number of a date, a time of day, or both."""
    day = date_in_text(text)
    if day is not None:
        return day
    time = time_in_text(text)
    if time is not None:
        return time
    head, _, tail = text.partition("T" if re.match(r"\d{4}-\d\d-\d\dT", text) else " ")
    while tail:
        day, time = date_in_text(head.strip()), time_in_text(tail.strip())
        if day is not None and time is not None:
            return day + time
        more, _, tail = tail.partition(" ")
        head = f"{head} {more}"
    return None


def time_in_text(text: str) -> float | None:
    """The fraction of a day, or more than one for more than 24 hours."""
    match = _CLOCK.fullmatch(text)
    if match:
        hours, minutes = int(match["h"]), int(match["m"])
        seconds = float(match["s"] or 0)
    else:
        match = _HOUR.fullmatch(text)
        if match is None:
            return None
        hours, minutes, seconds = int(match["h"]), 0, 0.0
    if match["half"]:
        if not 0 <= hours <= 12:
            return None
        hours = hours % 12 + (12 if match["half"][0] in "pP" else 0)
    if (minutes > 59 and hours > 0) or (seconds >= 60 and minutes > 0):
        return None
    return (hours * 3600 + minutes * 60 + seconds) / 86400


def date_in_text(text: str) -> float | None:
    numeric = _NUMERIC_DATE.fullmatch(text)
    if numeric:
        return _numeric_date(numeric)
    named = _NAMED_DATE.fullmatch(text)
    if named is None:
        return None
    month = _month(named["month"])
    if month is None:
        return None
    day, rest, year = named["day"], named["rest"], named["year"]
    if day is not None and year is None:
        return _serial(rest, month, day)
    if day is None and rest is not None and year is not None:
        return _serial(year, month, rest)
    if day is None and rest is not None and year is None:
        if len(rest) == 4 or int(rest) > 31:
            return _serial(rest, month, "1")
        return _serial(None, month, rest)
    return None


def _month(word: str) -> int | None:
    lowered = word.lower()
    for number, name in enumerate(MONTHS, 1):
        if lowered in (name, name[:3]):
            return number
    return None


def _numeric_date(match: re.Match[str]) -> float | None:
    first, mark, second, third = match.groups()
    if mark == "." or len(first) == 3:
        return None
    if len(first) == 4:
        return _serial(first, int(second), third or "1")
    if third is None:
        if int(first) > 12:
            return None
        if int(second) > 31:
            return _serial(second, int(first), "1")
        return _serial(None, int(first), second)
    return _serial(third, int(first), second)


def _serial(year: str | None, month: int, day: str) -> float | None:
    if year is None:
        return None  # to Excel it is this year, but answers here do not depend on a clock
    full = int(year)
    if len(year) <= 2:
        full += 2000 if full < 30 else 1900
    if not 1900 <= full <= 9999 or not 1 <= month <= 12:
        return None
    if (full, month, int(day)) == (1900, 2, 29):
        return 60.0
    try:
        return serial_of(full, month, int(day))
    except ValueError:
        return None
