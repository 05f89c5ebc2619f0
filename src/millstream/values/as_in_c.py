"""Functions of floats as C has them: NaN outside of their domain, infinity beyond their range."""

from __future__ import annotations

import math
from collections.abc import Callable


def as_in_c(function: Callable[..., float]) -> Callable[..., float]:
    def call(*args: float) -> float:
        try:
            return function(*args)
        except ValueError:
            return math.nan
        except OverflowError:
            return math.inf

    return call


def logarithm(function: Callable[[float], float]) -> Callable[[float], float]:
    return as_in_c(lambda value: -math.inf if value == 0 else function(value))


def sinh(value: float) -> float:
    return math.copysign(as_in_c(math.sinh)(abs(value)), value)


def power(base: float, exponent: float) -> float:
    try:
        return math.pow(base, exponent)
    except ValueError:
        if base != 0:
            return math.nan
    except OverflowError:
        pass
    is_odd = exponent % 2 == 1
    return math.copysign(math.inf, base) if is_odd else math.inf


def rounded(rounding: Callable[[float], int]) -> Callable[[float], float]:
    """A whole float; a zero keeps the sign of what it was made of."""
    return lambda value: math.copysign(rounding(value), value) if math.isfinite(value) else value
