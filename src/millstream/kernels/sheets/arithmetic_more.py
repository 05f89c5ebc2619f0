"""More of Excel's functions of numbers on plain doubles: see `arithmetic`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from millstream.compiled import apart
from millstream.kernels.sheets.arithmetic import (
    DIV0,
    NUM,
    checked,
    first_error,
    rounded_at,
    rounded_down,
)


@apart
def _steps(x: Any, step: Any) -> Any:
    """How many steps, with what is next to a whole number taken for it."""
    ratio = x / step
    near = np.rint(ratio)
    return near if abs(ratio - near) < 1e-12 * max(1.0, abs(ratio)) else ratio


@apart
def ceiling(x: Any, s: Any, step: Any, t: Any) -> Any:
    error = first_error(s, t)
    if error == 0 and x > 0.0 > step:
        error = NUM
    value = 0.0 if x == 0.0 or step == 0.0 else np.ceil(_steps(x, step)) * step
    return checked(value, error)


@apart
def floor(x: Any, s: Any, step: Any, t: Any) -> Any:
    error = first_error(s, t)
    if error == 0 and x != 0.0:
        error = DIV0 if step == 0.0 else (NUM if x > 0.0 > step else 0)
    value = 0.0 if x == 0.0 or step == 0.0 else np.floor(_steps(x, step)) * step
    return checked(value, error)


@apart
def ceiling_math(x: Any, s: Any, step: Any, t: Any, mode: Any, u: Any) -> Any:
    error = first_error(first_error(s, t), u)
    if step == 0.0 or x == 0.0:
        return checked(0.0, error)
    ratio = _steps(x, abs(step))
    is_away = x < 0.0 and mode != 0.0
    return checked((np.floor(ratio) if is_away else np.ceil(ratio)) * abs(step), error)


@apart
def floor_math(x: Any, s: Any, step: Any, t: Any, mode: Any, u: Any) -> Any:
    error = first_error(first_error(s, t), u)
    if step == 0.0 or x == 0.0:
        return checked(0.0, error)
    ratio = _steps(x, abs(step))
    is_towards = x < 0.0 and mode != 0.0
    return checked((np.ceil(ratio) if is_towards else np.floor(ratio)) * abs(step), error)


@apart
def truncated(x: Any, s: Any, digits: Any, t: Any) -> Any:
    return rounded_down(x, s, digits, t)


@apart
def mround(x: Any, s: Any, multiple: Any, t: Any) -> Any:
    error = first_error(s, t)
    if error or multiple == 0.0 or x == 0.0:
        return checked(0.0, error)
    if (x < 0.0) != (multiple < 0.0):
        return checked(0.0, NUM)
    times, error = rounded_at(x / multiple, 0, 1.0, True)
    return checked(times * multiple, error)


@apart
def even(x: Any, s: Any) -> Any:
    return checked(math.copysign(2.0 * np.ceil(abs(x) / 2.0), x), first_error(s, 0))


@apart
def odd(x: Any, s: Any) -> Any:
    value = math.copysign(2.0 * np.ceil((abs(x) + 1.0) / 2.0) - 1.0, x) if x != 0.0 else 1.0
    return checked(value, first_error(s, 0))


@apart
def quotient(x: Any, s: Any, divisor: Any, t: Any) -> Any:
    error = first_error(s, t)
    if error == 0 and divisor == 0.0:
        error = DIV0
    return checked(np.trunc(x / divisor) if divisor != 0.0 else 0.0, error)


@apart
def log_ten(x: Any, s: Any) -> Any:
    error = first_error(s, 0)
    if error == 0 and x <= 0.0:
        error = NUM
    return checked(math.log10(x if x > 0.0 else 1.0), error)


@apart
def logarithm(x: Any, s: Any, base: Any, t: Any) -> Any:
    error = first_error(s, t)
    if error == 0:
        if x <= 0.0 or base <= 0.0:
            error = NUM
        elif base == 1.0:
            error = DIV0
    if error:
        return checked(0.0, error)
    if base == 10.0:
        return checked(math.log10(x), 0)
    if base == 2.0:
        return checked(math.log2(x), 0)
    return checked(math.log(x) / math.log(base), 0)


@apart
def arc_tangent_of(x: Any, s: Any, y: Any, t: Any) -> Any:
    error = first_error(s, t)
    if error == 0 and x == 0.0 and y == 0.0:
        error = DIV0
    return checked(math.atan2(y, x), error)


@apart
def degrees(x: Any, s: Any) -> Any:
    return checked(x * (180.0 / math.pi), first_error(s, 0))


@apart
def radians(x: Any, s: Any) -> Any:
    return checked(x * (math.pi / 180.0), first_error(s, 0))


@apart
def is_at_least(x: Any, s: Any, step: Any, t: Any) -> Any:
    return checked(1.0 if x >= step else 0.0, first_error(s, t))
