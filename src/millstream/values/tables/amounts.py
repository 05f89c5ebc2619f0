"""Sums that do not depend on the order of what is added.

Integers wrap at 64 bits. Floats are added exactly, as integers of 2^-1074, and rounded once, when
the sum is shown. What is infinite or no number is counted aside. Tuples and maps are added
element by element.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from millstream.values.records.keys import keys_of
from millstream.values.records.types import (
    FLOAT,
    INT,
    TIME,
    UINT,
    MapOf,
    RecordType,
    TupleOf,
    resolved,
    unsigned,
    wrapped,
)

_FINEST = 1074
_SCALE = 1 << _FINEST

#: A sum of floats: its finite part, then how many +infinities, -infinities and NaNs were added.
FloatSum = tuple[int, int, int, int]
NO_FLOATS: FloatSum = (0, 0, 0, 0)


def exact(value: float) -> FloatSum:
    if math.isfinite(value):
        numerator, denominator = value.as_integer_ratio()
        return (numerator * (_SCALE // denominator), 0, 0, 0)
    return (0, int(value == math.inf), int(value == -math.inf), int(value != value))


def rounded(total: FloatSum) -> float:
    finite, up, down, unknown = total
    if unknown or (up and down):
        return math.nan
    if up or down:
        return math.inf if up else -math.inf
    try:
        return float(Fraction(finite, _SCALE))
    except OverflowError:
        return math.inf if finite > 0 else -math.inf


def together(a: FloatSum, b: FloatSum) -> FloatSum:
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3])


@dataclass(frozen=True, slots=True)
class Amounts:
    """How values of a type are added: as plain data, combined, and read again."""

    zero: Any
    of: Callable[[Any], Any]
    plus: Callable[[Any, Any], Any]
    value: Callable[[Any], Any]


_WHOLE = {
    INT: Amounts(0, lambda v: v, lambda a, b: wrapped(a + b), lambda v: v),
    UINT: Amounts(0, lambda v: v, lambda a, b: unsigned(a + b), lambda v: v),
    TIME: Amounts(0, lambda v: v, lambda a, b: wrapped(a + b), lambda v: v),
    FLOAT: Amounts(NO_FLOATS, exact, together, rounded),
}


def amounts_of(type_: RecordType) -> Amounts | None:
    """How values of this type are added; None if they are not."""
    match resolved(type_):
        case TupleOf(fields) if fields:
            return _tuples([amounts_of(f.type) for f in fields])
        case MapOf(key, value):
            return _maps(key, amounts_of(value))
        case basic if basic in _WHOLE:
            return _WHOLE[basic]
        case _:
            return None


def _tuples(parts: list[Amounts | None]) -> Amounts | None:
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    return Amounts(
        tuple(part.zero for part in known),
        lambda v: tuple(part.of(x) for part, x in zip(known, v, strict=True)),
        lambda a, b: tuple(part.plus(x, y) for part, x, y in zip(known, a, b, strict=True)),
        lambda a: tuple(part.value(x) for part, x in zip(known, a, strict=True)),
    )


def _maps(key: RecordType, part: Amounts | None) -> Amounts | None:
    if part is None:
        return None
    keys = keys_of(key)

    def plus(a: dict[Any, Any], b: dict[Any, Any]) -> dict[Any, Any]:
        total = dict(a)
        for k, v in b.items():
            total[k] = part.plus(total[k], v) if k in total else v
        return total

    return Amounts(
        {},
        lambda v: {keys.key(k): part.of(x) for k, x in v.items()},
        plus,
        lambda a: {keys.value(k): part.value(a[k]) for k in sorted(a, key=keys.order)},
    )
