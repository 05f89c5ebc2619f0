"""What functions of text compute, on Python values that are not null.

A function that cannot compute its value returns a `TextFault`, which becomes null. The
messages of `FAULTS` are in the order of the bits that stand for them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from millstream.calculus.types import INT64_MAX, INT64_MIN, Kind
from millstream.kernels.loop.text_reading import AS_JSON, READING, CannotRead
from millstream.values.core.reading import (
    NO_CALENDAR,
    NOT_A_PATH,
    NOT_A_PATTERN,
    NOT_A_ZONE,
    NOT_JSON,
)
from millstream.values.instants import parse_time, render_time
from millstream.wildcards import like_pattern

_INTEGER = re.compile(r"[+-]?[0-9]+")


@dataclass(frozen=True, slots=True)
class TextFault:
    """The number of the message in `FAULTS`."""

    number: int


_FIRST, _SECOND = TextFault(0), TextFault(1)

#: By function and kind of its first argument: what can go wrong.
FAULTS: dict[tuple[str, Kind], tuple[str, ...]] = {
    ("substring", Kind.TEXT): ("negative length",),
    ("number", Kind.TEXT): ("not a number",),
    ("integer", Kind.TEXT): ("not an integer", "integer overflow"),
    ("boolean", Kind.TEXT): ("not a boolean",),
    ("time", Kind.TEXT): ("not a time", "time overflow"),
    ("text", Kind.TIME): (NO_CALENDAR,),
    ("json", Kind.TIME): (NO_CALENDAR,),
    **{(name, Kind.TEXT): (NOT_A_PATTERN,)
       for name in ("regexp_like", "regexp_extract", "regexp_replace")},
    **{(name, Kind.TEXT): (NOT_JSON, NOT_A_PATH)
       for name in ("json_value", "json_query", "json_text")},
    **{(name, Kind.TIME): (NOT_A_ZONE, NO_CALENDAR) for name in ("local_time", "zoned_time")},
}  # fmt: skip


def _substring(text: str, start: int, length: int | None = None) -> str | TextFault:
    if length is None:
        return text[max(start - 1, 0) :]
    if length < 0:
        return _FIRST
    return text[max(start - 1, 0) : max(start - 1 + length, 0)]


def _replace(text: str, old: str, new: str) -> str:
    return text.replace(old, new) if old else text


def _number(text: str) -> float | TextFault:
    try:
        return _FIRST if "_" in text else float(text.strip())
    except ValueError:
        return _FIRST


def _integer(text: str) -> int | TextFault:
    digits = text.strip()
    if _INTEGER.fullmatch(digits) is None:
        return _FIRST
    # Longer digits cannot fit, and Python refuses to convert thousands of them.
    if len(digits.lstrip("+-0")) > 19:
        return _SECOND
    return _fitted(int(digits))


def _fitted(value: int) -> int | TextFault:
    return value if INT64_MIN <= value <= INT64_MAX else _SECOND


def _boolean(text: str) -> bool | TextFault:
    return {"true": True, "false": False}.get(text.strip().lower(), _FIRST)


def _time(text: str) -> int | TextFault:
    moment = parse_time(text)
    return _FIRST if moment is None else _fitted(moment)


def _text_of_number(number: float) -> str:
    return repr(number + 0.0)  # there is no minus zero


def _text_of_time(time: int) -> str | TextFault:
    return render_time(time) or _FIRST


# --- the table --------------------------------------------------------------------------

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "||": lambda a, b: a + b,
    "length": len,
    "upper": str.upper,
    "lower": str.lower,
    "trim": str.strip,
    "substring": _substring,
    "starts_with": str.startswith,
    "ends_with": str.endswith,
    "contains": lambda text, part: part in text,
    "position": lambda text, part: text.find(part) + 1,
    "replace": _replace,
    "like": lambda text, *pattern: like_pattern(*pattern).matches(text),
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}

_CASTS: dict[tuple[str, Kind], Callable[[Any], Any]] = {
    ("number", Kind.TEXT): _number,
    ("integer", Kind.TEXT): _integer,
    ("boolean", Kind.TEXT): _boolean,
    ("time", Kind.TEXT): _time,
    ("text", Kind.TEXT): lambda text: text,
    ("text", Kind.NUMBER): _text_of_number,
    ("text", Kind.INTEGER): str,
    ("text", Kind.BOOLEAN): lambda value: "true" if value else "false",
    ("text", Kind.TIME): _text_of_time,
    ("text", Kind.DURATION): lambda duration: f"{duration}us",
}


def _caught(read: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        try:
            return read(*args)
        except CannotRead as fault:
            return TextFault(fault.number)

    return call


_FUNCTIONS |= {name: _caught(read) for name, read in READING.items()}
_CASTS |= {("json", kind): _caught(written) for kind, written in AS_JSON.items()}


def text_function(function: str, first: Kind) -> Callable[..., Any]:
    """The meaning of a strict function, by its name and the kind of its first argument."""
    return _CASTS.get((function, first)) or _FUNCTIONS[function]
