"""What compiled procedures call: arithmetic of machines that is no plain operator."""

from __future__ import annotations

import math

import numpy as np

from millstream.compiled import inlined


@inlined
def int32_quotient(a: int, b: int) -> int:
    """Towards zero; the divisor has been looked at."""
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


@inlined
def int32_remainder(a: int, b: int) -> int:
    return a - b * int32_quotient(a, b)


@inlined
def whole_of(value: float) -> int:
    """Cut off after the point; what is too large becomes the largest, NaN zero."""
    if value != value:
        return 0
    if value >= 2147483647.0:
        return 2147483647
    if value <= -2147483648.0:
        return -2147483648
    return int(value)


@inlined
def least(a: float, b: float) -> float:
    """The second only if it is less: so it is told for NaN and for zeros too."""
    return min(a, b)


@inlined
def most(a: float, b: float) -> float:
    return max(a, b)


@inlined
def rest_of(a: float, b: float) -> float:
    return float(np.fmod(np.float64(a), np.float64(b)))


@inlined
def floor_of(value: float) -> float:
    return float(np.floor(value))


@inlined
def ceiling_of(value: float) -> float:
    return float(np.ceil(value))


@inlined
def round_half_away(value: float) -> float:
    return math.copysign(float(np.floor(abs(value) + 0.5)), value)
