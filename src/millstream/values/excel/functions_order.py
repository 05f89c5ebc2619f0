"""Statistics of values in their order: extremes, quantiles, ranks, the most frequent ones."""

from __future__ import annotations

import math
from collections import Counter
from typing import Protocol

from millstream.values.excel.arrays import Array, Operand, column_of
from millstream.values.excel.functions_math import rounded_down
from millstream.values.excel.gather import (
    numbers,
    numbers_and_more,
    plain_numbers,
)
from millstream.values.excel.registry import Family, spec
from millstream.values.excel.values import (
    NA,
    NUM,
    fail,
    fail_if,
)


class Ordered(Protocol):
    """Numbers in order, in a list or in something better."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> float: ...


def smallest(*operands: Operand) -> float:
    return min(numbers(*operands), default=0.0)


def largest(*operands: Operand) -> float:
    return max(numbers(*operands), default=0.0)


def large(operand: Operand, k: float) -> float:
    return _kth(sorted(numbers(operand), reverse=True), k)


def small(operand: Operand, k: float) -> float:
    return _kth(sorted(numbers(operand)), k)


def _kth(values: list[float], k: float) -> float:
    """The k-th value; a fraction counts as the next whole number, but one below 1 is none."""
    return values[math.ceil(k) - 1] if 1 <= k <= len(values) else fail(NUM)


def median_of(values: list[float]) -> float:
    values = sorted(values)
    fail_if(not values)
    middle = len(values) // 2
    if len(values) % 2:
        return values[middle]
    return (values[middle - 1] + values[middle]) / 2


def median(*operands: Operand) -> float:
    return median_of(numbers(*operands))


def mode(*operands: Operand) -> float:
    return _modes(plain_numbers(*operands))[0]


def _modes(values: list[float]) -> list[float]:
    counts = Counter(values)
    most = max(counts.values(), default=0)
    fail_if(most < 2, NA)
    return [v for v, n in counts.items() if n == most]


def all_modes(*operands: Operand) -> Array:
    return column_of(tuple(_modes(plain_numbers(*operands))))


def percentile_of(values: Ordered, share: float) -> float:
    """Between the ordered values, the first at 0 and the last at 1."""
    fail_if(not values or not 0 <= share <= 1)
    return _interpolated(values, share * (len(values) - 1))


def _interpolated(values: Ordered, place: float) -> float:
    low = math.floor(place)
    if low + 1 >= len(values):
        return values[-1]
    return values[low] + (place - low) * (values[low + 1] - values[low])


def percentile(operand: Operand, share: float) -> float:
    return percentile_of(sorted(numbers(operand)), share)


def percentile_exclusive(operand: Operand, share: float) -> float:
    values = sorted(numbers(operand))
    place = share * (len(values) + 1) - 1
    fail_if(not values or place < 0 or place > len(values) - 1)
    return _interpolated(values, place)


def quartile(operand: Operand, which: float) -> float:
    fail_if(not 0 <= which < 5)
    return percentile(operand, int(which) / 4)


def quartile_exclusive(operand: Operand, which: float) -> float:
    fail_if(not 1 <= which < 4)
    return percentile_exclusive(operand, int(which) / 4)


def percent_rank(operand: Operand, x: float, digits: float = 3.0) -> float:
    values = sorted(numbers(operand))
    fail_if(not values or digits < 1)
    fail_if(not values[0] <= x <= values[-1], NA)
    if len(values) == 1:
        return 1.0
    return rounded_down(_place(values, x) / (len(values) - 1), digits)


def percent_rank_exclusive(operand: Operand, x: float, digits: float = 3.0) -> float:
    values = sorted(numbers(operand))
    fail_if(not values or digits < 1)
    fail_if(not values[0] <= x <= values[-1], NA)
    return rounded_down((_place(values, x) + 1) / (len(values) + 1), digits)


def _place(values: list[float], x: float) -> float:
    """Where a number stands among ordered ones, between two of them if need be."""
    below = sum(1 for v in values if v < x)
    if values[below] == x:
        return float(below)
    low, high = values[below - 1], values[below]
    return below - 1 + (x - low) / (high - low)


def rank(x: float, operand: Operand, order: float = 0.0) -> float:
    values = numbers(operand)
    fail_if(x not in values, NA)
    return 1.0 + sum(1 for v in values if (v < x if order else v > x))


def rank_average(x: float, operand: Operand, order: float = 0.0) -> float:
    return rank(x, operand, order) + (numbers(operand).count(x) - 1) / 2


def frequency(operand: Operand, bins: Operand) -> Array:
    limits = numbers(bins)
    counts = [0] * (len(limits) + 1)
    ordered = sorted(range(len(limits)), key=lambda n: limits[n])
    for value in numbers(operand):
        home = next((n for n in ordered if value <= limits[n]), len(limits))
        counts[home] += 1
    return column_of(tuple(float(c) for c in counts))


ORDERED: Family = {
    "FREQUENCY": spec("r r", frequency),
    "LARGE": spec("r n", large),
    "MAX": spec("r+", largest),
    "MAXA": spec("r+", lambda *operands: max(numbers_and_more(*operands), default=0.0)),
    "MEDIAN": spec("r+", median),
    "MIN": spec("r+", smallest),
    "MINA": spec("r+", lambda *operands: min(numbers_and_more(*operands), default=0.0)),
    "MODE": spec("a+", mode),
    "MODE.MULT": spec("a+", all_modes),
    "MODE.SNGL": spec("a+", mode),
    "PERCENTILE": spec("r n", percentile),
    "PERCENTILE.EXC": spec("r n", percentile_exclusive),
    "PERCENTILE.INC": spec("r n", percentile),
    "PERCENTRANK": spec("r n n?", percent_rank),
    "PERCENTRANK.EXC": spec("r n n?", percent_rank_exclusive),
    "PERCENTRANK.INC": spec("r n n?", percent_rank),
    "QUARTILE": spec("r n", quartile),
    "QUARTILE.EXC": spec("r n", quartile_exclusive),
    "QUARTILE.INC": spec("r n", quartile),
    "RANK": spec("n r n?", rank),
    "RANK.AVG": spec("n r n?", rank_average),
    "RANK.EQ": spec("n r n?", rank),
    "SMALL": spec("r n", small),
}
