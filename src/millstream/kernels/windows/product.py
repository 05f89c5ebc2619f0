"""Compiled loops for the product of a window: exact to 192 digits, then rounded once.

A product is a number of 192 binary digits in three words, the first of which is one, and a
power of two; so nothing overflows on the way, and what has left a window leaves no trace. The
last word has the power, whether digits were cut off, and the sign. Zeros are only counted.

A window has a front and a back. Each element of the front keeps the product of all numbers from
it to the end of the front; of the back only the whole product is kept. When the front is used
up the back becomes the front: each number is multiplied a few times, however long the window is.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic

from millstream.compiled import apart, inlined
from millstream.kernels.windows.ring import FIRST, SEEN, STATUSES, VALUES, place_of
from millstream.plan.batch import Array

#: The words of a product: digits from the highest on, then power * 4 + is cut * 2 + is negative.
#: If the highest is zero, nothing was multiplied yet: it is one.
TOP, MIDDLE, LOW, POWER = range(4)
PRODUCT = 4
#: The words in the row of a key: how many zeros there are, where the back begins, its product.
ZEROS, BACK, WHOLE = range(3)
PRODUCT_ROW = 2 + PRODUCT

_NUM = 15
_ONE, _63 = np.uint64(1), np.uint64(63)
_DIGITS, _LEAST, _MOST = 53, -1021, 1024


def _define_high_product(typing_context: Any, a: Any, b: Any) -> Any:
    from llvmlite import ir

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        wide = ir.IntType(128)
        x, y = (builder.zext(v, wide) for v in args)
        return builder.trunc(builder.lshr(builder.mul(x, y), wide(64)), ir.IntType(64))

    return types.uint64(types.uint64, types.uint64), generate


#: The upper half of the product of two words.
high_product: Any = intrinsic(_define_high_product)


@inlined
def _times_word(top: Any, middle: Any, low: Any, word: Any) -> Any:
    """Four words, the highest first."""
    carried = high_product(low, word)
    second = carried + middle * word
    carry = np.uint64(second < carried)
    carried = high_product(middle, word)
    third = carried + top * word
    more = np.uint64(third < carried)
    third += carry
    more += np.uint64(third < carry)
    return high_product(top, word) + more, third, second, low * word


@inlined
def _added(a: Any, b: Any, carry: Any) -> Any:
    total = a + b
    more = np.uint64(total < a)
    total += carry
    return total, more + np.uint64(total < carry)


@inlined
def _keep(pool: Array, at: Any, words: Any, is_cut: Any, power: Any, is_negative: Any) -> None:
    """Write a product whose highest digit, or the next, is one; `words` has one word more."""
    top, middle, low, rest = words
    if top >> _63 == 0:
        top = (top << _ONE) | (middle >> _63)
        middle = (middle << _ONE) | (low >> _63)
        low = (low << _ONE) | (rest >> _63)
        rest = rest << _ONE
        power -= 1
    pool[at + TOP], pool[at + MIDDLE] = np.int64(top), np.int64(middle)
    pool[at + LOW] = np.int64(low)
    cut = 2 if is_cut or rest != 0 else 0
    pool[at + POWER] = power * 4 + cut + (1 if is_negative else 0)


@inlined
def _multiply(pool: Array, at: Any, value: Any, out: Array, here: Any) -> None:
    """The product that lies at a place times a number that is not zero, written elsewhere."""
    share, power = math.frexp(abs(value))
    word = np.uint64(np.int64(share * 2.0**53)) << np.uint64(11)
    zero = np.uint64(0)
    if pool[at + TOP] == 0:
        _keep(out, here, (word, zero, zero, zero), 0, np.int64(power), value < 0.0)
        return
    words = _times_word(
        np.uint64(pool[at + TOP]), np.uint64(pool[at + MIDDLE]), np.uint64(pool[at + LOW]), word
    )
    before = pool[at + POWER]
    is_negative = (before & 1 != 0) != (value < 0.0)
    _keep(out, here, words, before & 2 != 0, (before >> 2) + power, is_negative)


@inlined
def _copy(pool: Array, at: Any, out: Array, here: Any) -> None:
    for n in range(PRODUCT):
        out[here + n] = pool[at + n]


@inlined
def product_enter(row: Array, words: int, status: Any, value: Any) -> None:
    if status != 0:
        return
    if value == 0.0:
        row[words + ZEROS] += 1
    else:
        _multiply(row, words + WHOLE, value, row, words + WHOLE)


@apart
def product_leave(row: Array, pool: Array, floats: Array, place: Any, position: Any) -> None:
    """The oldest value leaves; `place` is (group, stride, words, word, column)."""
    group, stride, words, _, column = place
    if position >= row[words + BACK]:
        _turn(row, pool, floats, place, position)
    at = place_of(row, group, stride, position)
    is_number = (pool[at + STATUSES] >> (8 * column)) & 0xFF == 0
    if is_number and floats[at + VALUES + column] == 0.0:
        row[words + ZEROS] -= 1


@apart
def _turn(row: Array, pool: Array, floats: Array, place: Any, first: Any) -> None:
    """The back becomes the front: products from the newest number on."""
    group, stride, words, word, column = place
    whole = words + WHOLE
    row[whole + TOP] = 0
    for position in range(row[group + SEEN] - 1, first - 1, -1):
        at = place_of(row, group, stride, position)
        value = floats[at + VALUES + column]
        if (pool[at + STATUSES] >> (8 * column)) & 0xFF == 0 and value != 0.0:
            _multiply(row, whole, value, row, whole)
        _copy(row, whole, pool, at + word)
    row[whole + TOP] = 0
    row[words + BACK] = row[group + SEEN]


@apart
def window_product(row: Array, pool: Array, place: Any, error: Any, numbers: Any) -> Any:
    group, stride, words, word, _ = place
    if error != 0:
        return 0.0, error
    if numbers == 0 or row[words + ZEROS] != 0:
        return 0.0, 0
    whole, first = words + WHOLE, row[group + FIRST]
    if first >= row[words + BACK]:
        return _rounded(row, whole)
    front = place_of(row, group, stride, first) + word
    if row[whole + TOP] == 0:
        return _rounded(pool, front)
    return _rounded_product(pool, front, row, whole)


@apart
def _rounded(pool: Array, at: Any) -> Any:
    power = pool[at + POWER]
    if pool[at + TOP] == 0:
        return 1.0, 0
    words = np.uint64(pool[at + TOP]), np.uint64(pool[at + MIDDLE]), np.uint64(pool[at + LOW])
    return _nearest(words[0], words[1] | words[2], power & 2 != 0, power >> 2, power & 1 != 0)


@apart
def _rounded_product(pool: Array, at: Any, other: Array, there: Any) -> Any:
    """The nearest float to the product of two products."""
    if pool[at + TOP] == 0:
        return _rounded(other, there)
    top, middle, low = (
        np.uint64(pool[at + TOP]), np.uint64(pool[at + MIDDLE]), np.uint64(pool[at + LOW])
    )  # fmt: skip
    x3, x2, x1, x0 = _times_word(top, middle, low, np.uint64(other[there + LOW]))
    y3, y2, y1, y0 = _times_word(top, middle, low, np.uint64(other[there + MIDDLE]))
    z3, z2, z1, z0 = _times_word(top, middle, low, np.uint64(other[there + TOP]))
    zero = np.uint64(0)
    r1, carry = _added(x1, y0, zero)
    r2, carry = _added(x2, y1, carry)
    r3, carry = _added(x3, y2, carry)
    r4, carry = _added(y3, carry, zero)
    r2, more = _added(r2, z0, zero)
    r3, more = _added(r3, z1, more)
    r4, more = _added(r4, z2, more)
    r5 = z3 + carry + more
    first, second = pool[at + POWER], other[there + POWER]
    power = (first >> 2) + (second >> 2)
    if r5 >> _63 == 0:
        r5 = (r5 << _ONE) | (r4 >> _63)
        r4 = r4 << _ONE
        power -= 1
    is_cut = (first | second) & 2 != 0 or (x0 | r1 | r2) != 0
    return _nearest(r5, r4 | r3, is_cut, power, (first ^ second) & 1 != 0)


@apart
def _nearest(top: Any, below: Any, is_cut: Any, power: Any, is_negative: Any) -> Any:
    """The float that is nearest, of two equally near ones the even one; and a status.

    `below` is zero if all digits after those of `top` are.
    """
    digits = np.int64(_DIGITS)
    if power < _LEAST:
        digits -= _LEAST - power
    if power > _MOST:
        return 0.0, _NUM
    if digits < 0:
        return 0.0, 0
    half = np.uint64(63 - digits)
    kept = (top >> half) >> _ONE
    rest = top & ((_ONE << half) - _ONE)
    if (top >> half) & _ONE != 0 and (rest | below | (kept & _ONE) != 0 or is_cut):
        kept += _ONE
    value = float(kept)
    if power == _MOST and value == 2.0**_DIGITS:
        return 0.0, _NUM
    value *= 2.0 ** float(power - digits)  # exact: it has no more digits than fit there
    return (-value if is_negative else value) + 0.0, 0
