"""Values out of JSON: a row to a tuple, by the names of its columns."""

from __future__ import annotations

import json
import math
from typing import Any

from millstream.values.instants import parse_time
from millstream.values.records.types import (
    BOOL,
    BYTES,
    FINGERPRINT,
    FLOAT,
    INT,
    STRING,
    TIME,
    UINT,
    ArrayOf,
    MapOf,
    RecordType,
    TupleOf,
    resolved,
)
from millstream.values.undefined import Undefined


def from_json(raw: bytes, type_: RecordType) -> Any:
    """The value of a type that a JSON text tells."""
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        raise Undefined(f"not JSON, so no {type_}") from None
    return read(value, type_, "the row")


def read(given: Any, type_: RecordType, where: str) -> Any:
    """The value of a type in what JSON gave."""
    match resolved(type_):
        case TupleOf(fields):
            if isinstance(given, list) and len(given) == len(fields):
                return tuple(read(v, f.type, where) for v, f in zip(given, fields, strict=True))
            if not isinstance(given, dict):
                raise _unfit(given, type_, where)
            return tuple(_column(given, f.name or "", f.type) for f in fields)
        case ArrayOf(element) if isinstance(given, list):
            return tuple(read(item, element, where) for item in given)
        case MapOf(key, value) if isinstance(given, dict):
            return {_key(k, key, where): read(v, value, where) for k, v in given.items()}
        case plain:
            return _plain(given, plain, where)


def _column(row: dict[str, Any], name: str, type_: RecordType) -> Any:
    if name not in row:
        raise Undefined(f"the row has no column {name!r}")
    return read(row[name], type_, f"column {name!r}")


def _key(text: str, type_: RecordType, where: str) -> Any:
    if resolved(type_) in (INT, UINT, FINGERPRINT, TIME) and text.lstrip("-").isdigit():
        return _plain(int(text), resolved(type_), where)
    return _plain(text, resolved(type_), where)


_LIMITS = {
    INT: (-(2**63), 2**63 - 1), TIME: (-(2**63), 2**63 - 1),
    UINT: (0, 2**64 - 1), FINGERPRINT: (0, 2**64 - 1),
}  # fmt: skip


def _plain(value: Any, type_: RecordType, where: str) -> Any:
    match value:
        case bool() if type_ == BOOL:
            return value
        case bool() | None:
            pass
        case int() | float() if type_ == FLOAT:
            return float(value)
        case float() if type_ in _LIMITS and math.isfinite(value) and value.is_integer():
            return _plain(int(value), type_, where)
        case int() if type_ in _LIMITS and _LIMITS[type_][0] <= value <= _LIMITS[type_][1]:
            return value
        case str() if type_ == STRING:
            return value
        case str() if type_ == BYTES:
            return value.encode("utf-8", "surrogatepass")
        case str() if type_ == TIME and (micros := parse_time(value)) is not None:
            return micros
    raise _unfit(value, type_, where)


def _unfit(value: Any, type_: RecordType, where: str) -> Undefined:
    text = "nothing" if value is None else json.dumps(value)
    shown = text if len(text) <= 40 else text[:37] + "..."
    return Undefined(f"{where} has {shown}, which is no {type_}")
