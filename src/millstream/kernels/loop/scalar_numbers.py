"""What scalar functions compute on plain numbers, integers, booleans and durations.

Each function with `_or_fault` in its name gives a value and a fault: 0 for none, else 1
or 2, whose messages stand in the records of scalars. Numba compiles these functions. They must
be safe for any bits, for the value under a null is arbitrary; in particular no division
may trap. Numba tells LLVM that `+`, `-` and `*` of signed integers never overflow, and LLVM
believes it: what may overflow must not be written with them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from millstream.kernels.loop.scalar_arrays import LEAST
from millstream.kernels.loop.scalar_lift import lift, lift_checked, lift_faulty, lift_instructions
from millstream.kernels.loop.scalar_nulls import better_of_two

_TWO_63 = 2.0**63
_EXACT = 2**53

# --- integers, times and durations ------------------------------------------------------


def _quotient_or_fault(a: int, b: int) -> tuple[int, int]:
    if b == 0:
        return 0, 1
    if b == -1:
        return -a, 2 * int(a == LEAST)
    quotient = a // b
    if quotient < 0 and quotient * b != a:
        quotient += 1  # numba rounds down as Python does
    return quotient, 0


def _remainder_or_fault(a: int, b: int) -> tuple[int, int]:
    if b == 0:
        return 0, 1
    if b == -1:
        return 0, 0
    rest = a % b
    if rest != 0 and (rest < 0) != (a < 0):
        rest -= b
    return rest, 0


def _negative_or_fault(a: int) -> tuple[int, int]:
    return -a, int(a == LEAST)


def _magnitude_or_fault(a: int) -> tuple[int, int]:
    return (-a if a < 0 else a), int(a == LEAST)


add_integers = lift_checked("sadd_with_overflow")
subtract_integers = lift_checked("ssub_with_overflow")
multiply_integers = lift_checked("smul_with_overflow")
divide_integers = lift_faulty(_quotient_or_fault, "i")
remainder_of_integers = lift_faulty(_remainder_or_fault, "i")
negate_integer = lift_faulty(_negative_or_fault, "i")
abs_integer = lift_faulty(_magnitude_or_fault, "i")

# By constants that are neither zero nor -1; both go towards zero, as the instructions do.
quotient_of_integers = lift_instructions(lambda build, a, b: build.sdiv(a, b), "i")
rest_of_integers = lift_instructions(lambda build, a, b: build.srem(a, b), "i")

# --- numbers ----------------------------------------------------------------------------


def _ratio_or_fault(a: float, b: float) -> tuple[float, int]:
    if b == 0.0:
        return 0.0, 1
    return a / b, 0


def _modulus_or_fault(a: float, b: float) -> tuple[float, int]:
    if b == 0.0:
        return 0.0, 1
    return np.fmod(a, b), 0


def _rounded(a: float) -> float:
    """Halves away from zero: what is left after cutting is exact, so no carry is lost."""
    whole = float(np.trunc(a))
    if abs(a - whole) >= 0.5:
        whole += math.copysign(1.0, a)
    return whole


def _root_or_fault(a: float) -> tuple[float, int]:
    if a < 0.0:
        return 0.0, 1
    return math.sqrt(a), 0


def _logarithm_or_fault(a: float) -> tuple[float, int]:
    if a <= 0.0:
        return 0.0, 1
    return math.log(a), 0


def _power_or_fault(a: float, b: float) -> tuple[float, int]:
    if math.isfinite(a) and math.isfinite(b):
        if (a == 0.0 and b < 0.0) or (a < 0.0 and b != np.floor(b)):
            return 0.0, 1
    return math.pow(a, b), 0


add_numbers = lift_instructions(lambda build, a, b: build.fadd(a, b), "f")
subtract_numbers = lift_instructions(lambda build, a, b: build.fsub(a, b), "f")
multiply_numbers = lift_instructions(lambda build, a, b: build.fmul(a, b), "f")
divide_numbers = lift_faulty(_ratio_or_fault, "f")
remainder_of_numbers = lift_faulty(_modulus_or_fault, "f")
quotient_of_numbers = lift_instructions(lambda build, a, b: build.fdiv(a, b), "f")
rest_of_numbers = lift(lambda a, b: np.fmod(a, b), "f")  # noqa: PLW0108
negate_number = lift(lambda a: -a, "f")
abs_number = lift(lambda a: abs(a), "f")  # noqa: PLW0108  numba wants a Python function
floor_number = lift(lambda a: np.floor(a), "f")  # noqa: PLW0108
ceil_number = lift(lambda a: np.ceil(a), "f")  # noqa: PLW0108
round_number = lift(_rounded, "f")
root = lift_faulty(_root_or_fault, "f")
exponential = lift(lambda a: math.exp(a), "f")  # noqa: PLW0108
logarithm = lift_faulty(_logarithm_or_fault, "f")
power = lift_faulty(_power_or_fault, "f")

# --- comparisons: NaN equals NaN and is greater than all else -----------------------------


def _equal_numbers(a: float, b: float) -> bool:
    return (a == b) | ((a != a) & (b != b))


def _less_numbers(a: float, b: float) -> bool:
    return (a < b) | ((b != b) & (a == a))


equal_numbers = lift(_equal_numbers, "b")
differ_numbers = lift(lambda a, b: not ((a == b) | ((a != a) & (b != b))), "b")
less_numbers = lift(_less_numbers, "b")
at_most_numbers = lift(lambda a, b: (a <= b) | (b != b), "b")
more_numbers = lift(lambda a, b: (b < a) | ((a != a) & (b == b)), "b")
at_least_numbers = lift(lambda a, b: (b <= a) | (a != a), "b")


def _comparison(symbol: str) -> Any:
    return lift_instructions(lambda build, a, b: build.icmp_signed(symbol, a, b), "b")


equal_integers = _comparison("==")
differ_integers = _comparison("!=")
less_integers = _comparison("<")
at_most_integers = _comparison("<=")
more_integers = _comparison(">")
at_least_integers = _comparison(">=")

equal_booleans = lift(lambda a, b: not (a ^ b), "b")
differ_booleans = lift(lambda a, b: a ^ b, "b")
less_booleans = lift(lambda a, b: (not a) & b, "b")
at_most_booleans = lift(lambda a, b: (not a) | b, "b")
more_booleans = lift(lambda a, b: a & (not b), "b")
at_least_booleans = lift(lambda a, b: a | (not b), "b")

least_number = better_of_two(_less_numbers)
greatest_number = better_of_two(lambda a, b: (b < a) | ((a != a) & (b == b)))
least_integer = better_of_two(lambda a, b: a < b)
greatest_integer = better_of_two(lambda a, b: a > b)
least_boolean = better_of_two(lambda a, b: (not a) & b)
greatest_boolean = better_of_two(lambda a, b: a & (not b))

negation = lift(lambda a: not a, "b")

# --- casts and durations ----------------------------------------------------------------


@njit(error_model="numpy")
def _cut(a: float, fault: int) -> tuple[int, int]:
    """Without its fraction, or the fault if that does not fit."""
    whole = float(np.trunc(a))
    if -_TWO_63 <= whole < _TWO_63:
        return int(whole), 0
    return 0, fault


def _integer_or_fault(a: float) -> tuple[int, int]:
    return _cut(a, 1)


def _scaled_or_fault(duration: int, factor: float) -> tuple[int, int]:
    return _cut(float(duration) * factor, 1)


def _shared_or_fault(duration: int, divisor: float) -> tuple[int, int]:
    if divisor == 0.0:
        return 0, 1
    return _cut(float(duration) / divisor, 2)


def _ratio_of_durations_or_fault(a: int, b: int) -> tuple[float, int]:
    if b == 0:
        return 0.0, 1
    return float(a) / float(b), 0


def _seconds(duration: int) -> float:
    """The exact quotient rounded once, also where a float cannot hold the duration."""
    if -_EXACT <= duration <= _EXACT:
        return float(duration) / 1e6
    whole, rest = abs(duration // 1_000_000), abs(duration % 1_000_000)
    if duration < 0 and rest != 0:
        whole, rest = whole - 1, 1_000_000 - rest
    # At least 56 bits of the quotient, the last of which says whether anything is left.
    shift = 24 if whole < 1 << 38 else 18
    scaled = (whole << shift) | ((rest << shift) // 1_000_000)
    sticky = int((rest << shift) % 1_000_000 != 0)
    quotient = float(scaled | sticky) / float(1 << shift)
    return -quotient if duration < 0 else quotient


truncate = lift_faulty(_integer_or_fault, "i")
scale = lift_faulty(_scaled_or_fault, "i")
scale_by = lift_faulty(lambda factor, duration: _cut(float(duration) * factor, 1), "i")
share = lift_faulty(_shared_or_fault, "i")
ratio_of_durations = lift_faulty(_ratio_of_durations_or_fault, "f")
quotient_of_durations = lift(lambda a, b: float(a) / float(b), "f")
seconds = lift(_seconds, "f")
number_of_integer = lift(lambda a: float(a), "f")  # noqa: PLW0108
number_of_boolean = lift(lambda a: 1.0 if a else 0.0, "f")
integer_of_boolean = lift(lambda a: int(a), "i")  # noqa: PLW0108
boolean_of_integer = lift(lambda a: a != 0, "b")
