"""Lines of JSON that need no closer look, in 0.28 of the time of the definition.

Nearly all lines that are published are flat objects of whole numbers and plain texts. What such a
line says is what `json_rows` reads; of any other line nothing is said here.
"""

from __future__ import annotations

import math

import orjson

from millstream.calculus.types import INT64_MAX, INT64_MIN, Kind, Row, Value
from millstream.connectors.json_rows import values_of_line
from millstream.connectors.layout import InputColumns, check_values
from millstream.connectors.values import Unfit, from_json

_WHOLE = (Kind.INTEGER, Kind.DURATION)
_TEXTS = (Kind.TIME, Kind.DURATION)


def values_of(layout: InputColumns, line: bytes, longest: int) -> Row:
    """The values of a line; `Unfit` says what is wrong with it."""
    values = _plain(layout, line) if len(line) <= longest else None
    if values is None:
        return values_of_line(layout, line, longest)
    return check_values(layout, values)


def _plain(layout: InputColumns, line: bytes) -> Row | None:
    """None if the definition has to be asked."""
    if b"\\" in line:
        return None
    try:
        members = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    if type(members) is not dict:
        return None
    texts = 0
    for value in members.values():
        if type(value) is str:
            texts += 1
        elif isinstance(value, (list, dict)):
            return None
    # No quote is in a text, so that these are all there are, unless a key stands twice.
    if line.count(b'"') != 2 * (len(members) + texts):
        return None
    made: list[Value] = []
    for field in layout.fields:
        value = members.get(field.name)
        if value is not None:
            value = _fitting(field.type.kind, value, layout)
            if value is None:
                return None
        made.append(value)
    return tuple(made)


def _fitting(kind: Kind, value: object, layout: InputColumns) -> Value:
    """A value that is of its kind without a doubt, or None."""
    if type(value) is str:
        return _of_text(kind, value, layout)
    if type(value) is bool:
        return value if kind is Kind.BOOLEAN else None
    if type(value) is float:
        return value if kind is Kind.NUMBER and math.isfinite(value) else None
    assert type(value) is int
    if kind is Kind.NUMBER:
        return float(value) if value else None  # it may be minus zero
    is_whole = kind in _WHOLE or (kind is Kind.TIME and layout.times.unit is None)
    return value if is_whole and INT64_MIN <= value <= INT64_MAX else None


def _of_text(kind: Kind, text: str, layout: InputColumns) -> Value:
    if kind is Kind.TEXT:
        return text
    if kind not in _TEXTS:
        return None
    try:
        return from_json(kind, text, layout.times)
    except Unfit:
        return None  # the definition says why
