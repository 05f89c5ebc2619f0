"""Sums that do not depend on the order of what is added.

Integers wrap at 64 bits. Floats are added exactly, as integers of 2^-1074, and rounded once, when
the sum is shown. What is infinite or no number is counted aside. Tuples and maps are added
element by element.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

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
_LARGEST = int(sys.float_info.max) << _FINEST
#: The digits of a float and half of them, and how many exponents there are, with room to spare.
_DIGITS, _HALF, _EXPONENTS = 53, 26, 4096

Array = npt.NDArray[Any]

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


def pieces(total: FloatSum) -> list[float]:
    """Floats whose sum is this one, rounded nowhere; all of one sign, but what is not finite."""
    finite, up, down, unknown = total
    made = [math.inf] * bool(up) + [-math.inf] * bool(down) + [math.nan] * bool(unknown)
    rest, sign = abs(finite), -1.0 if finite < 0 else 1.0
    while rest:
        shift = max(rest.bit_length() - sys.float_info.mant_dig, 0)
        piece = min(rest >> shift << shift, _LARGEST)
        rest -= piece
        made.append(sign * rounded((piece, 0, 0, 0)))
    return made or [0.0]


def exact_sums(groups: Array, values: Array, count: int) -> list[FloatSum]:
    """The sums of floats by the numbers of their groups, which are below `count`.

    What has the same exponent is added as integers, in two halves that cannot become too large.
    """
    is_finite = np.isfinite(values)
    finite, of = values[is_finite], groups[is_finite]
    fractions, exponents = np.frexp(finite)
    wholes = np.ldexp(fractions, _DIGITS).astype(np.int64)
    keys = of * _EXPONENTS + (exponents.astype(np.int64) + _FINEST)
    order = np.argsort(keys, kind="stable")
    keys, wholes = keys[order], wholes[order]
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    sums = [0] * count
    if len(starts):
        high = np.add.reduceat(wholes >> _HALF, starts).tolist()
        low = np.add.reduceat(wholes & (1 << _HALF) - 1, starts).tolist()
        for key, h, w in zip(keys[starts].tolist(), high, low, strict=True):
            group, exponent = divmod(key, _EXPONENTS)
            total = (h << _HALF) + w
            # Of the finest numbers the last digits are zeros.
            shift = exponent - _DIGITS
            sums[group] += total << shift if shift >= 0 else total >> -shift
    odd = values[~is_finite]
    aside = [
        np.bincount(groups[~is_finite], weights=is_it, minlength=count).astype(np.int64).tolist()
        for is_it in (odd == np.inf, odd == -np.inf, np.isnan(odd))
    ]
    return list(zip(sums, *aside, strict=True))


def together(a: FloatSum, b: FloatSum) -> FloatSum:
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3])


@dataclass(frozen=True, slots=True)
class Amounts:
    """How values of a type are added: as plain data, combined, and read again."""

    zero: Any
    of: Callable[[Any], Any]
    plus: Callable[[Any, Any], Any]
    value: Callable[[Any], Any]
    #: Values that come to the same when they are added, at least one.
    pieces: Callable[[Any], list[Any]]


_WHOLE = {
    INT: Amounts(0, lambda v: v, lambda a, b: wrapped(a + b), lambda v: v, lambda v: [v]),
    UINT: Amounts(0, lambda v: v, lambda a, b: unsigned(a + b), lambda v: v, lambda v: [v]),
    TIME: Amounts(0, lambda v: v, lambda a, b: wrapped(a + b), lambda v: v, lambda v: [v]),
    FLOAT: Amounts(NO_FLOATS, exact, together, rounded, pieces),
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
        lambda a: _side_by_side(known, a),
    )


def _side_by_side(parts: list[Amounts], amounts: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """Tuples that come to these amounts, with zeros where a part needs fewer of them."""
    values = [part.pieces(x) for part, x in zip(parts, amounts, strict=True)]
    zeros = [part.value(part.zero) for part in parts]
    return [
        tuple(v[n] if n < len(v) else zero for v, zero in zip(values, zeros, strict=True))
        for n in range(max(map(len, values)))
    ]


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
        lambda a: _key_by_key({keys.value(k): part.pieces(x) for k, x in a.items()}),
    )


def _key_by_key(values: dict[Any, list[Any]]) -> list[dict[Any, Any]]:
    """Maps that come to these values, those of a key one after the other; all keys are in one."""
    count = max(map(len, values.values()), default=1)
    return [{k: v[n] for k, v in values.items() if n < len(v)} for n in range(count)]
