"""Scalar functions that calculate as machines do: 32-bit integers, single precision, bits.

An integer wraps. A number is rounded to single precision after every operation: what double
precision gives for two singles, rounded once more, is what single precision gives. There are
no nulls; only the division of an integer by zero is a fault.
"""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable
from typing import Any

from millstream.values.as_in_c import as_in_c, logarithm, power, rounded, sinh
from millstream.values.core import rules
from millstream.values.core.scalar import DIVISION_BY_ZERO, Operation, Scalar, ScalarFault
from millstream.values.types import BIT, BOOLEAN, INT32, SINGLE, TEXT, Type

_SINGLE = struct.Struct("<f")
_LEAST, _MOST = -(2**31), 2**31 - 1


def wrapped(value: int) -> int:
    """The lowest 32 bits, as a machine reads them."""
    return (value + 2**31) % 2**32 - 2**31


def single(value: float) -> float:
    """The nearest number of single precision."""
    try:
        nearest: float = _SINGLE.unpack(_SINGLE.pack(value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return nearest


def _quotient(a: int, b: int) -> int:
    if b == 0:
        raise ScalarFault(DIVISION_BY_ZERO)
    towards_zero = abs(a) // abs(b)
    return towards_zero if (a < 0) == (b < 0) else -towards_zero


def _remainder(a: int, b: int) -> int:
    return a - b * _quotient(a, b)


def _ratio(a: float, b: float) -> float:
    if b != 0:
        return a / b
    if a == 0 or a != a:
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1, b)


def _whole(value: float) -> int:
    """Cut off after the point; what is too large becomes the largest, NaN zero."""
    if value != value:
        return 0
    return int(max(_LEAST, min(_MOST, value)))


def converted(value: float, type_: Type) -> Any:
    """A number as another type holds it, as C converts it."""
    if type_ == SINGLE:
        return single(float(value))
    if type_ == BOOLEAN:
        return value != 0
    whole = _whole(value)
    return whole & 1 if type_ == BIT else whole


def _round(value: float) -> float:
    return math.copysign(math.floor(abs(value) + 0.5), value) if math.isfinite(value) else value


def single_text(value: float) -> str:
    """The fewest digits that read back as the same number of single precision."""
    if value != value or math.isinf(value):
        return str(value)
    shortest = next(text for n in range(1, 10) if single(float(text := f"{value:.{n}g}")) == value)
    return repr(float(shortest))


def _kept(type_: Type) -> Callable[[Any], Any]:
    """How a result is held."""
    return {INT32: wrapped, SINGLE: single}.get(type_, lambda value: value)


def _scalar(
    name: str, params: tuple[Type, ...], result: Type, meaning: Callable[..., Any], plain: str,
    faults: tuple[str, ...] = (),
) -> Scalar:  # fmt: skip
    keep = _kept(result)
    held = {INT32: "i", SINGLE: "f", BIT: "i", BOOLEAN: "b"}
    shape = "".join(held[p] for p in params)
    usage = f"{name}({', '.join(map(str, params))})"
    return Scalar(
        name, rules.fixed(*params, result=result), usage, lambda *args: keep(meaning(*args)),
        {shape: Operation(f"machine_{name}", plain, faults)} if plain else {},
    )  # fmt: skip


_COMPARISONS = {
    "lt": ("<", operator.lt), "le": ("<=", operator.le), "gt": (">", operator.gt),
    "ge": (">=", operator.ge), "eq": ("==", operator.eq), "ne": ("!=", operator.ne),
}  # fmt: skip
_SINGLES: dict[str, tuple[Callable[..., float], str]] = {
    "sin": (as_in_c(math.sin), "math.sin"), "cos": (as_in_c(math.cos), "math.cos"),
    "tan": (as_in_c(math.tan), "math.tan"), "asin": (as_in_c(math.asin), "math.asin"),
    "acos": (as_in_c(math.acos), "math.acos"), "atan": (math.atan, "math.atan"),
    "sinh": (sinh, "math.sinh"), "cosh": (as_in_c(math.cosh), "math.cosh"),
    "tanh": (math.tanh, "math.tanh"), "exp": (as_in_c(math.exp), "math.exp"),
    "log": (logarithm(math.log), "math.log"), "log10": (logarithm(math.log10), "math.log10"),
    "sqrt": (as_in_c(math.sqrt), "math.sqrt"), "floor": (rounded(math.floor), "floor_of"),
    "ceil": (rounded(math.ceil), "ceiling_of"), "round": (_round, "round_half_away"),
    "abs": (abs, "abs"),
}  # fmt: skip
_INTEGERS = (INT32, INT32)
_PAIR = (SINGLE, SINGLE)

MACHINE: tuple[Scalar, ...] = (
    _scalar("int32_add", _INTEGERS, INT32, operator.add, "int32({0} + {1})"),
    _scalar("int32_sub", _INTEGERS, INT32, operator.sub, "int32({0} - {1})"),
    _scalar("int32_mul", _INTEGERS, INT32, operator.mul, "int32({0} * {1})"),
    _scalar("int32_div", _INTEGERS, INT32, _quotient,
            "int32(int32_quotient(int64({0}), int64({1})))", (DIVISION_BY_ZERO,)),
    _scalar("int32_rem", _INTEGERS, INT32, _remainder,
            "int32(int32_remainder(int64({0}), int64({1})))", (DIVISION_BY_ZERO,)),
    _scalar("int32_neg", (INT32,), INT32, operator.neg, "int32(-{0})"),
    _scalar("int32_abs", (INT32,), INT32, abs, "int32(abs({0}))"),
    _scalar("int32_not", (INT32,), INT32, operator.invert, "int32(~{0})"),
    _scalar("int32_and", _INTEGERS, INT32, operator.and_, "int32({0} & {1})"),
    _scalar("int32_or", _INTEGERS, INT32, operator.or_, "int32({0} | {1})"),
    _scalar("int32_xor", _INTEGERS, INT32, operator.xor, "int32({0} ^ {1})"),
    # As machines do, only the lowest five bits say how far.
    _scalar("int32_shl", _INTEGERS, INT32, lambda a, b: a << (b & 31), "int32({0} << ({1} & 31))"),
    _scalar("int32_shr", _INTEGERS, INT32, lambda a, b: a >> (b & 31), "int32({0} >> ({1} & 31))"),
    _scalar("int32_min", _INTEGERS, INT32, min, "int32(least({0}, {1}))"),
    _scalar("int32_max", _INTEGERS, INT32, max, "int32(most({0}, {1}))"),
    _scalar("int32_of_single", (SINGLE,), INT32, _whole, "int32(whole_of({0}))"),
    _scalar("int32_of_bit", (BIT,), INT32, int, "{0}"),
    _scalar("int32_of_boolean", (BOOLEAN,), INT32, int, "int32({0})"),
    _scalar("single_of_int32", (INT32,), SINGLE, float, "float32({0})"),
    _scalar("single_add", _PAIR, SINGLE, operator.add, "{0} + {1}"),
    _scalar("single_sub", _PAIR, SINGLE, operator.sub, "{0} - {1}"),
    _scalar("single_mul", _PAIR, SINGLE, operator.mul, "{0} * {1}"),
    _scalar("single_div", _PAIR, SINGLE, _ratio, "{0} / {1}"),
    _scalar("single_rem", _PAIR, SINGLE, as_in_c(math.fmod), "float32(rest_of({0}, {1}))"),
    _scalar("single_neg", (SINGLE,), SINGLE, operator.neg, "-{0}"),
    _scalar("single_atan2", _PAIR, SINGLE, math.atan2,
            "float32(math.atan2(float64({0}), float64({1})))"),
    _scalar("single_pow", _PAIR, SINGLE, power, "float32(math.pow(float64({0}), float64({1})))"),
    _scalar("single_min", _PAIR, SINGLE, min, "least({0}, {1})"),
    _scalar("single_max", _PAIR, SINGLE, max, "most({0}, {1})"),
    *(_scalar(f"single_{name}", (SINGLE,), SINGLE, meaning, f"float32({called}(float64({{0}})))")
      for name, (meaning, called) in _SINGLES.items()),
    _scalar("int32_text", (INT32,), TEXT, str, ""),
    _scalar("single_text", (SINGLE,), TEXT, single_text, ""),
    _scalar("bit_text", (BIT,), TEXT, str, ""),
    _scalar("boolean_text", (BOOLEAN,), TEXT, lambda a: "true" if a else "false", ""),
    _scalar("bit_of_int32", (INT32,), BIT, lambda a: a & 1, "int32({0} & 1)"),
    _scalar("bit_and", (BIT, BIT), BIT, operator.and_, "int32({0} & {1})"),
    _scalar("bit_or", (BIT, BIT), BIT, operator.or_, "int32({0} | {1})"),
    _scalar("bit_xor", (BIT, BIT), BIT, operator.xor, "int32({0} ^ {1})"),
    _scalar("bit_not", (BIT,), BIT, lambda a: 1 - a, "int32(1 - {0})"),
    *(_scalar(f"{type_}_{name}", (type_, type_), BOOLEAN, meaning, f"{{0}} {symbol} {{1}}")
      for type_ in (INT32, SINGLE, BIT) for name, (symbol, meaning) in _COMPARISONS.items()),
)  # fmt: skip
