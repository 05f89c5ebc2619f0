"""Rounding and comparing as Excel does, in plain float arithmetic.

Compiled kernels run these very functions, so nothing here may be more than floats.
"""

from __future__ import annotations

import math

#: Numbers that differ by less than this, as a share, have the same fifteen digits.
CLOSE = 2.0**-50
#: Variances of windows are of numbers less than this in size.
SQUARABLE = 2.0**450
_WHOLE = 2.0**52
#: Up to here a number has digits after the point that can be next to a half.
_FINE = 2.0**47


def same_number(a: float, b: float) -> bool:
    """Are two numbers the same as far as Excel compares them?"""
    return a == b or abs(a - b) <= 2.0**-51 * max(abs(a), abs(b))


def round_half_away(x: float, places: float) -> float:
    """To the nearest, halves away from zero; what is next to a half is taken for one."""
    return round_scaled(x, 10.0 ** abs(places), places >= 0)


def round_scaled(x: float, scale: float, is_fraction: bool) -> float:  # noqa: FBT001
    """The same; the power of ten is given, and whether it is that of digits after the point."""
    size = abs(x) * scale if is_fraction else abs(x) / scale
    if not size < _WHOLE:
        return x
    # No branch depends on the digits: they cannot be foreseen, and a wrong guess costs more.
    near = CLOSE * size if size < _FINE else 0.0
    whole = float(math.floor(size + near + 0.5))
    value = whole / scale if is_fraction else whole * scale
    return math.copysign(value, x) + 0.0


def round_up(x: float, places: float) -> float:
    """Away from zero, unless the number is next to one that needs no rounding."""
    return cut(x, places, 1.0)


def round_down(x: float, places: float) -> float:
    """Towards zero."""
    return cut(x, places, 0.0)


def cut(x: float, places: float, up: float) -> float:
    """Without further digits; `up` is 1 to go away from zero, 0 to go towards it."""
    return cut_scaled(x, 10.0 ** abs(places), places >= 0, up)


def cut_scaled(x: float, scale: float, is_fraction: bool, up: float) -> float:  # noqa: FBT001
    """The same with the power of ten given, as for `round_scaled`."""
    size = abs(x) * scale if is_fraction else abs(x) / scale
    if not size < _WHOLE:
        return x
    near = math.floor(size + 0.5)
    low = near + 0.0 if abs(size - near) <= CLOSE * size else math.floor(size) + up
    value = low / scale if is_fraction else low * scale
    return -value + 0.0 if x < 0 else value


def modulo(x: float, divisor: float) -> float:
    """The remainder with the sign of the divisor."""
    return x - divisor * math.floor(x / divisor) + 0.0
