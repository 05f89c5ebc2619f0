"""Scalar functions that read texts: regular expressions, parts, JSON; and clocks in time zones.

Regular expressions are those of Python. Kernels compute all of this by code of their own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from millstream.values.core import plain_text, rules
from millstream.values.core.scalar import Scalar, ScalarFault, Signature
from millstream.values.types import BOOLEAN, INTEGER, TEXT, TIME, Kind, Type

NOT_A_PATTERN = "not a regular expression"
NOT_JSON = "not JSON"
NOT_A_PATH = "not a path of JSON"
NOT_A_ZONE = "not a time zone"
NO_CALENDAR = "no calendar has this time"

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - what clocks show is of no zone
_STEP = re.compile(r"""\.(?P<name>[^.\[\]"\s]+)|\."(?P<quoted>[^"]*)"|\[(?P<number>\d+)\]""")
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b",
            "\f": "\\f"}  # fmt: skip


# --- regular expressions ----------------------------------------------------------------


def _searched(text: str, pattern: str) -> re.Match[str] | None:
    try:
        return re.search(pattern, text)
    except (re.error, OverflowError, RecursionError):
        raise ScalarFault(NOT_A_PATTERN) from None


def _extracted(text: str, pattern: str, group: int = 0) -> str | None:
    match = _searched(text, pattern)
    if match is None or not 0 <= group <= match.re.groups:
        return None
    return match.group(group)


def _replaced(text: str, pattern: str, new: str) -> str:
    _searched(text, pattern)
    try:
        return re.sub(pattern, new, text)
    except (re.error, IndexError):
        raise ScalarFault(NOT_A_PATTERN) from None


# --- parts ------------------------------------------------------------------------------


def _parts(text: str, separator: str) -> list[str]:
    if not separator:
        return [text]
    parts, rest = [], text
    while (place := plain_text.position(rest, separator)) > 0:
        parts.append(rest[: place - 1])
        rest = rest[place - 1 + len(separator) :]
    return [*parts, rest]


def _part(text: str, separator: str, number: int) -> str:
    """From 1; of negative numbers from the end; empty where there is none."""
    parts = _parts(text, separator)
    place = number - 1 if number > 0 else len(parts) + number
    return parts[place] if number != 0 and 0 <= place < len(parts) else ""


def _split(text: str, separator: str) -> str:
    return f"[{', '.join(_quoted(part) for part in _parts(text, separator))}]"


# --- JSON -------------------------------------------------------------------------------


def _quoted(text: str) -> str:
    letters = (_ESCAPES.get(c) or (f"\\u{ord(c):04x}" if c < " " else c) for c in text)
    return f'"{"".join(letters)}"'


def _json(kinds: list[Kind], value: Any) -> str:
    match kinds[0]:
        case Kind.TEXT:
            return _quoted(value)
        case Kind.BOOLEAN:
            return "true" if value else "false"
        case Kind.NUMBER:
            return repr(value) if value - value == 0 else "null"
        case Kind.TIME:
            text = plain_text.time_text(value)
            if text is None:
                raise ScalarFault(NO_CALENDAR)
            return f'"{text}"'
        case Kind.DURATION:
            return f'"{value}us"'
        case _:
            return str(value)


def _no_constant(_: str) -> Any:
    raise ValueError


def _found(text: str, path: str) -> Any:
    """What a text of JSON has at a path such as `$.a.b[0]`; None if there is no such thing."""
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise ScalarFault(NOT_JSON) from None
    if not path.startswith("$"):
        raise ScalarFault(NOT_A_PATH)
    place = 1
    while place < len(path):
        step = _STEP.match(path, place)
        if step is None:
            raise ScalarFault(NOT_A_PATH)
        place = step.end()
        if step["number"] is not None:
            number = int(step["number"])
            is_there = isinstance(value, list) and number < len(value)
            value = value[number] if is_there else None
        else:
            name = step["name"] if step["name"] is not None else step["quoted"]
            value = value.get(name) if isinstance(value, dict) else None
    return value


def _plain_of(value: Any) -> str | None:
    if value is None or isinstance(value, (dict, list)):
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    return _held(value if isinstance(value, str) else repr(value))


def _held(text: str) -> str:
    """A text that files can hold: JSON may spell halves of characters."""
    if any("\ud800" <= c <= "\udfff" for c in text):
        raise ScalarFault(NOT_JSON)
    return text


def _value(text: str, path: str) -> str | None:
    return _plain_of(_found(text, path))


def _query(text: str, path: str) -> str | None:
    value = _found(text, path)
    return None if value is None else _held(json.dumps(value, ensure_ascii=False))


def _as_text(text: str, path: str) -> str | None:
    value = _found(text, path)
    return _query(text, path) if isinstance(value, (dict, list)) else _plain_of(value)


# --- clocks -----------------------------------------------------------------------------


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ScalarFault(NOT_A_ZONE) from None


def _shown(time: int, zone: str) -> int:
    """What clocks in a zone show at a time, as if it were UTC."""
    known = _zone(zone)
    try:
        clock = (_EPOCH + timedelta(microseconds=time)).replace(tzinfo=UTC).astimezone(known)
    except OverflowError:
        raise ScalarFault(NO_CALENDAR) from None
    return (clock.replace(tzinfo=None) - _EPOCH) // timedelta(microseconds=1)


def _meant(shown: int, zone: str) -> int:
    """The time at which clocks in a zone show something; the first of two."""
    known = _zone(zone)
    try:
        clock = (_EPOCH + timedelta(microseconds=shown)).replace(tzinfo=known)
        return (clock - _EPOCH.replace(tzinfo=UTC)) // timedelta(microseconds=1)
    except OverflowError:
        raise ScalarFault(NO_CALENDAR) from None


# --- the table --------------------------------------------------------------------------


def _either(*choices: tuple[Type, ...], result: Type) -> Callable[..., Signature | str]:
    """Any of several lists of arguments."""

    def rule(args: tuple[Type, ...]) -> Signature | str:
        if args in choices:
            return Signature(args, result)
        answer = rules.fixed(*choices[0], result=result)(args)
        return answer if isinstance(answer, str) else Signature(args, result)

    return rule


_TWO = rules.fixed(TEXT, TEXT, result=TEXT)
_MOVED = rules.fixed(TIME, TEXT, result=TIME)

READING: tuple[Scalar, ...] = (
    Scalar("regexp_like", rules.fixed(TEXT, TEXT, result=BOOLEAN), "regexp_like(text, pattern)",
           lambda text, pattern: _searched(text, pattern) is not None),
    Scalar("regexp_extract", _either((TEXT, TEXT), (TEXT, TEXT, INTEGER), result=TEXT),
           "regexp_extract(text, pattern [, group]): null if it is not there", _extracted),
    Scalar("regexp_replace", rules.fixed(TEXT, TEXT, TEXT, result=TEXT),
           r"regexp_replace(text, pattern, new): \1 is a group", _replaced),
    Scalar("split_part", rules.fixed(TEXT, TEXT, INTEGER, result=TEXT),
           "split_part(text, separator, number): from 1, or from -1 at the end", _part),
    Scalar("split", _TWO, "split(text, separator): an array of JSON", _split),
    Scalar("json", rules.any_type(TEXT), "json(a): as JSON", _json, sees_kinds=True),
    Scalar("json_value", _TWO, "json_value(text, '$.a.b[0]'): a text, a number or a truth", _value),
    Scalar("json_query", _TWO, "json_query(text, '$.a'): whatever is there, as JSON", _query),
    Scalar("json_text", _TWO, "json_text(text, '$.a'): a text as it is, others as JSON", _as_text),
    Scalar("local_time", _MOVED, "local_time(time, zone): what clocks show there", _shown),
    Scalar("zoned_time", _MOVED, "zoned_time(shown, zone): when clocks there show it", _meant),
)  # fmt: skip
