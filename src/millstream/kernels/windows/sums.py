"""Compiled loops for exact sums.

The sum of floats is kept as hi + lo, two floats that do not overlap, as long as that is
exact: hi is then the exact sum, rounded once. Where it is not (1e16 and 1e-20 in one sum,
or a sum beyond the largest float) the sum moves to a *wide* sum: one integer of so many
bits that every float, counted 2^63 times, fits; its unit is the smallest float. It moves
back when two floats suffice again. So nothing ever drifts, and whatever leaves a sum
leaves no trace. Sums of integers have 128 bits.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from millstream.calculus.aggregation import SQUARABLE
from millstream.compiled import apart, inlined
from millstream.kernels.runtime.hashing import FREE, TOP
from millstream.plan.batch import Array
from millstream.values.excel import rounding

#: The words of a cell, which is what is known of one column in one group. The sum of
#: integers is in LOW and HIGH, that of floats in HI and LO or in the wide sum number WIDE;
#: infinities and NaN are only counted. TRIES counts looks at whether a wide sum is needed.
COUNT, HI, LO, WIDE, PLUS_INF, MINUS_INF, NANS, TRIES = range(8)
LOW, HIGH = HI, LO
CELL = 8

#: 32-bit limbs of a wide sum, least first; only the last has a sign.
LIMBS = 70


class Wides(NamedTuple):
    """Wide sums, a stack of free ones, and counters; the first is for scratch."""

    limbs: Array
    free: Array
    counters: Array


_MASK = np.int64(0xFFFFFFFF)
_FRACTION = np.int64((1 << 52) - 1)
_TOP_BIT = np.int64(1 << 52)
_INF_BITS = np.int64(0x7FF0000000000000)
_LARGE = 2.0**1000
_U32 = np.uint64(32)
_UMASK = np.uint64(0xFFFFFFFF)

two_sum: Any = inlined(rounding.two_sum)
two_product: Any = inlined(rounding.two_product)


def _define_float_of_bits(typing_context: Any, bits: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.DoubleType())

    return types.float64(types.int64), generate


def _define_bits_of_float(typing_context: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.IntType(64))

    return types.int64(types.float64), generate


float_of_bits: Any = intrinsic(_define_float_of_bits)
bits_of_float: Any = intrinsic(_define_bits_of_float)


@apart
def wide_add(wides: Array, slot: int, bits: Any, power: int, sign: int) -> None:
    """Add sign * 2^power * x, x finite and given by its bits."""
    exponent = (bits >> 52) & 0x7FF
    fraction = bits & _FRACTION
    if exponent > 0:
        fraction |= _TOP_BIT
        exponent -= 1
    if bits < 0:
        sign = -sign
    place = exponent + power
    limb, shift = place >> 5, place & 31
    first = (fraction & _MASK) << shift
    second = (fraction >> 32) << shift
    carry = np.int64(0)
    for step in range(LIMBS - limb):
        part = carry
        if step == 0:
            part += sign * (first & _MASK)
        elif step == 1:
            part += sign * ((first >> 32) + (second & _MASK))
        elif step == 2:
            part += sign * (second >> 32)
        elif carry == 0:
            return
        total = wides[slot, limb + step] + part
        if limb + step == LIMBS - 1:
            wides[slot, limb + step] = total
            return
        wides[slot, limb + step] = total & _MASK
        carry = total >> 32


@apart
def wide_round(wides: Array, slot: int) -> Any:
    """The float nearest to a wide sum, of two equally near ones the even one."""
    limbs = wides[0]
    is_negative = wides[slot, LIMBS - 1] < 0
    borrow = np.int64(0)
    for k in range(LIMBS):
        total = borrow - wides[slot, k] if is_negative else wides[slot, k]
        limbs[k] = total & _MASK if k < LIMBS - 1 else total
        borrow = total >> 32
    top = LIMBS - 1
    while top >= 0 and limbs[top] == 0:
        top -= 1
    if top < 0:
        return 0.0
    length = 32 * top
    rest = limbs[top]
    while rest > 0:
        length += 1
        rest >>= 1
    # A float of at most 53 bits, counted in smallest floats, is its own bit pattern.
    bits = limbs[0] | (limbs[1] << 32)
    if length > 53:
        bits = _rounded_bits(limbs, length)
    value = np.inf if bits >= _INF_BITS else float_of_bits(bits)
    return -value if is_negative else value


@apart
def _rounded_bits(limbs: Array, length: int) -> Any:
    if length > 2098:  # the length of the largest float
        return _INF_BITS
    place = length - 53
    k, shift = place >> 5, place & 31
    kept = limbs[k] >> shift
    kept |= limbs[k + 1] << (32 - shift)
    if shift > 11:
        kept |= limbs[k + 2] << (64 - shift)
    kept &= _FRACTION | _TOP_BIT
    below = place - 1
    half = (limbs[below >> 5] >> (below & 31)) & 1
    sticky = limbs[below >> 5] & ((np.int64(1) << (below & 31)) - 1)
    for j in range(below >> 5):
        sticky |= limbs[j]
    # The exponent is one more than what the leading bit of the fraction carries over.
    bits = ((np.int64(length) - 53) << 52) + kept
    if half == 1 and (sticky != 0 or kept & 1 == 1):
        bits += 1
    return bits


@apart
def _is_zero(wides: Array, slot: int) -> bool:
    for k in range(LIMBS):  # noqa: SIM110  numba does not compile all()
        if wides[slot, k] != 0:
            return False
    return True


@inlined
def has_room(wides: Wides, count: int) -> Any:
    """Can so many sums become wide?"""
    return wides.free.size - wides.counters[TOP] + wides.counters[FREE] >= count


@apart
def widen(cell: Array, wides: Wides) -> None:
    """Move a sum to a wide one; there is room for it."""
    limbs, free, counters = wides
    if counters[FREE] > 0:
        counters[FREE] -= 1
        slot = free[counters[FREE]]
    else:
        slot = counters[TOP]
        counters[TOP] += 1
    for k in range(LIMBS):
        limbs[slot, k] = 0
    wide_add(limbs, slot, cell[HI], 0, 1)
    wide_add(limbs, slot, cell[LO], 0, 1)
    cell[HI] = cell[LO] = cell[TRIES] = 0
    cell[WIDE] = slot


@inlined
def give_back(cell: Array, wides: Wides) -> None:
    """The wide sum of a cell is no longer needed."""
    wides.free[wides.counters[FREE]] = cell[WIDE]
    wides.counters[FREE] += 1
    cell[WIDE] = 0


@apart
def narrow(cell: Array, wides: Wides) -> Any:
    """The value of a wide sum, which moves back if two floats can hold it.

    To look costs as much as several additions, so only some calls do.
    """
    limbs, slot = wides.limbs, cell[WIDE]
    hi = wide_round(limbs, slot)
    cell[TRIES] += 1
    if cell[TRIES] % 8 != 1 or not abs(hi) < _LARGE:
        return hi
    hi_bits = bits_of_float(hi)
    wide_add(limbs, slot, hi_bits, 0, -1)
    lo_bits = bits_of_float(wide_round(limbs, slot))
    wide_add(limbs, slot, lo_bits, 0, -1)
    if _is_zero(limbs, slot):
        give_back(cell, wides)
        cell[HI], cell[LO] = hi_bits, lo_bits
    else:
        wide_add(limbs, slot, hi_bits, 0, 1)
        wide_add(limbs, slot, lo_bits, 0, 1)
    return hi


@inlined
def clear_sum(cell: Array, wides: Wides) -> None:
    """Of no values the sum is zero already, but perhaps a wide zero."""
    if cell[WIDE] != 0:
        give_back(cell, wides)
    cell[HI] = cell[LO] = 0


@inlined
def _add_once(floats: Array, value: Any) -> Any:
    """Add a finite float to hi + lo; False, and nothing done, if that cannot be exact."""
    hi, error = two_sum(floats[HI], value)
    lo, lost = two_sum(floats[LO], error)
    if lost != 0.0 or not abs(hi) < _LARGE:
        return False
    floats[HI], floats[LO] = two_sum(hi, lo)
    return True


@inlined
def add_in_two(hi: Any, lo: Any, value: Any) -> Any:
    """A finite float more in hi + lo, and whether that is exact."""
    total, error = two_sum(hi, value)
    if error == 0.0 and lo == 0.0:  # most numbers have few digits
        return total, lo, abs(total) < _LARGE
    low, lost = two_sum(lo, error)
    is_exact = lost == 0.0 and abs(total) < _LARGE
    total, low = two_sum(total, low)
    return total, low, is_exact


@apart
def _add_slowly(cell: Array, floats: Array, value: Any, weight: int, wides: Wides) -> None:
    """Add weight * value where it is not just plus or minus, or does not fit hi + lo."""
    sign = 1 if weight > 0 else -1
    rest = abs(weight)
    power = 0
    while rest > 0:
        if rest & 1:
            part = sign * value * 2.0**power
            if cell[WIDE] == 0 and not (abs(part) < _LARGE and _add_once(floats, part)):
                widen(cell, wides)
            if cell[WIDE] != 0:
                wide_add(wides.limbs, cell[WIDE], bits_of_float(value), power, sign)
        rest >>= 1
        power += 1


@inlined
def add_number(cell: Array, floats: Array, value: Any, weight: Any, wides: Wides) -> None:
    """Add weight * value to the sum of a cell, of which `floats` is the view as floats."""
    if not abs(value) < np.inf:
        kind = NANS if value != value else (PLUS_INF if value > 0 else MINUS_INF)
        cell[kind] += weight
        return
    is_simple = cell[WIDE] == 0 and abs(weight) == 1
    if not (is_simple and _add_once(floats, value if weight == 1 else -value)):
        _add_slowly(cell, floats, value, weight, wides)


@inlined
def number_sum(cell: Array, floats: Array, wides: Wides) -> Any:
    """The sum of a cell of floats, correctly rounded; minus zero is zero."""
    if cell[NANS] > 0 or (cell[PLUS_INF] > 0 and cell[MINUS_INF] > 0):
        return np.nan
    if cell[PLUS_INF] > 0:
        return np.inf
    if cell[MINUS_INF] > 0:
        return -np.inf
    if cell[WIDE] != 0:
        return narrow(cell, wides) + 0.0
    return floats[HI] + 0.0


@inlined
def is_finite(cell: Array) -> Any:
    """Whether no value of a cell of floats is infinite or NaN."""
    return cell[NANS] == 0 and cell[PLUS_INF] == 0 and cell[MINUS_INF] == 0


@apart
def sum_in_two(cell: Array, floats: Array, wides: Wides) -> Any:
    """A sum of finite floats in twice their digits: the nearest float, and what is left."""
    if cell[WIDE] == 0:
        return floats[HI], floats[LO]
    limbs, slot = wides.limbs, cell[WIDE]
    hi = wide_round(limbs, slot)
    if not abs(hi) < _LARGE:
        return hi, 0.0
    wide_add(limbs, slot, bits_of_float(hi), 0, -1)
    lo = wide_round(limbs, slot)
    wide_add(limbs, slot, bits_of_float(hi), 0, 1)
    return hi, lo


@inlined
def add_square(cell: Array, floats: Array, value: Any, weight: Any, wides: Wides) -> None:
    """Add weight * value^2, rounded; a huge value counts as an infinity."""
    if abs(value) < SQUARABLE:
        add_number(cell, floats, value * value, weight, wides)
    else:
        cell[NANS if value != value else PLUS_INF] += weight


@inlined
def add_rest(cell: Array, floats: Array, value: Any, weight: Any, wides: Wides) -> None:
    """Add weight times what the rounding of value^2 leaves; nothing for a huge value."""
    if abs(value) < SQUARABLE:
        _, rest = two_product(value, value)
        add_number(cell, floats, rest, weight, wides)


@inlined
def add_to_three(three: Any, value: Any) -> Any:
    """A number more in a sum of three floats, each far less than the one before."""
    first, error = two_sum(three[0], value)
    second, error = two_sum(three[1], error)
    return first, second, three[2] + error


@inlined
def squares_about_mean(total: Any, squares: Any, rests: Any, n: Any) -> Any:
    """The squares less that of the sum, n * squares - total^2, in three floats.

    All sums are exact and given in two floats; the squares are those that are rounded and
    what that leaves. Where values are large and differ little nearly all of it cancels out.
    """
    three = (0.0, 0.0, 0.0)
    for part in (squares[0], squares[1], rests[0], rests[1]):
        product, rest = two_product(n, part)
        three = add_to_three(add_to_three(three, product), rest)
    for one, other, times in ((0, 0, -1.0), (0, 1, -2.0), (1, 1, -1.0)):
        product, rest = two_product(total[one], total[other])
        three = add_to_three(add_to_three(three, times * product), times * rest)
    return three


@apart
def variance_of(total: Any, squares: Any, rests: Any, count: Any, less: Any) -> Any:
    """(n * squares - total^2) / (n * (n - less))."""
    n = float(count)
    three = squares_about_mean(total, squares, rests, n)
    # The first two may cancel out, and then the third counts.
    upper, rest = two_sum(three[0], three[1])
    return max(upper + (rest + three[2]), 0.0) / (n * (n - less))


@inlined
def add_integer(cell: Array, value: Any, weight: Any) -> None:
    """Add weight * value to a sum of 128 bits."""
    low, high = _product(value, weight)
    before = np.uint64(cell[LOW])
    after = before + low
    cell[LOW] = np.int64(after)
    cell[HIGH] += np.int64(high) + (1 if after < before else 0)


@inlined
def _product(value: Any, weight: Any) -> Any:
    """The 128 bits of a product of two int64, as two words."""
    if weight == 1:
        return np.uint64(value), np.uint64(value >> 63)
    a = np.uint64(value) if value >= 0 else np.uint64(0) - np.uint64(value)
    b = np.uint64(weight) if weight >= 0 else np.uint64(0) - np.uint64(weight)
    a0, a1, b0, b1 = a & _UMASK, a >> _U32, b & _UMASK, b >> _U32
    low = a0 * b0
    middle = a1 * b0 + (low >> _U32)
    other = a0 * b1 + (middle & _UMASK)
    high = a1 * b1 + (middle >> _U32) + (other >> _U32)
    low = (low & _UMASK) | (other << _U32)
    if (value < 0) != (weight < 0):
        low = np.uint64(0) - low
        high = ~high + (np.uint64(1) if low == 0 else np.uint64(0))
    return low, high


@inlined
def fits_integer(cell: Array) -> Any:
    return cell[HIGH] == cell[LOW] >> 63


@apart
def integer_sum_as_float(cell: Array) -> Any:
    """A sum of 128 bits as the nearest float."""
    low, high = np.uint64(cell[LOW]), np.uint64(cell[HIGH])
    if cell[HIGH] == cell[LOW] >> 63:
        return float(cell[LOW])
    is_negative = cell[HIGH] < 0
    if is_negative:
        low = np.uint64(0) - low
        high = ~high + (np.uint64(1) if low == 0 else np.uint64(0))
    power = 0
    while high > 0:
        # The bit that falls out stays as a sticky lowest bit, far below the rounding.
        low = (low >> np.uint64(1)) | (low & np.uint64(1)) | (high << np.uint64(63))
        high >>= np.uint64(1)
        power += 1
    value = np.float64(low) * 2.0**power
    return -value if is_negative else value
