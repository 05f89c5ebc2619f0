"""What operators take and give. Types are never mixed, but for times and numbers of them."""

from __future__ import annotations

from millstream.languages.sawzall.scope import UNKNOWN
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
    Basic,
    RecordType,
    resolved,
)

COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
ADDITIONS = ("+", "-", "|", "^")
MULTIPLICATIONS = ("*", "/", "%", "<<", ">>", "&")

_NUMBERS = (INT, UINT, FLOAT)
_TAKEN: dict[str, tuple[Basic, ...]] = {
    "+": (*_NUMBERS, TIME, STRING, BYTES, FINGERPRINT),
    "-": (*_NUMBERS, TIME),
    "*": _NUMBERS,
    "/": (*_NUMBERS, TIME),
    "%": (INT, UINT, TIME),
    "&": (INT, UINT, FINGERPRINT),
    "|": (INT, UINT, FINGERPRINT),
    "^": (INT, UINT, FINGERPRINT),
    "<<": (INT, UINT),
    ">>": (INT, UINT),
}
_ORDERED = (INT, UINT, FLOAT, TIME, FINGERPRINT, STRING, BYTES, BOOL)
_UNARY: dict[str, tuple[Basic, ...]] = {
    "-": (INT, FLOAT, UINT, TIME), "+": (INT, FLOAT, UINT, TIME), "~": (INT, UINT),
    "!": (BOOL,), "not": (BOOL,),
}  # fmt: skip
#: A time and a number of times.
_MIXED: dict[tuple[str, RecordType, RecordType], RecordType] = {
    ("*", TIME, INT): TIME, ("*", INT, TIME): TIME, ("/", TIME, INT): TIME,
    ("<<", UINT, INT): UINT, (">>", UINT, INT): UINT,
}  # fmt: skip


def binary(operator: str, left: RecordType, right: RecordType, *, same: bool) -> RecordType | str:
    """The type of `left operator right`, or a sentence on what is wrong."""
    if UNKNOWN in (left, right):
        return BOOL if operator in COMPARISONS else UNKNOWN
    mixed = _MIXED.get((operator, left, right))
    if mixed is not None:
        return mixed
    if not same:
        return f"`{operator}` takes two values of one type, got {left} and {right}"
    plain = resolved(left)
    if operator in ("==", "!="):
        return BOOL
    if operator in COMPARISONS:
        return BOOL if plain in _ORDERED else f"values of {left} have no order"
    if operator == "+" and isinstance(plain, ArrayOf):
        return left
    if plain in _TAKEN[operator]:
        return left
    return f"`{operator}` does not take {left}"


def unary(operator: str, type_: RecordType) -> RecordType | str:
    if type_ == UNKNOWN:
        return UNKNOWN
    if resolved(type_) in _UNARY[operator]:
        return type_
    return f"`{operator}` does not take {type_}"
