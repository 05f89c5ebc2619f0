"""Excel's arithmetic on plain doubles, for generated sheet kernels.

A value is a pair: a double and a status. The double of a boolean is 0 or 1, that of a text
its number in the dictionary, that of an empty cell 0. They follow `formulas.operators` and
`formulas.functions_*` word for word; the tests compare them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from millstream.compiled import inlined, lent
from millstream.kernels.sheets.operands import (
    ABSENT,
    BOOLEAN_HELD,
    EMPTY,
    FIRST_ERROR,
    TEXT_HELD,
    ZERO,
)
from millstream.plan.batch import Array
from millstream.values.excel import rounding

#: Errors, in the order of `formulas.values.ERRORS`.
NULL, DIV0, VALUE, REF, NAME, NUM, NA = range(FIRST_ERROR, FIRST_ERROR + 7)

_round_scaled: Any = inlined(rounding.round_scaled)
_cut_scaled: Any = inlined(rounding.cut_scaled)
_modulo: Any = inlined(rounding.modulo)
_same: Any = lent(rounding.same_number)
_whole_below: Any = lent(rounding.whole_below)

_VANISHING = 2.0**-50


def _define_pick(typing_context: Any, is_first: Any, a: Any, b: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        chosen = builder.select(*args)
        chosen.set_metadata("unpredictable", builder.module.add_metadata([]))
        return chosen

    return types.float64(types.boolean, types.float64, types.float64), generate


#: `a if is_first else b`, never as a branch: which way one goes depends on the data, and a wrong
#: guess costs more than both sides. LLVM makes branches of choices unless told otherwise.
pick: Any = intrinsic(_define_pick)


def _define_likely(typing_context: Any, condition: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        bit = ir.IntType(1)
        expect = builder.module.declare_intrinsic(
            "llvm.expect", (bit,), ir.FunctionType(bit, (bit, bit))
        )
        return builder.call(expect, (args[0], bit(1)))

    return types.boolean(types.boolean), generate


#: A condition that nearly always holds: registers are given to what comes then.
likely: Any = intrinsic(_define_likely)


def _define_nothing_of(typing_context: Any, value: Any, rest: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        # One instruction where there is one that multiplies and adds, and in any order: nothing
        # is rounded here.
        zero, flags = args[0].type(0.0), ("contract", "reassoc", "nsz")
        return builder.fadd(builder.fmul(args[0], zero, flags=flags), args[1], flags=flags)

    return types.float64(types.float64, types.float64), generate


#: `value * 0 + rest`: zero if both are finite, NaN if not.
nothing_of: Any = intrinsic(_define_nothing_of)


@inlined
def first_error(s: Any, t: Any) -> Any:
    if s >= FIRST_ERROR:
        return s
    return t if t >= FIRST_ERROR else 0


@inlined
def checked(v: Any, s: Any) -> Any:
    """A result, which must be finite unless it is an error already."""
    if s != 0:
        return 0.0, s
    if v - v != 0.0:
        return 0.0, NUM
    return v + 0.0, 0


@inlined
def add(a: Any, s: Any, b: Any, t: Any) -> Any:
    return checked(a + b, first_error(s, t))


@inlined
def subtract(a: Any, s: Any, b: Any, t: Any) -> Any:
    return checked(a - b, first_error(s, t))


@inlined
def or_zero(v: Any, a: Any) -> Any:
    """What is all but nothing beside an operand is zero."""
    return pick(abs(v) < _VANISHING * abs(a), 0.0, v)


@inlined
def or_zero_below(v: Any, least: Any) -> Any:
    """The same beside a constant, where it is known how much must be left."""
    return pick(abs(v) < least, 0.0, v)


@inlined
def multiply(a: Any, s: Any, b: Any, t: Any) -> Any:
    return checked(a * b, first_error(s, t))


@inlined
def divide(a: Any, s: Any, b: Any, t: Any) -> Any:
    error = first_error(s, t)
    if error == 0 and b == 0.0:
        error = DIV0
    return checked(a / b if b != 0.0 else 0.0, error)


@inlined
def power(a: Any, s: Any, b: Any, t: Any) -> Any:
    error = first_error(s, t)
    if error != 0:
        return 0.0, error
    if a == 0.0:
        if b == 0.0:
            return 0.0, NUM
        if b < 0.0:
            return 0.0, DIV0
    if a < 0.0 and b != math.floor(b):
        root = np.round(1.0 / b)
        if abs(root) % 2.0 == 1.0 and abs(1.0 / root - b) < 1e-15:
            v, error = checked((-a) ** b, 0)
            return -v, error
        return 0.0, NUM
    # As the reference takes them: LLVM does so only where it knows the exponent.
    if b == 2.0:
        return checked(a * a, 0)
    if b == -1.0:
        return checked(1.0 / a, 0)
    if b == 0.5:
        return checked(math.sqrt(a), 0)
    return checked(a**b, 0)


@inlined
def negate(a: Any, s: Any) -> Any:
    return checked(-a, first_error(s, 0))


@inlined
def percent(a: Any, s: Any) -> Any:
    return checked(a / 100.0, first_error(s, 0))


@inlined
def compared(a: Any, s: Any, b: Any, t: Any) -> Any:
    """-1, 0 or 1 for two numbers, and the error of one of them."""
    error = first_error(s, t)
    if _same(a, b):
        return 0, error
    return (-1 if a < b else 1), error


@inlined
def is_clear(a: Any, b: Any) -> Any:
    """Is it clear how two finite numbers compare, without looking at their digits?"""
    x, y = abs(a), abs(b)
    return (a == b) | (abs(a - b) > rounding.APART * pick(x > y, x, y))


@inlined
def compared_plainly(a: Any, s: Any, b: Any, t: Any) -> Any:
    """The same for booleans, or for texts by their place in the dictionary."""
    error = first_error(s, t)
    if a == b:
        return 0, error
    return (-1 if a < b else 1), error


@inlined
def compared_kinds(a: Any, s: Any, kind: Any, b: Any, t: Any, other: Any) -> Any:
    """The same for values that may be of any kinds: numbers before texts before booleans.

    Of texts it is only told whether they are the same. What is empty is like the other.
    """
    error = first_error(s, t)
    rank, beside = _rank(s, kind), _rank(t, other)
    x = 0.0 if rank < 0 or s == ZERO else a
    y = 0.0 if beside < 0 or t == ZERO else b
    rank = beside if rank < 0 else rank
    beside = rank if beside < 0 else beside
    if rank != beside:
        return (-1 if rank < beside else 1), error
    if x == y or (rank == 0 and _same(x, y)):
        return 0, error
    return (-1 if x < y else 1), error


@inlined
def _rank(s: Any, kind: Any) -> Any:
    if s in (EMPTY, ABSENT):
        return -1
    if s == ZERO:
        return 0
    if s in (TEXT_HELD, BOOLEAN_HELD):
        return s - 3
    return kind


@inlined
def choose(c: Any, s: Any, a: Any, t: Any, b: Any, u: Any) -> Any:
    if s >= FIRST_ERROR:
        return 0.0, s
    if c != 0.0:
        return a, t
    return b, u


@inlined
def if_error(a: Any, s: Any, b: Any, t: Any) -> Any:
    if s >= FIRST_ERROR:
        return b, t
    return a, s


@inlined
def if_na(a: Any, s: Any, b: Any, t: Any) -> Any:
    if s == NA:
        return b, t
    return a, s


@inlined
def rounded(x: Any, s: Any, d: Any, t: Any) -> Any:
    places = _places(d)
    return rounded_at(x, first_error(s, t), 10.0 ** abs(places), places >= 0.0)


@inlined
def rounded_up(x: Any, s: Any, d: Any, t: Any) -> Any:
    places = _places(d)
    return rounded_up_at(x, first_error(s, t), 10.0 ** abs(places), places >= 0.0)


@inlined
def rounded_down(x: Any, s: Any, d: Any, t: Any) -> Any:
    places = _places(d)
    return rounded_down_at(x, first_error(s, t), 10.0 ** abs(places), places >= 0.0)


@inlined
def rounded_at(x: Any, s: Any, scale: Any, is_fraction: Any) -> Any:
    """ROUND to a constant number of places, whose power of ten need not be computed."""
    return checked(_round_scaled(x, scale, is_fraction), first_error(s, 0))


@inlined
def rounded_up_at(x: Any, s: Any, scale: Any, is_fraction: Any) -> Any:
    return checked(_cut_scaled(x, scale, is_fraction, 1.0), first_error(s, 0))


@inlined
def rounded_down_at(x: Any, s: Any, scale: Any, is_fraction: Any) -> Any:
    return checked(_cut_scaled(x, scale, is_fraction, 0.0), first_error(s, 0))


@inlined
def plain_rounded(x: Any, scale: Any, is_fraction: Any) -> Any:
    """`round_scaled` of a finite number, in floats throughout and without a branch."""
    size = abs(x) * scale if is_fraction else abs(x) / scale
    near = pick(size < 2.0**47, 2.0**-50 * size, 0.0)
    whole = np.floor(size + near + 0.5)
    result = math.copysign(whole / scale if is_fraction else whole * scale, x) + 0.0
    return pick(size < 2.0**52, result, x)


@inlined
def plain_modulo(x: Any, divisor: Any) -> Any:
    """`modulo` in floats throughout."""
    return x - divisor * np.floor(x / divisor) + 0.0


@inlined
def plain_sign(x: Any) -> Any:
    return pick(x == 0.0, 0.0, math.copysign(1.0, x))


@inlined
def _places(d: Any) -> Any:
    return max(-300.0, min(300.0, np.trunc(d)))


@inlined
def mod(x: Any, s: Any, d: Any, t: Any) -> Any:
    error = first_error(s, t)
    if error != 0:
        return 0.0, error
    if d == 0.0:
        return 0.0, DIV0
    if abs(x / d) > 1.125e15:
        return 0.0, NUM
    return _modulo(x, d), 0


@inlined
def absolute(x: Any, s: Any) -> Any:
    return checked(abs(x), first_error(s, 0))


@inlined
def integer(x: Any, s: Any) -> Any:
    return checked(_whole_below(x), first_error(s, 0))


@inlined
def sign(x: Any, s: Any) -> Any:
    direction = 1.0 if x > 0.0 else (-1.0 if x < 0.0 else 0.0)
    return checked(direction, first_error(s, 0))


@inlined
def square_root(x: Any, s: Any) -> Any:
    error = first_error(s, 0)
    if error == 0 and x < 0.0:
        error = NUM
    return checked(math.sqrt(max(x, 0.0)), error)


@inlined
def exponential(x: Any, s: Any) -> Any:
    return checked(math.exp(min(x, 1000.0)), first_error(s, 0))


@inlined
def natural_log(x: Any, s: Any) -> Any:
    error = first_error(s, 0)
    if error == 0 and x <= 0.0:
        error = NUM
    return checked(math.log(x if x > 0.0 else 1.0), error)


@inlined
def sine(x: Any, s: Any) -> Any:
    return _angle(math.sin(x), x, s)


@inlined
def cosine(x: Any, s: Any) -> Any:
    return _angle(math.cos(x), x, s)


@inlined
def tangent(x: Any, s: Any) -> Any:
    return _angle(math.tan(x), x, s)


@inlined
def _angle(v: Any, x: Any, s: Any) -> Any:
    error = first_error(s, 0)
    if error == 0 and not abs(x) < 134217728.0:
        error = NUM
    return checked(v, error)


@inlined
def arc_tangent(x: Any, s: Any) -> Any:
    return checked(math.atan(x), first_error(s, 0))


@inlined
def approximate_place(x: Any, keys: Array) -> Any:
    """Where the last key up to x stands, by halving; -1 if all are larger."""
    low, high, best = 0, keys.size - 1, -1
    while low <= high:
        middle = (low + high) // 2
        if keys[middle] == x:
            while middle + 1 < keys.size and keys[middle + 1] == x:
                middle += 1
            return middle
        if keys[middle] < x:
            best = middle
            low = middle + 1
        else:
            high = middle - 1
    return best


@inlined
def place_among(x: Any, keys: Array) -> Any:
    """Where the last key up to x stands, of rising ones; no branch depends on x."""
    count = 0
    if keys.size <= 16:
        for n in range(keys.size):
            count += keys[n] <= x
        return count - 1
    left = keys.size
    while left > 1:
        half = left // 2
        count += half if keys[count + half - 1] <= x else 0
        left -= half
    return count - 1 + (keys[count] <= x)


@inlined
def exact_place(x: Any, keys: Array) -> Any:
    for n in range(keys.size):
        if keys[n] == x:
            return n
    return -1
