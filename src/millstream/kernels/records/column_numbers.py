"""What operators, conversions and functions of numbers do with whole columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from millstream.compiled import tight
from millstream.kernels.runtime.hashing import frozen
from millstream.plan.batch import Array
from millstream.values.records.types import BOOL, FLOAT, INT, TIME


def towards_zero(a: Array, b: Array) -> Array:
    quotient = np.where(b == -1, 0, a) // b
    rest = np.where(b == -1, 0, a) - quotient * b
    wrong = (rest != 0) & ((a < 0) != (b < 0))
    return np.where(b == -1, -a, quotient + wrong)


@tight
def _fit(values: Array, whole: Array) -> bool:
    """Make integers of floats, towards zero; whether all of them are some."""
    fits = True
    for n in range(len(values)):
        value = values[n]
        fits &= -(2.0**63) <= value < 2.0**63  # no NaN either
        whole[n] = np.int64(value)
    return fits


def _whole(values: Array) -> tuple[Array, Array | None]:
    whole = np.empty(len(values), np.int64)
    if _fit(frozen(values), whole):
        return whole, None
    with np.errstate(all="ignore"):
        cut = np.trunc(values)
        fits = (cut >= -(2.0**63)) & (cut < 2.0**63)
        return np.where(fits, cut, 0).astype(np.int64), ~fits


OPERATORS: dict[str, Callable[..., Array]] = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "neg": np.negative,
    "pos": np.positive, "==": np.equal, "!=": np.not_equal, "<": np.less, "<=": np.less_equal,
    ">": np.greater, ">=": np.greater_equal, "and": np.logical_and, "or": np.logical_or,
    "!": np.logical_not, "&": np.bitwise_and, "|": np.bitwise_or, "^": np.bitwise_xor,
    "~": np.invert,
}  # fmt: skip
WHOLE_ONLY = ("&", "|", "^", "~", "%")
COMPARED: dict[str, Callable[..., Array]] = {
    "==": np.equal, "!=": np.not_equal, "<": np.less, "<=": np.less_equal, ">": np.greater,
    ">=": np.greater_equal,
}  # fmt: skip
CONVERSIONS: dict[tuple[Any, Any], Callable[[Array], tuple[Array, Array | None]]] = {
    (FLOAT, INT): lambda v: (v.astype(np.float64), None),
    (FLOAT, TIME): lambda v: (v.astype(np.float64), None),
    (FLOAT, BOOL): lambda v: (v.astype(np.float64), None),
    (INT, BOOL): lambda v: (v.astype(np.int64), None),
    (BOOL, INT): lambda v: (v != 0, None),
    (INT, TIME): lambda v: (v, None),
    (TIME, INT): lambda v: (v, None),
    (INT, FLOAT): _whole,
    (TIME, FLOAT): _whole,
}
NUMBERS: dict[str, Callable[..., Array]] = {
    "abs": np.abs, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "sqrt": np.sqrt,
    "min": lambda *v: np.minimum.reduce(v), "max": lambda *v: np.maximum.reduce(v),
}  # fmt: skip

_DAY = 86_400_000_000
#: Beyond these some calendar has no day.
FIRST_TIME, LAST_TIME = -719_000 * _DAY, 2_932_000 * _DAY


def _dates(times: Array) -> Array:
    dates: Array = (times // _DAY).view("M8[D]")
    return dates


def _since(times: Array, unit: str) -> Array:
    """The days since the year or the month of a time has begun."""
    dates = _dates(times)
    days: Array = (dates - dates.astype(f"M8[{unit}]").astype("M8[D]")).astype(np.int64)
    return days


def _begun(unit: str) -> Callable[[Array], Array]:
    return lambda t: _dates(t).astype(f"M8[{unit}]").astype("M8[us]").astype(np.int64)


def _cut_off(size: int) -> Callable[[Array], Array]:
    return lambda t: t - t % size


#: Functions of times in UTC.
TIMES: dict[str, Callable[[Array], Array]] = {
    "hourof": lambda t: t // 3_600_000_000 % 24, "minuteof": lambda t: t // 60_000_000 % 60,
    "secondof": lambda t: t // 1_000_000 % 60,
    "dayofweek": lambda t: (t // _DAY + 3) % 7 + 1,
    "dayofmonth": lambda t: _since(t, "M") + 1, "dayofyear": lambda t: _since(t, "Y") + 1,
    "monthof": lambda t: _dates(t).astype("M8[M]").astype(np.int64) % 12 + 1,
    "yearof": lambda t: _dates(t).astype("M8[Y]").astype(np.int64) + 1970,
    "trunctosecond": _cut_off(1_000_000), "trunctominute": _cut_off(60_000_000),
    "trunctohour": _cut_off(3_600_000_000), "trunctoday": _cut_off(_DAY),
    "trunctoweek": lambda t: t - (t + 3 * _DAY) % (7 * _DAY),
    "trunctomonth": _begun("M"), "trunctoyear": _begun("Y"),
}  # fmt: skip
