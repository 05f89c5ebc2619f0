"""One cell to one value: the definition of what each type accepts.

This is the slow and obvious way. The compiled parsers in `cells` take what is common and
leave everything else to these functions, so both always agree.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

from millstream.calculus.expressions import UNITS
from millstream.calculus.types import INT64_MAX, INT64_MIN, Kind, Value
from millstream.connectors.time_style import PLAIN, NoSuchTime, TimeStyle, instant_of
from millstream.values.instants import parse_time

_DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_WHOLE = re.compile(r"([+-]?)0*(\d*)", re.ASCII)
_NOT_FINITE = re.compile(r"[+-]?(nan|inf|infinity)", re.ASCII | re.IGNORECASE)
#: What counts a time: no number that it would take long to compute exactly.
_COUNT = re.compile(r"[+-]?(\d{1,40}\.?\d{0,40}|\.\d{1,40})([eE][+-]?\d{1,2})?", re.ASCII)
_DURATION = re.compile(r"([+-]?\d{1,20}(?:\.\d{1,20})?) *([a-z]+)", re.ASCII)
#: What an integer may count in a column of times: so many microseconds, one in so many.
TIME_UNITS = {"s": (1_000_000, 1), "ms": (1_000, 1), "us": (1, 1), "ns": (1, 1_000)}
_NOT_FINITE_IN_JSON = frozenset({"NaN", "Infinity", "-Infinity"})

EXPECTED = {
    Kind.NUMBER: "a number",
    Kind.INTEGER: "an integer",
    Kind.TEXT: "a text",
    Kind.BOOLEAN: "true or false",
    Kind.TIME: "a time",
    Kind.DURATION: "a duration",
}


class Unfit(ValueError):
    """A cell or a row that cannot be taken; its text is the reason."""


class Numeral(str):
    """A number of a JSON text, still as it was written, so that no digit is lost."""

    __slots__ = ()


def brief(text: str, limit: int = 40) -> str:
    return text if len(text) <= limit else f"{text[:limit]}..."


def quoted(text: str) -> str:
    return json.dumps(brief(text), ensure_ascii=False)


def number_of(text: str) -> float:
    if _DECIMAL.fullmatch(text):
        value = float(text)
        if math.isinf(value):
            raise Unfit(f"{brief(text)} does not fit a 64-bit number")
        return value
    if _NOT_FINITE.fullmatch(text):
        return float(text)
    raise Unfit(f"expected a number, got {quoted(text)}")


def integer_of(text: str) -> int:
    value = _whole(text)
    if value is None:
        raise Unfit(f"expected an integer, got {quoted(text)}")
    return value


def text_of(text: str) -> str:
    return text


def boolean_of(text: str) -> bool:
    lowered = text.lower()
    if lowered in ("true", "false"):
        return lowered == "true"
    raise Unfit(f"expected true or false, got {quoted(text)}")


def time_of(text: str, style: TimeStyle = PLAIN) -> int:
    """Microseconds of a text; where the unit of numbers is told, they may have fractions.

    Where a format is told, a number counts time only if its unit is told too.
    """
    is_count = style.format is None or style.unit is not None
    value = _counted(text, style.unit) if is_count else None
    if value is None and style.is_plain:
        value = parse_time(text)
    elif value is None:
        try:
            value = instant_of(text, style)
        except NoSuchTime as why:
            raise Unfit(str(why)) from None
    if value is None:
        if style.format is not None:
            raise Unfit(f"expected a time such as {style.format}, got {quoted(text)}")
        hint = "; a number with a fraction needs a unit" if _COUNT.fullmatch(text) else ""
        raise Unfit(f"expected a time, got {quoted(text)}{hint}")
    return _fitting(value, text)


def _counted(text: str, unit: str | None) -> int | None:
    if unit is None:
        return _whole(text)
    count = text.strip()
    if not _COUNT.fullmatch(count):
        return None
    micros, parts = TIME_UNITS[unit]
    return math.floor(Fraction(count) * micros / parts)


def duration_of(text: str) -> int:
    """Microseconds, or a text such as `5 min`."""
    value = _whole(text)
    if value is not None:
        return value
    match = _DURATION.fullmatch(text)
    if not match or match[2] not in UNITS:
        raise Unfit(f"expected a duration such as 5 min, got {quoted(text)}")
    micros = Decimal(match[1]) * UNITS[match[2]]
    if micros != int(micros):
        raise Unfit(f"{quoted(text)} is not a whole number of microseconds")
    return _fitting(int(micros), text)


_FROM_TEXT: dict[Kind, Callable[[str], Value]] = {
    Kind.NUMBER: number_of,
    Kind.INTEGER: integer_of,
    Kind.TEXT: text_of,
    Kind.BOOLEAN: boolean_of,
    Kind.DURATION: duration_of,
}


def from_text(kind: Kind, text: str, style: TimeStyle = PLAIN) -> Value:
    """The value of a cell; `style` is how it is written if it is a time."""
    return time_of(text, style) if kind is Kind.TIME else _FROM_TEXT[kind](text)


def from_json(kind: Kind, value: object, style: TimeStyle = PLAIN) -> Value:
    """A value of a parsed JSON text, whose numbers are numerals."""
    if value is None:
        return None
    if isinstance(value, bool):
        if kind is Kind.BOOLEAN:
            return value
    elif isinstance(value, Numeral):
        if kind not in (Kind.TEXT, Kind.BOOLEAN):
            return _from_numeral(kind, value, style)
    elif isinstance(value, str) and kind not in (Kind.INTEGER, Kind.BOOLEAN):
        return _from_json_text(kind, value, style)
    raise Unfit(f"expected {EXPECTED[kind]}, got {_named(value)}")


def _from_numeral(kind: Kind, numeral: Numeral, style: TimeStyle) -> Value:
    if kind is Kind.NUMBER:
        return number_of(numeral)
    value = _counted(numeral, style.unit) if kind is Kind.TIME else _whole(numeral)
    if value is None:
        wanted = "an integer" if kind is Kind.INTEGER else f"{EXPECTED[kind]} in microseconds"
        raise Unfit(f"expected {wanted}, got {brief(numeral)}")
    return _fitting(value, numeral)


def _from_json_text(kind: Kind, text: str, style: TimeStyle) -> Value:
    if kind is Kind.TEXT:
        return _unicode(text)
    if kind is Kind.NUMBER and text in _NOT_FINITE_IN_JSON:
        return float(text)
    if kind is Kind.NUMBER:
        raise Unfit(f"expected a number, got the text {quoted(text)}")
    return time_of(text, style) if kind is Kind.TIME else duration_of(text)


def _unicode(text: str) -> str:
    """Half of a surrogate pair can be written in JSON but is no character."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        code = ord(text[error.start])
        raise Unfit(f"\\u{code:04x} alone is not a character") from None
    return text


def _named(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case Numeral():
            return brief(value)
        case str():
            return f"the text {quoted(value)}"
        case list():
            return "a list"
        case _:
            return "an object"


def _whole(text: str) -> int | None:
    """The integer, or None if the text is not one."""
    match = _WHOLE.fullmatch(text)
    if not match or not text[-1:].isdigit():
        return None
    sign, digits = match.groups()
    if len(digits) > 19:
        raise Unfit(f"{brief(text)} does not fit a 64-bit integer")
    return _fitting(int(f"{sign}{digits or 0}"), text)


def _fitting(value: int, text: str) -> int:
    if not INT64_MIN <= value <= INT64_MAX:
        raise Unfit(f"{brief(text)} does not fit a 64-bit integer")
    return value
