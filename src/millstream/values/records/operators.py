"""Operators on values of records, as functions: integers wrap, nothing is converted."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any, NoReturn

from millstream.values.records.fingerprints import fingerprint_of_bytes
from millstream.values.records.types import (
    BYTES,
    FINGERPRINT,
    FLOAT,
    STRING,
    UINT,
    ArrayOf,
    Basic,
    MapOf,
    RecordType,
    TupleOf,
    resolved,
    unsigned,
    wrapped,
)
from millstream.values.undefined import Undefined

DIVISION_BY_ZERO = "division by zero"
_BITS = 64


def quotient(a: int, b: int) -> int:
    """Towards zero."""
    if b == 0:
        raise Undefined(DIVISION_BY_ZERO)
    whole = abs(a) // abs(b)
    return whole if (a < 0) == (b < 0) else -whole


def remainder(a: int, b: int) -> int:
    if b == 0:
        raise Undefined(DIVISION_BY_ZERO)
    rest = abs(a) % abs(b)
    return -rest if a < 0 else rest


def float_quotient(a: float, b: float) -> float:
    if b != 0.0:
        return a / b
    if a == 0.0 or a != a:
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)


def shifted_left(a: int, b: int) -> int:
    return a << b if 0 <= b < _BITS else 0


def shifted_right(a: int, b: int) -> int:
    """Zeros come in from the left."""
    return unsigned(a) >> b if 0 <= b < _BITS else 0


_COMPARED: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le,
    ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_LOGICAL: dict[str, Callable[..., Any]] = {
    "and": lambda a, b: a and b, "or": lambda a, b: a or b, "!": operator.not_,
}  # fmt: skip
_INTEGERS: dict[str, Callable[..., int]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": quotient, "%": remainder,
    "&": operator.and_, "|": operator.or_, "^": operator.xor, "<<": shifted_left,
    ">>": shifted_right, "neg": operator.neg, "~": operator.invert, "pos": operator.pos,
}  # fmt: skip
_FLOATS: dict[str, Callable[..., float]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": float_quotient,
    "neg": operator.neg, "pos": operator.pos,
}  # fmt: skip


def operation(symbol: str, types: tuple[RecordType, ...]) -> Callable[..., Any]:
    """What an operator does with values of some types."""
    if symbol in _COMPARED:
        return _COMPARED[symbol]
    if symbol in _LOGICAL:
        return _LOGICAL[symbol]
    kinds = tuple(resolved(t) for t in types)
    if kinds[0] == FLOAT:
        return _FLOATS[symbol]
    if kinds[0] == FINGERPRINT and symbol == "+":
        return mixed
    if isinstance(kinds[0], Basic) and kinds[0] not in (STRING, BYTES):
        fitted = unsigned if {UINT, FINGERPRINT}.intersection(kinds) else wrapped
        plain = _INTEGERS[symbol]
        return lambda *values: fitted(plain(*values))
    return joined


def mixed(a: int, b: int) -> int:
    """A fingerprint of two, the one before the other."""
    return fingerprint_of_bytes(a.to_bytes(8, "big") + b.to_bytes(8, "big"))


def joined(a: Any, b: Any) -> Any:
    """One after the other."""
    return a + b if len(a) + len(b) <= MOST_ITEMS else too_many()


def too_many() -> NoReturn:
    raise Undefined(f"more than {MOST_ITEMS:,} items")


# --- parts of values -------------------------------------------------------------------


def item(type_: RecordType, held: Any, index: Any) -> Any:
    """What lies under an index of an array, a map or a text."""
    if isinstance(type_, MapOf):
        if index not in held:
            raise Undefined("the map has no such key")
        return held[index]
    if not 0 <= index < len(held):
        raise Undefined("the index is out of bounds")
    return ord(held[index]) if type_ == STRING else held[index]


def sliced(held: Any, low: int, high: int) -> Any:
    return held[max(low, 0) : max(high, 0)]


def with_item(type_: RecordType, held: Any, index: Any, value: Any) -> Any:
    """A copy with another value under an index."""
    if isinstance(type_, MapOf):
        return {**held, index: value}
    if not 0 <= index < len(held):
        raise Undefined("the index is out of bounds")
    return with_slice(type_, held, index, index + 1, made(type_, (value,)))


def with_slice(type_: RecordType, held: Any, low: int, high: int, value: Any) -> Any:
    low = min(max(low, 0), len(held))
    high = min(max(high, low), len(held))
    return held[:low] + value + held[high:]


def made(type_: RecordType, items: tuple[Any, ...]) -> Any:
    """An array, a tuple, a text or bytes of items, or a map of keys and values by turns."""
    match type_:
        case MapOf():
            return dict(zip(items[::2], items[1::2], strict=True))
        case ArrayOf() | TupleOf():
            return items
        case _ if type_ == STRING:
            return "".join(map(character, items))
        case _:
            return bytes(i & 255 for i in items)


def character(code: int) -> str:
    if not 0 < code <= 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise Undefined(f"{code} is no character")
    return chr(code)


def repeated(type_: RecordType, count: int, value: Any) -> Any:
    """So many equal items."""
    if count < 0:
        raise Undefined("a negative number of items")
    if count > MOST_ITEMS:
        too_many()
    if type_ == STRING:
        return character(value) * count
    return bytes((value & 255,)) * count if type_ == BYTES else (value,) * count


#: A record cannot make arrays, texts or bytes that are longer.
MOST_ITEMS = 10_000_000
