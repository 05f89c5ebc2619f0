"""Aggregates of two windows side by side, which look at all of both: SLOPE, CORREL and their kin.

They follow `values.excel.functions_statistics` step by step: from the oldest on, in plain floats.
"""

from __future__ import annotations

import math
from typing import Any

from millstream.compiled import apart
from millstream.kernels.windows.ring import FIRST, SEEN, STATUSES, VALUES, place_of
from millstream.plan.batch import Array

SLOPE, INTERCEPT, CORRELATION, DETERMINATION, COVARIANCE, SAMPLE_COVARIANCE, STANDARD_ERROR = range(
    7
)
_FIRST_ERROR, _DIV0, _NUM = 10, 11, 15


@apart
def _error_of(row: Array, pool: Array, group: int, stride: int, column: int) -> Any:
    for position in range(row[group + FIRST], row[group + SEEN]):
        at = place_of(row, group, stride, position)
        status = (pool[at + STATUSES] >> (8 * column)) & 0xFF
        if status >= _FIRST_ERROR:
            return status
    return 0


@apart
def _is_pair(pool: Array, at: Any, one: int, other: int) -> Any:
    statuses = pool[at + STATUSES]
    return (statuses >> (8 * one)) & 0xFF == 0 and (statuses >> (8 * other)) & 0xFF == 0


@apart
def window_pairs(
    row: Array, pool: Array, numbers: Array, group: int, stride: int, one: int, other: int,
    what: int,
) -> Any:  # fmt: skip
    """Of values of one column (the first argument) and of another at the same places."""
    error = _error_of(row, pool, group, stride, one)
    if error == 0:
        error = _error_of(row, pool, group, stride, other)
    if error != 0:
        return 0.0, error
    count, a, b = 0, 0.0, 0.0
    for position in range(row[group + FIRST], row[group + SEEN]):
        at = place_of(row, group, stride, position)
        if _is_pair(pool, at, one, other):
            count += 1
            a += numbers[at + VALUES + one]
            b += numbers[at + VALUES + other]
    if (
        count == 0
        or (what == SAMPLE_COVARIANCE and count == 1)
        or (what == STANDARD_ERROR and count < 3)
    ):
        return 0.0, _DIV0
    a, b = a / count, b / count
    if a - a != 0.0 or b - b != 0.0:
        return 0.0, _NUM
    of_one, of_other, products = 0.0, 0.0, 0.0
    for position in range(row[group + FIRST], row[group + SEEN]):
        at = place_of(row, group, stride, position)
        if _is_pair(pool, at, one, other):
            x, y = numbers[at + VALUES + one] - a, numbers[at + VALUES + other] - b
            of_one += x * x
            of_other += y * y
            products += x * y
    if what == COVARIANCE:
        return _finite(products / count)
    if what == SAMPLE_COVARIANCE:
        return _finite(products / (count - 1))
    spread = math.sqrt(of_one * of_other) if what in (CORRELATION, DETERMINATION) else of_other
    if spread == 0.0:
        return 0.0, _DIV0
    if what == STANDARD_ERROR:
        rest = of_one - products * products / spread
        return _finite(math.sqrt(max(0.0, rest) / (count - 2)))
    ratio = products / spread
    if what == INTERCEPT:
        return _finite(a - ratio * b)
    return _finite(ratio * ratio if what == DETERMINATION else ratio)


@apart
def point_of_line(
    start: Any, start_status: Any, steepness: Any, steepness_status: Any, x: Any, status: Any
) -> Any:
    """FORECAST: where a line is at a place."""
    if status >= _FIRST_ERROR:
        return 0.0, status
    if start_status != 0 or steepness_status != 0:
        return 0.0, max(start_status, steepness_status)
    return _finite(start + steepness * x)


@apart
def _finite(value: Any) -> Any:
    return (0.0, _NUM) if value - value != 0.0 else (value + 0.0, 0)
