"""Excel's operators on scalars."""

from __future__ import annotations

import math
from collections.abc import Callable

from millstream.values.excel.values import (
    DIV0,
    MAX_TEXT,
    NUM,
    VALUE,
    Raised,
    Scalar,
    compare,
    finite,
    to_number,
    to_text,
)

#: A difference that is smaller than its operands by this factor is taken for zero.
_VANISHING = 2.0**-50


def _add(a: Scalar, b: Scalar) -> float:
    return finite(to_number(a) + to_number(b))


def _subtract(a: Scalar, b: Scalar) -> float:
    return finite(to_number(a) - to_number(b))


def _multiply(a: Scalar, b: Scalar) -> float:
    return finite(to_number(a) * to_number(b))


def _divide(a: Scalar, b: Scalar) -> float:
    over, under = to_number(a), to_number(b)
    if under == 0:
        raise Raised(DIV0)
    return finite(over / under)


def power(base: float, exponent: float) -> float:
    if base == 0 and exponent == 0:
        raise Raised(NUM)
    if base == 0 and exponent < 0:
        raise Raised(DIV0)
    try:
        value = _raised(base, exponent)
    except OverflowError:
        raise Raised(NUM) from None
    if isinstance(value, complex):
        return _odd_root(base, exponent)
    return finite(value)


def _raised(base: float, exponent: float) -> float | complex:
    """A square is a product, and the like: so compilers take it, and it is nearest the truth."""
    if exponent == 2:
        return base * base
    if exponent == -1:
        return 1 / base
    if exponent == 0.5 and base >= 0:
        return math.sqrt(base)
    raised: float | complex = base**exponent
    return raised


def _odd_root(base: float, exponent: float) -> float:
    """Excel knows (-8)^(1/3): the exponent is one over an odd number."""
    root = round(1 / exponent) if exponent else 0
    if root % 2 and abs(1 / root - exponent) < 1e-15:
        return -finite((-base) ** exponent)
    raise Raised(NUM)


def _power(a: Scalar, b: Scalar) -> float:
    return power(to_number(a), to_number(b))


def _join(a: Scalar, b: Scalar) -> str:
    text = to_text(a) + to_text(b)
    if len(text) > MAX_TEXT:
        raise Raised(VALUE)
    return text


def add_or_zero(operator: str, a: Scalar, b: Scalar) -> float:
    """A sum or difference; zero if next to nothing is left of its operands."""
    value = BINARY[operator](a, b)
    assert type(value) is float
    if value and abs(value) < _VANISHING * abs(to_number(a)):
        return 0.0
    return value


BINARY: dict[str, Callable[[Scalar, Scalar], Scalar]] = {
    "+": _add,
    "-": _subtract,
    "*": _multiply,
    "/": _divide,
    "^": _power,
    "&": _join,
    "=": lambda a, b: compare(a, b) == 0,
    "<>": lambda a, b: compare(a, b) != 0,
    "<": lambda a, b: compare(a, b) < 0,
    ">": lambda a, b: compare(a, b) > 0,
    "<=": lambda a, b: compare(a, b) <= 0,
    ">=": lambda a, b: compare(a, b) >= 0,
}

UNARY: dict[str, Callable[[Scalar], Scalar]] = {
    "-": lambda a: -to_number(a) + 0.0,
    "%": lambda a: to_number(a) / 100,
}
