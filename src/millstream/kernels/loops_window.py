"""Compiled loops for the windows of sheets.

The values of all windows lie in one pool. Each window of each key has a block of it, used as
a ring: positions count on for ever, and a position's place is its lowest bits. A window that
is full moves to a block of twice the size. What its aggregates need is kept up to date as
values enter and leave: counts, an exact sum, and the candidates for the smallest and the
largest value in order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from millstream.compiled import inlined, tight
from millstream.kernels.loops_sums import Wides, add_number, number_sum
from millstream.plan.batch import Array

#: The words kept with each window. The window holds positions FIRST to SEEN; those up to END
#: wait for the trigger. LOW_* and HIGH_* are rings of positions with rising and falling values.
(BASE, CAPACITY, FIRST, SEEN, END, NUMBERS, GIVEN, ERRORS, LOW_FIRST, LOW_END, HIGH_FIRST,
 HIGH_END) = range(12)  # fmt: skip
WINDOW = 12
#: Which aggregates a window keeps, as bits.
SUMS, LOWS, HIGHS = 1, 2, 4
LEAST_BLOCK = 8

_OK, _EMPTY, _FIRST_ERROR = 0, 2, 10


class Pool(NamedTuple):
    """Values with their statuses and times, rings of candidates, and how much is used."""

    values: Array
    statuses: Array
    times: Array
    lows: Array
    highs: Array
    used: Array


@inlined
def room_wanted(window: Array) -> Any:
    """How much of the pool the window may ask for when one more value comes."""
    if window[END] - window[FIRST] < window[CAPACITY]:
        return 0
    return max(LEAST_BLOCK, 2 * window[CAPACITY])


@tight
def move(window: Array, pool: Pool) -> None:
    """Move a full window to a block of twice the size; there is room for it."""
    old, size = window[BASE], window[CAPACITY]
    new = pool.used[0]
    larger = max(LEAST_BLOCK, 2 * size)
    pool.used[0] += larger
    for position in range(window[FIRST], window[END]):
        there, here = old + (position & (size - 1)), new + (position & (larger - 1))
        pool.values[here] = pool.values[there]
        pool.statuses[here] = pool.statuses[there]
        pool.times[here] = pool.times[there]
    for n in range(window[LOW_FIRST], window[LOW_END]):
        pool.lows[new + (n & (larger - 1))] = pool.lows[old + (n & (size - 1))]
    for n in range(window[HIGH_FIRST], window[HIGH_END]):
        pool.highs[new + (n & (larger - 1))] = pool.highs[old + (n & (size - 1))]
    window[BASE], window[CAPACITY] = new, larger


@inlined
def append(window: Array, pool: Pool, time: Any, value: Any, status: Any) -> None:
    """A value of the source; it is not in the window before the trigger ticks."""
    if window[END] - window[FIRST] >= window[CAPACITY]:
        move(window, pool)
    place = window[BASE] + (window[END] & (window[CAPACITY] - 1))
    pool.values[place] = value
    pool.statuses[place] = status
    pool.times[place] = time
    window[END] += 1


@inlined
def _enter(window: Array, pool: Pool, cell: Array, floats: Array, wides: Wides, kept: int) -> None:
    mask = window[CAPACITY] - 1
    base, position = window[BASE], window[SEEN]
    place = base + (position & mask)
    status = pool.statuses[place]
    window[SEEN] += 1
    if status == _OK:
        value = pool.values[place]
        window[NUMBERS] += 1
        window[GIVEN] += 1
        if kept & SUMS:
            add_number(cell, floats, value, 1, wides)
        if kept & LOWS:
            end = window[LOW_END]
            while end > window[LOW_FIRST] and (
                pool.values[base + (pool.lows[base + ((end - 1) & mask)] & mask)] >= value
            ):
                end -= 1
            pool.lows[base + (end & mask)] = position
            window[LOW_END] = end + 1
        if kept & HIGHS:
            end = window[HIGH_END]
            while end > window[HIGH_FIRST] and (
                pool.values[base + (pool.highs[base + ((end - 1) & mask)] & mask)] <= value
            ):
                end -= 1
            pool.highs[base + (end & mask)] = position
            window[HIGH_END] = end + 1
    elif status != _EMPTY:
        window[GIVEN] += 1
        if status >= _FIRST_ERROR:
            window[ERRORS] += 1


@inlined
def _leave(window: Array, pool: Pool, cell: Array, floats: Array, wides: Wides, kept: int) -> None:
    mask = window[CAPACITY] - 1
    base, position = window[BASE], window[FIRST]
    place = base + (position & mask)
    status = pool.statuses[place]
    window[FIRST] += 1
    if status == _OK:
        window[NUMBERS] -= 1
        window[GIVEN] -= 1
        if kept & SUMS:
            add_number(cell, floats, pool.values[place], -1, wides)
        if kept & LOWS and pool.lows[base + (window[LOW_FIRST] & mask)] == position:
            window[LOW_FIRST] += 1
        if kept & HIGHS and pool.highs[base + (window[HIGH_FIRST] & mask)] == position:
            window[HIGH_FIRST] += 1
    elif status != _EMPTY:
        window[GIVEN] -= 1
        if status >= _FIRST_ERROR:
            window[ERRORS] -= 1


@inlined
def advance_time(
    window: Array, pool: Pool, cell: Array, floats: Array, wides: Wides, kept: int, oldest: Any
) -> None:
    """The trigger has ticked: all values are in the window that are later than `oldest`."""
    while window[SEEN] < window[END]:
        _enter(window, pool, cell, floats, wides, kept)
    while window[FIRST] < window[SEEN] and (
        pool.times[window[BASE] + (window[FIRST] & (window[CAPACITY] - 1))] <= oldest
    ):
        _leave(window, pool, cell, floats, wides, kept)


@inlined
def advance_count(
    window: Array, pool: Pool, cell: Array, floats: Array, wides: Wides, kept: int, count: Any
) -> None:
    while window[SEEN] < window[END]:
        _enter(window, pool, cell, floats, wides, kept)
    while window[SEEN] - window[FIRST] > count:
        _leave(window, pool, cell, floats, wides, kept)


@tight
def advance_time_apart(
    window: Array, pool: Pool, cell: Array, floats: Array, wides: Wides, kept: int, oldest: Any
) -> None:
    """As `advance_time`, but compiled on its own: for sheets with many windows."""
    advance_time(window, pool, cell, floats, wides, kept, oldest)


@tight
def advance_count_apart(
    window: Array, pool: Pool, cell: Array, floats: Array, wides: Wides, kept: int, count: Any
) -> None:
    advance_count(window, pool, cell, floats, wides, kept, count)


@tight
def error_in(window: Array, pool: Pool) -> Any:
    """The first error in a window that has one."""
    for position in range(window[FIRST], window[SEEN]):
        status = pool.statuses[window[BASE] + (position & (window[CAPACITY] - 1))]
        if status >= _FIRST_ERROR:
            return status
    return 0


@inlined
def window_sum(window: Array, pool: Pool, cell: Array, floats: Array, wides: Wides) -> Any:
    if window[ERRORS] > 0:
        return 0.0, error_in(window, pool)
    value = number_sum(cell, floats, wides)
    if value - value != 0.0:
        return 0.0, 15  # #NUM!
    return value, 0


@inlined
def window_average(window: Array, pool: Pool, cell: Array, floats: Array, wides: Wides) -> Any:
    value, status = window_sum(window, pool, cell, floats, wides)
    if status != 0:
        return 0.0, status
    if window[NUMBERS] == 0:
        return 0.0, 11  # #DIV/0!
    return value / window[NUMBERS] + 0.0, 0


@inlined
def window_low(window: Array, pool: Pool) -> Any:
    if window[ERRORS] > 0:
        return 0.0, error_in(window, pool)
    if window[NUMBERS] == 0:
        return 0.0, 0
    mask = window[CAPACITY] - 1
    position = pool.lows[window[BASE] + (window[LOW_FIRST] & mask)]
    return pool.values[window[BASE] + (position & mask)], 0


@inlined
def window_high(window: Array, pool: Pool) -> Any:
    if window[ERRORS] > 0:
        return 0.0, error_in(window, pool)
    if window[NUMBERS] == 0:
        return 0.0, 0
    mask = window[CAPACITY] - 1
    position = pool.highs[window[BASE] + (window[HIGH_FIRST] & mask)]
    return pool.values[window[BASE] + (position & mask)], 0


@inlined
def window_index(window: Array, pool: Pool, place: Any, status: Any) -> Any:
    """INDEX of a window: the first is the oldest; zero means all, of which the first is shown."""
    if status >= _FIRST_ERROR:
        return 0.0, status
    if place <= -1.0:
        return 0.0, 12  # #VALUE!
    count = window[SEEN] - window[FIRST]
    number = np.int64(place) if place < 9e15 else count + 1
    if number > count or count == 0:
        return 0.0, 13  # #REF!
    position = window[FIRST] + max(number, 1) - 1
    at = window[BASE] + (position & (window[CAPACITY] - 1))
    return pool.values[at], np.int64(pool.statuses[at])


@tight
def compact(windows: Array, old: Pool, new: Pool) -> None:
    """Copy all windows to a new pool, without the blocks that are no longer used."""
    for k in range(windows.shape[0]):
        for w in range(windows.shape[1]):
            window = windows[k, w]
            size = window[CAPACITY]
            if size == 0:
                continue
            here = new.used[0]
            new.used[0] += size
            for n in range(size):
                new.values[here + n] = old.values[window[BASE] + n]
                new.statuses[here + n] = old.statuses[window[BASE] + n]
                new.times[here + n] = old.times[window[BASE] + n]
            for n in range(size if old.lows.size else 0):
                new.lows[here + n] = old.lows[window[BASE] + n]
            for n in range(size if old.highs.size else 0):
                new.highs[here + n] = old.highs[window[BASE] + n]
            window[BASE] = here
