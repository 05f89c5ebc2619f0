"""Scalar functions that turn a value of one type into one of another."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from millstream.values.core import plain_text, rules
from millstream.values.core.scalar import OVERFLOW, Operation, Scalar, ScalarFault
from millstream.values.types import BOOLEAN, DURATION, INTEGER, NUMBER, TEXT, TIME, Kind, Type


def _cast(to: str, value: Any, kind: Kind) -> Any:
    match to, kind:
        case "number", Kind.TEXT:
            return _number_of_text(value)
        case "number", _:
            return float(value)
        case "integer", Kind.TEXT:
            return _integer_of_text(value)
        case "integer", Kind.NUMBER:
            if not math.isfinite(value):
                raise ScalarFault("integer overflow")
            return math.trunc(value)
        case "text", _:
            return _text_of(value, kind)
        case "boolean", Kind.TEXT:
            if plain_text.trim(value).lower() not in ("true", "false"):
                raise ScalarFault("not a boolean")
            return plain_text.trim(value).lower() == "true"
        case "boolean", _:
            return bool(value)
        case "time", Kind.TEXT:
            return _time_of_text(value)
        case _:
            return int(value)


def _number_of_text(text: str) -> float:
    number = plain_text.number_in(text)
    if number is None:
        raise ScalarFault("not a number")
    return number


def _integer_of_text(text: str) -> int:
    digits = plain_text.trim(text)
    if re.fullmatch(r"[+-]?[0-9]+", digits) is None:
        raise ScalarFault("not an integer")
    # Longer digits cannot fit, and Python refuses to convert thousands of them.
    if len(digits.lstrip("+-0")) > 19:
        raise ScalarFault("integer overflow")
    return int(digits)


def _time_of_text(text: str) -> int:
    moment = plain_text.time_in(text)
    if moment is None:
        raise ScalarFault("not a time")
    return moment


def _text_of(value: Any, kind: Kind) -> str:
    match kind:
        case Kind.BOOLEAN:
            return "true" if value else "false"
        case Kind.NUMBER:
            return repr(value)
        case Kind.DURATION:
            return f"{value}us"
        case Kind.TIME:
            text = plain_text.time_text(value)
            if text is None:
                raise ScalarFault("no calendar has this time")
            return text
        case _:
            return str(value)


#: The value is held alike before and after: nothing is computed.
SAME = Operation("same", "{0}")
_ALL = frozenset(Kind)


def _scalar(
    result: Type, accepted: frozenset[Kind], usage: str, loop: Mapping[str, Operation]
) -> Scalar:
    name = result.kind.value
    return Scalar(name, rules.cast(result, accepted), usage, _to(name), loop, sees_kinds=True)


def _to(name: str) -> Callable[[list[Kind], Any], Any]:
    return lambda kinds, value: _cast(name, value, kinds[0])


CASTS: tuple[Scalar, ...] = (
    _scalar(NUMBER, _ALL - {Kind.TIME, Kind.DURATION}, "number(a)",
            {"f": SAME, "i": Operation("number_of_integer", "float({0})"),
             "b": Operation("number_of_boolean")}),
    _scalar(INTEGER, _ALL, "integer(a): times as microseconds",
            {"i": SAME, "f": Operation("truncate", faults=(OVERFLOW,)),
             "b": Operation("integer_of_boolean")}),
    _scalar(TEXT, _ALL, "text(a)", {}),
    _scalar(BOOLEAN, frozenset({Kind.TEXT, Kind.INTEGER, Kind.BOOLEAN}), "boolean(a)",
            {"b": SAME, "i": Operation("boolean_of_integer", "{0} != 0")}),
    _scalar(TIME, frozenset({Kind.TEXT, Kind.INTEGER, Kind.TIME}), "time(a)", {"i": SAME}),
    _scalar(DURATION, frozenset({Kind.INTEGER, Kind.DURATION}), "duration(microseconds)",
            {"i": SAME}),
)  # fmt: skip
