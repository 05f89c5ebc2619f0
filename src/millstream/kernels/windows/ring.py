"""Compiled loops for the windows of sheets.

Windows that take values in at the same ticks and drop them at the same ticks lie side by side
in a *group*: what they share (places, times) is kept once. A group has words in the row of its
key and a block of the pool, used as a ring: positions count on for ever, and a position's place
is its lowest bits. A group that is full moves to a block of twice the size.

An element is a few words: its time, the statuses of its values (a byte each), the values, and
what aggregates keep with it: a place in a queue of candidates for the least or greatest value,
or a node of a tree. What enters and leaves is told to generated functions that know which.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from millstream.compiled import apart, inlined, lent, tight
from millstream.kernels.windows.sums import (
    HI,
    LO,
    WIDE,
    Wides,
    _add_once,
    _add_slowly,
    narrow,
    two_product,
    two_sum,
)
from millstream.plan.batch import Array
from millstream.values.excel import rounding

#: The words of a group in the row of its key. It holds positions FIRST to SEEN; those up to
#: END wait for the trigger.
BASE, CAPACITY, FIRST, SEEN, END = range(5)
GROUP = 5
#: The words of an element before its values.
TIME, STATUSES, VALUES = range(3)
#: How many values of a column are no numbers, how many are empty, how many are errors.
NO_NUMBERS, EMPTIES, ERRORS = range(3)
COUNTS = 3
#: The words of a queue of candidates.
QUEUE_FIRST, QUEUE_END = range(2)
QUEUE = 2
LEAST_BLOCK = 8

same: Any = lent(rounding.same_number)

_EMPTY, _FIRST_ERROR = 2, 10
_DIV0, _VALUE, _REF, _NUM, _NA = 11, 12, 13, 15, 16
_SPLITTABLE = 2.0**500


@inlined
def room_wanted(row: Array, group: int, stride: int) -> Any:
    """How much of the pool the group may ask for when one more element comes."""
    if row[group + END] - row[group + FIRST] < row[group + CAPACITY]:
        return 0
    return max(LEAST_BLOCK, 2 * row[group + CAPACITY]) * stride


@apart
def move(row: Array, pool: Array, used: Array, group: int, stride: int, queues: Array) -> None:
    """Move a full group to a block of twice the size; there is room for it.

    `queues` has for each queue its words in the row and its word in the elements.
    """
    old, size = row[group + BASE], row[group + CAPACITY]
    new = used[0]
    larger = max(LEAST_BLOCK, 2 * size)
    used[0] += larger * stride
    for position in range(row[group + FIRST], row[group + END]):
        there = old + (position & (size - 1)) * stride
        here = new + (position & (larger - 1)) * stride
        for n in range(stride):
            pool[here + n] = pool[there + n]
    for q in range(queues.shape[0]):
        words, word = queues[q, 0], queues[q, 1]
        for n in range(row[words + QUEUE_FIRST], row[words + QUEUE_END]):
            pool[new + (n & (larger - 1)) * stride + word] = pool[
                old + (n & (size - 1)) * stride + word
            ]
    row[group + BASE], row[group + CAPACITY] = new, larger


@inlined
def place_of(row: Array, group: int, stride: int, position: Any) -> Any:
    return row[group + BASE] + (position & (row[group + CAPACITY] - 1)) * stride


@inlined
def has_left(row: Array, pool: Array, group: int, stride: int, oldest: Any) -> Any:
    """Is the first element of a window of time too old?"""
    first = row[group + FIRST]
    return first < row[group + SEEN] and (
        pool[place_of(row, group, stride, first) + TIME] <= oldest
    )


@apart
def count_odd(row: Array, counts: int, status: Any, weight: int) -> None:
    """A value that is no number enters or leaves."""
    row[counts + NO_NUMBERS] += weight
    if status == _EMPTY:
        row[counts + EMPTIES] += weight
    elif status >= _FIRST_ERROR:
        row[counts + ERRORS] += weight


# --- sums -------------------------------------------------------------------------------


@inlined
def add_to_sum(row: Array, floats: Array, at: int, value: Any, wides: Wides) -> None:
    """Add a finite number to the sum whose words begin at `at`."""
    hi, error = two_sum(floats[at + HI], value)
    lo, lost = two_sum(floats[at + LO], error)
    if lost == 0.0 and abs(hi) < _SPLITTABLE and row[at + WIDE] == 0:
        floats[at + HI], floats[at + LO] = two_sum(hi, lo)
    else:
        _add_carefully(row, floats, at, value, wides)


@apart
def _add_carefully(row: Array, floats: Array, at: int, value: Any, wides: Wides) -> None:
    cell, view = row[at : at + 8], floats[at : at + 8]
    if not (cell[WIDE] == 0 and _add_once(view, value)):
        _add_slowly(cell, view, value, 1, wides)


@inlined
def add_square(row: Array, floats: Array, at: int, value: Any, sign: Any, wides: Wides) -> None:
    """Add or take away a square, rounded; of a huge value it is counted as an infinity."""
    if not abs(value) < rounding.SQUARABLE:
        row[at + 4] += np.int64(sign)
        return
    add_to_sum(row, floats, at, sign * (value * value), wides)


@inlined
def add_rest(row: Array, floats: Array, at: int, value: Any, sign: Any, wides: Wides) -> None:
    """Add or take away what the rounding of a square has left out."""
    if abs(value) < rounding.SQUARABLE:
        _, rest = two_product(value, value)
        if rest != 0.0:
            add_to_sum(row, floats, at, sign * rest, wides)


@inlined
def add_product(row: Array, floats: Array, at: int, value: Any, sign: Any, wides: Wides) -> None:
    """Add or take away what may be infinite."""
    if abs(value) < np.inf:
        add_to_sum(row, floats, at, sign * value, wides)
    else:
        row[at + 4] += np.int64(sign)


@inlined
def sum_of(row: Array, floats: Array, at: int, wides: Wides) -> Any:
    if row[at + WIDE] == 0:
        return floats[at + HI] + 0.0
    return narrow(row[at : at + 8], wides) + 0.0


@apart
def error_in(row: Array, pool: Array, group: int, stride: int, column: int) -> Any:
    """The first error in a window that has one."""
    for position in range(row[group + FIRST], row[group + SEEN]):
        statuses = pool[place_of(row, group, stride, position) + STATUSES]
        status = (statuses >> (8 * column)) & 0xFF
        if status >= _FIRST_ERROR:
            return status
    return 0


@inlined
def window_numbers(row: Array, group: int, counts: int) -> Any:
    return row[group + SEEN] - row[group + FIRST] - row[counts + NO_NUMBERS]


@inlined
def window_given(row: Array, group: int, counts: int) -> Any:
    return row[group + SEEN] - row[group + FIRST] - row[counts + EMPTIES]


@inlined
def window_sum(row: Array, floats: Array, at: int, error: Any, wides: Wides) -> Any:
    """The sum of a window in which `error` is the first error, or zero."""
    if error != 0:
        return 0.0, error
    if row[at + 4] != 0:
        return 0.0, _NUM
    value = sum_of(row, floats, at, wides)
    if value - value != 0.0:
        return 0.0, _NUM
    return value, 0


@inlined
def window_average(
    row: Array, floats: Array, at: int, error: Any, numbers: Any, wides: Wides
) -> Any:
    value, status = window_sum(row, floats, at, error, wides)
    if status != 0:
        return 0.0, status
    if numbers == 0:
        return 0.0, _DIV0
    return value / numbers + 0.0, 0


# --- least and greatest -----------------------------------------------------------------


@inlined
def queue_enter(
    row: Array, pool: Array, floats: Array, group: int, stride: int, queue: int, word: int,
    value_word: int, position: Any, value: Any, sign: Any,
) -> None:  # fmt: skip
    """A value enters: candidates that it beats are dropped. `sign` is -1 for the greatest."""
    end = row[queue + QUEUE_END]
    while end > row[queue + QUEUE_FIRST]:
        last = pool[place_of(row, group, stride, end - 1) + word]
        if floats[place_of(row, group, stride, last) + value_word] * sign < value * sign:
            break
        end -= 1
    pool[place_of(row, group, stride, end) + word] = position
    row[queue + QUEUE_END] = end + 1


@inlined
def queue_leave(
    row: Array, pool: Array, group: int, stride: int, queue: int, word: int, position: Any
) -> None:
    first = row[queue + QUEUE_FIRST]
    if pool[place_of(row, group, stride, first) + word] == position:
        row[queue + QUEUE_FIRST] = first + 1


@inlined
def window_extreme(
    row: Array, pool: Array, floats: Array, group: int, stride: int, queue: int, word: int,
    value_word: int, error: Any,
) -> Any:  # fmt: skip
    if error != 0:
        return 0.0, error
    if row[queue + QUEUE_FIRST] == row[queue + QUEUE_END]:
        return 0.0, 0
    position = pool[place_of(row, group, stride, row[queue + QUEUE_FIRST]) + word]
    return floats[place_of(row, group, stride, position) + value_word], 0


# --- single values ----------------------------------------------------------------------


@inlined
def window_index(
    row: Array, pool: Array, floats: Array, group: int, stride: int, column: int, place: Any,
    status: Any,
) -> Any:  # fmt: skip
    """INDEX of a window: the first is the oldest; zero means all, of which the first is shown."""
    if status >= _FIRST_ERROR:
        return 0.0, status
    if place <= -1.0:
        return 0.0, _VALUE
    count = row[group + SEEN] - row[group + FIRST]
    number = np.int64(place) if place < 9e15 else count + 1
    if number > count or count == 0:
        return 0.0, _REF
    at = place_of(row, group, stride, row[group + FIRST] + max(number, 1) - 1)
    value_status = (pool[at + STATUSES] >> (8 * column)) & 0xFF
    return floats[at + VALUES + column], value_status


@apart
def window_find(
    row: Array, pool: Array, floats: Array, folded: Array, group: int, stride: int, column: int,
    wanted: Any, status: Any, is_text: Any, way: Any,
) -> Any:  # fmt: skip
    """Where a value stands, counted from the oldest: the first or, backwards, the last; or -1.

    A text is looked for by its number among the `folded`, and what is empty where something is.
    """
    first, count = row[group + FIRST], row[group + SEEN] - row[group + FIRST]
    is_empty = 0 < status < _FIRST_ERROR
    for n in range(count):
        place = n if way > 0 else count - 1 - n
        at = place_of(row, group, stride, first + place)
        held = (pool[at + STATUSES] >> (8 * column)) & 0xFF
        if is_empty:
            if 0 < held < _FIRST_ERROR:
                return place
        elif held == 0:
            value = floats[at + VALUES + column]
            if is_text:
                value = float(folded[np.int64(value)])
            if value == wanted:
                return place
    return -1


@apart
def first_error_of(row: Array, pool: Array, group: int, stride: int, columns: int) -> Any:
    """The first error of several columns, of which `columns` has a bit per byte."""
    for position in range(row[group + FIRST], row[group + SEEN]):
        statuses = pool[place_of(row, group, stride, position) + STATUSES]
        for n in range(8):
            status = (statuses >> (8 * n)) & 0xFF
            if (columns >> (8 * n)) & 1 and status >= _FIRST_ERROR:
                return status
    return 0


@tight
def compact(rows: Array, old: Array, new: Array, used: Array, groups: Array) -> None:
    """Copy all groups to a new pool, without the blocks that are no longer used.

    `groups` has the place of each group in a row and its stride.
    """
    for k in range(rows.shape[0]):
        for g in range(groups.shape[0]):
            at = groups[g, 0]
            size = rows[k, at + CAPACITY] * groups[g, 1]
            here = used[0]
            used[0] += size
            for n in range(size):
                new[here + n] = old[rows[k, at + BASE] + n]
            rows[k, at + BASE] = here
