"""Rounding and comparing as Excel does, in plain float arithmetic.

Excel rounds both sides of a comparison to fifteen significant digits, halves away from zero, just
for the comparison. So do `=`, `<` and their kin, criteria such as those of COUNTIF, and INT.
Lookups and ranks look at all digits. A sum or difference that comes last in a formula is zero if
less than 2^-50 of its first operand is left. Both rules are Excel's, and they are not one.

Compiled kernels run these very functions, so nothing here may be more than floats.
"""

from __future__ import annotations

import math

#: Numbers that differ by less than this, as a share, are next to each other.
CLOSE = 2.0**-50
#: Those that differ by more than this, as a share, do not have the same fifteen digits.
APART = 1.0001e-14
#: Variances of windows are of numbers less than this in size.
SQUARABLE = 2.0**450
_WHOLE = 2.0**52
#: Up to here a number has digits after the point that can be next to a half.
_FINE = 2.0**47
#: Numbers beyond these are left as they are: Excel has none so large, or without all digits.
TINY, HUGE = 2.0**-1022, 1.7e308
#: Adding this share of a normal number gives the next one.
_NEXT = 2.0**-52.5
#: The largest power of ten that is a float.
_MOST_TENS = 22
#: What is so near to a half of the last digit is one; scaling loses far less.
_HALF = 0.5 - 2.0**-40
_SPLIT = 2.0**27 + 1.0


# --- fifteen digits ---------------------------------------------------------------------


def same_number(a: float, b: float) -> bool:
    """Are two numbers the same as far as Excel compares them?"""
    if a == b:
        return True
    if not abs(a - b) <= APART * max(abs(a), abs(b)):
        return False
    return fifteen_digits(abs(a)) == fifteen_digits(abs(b))


def fifteen_digits(size: float) -> tuple[float, int]:
    """The digits of a positive number, and by which power of ten it was multiplied to have them."""
    if not TINY < size < HUGE:
        return size, 0
    tens = 14 - math.floor(math.log10(size))
    high, low = scaled(size, tens)
    while high + low >= 1e15:
        tens -= 1
        high, low = scaled(size, tens)
    while high + low < 1e14:
        tens += 1
        high, low = scaled(size, tens)
    digits = float(math.floor(high))
    if (high - digits) + low >= _HALF:
        digits += 1.0
    return (1e14, tens - 1) if digits >= 1e15 else (digits, tens)


def shown_number(x: float) -> float:
    """The number that is shown for a number: the one with its fifteen digits."""
    size = abs(x)
    if not TINY < size < HUGE or (size < 1e15 and size == math.floor(size)):
        return x
    digits, tens = fifteen_digits(size)
    room = 2.0**200 if size < 1.0 else 1.0  # so that nothing is lost of what is tiny
    high, low = scaled(digits * room, -tens)
    return math.copysign((high + low) / room, x)


def last_same(x: float, way: float) -> float:
    """The least (`way` is -1) or greatest number that is the same as one."""
    if not TINY < abs(x) < HUGE:
        return x
    size, away = abs(x), way if x > 0.0 else -way
    digits, tens = fifteen_digits(size)
    # Below a power of ten the last digit is worth a tenth.
    half = 0.05 if digits == 1e14 and away < 0.0 else 0.5
    edge, _ = scaled(digits + away * half, -tens)
    while same_number(edge + away * _NEXT * edge, size):
        edge += away * _NEXT * edge
    while not same_number(edge, size):
        edge -= away * _NEXT * edge
    return math.copysign(edge, x)


def scaled(x: float, tens: int) -> tuple[float, float]:
    """A number times a power of ten, as two floats; the huge one of the two is split by no step."""
    high, low = x, 0.0
    while tens > 0:
        step = (tens - 1) % _MOST_TENS + 1
        power = 10.0**step
        high, rest = two_product(high, power)
        high, low = two_sum(high, rest + low * power)
        tens -= step
    while tens < 0:
        step = min(-tens, _MOST_TENS)
        power = 10.0**step
        quotient = high / power
        product, rest = two_product(quotient, power)
        high, low = two_sum(quotient, (((high - product) - rest) + low) / power)
        tens += step
    return high, low


def two_sum(a: float, b: float) -> tuple[float, float]:
    """The rounded sum and its exact error."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def two_product(a: float, b: float) -> tuple[float, float]:
    """The rounded product and its exact error."""
    product = a * b
    x = a * _SPLIT
    x = x - (x - a)
    y = b * _SPLIT
    y = y - (y - b)
    p, q = a - x, b - y
    return product, ((x * y - product) + x * q + p * y) + p * q


# --- rounding ---------------------------------------------------------------------------


def whole_below(x: float) -> float:
    """INT: the whole number up to a number, as far as that is shown."""
    if not abs(x) < _WHOLE:
        return x
    near = float(math.floor(x + 0.5))
    return near if same_number(near, x) else float(math.floor(x))


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
