"""Compiled loops that write numbers as Python's `format(x, ".10g")` does.

Ten digits are enough to tell apart what comparisons tell apart, and ten digits of a double
are nearly always certain after one rounding. Where they are not, the writer says so, and
the caller asks Python.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from millstream.compiled import inlined
from millstream.plan.batch import Array

#: No number takes more bytes than this.
LONGEST = 24
UNSURE = -1

_DIGITS = 10
_LEAST, _MOST = 1e9, 1e10  # numbers of ten digits
_POWERS = 10.0 ** np.arange(23)  # all of them exact
#: How near a half the rest may be after a rounding that is off by 1.2e-6 at most.
_NEAR = 1e-5
_ZERO, _POINT, _MINUS, _PLUS, _E = 48, 46, 45, 43, 101


@inlined
def _scaled(x: Any, exponent: Any) -> Any:
    """The number with its point moved so that ten digits stand before it."""
    shift = _DIGITS - 1 - exponent
    return x * _POWERS[shift] if shift >= 0 else x / _POWERS[-shift]


@inlined
def _put_digits(arena: Array, at: Any, digits: Any, count: Any) -> None:
    for j in range(count):
        arena[at + count - 1 - j] = _ZERO + digits % 10
        digits //= 10


@inlined
def _put_plain(arena: Array, at: Any, digits: Any, count: Any, exponent: Any) -> Any:
    """Digits with the point where it belongs; those after it are moved to make room."""
    if exponent < 0:
        arena[at], arena[at + 1] = _ZERO, _POINT
        for j in range(-exponent - 1):
            arena[at + 2 + j] = _ZERO
        at += 1 - exponent
        _put_digits(arena, at, digits, count)
        return at + count
    _put_digits(arena, at, digits, count)
    for j in range(count, exponent + 1):
        arena[at + j] = _ZERO
    if count <= exponent + 1:
        return at + exponent + 1
    for j in range(count - 1, exponent, -1):
        arena[at + j + 1] = arena[at + j]
    arena[at + exponent + 1] = _POINT
    return at + count + 1


@inlined
def _put_power(arena: Array, at: Any, exponent: Any) -> Any:
    arena[at] = _E
    arena[at + 1] = _MINUS if exponent < 0 else _PLUS
    _put_digits(arena, at + 2, abs(exponent), 2)
    return at + 4


@inlined
def put_number(arena: Array, at: Any, x: Any) -> Any:
    """Write a finite number at a place with room for it; where it ends, or UNSURE."""
    if x == 0.0:
        arena[at] = _ZERO
        return at + 1
    if x < 0.0:
        arena[at] = _MINUS
        at += 1
        x = -x
    if not 1e-12 < x < 1e30:
        return UNSURE
    exponent = math.floor(math.log10(x))
    scaled = _scaled(x, exponent)
    if scaled < _LEAST:
        exponent -= 1
        scaled = _scaled(x, exponent)
    elif scaled >= _MOST:
        exponent += 1
        scaled = _scaled(x, exponent)
    digits = np.int64(scaled)
    rest = scaled - digits
    if abs(rest - 0.5) < _NEAR:
        return UNSURE
    digits += rest > 0.5
    if digits == np.int64(_MOST):
        digits //= 10
        exponent += 1
    count = _DIGITS
    while digits % 10 == 0:
        digits //= 10
        count -= 1
    if -5 < exponent < _DIGITS:
        return _put_plain(arena, at, digits, count, exponent)
    return _put_power(arena, _put_plain(arena, at, digits, count, 0), exponent)
