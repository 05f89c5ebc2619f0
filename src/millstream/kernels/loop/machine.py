"""What compiled procedures call: arithmetic of machines that is no plain operator."""

from __future__ import annotations

import math

from millstream.compiled import inlined


@inlined
def int32_quotient(a, b):
    """Towards zero; the divisor has been looked at."""
    x, y = abs(a), abs(b)
    quotient = x // y
    return quotient if (a < 0) == (b < 0) else -quotient


@inlined
def int32_remainder(a, b):
    return a - b * int32_quotient(a, b)


@inlined
def whole_of(value):
    """Cut off after the point; what is too large becomes the largest, NaN zero."""
    if value != value:
        return 0
    if value >= 2147483647.0:
        return 2147483647
    if value <= -2147483648.0:
        return -2147483648
    return int(value)


@inlined
def least(a, b):
    return min(a, b)


@inlined
def most(a, b):
    return max(a, b)


@inlined
def round_half_away(value):
    return math.copysign(math.floor(abs(value) + 0.5), value)
