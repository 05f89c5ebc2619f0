"""What functions of text mean: character by character, slow and obvious.

The kernels have their own; what both would take from one place could be wrong in both.
"""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta

from millstream.values.types import INT64_MAX, INT64_MIN

_DAY = 86_400_000_000
_ERA_DAYS = 146_097  # days in 400 Gregorian years, after which the calendar repeats
_FIRST_DAY = date(1970, 1, 1).toordinal()
#: As people write them; digits are those of any script.
_NUMBER = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf|infinity|nan)", re.IGNORECASE)


def trim(text: str) -> str:
    while text and text[0].isspace():
        text = text[1:]
    while text and text[-1].isspace():
        text = text[:-1]
    return text


def substring(text: str, start: int, length: int | None = None) -> str:
    """The characters from a place on, the first being 1, and no more than a length of places."""
    places = enumerate(text, 1)
    return "".join(c for n, c in places if start <= n and (length is None or n < start + length))


def starts_with(text: str, prefix: str) -> bool:
    return _stands_at(text, prefix, 0)


def ends_with(text: str, suffix: str) -> bool:
    return len(suffix) <= len(text) and _stands_at(text, suffix, len(text) - len(suffix))


def position(text: str, part: str) -> int:
    """The first place at which a part stands, from 1; 0 if it stands nowhere."""
    places = (n + 1 for n in range(len(text) + 1) if _stands_at(text, part, n))
    return next(places, 0)


def _stands_at(text: str, part: str, place: int) -> bool:
    return text[place : place + len(part)] == part


def replace(text: str, old: str, new: str) -> str:
    """From left to right, never within what was put in; nothing is not replaced."""
    made, place = "", 0
    while place < len(text):
        if old and _stands_at(text, old, place):
            made += new
            place += len(old)
        else:
            made += text[place]
            place += 1
    return made


def like(text: str, pattern: str, escape: str = "") -> bool:
    """`_` is any character and `%` any number of them; after an escape each is itself.

    After each character of the pattern: which beginnings of the text it can stand for.
    """
    ends = {0}
    is_itself = False
    for wanted in pattern:
        if wanted == escape and not is_itself:
            is_itself = True
            continue
        if wanted == "%" and not is_itself:
            ends = set(range(min(ends, default=len(text) + 1), len(text) + 1))
        else:
            is_any = wanted == "_" and not is_itself
            ends = {n + 1 for n in ends if n < len(text) and (is_any or wanted == text[n])}
        is_itself = False
    return len(text) in ends


def number_in(text: str) -> float | None:
    text = trim(text)
    return float(text) if _NUMBER.fullmatch(text) else None


def time_in(text: str) -> int | None:
    """Microseconds, or ISO 8601; what has no offset is UTC."""
    text = trim(text)
    if re.fullmatch(r"[+-]?[0-9]{1,19}", text):
        return int(text) if INT64_MIN <= int(text) <= INT64_MAX else None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    since = timedelta(
        days=moment.toordinal() - _FIRST_DAY, hours=moment.hour, minutes=moment.minute,
        seconds=moment.second, microseconds=moment.microsecond,
    )  # fmt: skip
    return (since - (moment.utcoffset() or timedelta())) // timedelta(microseconds=1)


def calendar(time: int) -> tuple[int, int, int]:
    """Year, month and day of any time: whole eras are counted off first."""
    eras, day = divmod(time // _DAY, _ERA_DAYS)
    known = date.fromordinal(_FIRST_DAY + day)
    return known.year + 400 * eras, known.month, known.day


def time_text(time: int) -> str | None:
    """`2026-01-31T12:00:00.000000Z`, or None outside the years 1 to 9999."""
    year, month, day = calendar(time)
    seconds, micros = divmod(time % _DAY, 1_000_000)
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{micros:06}"
    return f"{year:04}-{month:02}-{day:02}T{clock}Z" if 1 <= year <= 9999 else None
