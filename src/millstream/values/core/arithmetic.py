"""Scalar functions of numbers, integers and durations."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from millstream.values.core import rules
from millstream.values.core.scalar import (
    DIVISION_BY_ZERO,
    OVERFLOW,
    Operation,
    Scalar,
    ScalarFault,
)
from millstream.values.types import INTEGER, NUMBER, Kind


def _times(kinds: list[Kind], left: Any, right: Any) -> Any:
    if Kind.DURATION in kinds and Kind.NUMBER in kinds:
        return _truncated(float(left) * float(right))
    return left * right


def _over(kinds: list[Kind], left: Any, right: Any) -> Any:
    if right == 0:
        raise ScalarFault(DIVISION_BY_ZERO)
    if kinds[0] is not Kind.DURATION:
        return left / right
    if kinds[1] is Kind.DURATION:
        return float(left) / float(right)
    return _truncated(float(left) / right)


def _truncated(number: float) -> int:
    if not math.isfinite(number):
        raise ScalarFault("duration overflow")
    return math.trunc(number)


def _remainder(a: Any, b: Any) -> Any:
    if b == 0:
        raise ScalarFault(DIVISION_BY_ZERO)
    if isinstance(a, float):
        return math.nan if math.isinf(a) or a != a or b != b else math.fmod(a, b)
    return int(math.copysign(1, a)) * (abs(a) % abs(b))


def _whole_division(a: int, b: int) -> int:
    if b == 0:
        raise ScalarFault(DIVISION_BY_ZERO)
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _rounder(rounding: Callable[[float], float]) -> Callable[[float], float]:
    return lambda x: float(rounding(x)) if math.isfinite(x) else x


def _half_away(x: float) -> float:
    whole = math.trunc(x)
    if abs(x - whole) >= 0.5:
        whole += 1 if x > 0 else -1
    return whole


def _root(x: float) -> float:
    if x < 0:
        raise ScalarFault("square root of a negative number")
    return math.sqrt(x)


def _exponential(x: float) -> float:
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


def _logarithm(x: float) -> float:
    if x <= 0:
        raise ScalarFault("logarithm of a number that is not positive")
    return math.log(x)


def _power(a: float, b: float) -> float:
    try:
        return math.pow(a, b)
    except OverflowError:
        odd = b == math.trunc(b) and math.fmod(b, 2) != 0
        return -math.inf if a < 0 and odd else math.inf
    except ValueError:
        raise ScalarFault("power outside its domain") from None


_NUMBER = rules.fixed(NUMBER, result=NUMBER)
_INTEGERS = (DIVISION_BY_ZERO, OVERFLOW)

ARITHMETIC: tuple[Scalar, ...] = (
    Scalar("+", rules.additive("+"), "a + b", operator.add,
           {"ii": Operation("add_integers", faults=(OVERFLOW,)),
            "ff": Operation("add_numbers", "{0} + {1}")}),
    Scalar("-", rules.additive("-"), "a - b", operator.sub,
           {"ii": Operation("subtract_integers", faults=(OVERFLOW,)),
            "ff": Operation("subtract_numbers", "{0} - {1}")}),
    Scalar("*", rules.times, "a * b", _times,
           {"ii": Operation("multiply_integers", faults=(OVERFLOW,)),
            "ff": Operation("multiply_numbers", "{0} * {1}"),
            "if": Operation("scale", faults=(OVERFLOW,)),
            "fi": Operation("scale_by", faults=(OVERFLOW,))}, sees_kinds=True),
    Scalar("/", rules.over, "a / b: a number, null if b is zero", _over,
           {"ff": Operation("divide_numbers", None, (DIVISION_BY_ZERO,),
                            Operation("quotient_of_numbers", "{0} / {1}")),
            "if": Operation("share", faults=_INTEGERS),
            "ii": Operation("ratio_of_durations", None, (DIVISION_BY_ZERO,),
                            Operation("quotient_of_durations"))}, sees_kinds=True),
    Scalar("%", rules.remainder, "a % b: the remainder with the sign of a", _remainder,
           {"ii": Operation("remainder_of_integers", None, (DIVISION_BY_ZERO,),
                            Operation("rest_of_integers")),
            "ff": Operation("remainder_of_numbers", None, (DIVISION_BY_ZERO,),
                            Operation("rest_of_numbers"))}),
    Scalar("div", rules.fixed(INTEGER, INTEGER, result=INTEGER), "div(a, b): towards zero",
           _whole_division, {"ii": Operation("divide_integers", None, _INTEGERS,
                                             Operation("quotient_of_integers"))}),
    Scalar("neg", rules.same_sign, "-a", operator.neg,
           {"i": Operation("negate_integer", faults=(OVERFLOW,)),
            "f": Operation("negate_number", "-{0}")}),
    Scalar("abs", rules.same_sign, "abs(a)", abs,
           {"i": Operation("abs_integer", faults=(OVERFLOW,)),
            "f": Operation("abs_number", "abs({0})")}),
    Scalar("floor", rules.rounding, "floor(a)", _rounder(math.floor),
           {"f": Operation("floor_number")}),
    Scalar("ceil", rules.rounding, "ceil(a)", _rounder(math.ceil),
           {"f": Operation("ceil_number")}),
    Scalar("round", rules.rounding, "round(a): halves away from zero", _rounder(_half_away),
           {"f": Operation("round_number")}),
    Scalar("sqrt", rules.root, "sqrt(a)", _root,
           {"f": Operation("root", faults=("square root of a negative number",))}),
    Scalar("exp", _NUMBER, "exp(a)", _exponential, {"f": Operation("exponential")}),
    Scalar("ln", _NUMBER, "ln(a)", _logarithm,
           {"f": Operation("logarithm", faults=("logarithm of a number that is not positive",))}),
    Scalar("power", rules.fixed(NUMBER, NUMBER, result=NUMBER), "power(a, b)", _power,
           {"ff": Operation("power", faults=("power outside its domain",))}),
)  # fmt: skip
