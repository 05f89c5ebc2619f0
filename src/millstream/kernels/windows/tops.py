"""Compiled loops for the few greatest, or least, numbers of a window.

A number can be among the first K only if fewer than K greater ones have come after it. Those are
kept in K queues: a number is in the one that says how many greater ones have come after it. In
each queue numbers fall from the oldest to the newest (what is greater and newer has no more
greater ones after it), so that what a new number beats stands at the end, and moves to the end
of the next queue. Each number moves at most K times.

The first K are found at the heads of the queues, and remembered: few tuples change them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from millstream.compiled import apart, inlined
from millstream.kernels.windows.ring import FIRST, SEEN, STATUSES, VALUES, place_of
from millstream.plan.batch import Array

#: The words of a queue in the row of a key: its first place, its end, one to count with, and the
#: position of the number whose place among the first is that of the queue.
START, END, NEXT, PLACE = range(4)
TOP_ROW = 4


def words_of(levels: int) -> int:
    """The words of all queues, and how many places are known, plus one; zero if none is."""
    return TOP_ROW * levels + 1


#: For more than these a tree is faster.
MOST = 8

_NUM, _NA = 15, 16


@inlined
def _position(row: Array, pool: Array, tops: Any, level: Any, index: Any) -> Any:
    """`tops` is (group, stride, words, word, column, sign, levels)."""
    return pool[place_of(row, tops[0], tops[1], index) + tops[3] + level]


@inlined
def _number(row: Array, floats: Array, tops: Any, position: Any) -> Any:
    return floats[place_of(row, tops[0], tops[1], position) + VALUES + tops[4]] * tops[5]


@inlined
def _value(row: Array, pool: Array, floats: Array, tops: Any, level: Any, index: Any) -> Any:
    return _number(row, floats, tops, _position(row, pool, tops, level, index))


@inlined
def _place(row: Array, floats: Array, tops: Any, number: Any) -> Any:
    """The position of one of the first numbers, and that number."""
    position = row[tops[2] + TOP_ROW * number + PLACE]
    return position, _number(row, floats, tops, position)


@apart
def tops_enter(row: Array, pool: Array, floats: Array, tops: Any, position: Any) -> None:
    group, stride, words, word, _, _, levels = tops
    value = _number(row, floats, tops, position)
    known = words + TOP_ROW * levels
    if row[known] <= levels or value > _place(row, floats, tops, levels - 1)[1]:
        row[known] = 0
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


@apart
def tops_leave(row: Array, pool: Array, tops: Any, position: Any) -> None:
    """The oldest number leaves: if it is anywhere, it is the first there."""
    known = tops[2] + TOP_ROW * tops[6]
    for number in range(row[known] - 1):
        if row[tops[2] + TOP_ROW * number + PLACE] == position:
            row[known] = 0
    for level in range(tops[6]):
        queue = tops[2] + TOP_ROW * level
        first = row[queue + START]
        if first < row[queue + END] and _position(row, pool, tops, level, first) == position:
            row[queue + START] = first + 1
            return


@apart
def _find_places(row: Array, pool: Array, floats: Array, tops: Any) -> Any:
    """How many of the first places are known, after they have been found; equal ones by age."""
    words, levels = tops[2], tops[6]
    if row[words + TOP_ROW * levels] > 0:
        return row[words + TOP_ROW * levels] - 1
    for level in range(levels):
        row[words + TOP_ROW * level + NEXT] = row[words + TOP_ROW * level + START]
    known = 0
    while known < levels:
        best, top, place = -1, 0.0, np.int64(0)
        for level in range(levels):
            queue = words + TOP_ROW * level
            if row[queue + NEXT] < row[queue + END]:
                position = _position(row, pool, tops, level, row[queue + NEXT])
                value = _number(row, floats, tops, position)
                if best < 0 or value > top or (value == top and position < place):
                    best, top, place = level, value, position
        if best < 0:
            break
        row[words + TOP_ROW * best + NEXT] += 1
        row[words + TOP_ROW * known + PLACE] = place
        known += 1
    row[words + TOP_ROW * levels] = known + 1
    return known


@apart
def window_top(
    row: Array, pool: Array, floats: Array, tops: Any, error: Any, numbers: Any, k: int
) -> Any:
    """LARGE, or with the sign -1 SMALL."""
    if error != 0:
        return 0.0, error
    if not 1 <= k <= numbers:
        return 0.0, _NUM
    _find_places(row, pool, floats, tops)
    return _place(row, floats, tops, k - 1)[1] * tops[5], 0


@apart
def window_match_top(
    row: Array, pool: Array, floats: Array, tops: Any, numbers: Any, x: Any, status: Any
) -> Any:
    """MATCH with mode 0 of a number that is expected among the first ones."""
    if status >= 10:
        return 0.0, status
    first = row[tops[0] + FIRST]
    known = _find_places(row, pool, floats, tops)
    least = np.inf
    for number in range(known):
        position, least = _place(row, floats, tops, number)
        if least == x * tops[5]:
            return float(position - first + 1), 0
    position = np.int64(-1)
    if known < numbers and x * tops[5] < least:
        position = _first_anywhere(row, pool, floats, tops, x)
    return (float(position - first + 1), 0) if position >= 0 else (0.0, _NA)


@apart
def _first_anywhere(row: Array, pool: Array, floats: Array, tops: Any, x: Any) -> Any:
    group, stride, column = tops[0], tops[1], tops[4]
    for position in range(row[group + FIRST], row[group + SEEN]):
        at = place_of(row, group, stride, position)
        is_number = (pool[at + STATUSES] >> (8 * column)) & 0xFF == 0
        if is_number and floats[at + VALUES + column] == x:
            return position
    return np.int64(-1)
