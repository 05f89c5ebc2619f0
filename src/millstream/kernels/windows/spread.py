"""Compiled loops for the variance of a window: the exact one, rounded as the reference rounds.

It is (n * squares - sum^2) / (n * (n - 1)), or with n * n below. The upper part is exact and
rounded once, so that it does not depend on the order in which values came or on what has left.
Where values are large and differ little nearly all of it cancels out.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from millstream.compiled import apart, inlined
from millstream.kernels.windows.ring import add_to_sum, sum_of
from millstream.kernels.windows.sums import (
    WIDE,
    Wides,
    clear_sum,
    squares_about_mean,
    sum_in_two,
    two_product,
    two_sum,
)
from millstream.plan.batch import Array

_DIV0, _NUM = 11, 15
#: What three floats leave out of a sum of some products, as a share of the greatest.
_LOST = 2.0**-140
#: What the two floats of a wide sum leave out.
_LOST_WIDE = 2.0**-100


@inlined
def _in_two(row: Array, floats: Array, at: int, wides: Wides) -> Any:
    return sum_in_two(row[at : at + 8], floats[at : at + 8], wides)


@apart
def window_spread(
    row: Array, floats: Array, places: Any, error: Any, numbers: Any, less: int, is_root: int,
    wides: Wides,
) -> Any:  # fmt: skip
    """The variance, or its root; `less` is one for that of a sample.

    `places` are those of the sums of numbers, of rounded squares and of what rounding left out
    of them, and of a sum to compute with.
    """
    if error != 0:
        return 0.0, error
    if numbers <= less:
        return 0.0, _DIV0
    if row[places[1] + 4] != 0:
        return 0.0, _NUM
    n = float(numbers)
    upper, is_sure = _three_floats(row, floats, places, n, wides)
    if not is_sure:
        upper = _exactly(row, floats, places, n, wides)
    value = max(upper, 0.0) / (n * (n - less))
    return (np.sqrt(value) if is_root else value), 0


@inlined
def _three_floats(row: Array, floats: Array, places: Any, n: Any, wides: Wides) -> Any:
    """The upper part, and whether it is certainly the nearest float."""
    total = _in_two(row, floats, places[0], wides)
    squares = _in_two(row, floats, places[1], wides)
    rests = _in_two(row, floats, places[2], wides)
    three = squares_about_mean(total, squares, rests, n)
    upper, low = two_sum(three[0], three[1])
    low, last = two_sum(low, three[2])
    upper, low = two_sum(upper, low)
    is_wide = row[places[0] + WIDE] | row[places[1] + WIDE] | row[places[2] + WIDE]
    doubt = (_LOST if is_wide == 0 else _LOST_WIDE) * n * squares[0] + 2.0 * abs(last)
    return upper, upper + (low + doubt) == upper and upper + (low - doubt) == upper


@apart
def _exactly(row: Array, floats: Array, places: Any, n: Any, wides: Wides) -> Any:
    """The same from all products, added up in a sum that loses nothing."""
    total = _in_two(row, floats, places[0], wides)
    squares = _in_two(row, floats, places[1], wides)
    rests = _in_two(row, floats, places[2], wides)
    scratch = places[3]
    for part in (squares[0], squares[1], rests[0], rests[1]):
        product, rest = two_product(n, part)
        add_to_sum(row, floats, scratch, product, wides)
        add_to_sum(row, floats, scratch, rest, wides)
    for one, other, times in ((0, 0, -1.0), (0, 1, -2.0), (1, 1, -1.0)):
        product, rest = two_product(total[one], total[other])
        add_to_sum(row, floats, scratch, times * product, wides)
        add_to_sum(row, floats, scratch, times * rest, wides)
    upper = sum_of(row, floats, scratch, wides)
    clear_sum(row[scratch : scratch + 8], wides)
    return upper
