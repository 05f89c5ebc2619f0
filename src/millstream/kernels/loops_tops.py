"""Compiled loops for the few greatest, or least, numbers of a window.

A number can be among the first K only if fewer than K greater ones have come after it. Those are
kept in K queues: a number is in the one that says how many greater ones have come after it. In
each queue numbers fall from the oldest to the newest (what is greater and newer has no more
greater ones after it), so that what a new number beats stands at the end, and moves to the end
of the next queue. Each number moves at most K times.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from millstream.compiled import inlined, tight
from millstream.kernels.loops_window import FIRST, SEEN, STATUSES, VALUES, place_of
from millstream.plan.batch import Array

#: The words of a queue in the row of a key: its first place, its end, and one to count with.
START, END, NEXT = range(3)
TOP_ROW = 3
#: For more than these a tree is faster.
MOST = 8

_NUM, _NA = 15, 16


@inlined
def _position(row: Array, pool: Array, tops: Any, level: Any, index: Any) -> Any:
    """`tops` is (group, stride, words, word, column, sign, levels)."""
    return pool[place_of(row, tops[0], tops[1], index) + tops[3] + level]


@inlined
def _value(row: Array, pool: Array, floats: Array, tops: Any, level: Any, index: Any) -> Any:
    at = place_of(row, tops[0], tops[1], _position(row, pool, tops, level, index))
    return floats[at + VALUES + tops[4]] * tops[5]


@tight
def tops_enter(row: Array, pool: Array, floats: Array, tops: Any, position: Any) -> None:
    group, stride, words, word, column, sign, levels = tops
    value = floats[place_of(row, group, stride, position) + VALUES + column] * sign
    for level in range(levels - 1, -1, -1):
        queue = words + TOP_ROW * level
        first, end = row[queue + START], row[queue + END]
        cut = end
        while cut > first and _value(row, pool, floats, tops, level, cut - 1) < value:
            cut -= 1
        row[queue + END] = cut
        if level + 1 < levels:
            target = row[queue + TOP_ROW + END]
            for index in range(cut, end):
                moved = _position(row, pool, tops, level, index)
                pool[place_of(row, group, stride, target) + word + level + 1] = moved
                target += 1
            row[queue + TOP_ROW + END] = target
    last = row[words + END]
    pool[place_of(row, group, stride, last) + word] = position
    row[words + END] = last + 1


@tight
def tops_leave(row: Array, pool: Array, tops: Any, position: Any) -> None:
    """The oldest number leaves: if it is anywhere, it is the first there."""
    for level in range(tops[6]):
        queue = tops[2] + TOP_ROW * level
        first = row[queue + START]
        if first < row[queue + END] and _position(row, pool, tops, level, first) == position:
            row[queue + START] = first + 1
            return


@tight
def _kth(row: Array, pool: Array, floats: Array, tops: Any, k: Any) -> Any:
    """The k-th number, times the sign; there are so many."""
    words, levels = tops[2], tops[6]
    for level in range(levels):
        row[words + TOP_ROW * level + NEXT] = row[words + TOP_ROW * level + START]
    top = 0.0
    for _ in range(k):
        best = -1
        for level in range(levels):
            queue = words + TOP_ROW * level
            if row[queue + NEXT] < row[queue + END]:
                value = _value(row, pool, floats, tops, level, row[queue + NEXT])
                if best < 0 or value > top:
                    best, top = level, value
        row[words + TOP_ROW * best + NEXT] += 1
    return top


@tight
def window_top(
    row: Array, pool: Array, floats: Array, tops: Any, error: Any, numbers: Any, k: int
) -> Any:
    """LARGE, or with the sign -1 SMALL."""
    if error != 0:
        return 0.0, error
    if not 1 <= k <= numbers:
        return 0.0, _NUM
    return _kth(row, pool, floats, tops, k) * tops[5], 0


@tight
def window_match_top(
    row: Array, pool: Array, floats: Array, tops: Any, numbers: Any, x: Any, status: Any
) -> Any:
    """MATCH with mode 0 of a number that is expected among the first ones."""
    if status >= 10:
        return 0.0, status
    first = row[tops[0] + FIRST]
    position = np.int64(-1)
    levels = tops[6]
    if numbers <= levels or x * tops[5] >= _kth(row, pool, floats, tops, levels):
        position = _first_in_queues(row, pool, floats, tops, x * tops[5])
    else:
        position = _first_anywhere(row, pool, floats, tops, x)
    return (float(position - first + 1), 0) if position >= 0 else (0.0, _NA)


@inlined
def _first_in_queues(row: Array, pool: Array, floats: Array, tops: Any, x: Any) -> Any:
    """The first position of a number, times the sign; all of its positions are in the queues."""
    best = np.int64(-1)
    for level in range(tops[6]):
        queue = tops[2] + TOP_ROW * level
        low, high = row[queue + START], row[queue + END]
        while low < high:
            middle = (low + high) // 2
            if _value(row, pool, floats, tops, level, middle) > x:
                low = middle + 1
            else:
                high = middle
        if low < row[queue + END] and _value(row, pool, floats, tops, level, low) == x:
            position = _position(row, pool, tops, level, low)
            best = position if best < 0 else min(best, position)
    return best


@tight
def _first_anywhere(row: Array, pool: Array, floats: Array, tops: Any, x: Any) -> Any:
    group, stride, column = tops[0], tops[1], tops[4]
    for position in range(row[group + FIRST], row[group + SEEN]):
        at = place_of(row, group, stride, position)
        is_number = (pool[at + STATUSES] >> (8 * column)) & 0xFF == 0
        if is_number and floats[at + VALUES + column] == x:
            return position
    return np.int64(-1)
