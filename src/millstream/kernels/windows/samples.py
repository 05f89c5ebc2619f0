"""Functions of numbers that were gathered from a window: spreads, means, and what order tells.

They follow `values.excel.functions_statistics` step by step, in plain floats. Each is given the
numbers, how many there are and an error found among them, then numbers with their statuses; it
gives a value and a status. Those that want an order sort the numbers where they lie.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from millstream.compiled import apart, inlined, lent
from millstream.plan.batch import Array
from millstream.values.excel import rounding

_DIV0, _VALUE, _REF, _NUM, _NA = 11, 12, 13, 15, 16
_FIRST_ERROR = 10
#: With fewer numbers they are sorted by putting one after the other to its place.
_FEW = 24

_last_same: Any = lent(rounding.last_same)
_round_down: Any = lent(rounding.round_down)


@inlined
def _given(value: Any, status: Any) -> Any:
    return (0.0, _NUM) if value - value != 0.0 else (value + 0.0, status)


@inlined
def _error(status: Any) -> Any:
    return status if status >= _FIRST_ERROR else 0


@apart
def _total(x: Array, first: Any, last: Any) -> Any:
    total = 0.0
    for n in range(first, last):
        total += x[n]
    return total


@apart
def _powers(x: Array, count: Any, middle: Any, scale: Any, power: Any) -> Any:
    """Of `power` no constant is made: it is the power of the library that Python calls, too."""
    total = 0.0
    for n in range(count):
        total += ((x[n] - middle) / scale) ** power
    return total


@apart
def _squares(x: Array, count: Any) -> Any:
    middle = _total(x, 0, count) / count
    total = 0.0
    for n in range(count):
        total += (x[n] - middle) * (x[n] - middle)
    return total


@apart
def _sort(x: Array, count: Any) -> None:
    """By a heap, which needs no room; a few by insertion."""
    if count < _FEW:
        for n in range(1, count):
            value, at = x[n], n
            while at > 0 and x[at - 1] > value:
                x[at] = x[at - 1]
                at -= 1
            x[at] = value
        return
    for root in range(count // 2 - 1, -1, -1):
        _sift(x, root, count)
    for end in range(count - 1, 0, -1):
        x[0], x[end] = x[end], x[0]
        _sift(x, 0, end)


@apart
def _sift(x: Array, root: Any, end: Any) -> None:
    value, at = x[root], root
    while 2 * at + 1 < end:
        child = 2 * at + 1
        if child + 1 < end and x[child + 1] > x[child]:
            child += 1
        if x[child] <= value:
            break
        x[at] = x[child]
        at = child
    x[at] = value


# --- what is left of them ---------------------------------------------------------------


@apart
def sorted_numbers(x: Array, count: Any, order: Any) -> Any:
    """The numbers themselves, rising or falling."""
    _sort(x, count)
    if order < 0:
        for n in range(count // 2):
            x[n], x[count - 1 - n] = x[count - 1 - n], x[n]
    return x


@apart
def moved_down(x: Array, first: Any, last: Any) -> Any:
    """The numbers, those that are left at the beginning."""
    if first > 0:
        for n in range(first, last):
            x[n - first] = x[n]
    return x


@apart
def sum_of(x: Array, count: Any, error: Any) -> Any:
    return (0.0, error) if error != 0 else _given(_total(x, 0, count), 0)


@apart
def mean_of(x: Array, count: Any, error: Any) -> Any:
    if error != 0 or count == 0:
        return 0.0, (error if error != 0 else _DIV0)
    return _given(_total(x, 0, count) / count, 0)


@apart
def count_of(x: Array, count: Any, error: Any) -> Any:
    return float(count), 0


@apart
def greatest_of(x: Array, count: Any, error: Any) -> Any:
    value = x[0]
    for n in range(1, count):
        value = max(value, x[n])
    return value + 0.0, error


@apart
def least_of(x: Array, count: Any, error: Any) -> Any:
    value = x[0]
    for n in range(1, count):
        value = min(value, x[n])
    return value + 0.0, error


@apart
def element_of(x: Array, count: Any, error: Any, which: Any, status: Any) -> Any:
    """The one at a place, counted from one on; a place is never less than one from zero."""
    wrong = _error(status) or error
    if wrong != 0:
        return 0.0, wrong
    if not 1.0 <= which < count + 1:
        return 0.0, (_VALUE if which < 0.0 else _REF)
    return x[int(which) - 1] + 0.0, 0


# --- spreads and means ------------------------------------------------------------------


@apart
def _variance(x: Array, count: Any, error: Any, less: Any) -> Any:
    if error != 0:
        return 0.0, error
    if count <= less:
        return 0.0, _DIV0
    return _given(_squares(x, count) / (count - less), 0)


@apart
def _root(variance: Any) -> Any:
    value, status = variance
    return (math.sqrt(value), 0) if status == 0 else (0.0, status)


@apart
def variance_of_sample(x: Array, count: Any, error: Any) -> Any:
    return _variance(x, count, error, 1)


@apart
def variance_of_all(x: Array, count: Any, error: Any) -> Any:
    return _variance(x, count, error, 0)


@apart
def deviation_of_sample(x: Array, count: Any, error: Any) -> Any:
    return _root(_variance(x, count, error, 1))


@apart
def deviation_of_all(x: Array, count: Any, error: Any) -> Any:
    return _root(_variance(x, count, error, 0))


@apart
def squared_deviations(x: Array, count: Any, error: Any) -> Any:
    if error != 0 or count == 0:
        return 0.0, (error if error != 0 else _NUM)
    return _given(_squares(x, count), 0)


@apart
def mean_deviation(x: Array, count: Any, error: Any) -> Any:
    if error != 0 or count == 0:
        return 0.0, (error if error != 0 else _NUM)
    middle, total = _total(x, 0, count) / count, 0.0
    for n in range(count):
        total += abs(x[n] - middle)
    return _given(total / count, 0)


@apart
def geometric_mean(x: Array, count: Any, error: Any) -> Any:
    if error != 0 or count == 0:
        return 0.0, (error if error != 0 else _NUM)
    total = 0.0
    for n in range(count):
        if x[n] <= 0.0:
            return 0.0, _NUM
        total += math.log(x[n])
    return _given(math.exp(total / count), 0)


@apart
def harmonic_mean(x: Array, count: Any, error: Any) -> Any:
    if error != 0 or count == 0:
        return 0.0, (error if error != 0 else _NUM)
    total = 0.0
    for n in range(count):
        if x[n] <= 0.0:
            return 0.0, _NUM
        total += 1.0 / x[n]
    return _given(count / total, 0)


@apart
def _moments(x: Array, count: Any, error: Any, least: Any, less: Any) -> Any:
    """The mean, the deviation, and a status."""
    if error != 0 or count < least:
        return 0.0, 0.0, (error if error != 0 else _DIV0)
    spread, status = _variance(x, count, 0, less)
    if status != 0:
        return 0.0, 0.0, status
    middle = _total(x, 0, count) / count
    return middle, math.sqrt(spread), (0 if spread > 0.0 else _DIV0)


@apart
def skewness(x: Array, count: Any, error: Any) -> Any:
    middle, deviation, status = _moments(x, count, error, 3, 1)
    if status != 0:
        return 0.0, status
    return _given(
        count / ((count - 1) * (count - 2)) * _powers(x, count, middle, deviation, 3.0), 0
    )


@apart
def skewness_of_all(x: Array, count: Any, error: Any) -> Any:
    middle, deviation, status = _moments(x, count, error, 3, 0)
    if status != 0:
        return 0.0, status
    return _given(_powers(x, count, middle, deviation, 3.0) / count, 0)


@apart
def kurtosis(x: Array, count: Any, error: Any) -> Any:
    middle, deviation, status = _moments(x, count, error, 4, 1)
    if status != 0:
        return 0.0, status
    head = count * (count + 1) / ((count - 1) * (count - 2) * (count - 3))
    rest = 3 * (count - 1) * (count - 1) / ((count - 2) * (count - 3))
    return _given(head * _powers(x, count, middle, deviation, 4.0) - rest, 0)


# --- different values -------------------------------------------------------------------


@apart
def count_of_different(x: Array, count: Any) -> Any:
    """How many numbers there are; at least one."""
    _sort(x, count)
    different = 1
    for n in range(1, count):
        different += x[n] != x[n - 1]
    return float(different), 0


@apart
def _below(x: Array, first: Any, last: Any, value: Any) -> Any:
    """How many of ordered numbers are less than a value."""
    low, high = first, last
    while low < high:
        middle = (low + high) // 2
        if x[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low - first


@apart
def shares_of_different(x: Array, count: Any, is_shown: Any) -> Any:
    """The sum of one through how often each is there; there is room for as many once more.

    Numbers that are shown with the same fifteen digits are the same, if they are shown.
    """
    for n in range(count):
        x[count + n] = x[n]
    _sort(x[count:], count)
    total, last = 0.0, 2 * count
    for n in range(count):
        low, high = x[n], x[n]
        if is_shown:
            low, high = _last_same(low, -1.0), _last_same(high, 1.0)
        above = _below(x, count, last, np.nextafter(high, np.inf))
        total += 1.0 / (above - _below(x, count, last, low))
    return total + 0.0, 0


# --- order ------------------------------------------------------------------------------


@apart
def kth_smallest(x: Array, count: Any, error: Any, k: Any, status: Any) -> Any:
    wrong = _error(status) or error
    if wrong != 0 or not 1.0 <= k <= count:
        return 0.0, (wrong if wrong != 0 else _NUM)
    _sort(x, count)
    return x[_rounded_up(k) - 1] + 0.0, 0


@apart
def kth_largest(x: Array, count: Any, error: Any, k: Any, status: Any) -> Any:
    wrong = _error(status) or error
    if wrong != 0 or not 1.0 <= k <= count:
        return 0.0, (wrong if wrong != 0 else _NUM)
    _sort(x, count)
    return x[count - _rounded_up(k)] + 0.0, 0


@inlined
def _rounded_up(k: Any) -> Any:
    return math.ceil(k)


@apart
def median(x: Array, count: Any, error: Any) -> Any:
    if error != 0 or count == 0:
        return 0.0, (error if error != 0 else _NUM)
    _sort(x, count)
    middle = count // 2
    if count % 2 == 1:
        return x[middle] + 0.0, 0
    return _given((x[middle - 1] + x[middle]) / 2.0, 0)


@apart
def _interpolated(x: Array, count: Any, place: Any) -> Any:
    low = math.floor(place)
    if low + 1 >= count:
        return _given(x[count - 1], 0)
    return _given(x[low] + (place - low) * (x[low + 1] - x[low]), 0)


@apart
def percentile(x: Array, count: Any, error: Any, share: Any, status: Any) -> Any:
    wrong = _error(status) or error
    if wrong != 0 or count == 0 or not 0.0 <= share <= 1.0:
        return 0.0, (wrong if wrong != 0 else _NUM)
    _sort(x, count)
    return _interpolated(x, count, share * (count - 1))


@apart
def percentile_exclusive(x: Array, count: Any, error: Any, share: Any, status: Any) -> Any:
    wrong = _error(status) or error
    place = share * (count + 1) - 1
    if wrong != 0 or count == 0 or place < 0.0 or place > count - 1:
        return 0.0, (wrong if wrong != 0 else _NUM)
    _sort(x, count)
    return _interpolated(x, count, place)


@apart
def quartile(x: Array, count: Any, error: Any, which: Any, status: Any) -> Any:
    if status < _FIRST_ERROR and not 0.0 <= which < 5.0:
        return 0.0, _NUM
    return percentile(x, count, error, int(which) / 4.0, status)


@apart
def quartile_exclusive(x: Array, count: Any, error: Any, which: Any, status: Any) -> Any:
    if status < _FIRST_ERROR and not 1.0 <= which < 4.0:
        return 0.0, _NUM
    return percentile_exclusive(x, count, error, int(which) / 4.0, status)


@apart
def trimmed_mean(x: Array, count: Any, error: Any, share: Any, status: Any) -> Any:
    wrong = _error(status) or error
    if wrong != 0 or count == 0 or not 0.0 <= share < 1.0:
        return 0.0, (wrong if wrong != 0 else _NUM)
    _sort(x, count)
    cut = int(_round_down(count * share / 2.0, 0.0))
    if count - 2 * cut <= 0:
        return 0.0, _DIV0
    return _given(_total(x, cut, count - cut) / (count - 2 * cut), 0)


@apart
def percent_rank(
    x: Array, count: Any, error: Any, value: Any, status: Any, digits: Any, digits_status: Any,
) -> Any:  # fmt: skip
    wrong = _error(status) or _error(digits_status) or error
    if wrong != 0 or count == 0 or digits < 1.0:
        return 0.0, (wrong if wrong != 0 else _NUM)
    below, low, high, is_there = 0, -math.inf, math.inf, False
    for n in range(count):
        if x[n] < value:
            below += 1
            low = max(low, x[n])
        elif x[n] > value:
            high = min(high, x[n])
        else:
            is_there = True
    if not is_there and below in (0, count):
        return 0.0, _NA
    if count == 1:
        return 1.0, 0
    place = float(below)
    if not is_there:
        place = below - 1 + (value - low) / (high - low)
    places = float(int(min(300.0, digits)))  # a larger one is no integer of 64 bits
    return _given(_round_down(place / (count - 1), places), 0)
