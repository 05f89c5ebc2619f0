"""Functions of numbers: extremes, rounding, and C's mathematics.

Outside of its domain a function gives NaN and beyond its range infinity, as in C.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

from millstream.values.as_in_c import as_in_c, logarithm, power, rounded, sinh
from millstream.values.records.intrinsic import (
    Intrinsic,
    RecordSurroundings,
    Rule,
    Signature,
    fixed,
    one_of,
    plain,
    spoken,
)
from millstream.values.records.types import (
    BOOL,
    FINGERPRINT,
    FLOAT,
    INT,
    STRING,
    TIME,
    UINT,
    RecordType,
    unsigned,
    wrapped,
)
from millstream.values.undefined import Undefined

_ORDERED = (INT, UINT, FLOAT, TIME, STRING, FINGERPRINT)


def _alike(args: tuple[RecordType, ...]) -> Signature | str:
    """Two or more of one type that has an order."""
    if len(args) >= 2 and args[0] in _ORDERED and all(a == args[0] for a in args):
        return Signature(args, args[0])
    return f"expected values of one type that has an order, got ({spoken(args)})"


def _abs(value: Any) -> Any:
    return wrapped(abs(value)) if isinstance(value, int) else abs(value)


def _atanh(value: float) -> float:
    return math.copysign(math.inf, value) if abs(value) == 1 else as_in_c(math.atanh)(value)


def _half_away(value: float) -> int:
    """Halves go away from zero; what has no fraction stays as it is."""
    size = abs(value)
    whole = math.floor(size)
    return whole + (size - whole >= 0.5)


def highbit(value: int) -> int:
    """The number of the highest bit that is set, from 1; 0 if none is."""
    return unsigned(value).bit_length()


def _rand(settings: RecordSurroundings, signature: Signature) -> Callable[[], float]:
    def rand() -> float:
        """Between 0 and 1, both excluded."""
        return (settings.random.getrandbits(53) + 0.5) / 2**53

    return rand


def _nrand(settings: RecordSurroundings, signature: Signature) -> Callable[[int], int]:
    def nrand(below: int) -> int:
        if below <= 0:
            raise Undefined(f"nrand({below}): the number must be positive")
        return settings.random.randrange(below)

    return nrand


def _weight(most: float) -> Callable[[Any], Any]:
    """A weight of something that is drawn or ranked: it is not negative."""

    def weight(value: Any) -> Any:
        if not 0 <= value <= most:
            raise Undefined(f"a weight must not be {value}")
        return value

    return weight


def _number(args: tuple[RecordType, ...]) -> Signature | str:
    if len(args) == 1 and args[0] in (INT, UINT, FLOAT):
        return Signature(args, args[0])
    return f"expected a number, got ({spoken(args)})"


#: What weights of tables go through before they are emitted.
WEIGHT, FINITE_WEIGHT = "_weight", "_finite_weight"
_FUNCTIONS: dict[str, Callable[..., float]] = {
    "sqrt": as_in_c(math.sqrt), "cbrt": math.cbrt, "exp": as_in_c(math.exp),
    "ln": logarithm(math.log), "log": logarithm(math.log), "log10": logarithm(math.log10),
    "log2": logarithm(math.log2), "sin": as_in_c(math.sin), "cos": as_in_c(math.cos),
    "tan": as_in_c(math.tan), "asin": as_in_c(math.asin), "acos": as_in_c(math.acos),
    "atan": math.atan, "sinh": sinh, "cosh": as_in_c(math.cosh), "tanh": math.tanh,
    "asinh": math.asinh, "acosh": as_in_c(math.acosh), "atanh": _atanh,
    "ceil": rounded(math.ceil), "floor": rounded(math.floor), "round": rounded(_half_away),
    "trunc": rounded(math.trunc), "fabs": abs,
}  # fmt: skip
_TESTS: dict[str, Callable[[float], bool]] = {
    "isnan": math.isnan, "isinf": math.isinf, "isfinite": math.isfinite,
    "isnormal": lambda v: math.isfinite(v) and abs(v) >= 2.0**-1022,
    "signbit": lambda v: math.copysign(1, v) < 0,
}  # fmt: skip
_PAIR: Rule = fixed(FLOAT, FLOAT, result=FLOAT)


def _extreme(name: str, better: Callable[..., Any]) -> Intrinsic:
    return plain(name, f"{name}(a, b)", _alike, better)


NUMBERS: tuple[Intrinsic, ...] = (
    plain("abs", "abs(number)", one_of(fixed(INT, result=INT), fixed(FLOAT, result=FLOAT)), _abs),
    _extreme("min", min),
    _extreme("max", max),
    *(plain(name, f"{name}(x)", fixed(FLOAT, result=FLOAT), function)
      for name, function in _FUNCTIONS.items()),
    *(plain(name, f"{name}(x)", fixed(FLOAT, result=BOOL), test)
      for name, test in _TESTS.items()),
    plain("pow", "pow(x, y)", _PAIR, power),
    plain("atan2", "atan2(y, x)", _PAIR, math.atan2),
    plain("fmod", "fmod(x, y)", _PAIR, as_in_c(math.fmod)),
    plain("hypot", "hypot(x, y)", _PAIR, math.hypot),
    plain("highbit", "highbit(n)",
          one_of(fixed(INT, result=INT), fixed(UINT, result=INT)), highbit),
    plain(WEIGHT, "_weight(number)", _number, _weight(math.inf)),
    plain(FINITE_WEIGHT, "_finite_weight(number)", _number, _weight(sys.float_info.max)),
    Intrinsic("rand", "rand()", fixed(result=FLOAT), _rand, pure=False),
    Intrinsic("nrand", "nrand(below)", fixed(INT, result=INT), _nrand, pure=False),
)  # fmt: skip
