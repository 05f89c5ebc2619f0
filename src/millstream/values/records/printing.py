"""Values as texts: as they are shown, and as they are written in a program."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from millstream.values.records.keys import keys_of
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
from millstream.values.records.zones import time_text
from millstream.values.undefined import Undefined

_ESCAPES = {
    '"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\a": "\\a", "\b": "\\b",
    "\f": "\\f", "\v": "\\v",
}  # fmt: skip


def quoted(text: str, mark: str = '"') -> str:
    """In quotes, with backslashes before what would not be seen."""
    return mark + "".join(_escaped(c, mark) for c in text) + mark


def _escaped(c: str, mark: str) -> str:
    if c in "\"'" and c != mark:
        return c
    if c == "'":
        return "\\'"
    if c in _ESCAPES:
        return _ESCAPES[c]
    if c.isprintable():
        return c
    code = ord(c)
    return (
        f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}" if code < 2**16 else f"\\U{code:08x}"
    )


def quoted_bytes(raw: bytes) -> str:
    """`B"..."` if all of it is plain text, or else `X"0aff"`."""
    if all(32 <= byte < 127 or byte in b"\n\t\r" for byte in raw):
        return "B" + quoted(raw.decode("ascii"))
    return f'X"{raw.hex()}"'


def general(value: float) -> str:
    """As C's %g."""
    return _unusual(value) or f"{value:g}"


def _unusual(value: float) -> str | None:
    if math.isfinite(value):
        return None
    return "nan" if value != value else "inf" if value > 0 else "-inf"


def enough_digits(value: float) -> str:
    """As C's %g, with as many digits as are needed to read the same number again."""
    if not math.isfinite(value):
        return general(value)
    return next(text for n in range(6, 18) if float(text := f"{value:.{n}g}") == value)


def shown(value: Any, type_: RecordType, zone: str = "UTC") -> str:
    """As a table shows it: strings bare if they stand alone, floats as %g."""
    match resolved(type_):
        case t if t == STRING:
            return str(value)
        case t if t == TIME:
            return _time(value, zone)
        case _:
            return inside(value, type_)


def printer(type_: RecordType, zone: str = "UTC") -> Callable[[Any], str]:
    """What shows values of a type, found once for many of them."""
    kind = resolved(type_)
    if kind in (STRING, INT):
        return str
    return general if kind == FLOAT else lambda value: shown(value, type_, zone)


def _time(value: int, zone: str) -> str:
    try:
        return time_text(value, zone)
    except Undefined:
        return f"{value}T"


def inside(value: Any, type_: RecordType) -> str:
    """As it is shown inside of another value."""
    return _written(value, type_, general)


def source_text(value: Any, type_: RecordType) -> str:
    """As a program writes it, with all its digits."""
    return _written(value, type_, _float_source)


def _float_source(value: float) -> str:
    text = enough_digits(value)
    return text if not text.lstrip("-").isdigit() else f"{text}.0"


def _written(value: Any, type_: RecordType, floats: Any) -> str:
    match resolved(type_):
        case ArrayOf(element):
            return _braced([_written(item, element, floats) for item in value])
        case MapOf(key, of):
            order = keys_of(key).order
            pairs = sorted(value.items(), key=lambda pair: order(pair[0]))
            parts = [f"{_written(k, key, floats)}: {_written(v, of, floats)}" for k, v in pairs]
            return _braced(parts) if parts else "{:}"
        case TupleOf(fields):
            return _braced([_written(v, f.type, floats)
                            for v, f in zip(value, fields, strict=True)])  # fmt: skip
        case t if t == FLOAT:
            return str(floats(value))
        case t if t == STRING:
            return quoted(value)
        case t if t == BYTES:
            return quoted_bytes(value)
        case t if t == BOOL:
            return "true" if value else "false"
        case t if t == UINT:
            return f"{value}U"
        case t if t == TIME:
            return f"{value}T"
        case t if t == FINGERPRINT:
            return f"0x{value:016x}P"
        case _:
            return str(value)


def _braced(parts: list[str]) -> str:
    return "{ " + ", ".join(parts) + " }" if parts else "{}"
