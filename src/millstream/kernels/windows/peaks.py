"""Compiled loops that search a window by place: the first or the last value below a bound.

Over the places of a window's ring, whose number is a power of two, stands a tree: each node has
the least value of the two below it, or of the values with the other sign. The words of its nodes
lie in the elements, one in each; what is no number counts as infinite. To enter a value costs as
many steps as the tree is high, to leave nothing: who searches says between which positions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from millstream.compiled import apart, inlined
from millstream.kernels.windows.ring import (
    BASE,
    CAPACITY,
    FIRST,
    SEEN,
    STATUSES,
    VALUES,
    place_of,
)
from millstream.plan.batch import Array

_FIRST_ERROR, _NA = 10, 16


@inlined
def _peak(row: Array, pool: Array, floats: Array, tree: Any, node: Any) -> Any:
    """The least value from a node down; a tree is (group, stride, word, column, sign)."""
    group, stride, word, column, sign = tree
    size, base = row[group + CAPACITY], row[group + BASE]
    if node < size:
        return floats[base + node * stride + word]
    at = base + (node - size) * stride
    if (pool[at + STATUSES] >> (8 * column)) & 0xFF != 0:
        return np.inf
    return floats[at + VALUES + column] * sign


@apart
def peaks_enter(row: Array, pool: Array, floats: Array, tree: Any, position: Any) -> None:
    size = row[tree[0] + CAPACITY]
    node = size + (position & (size - 1))
    while node > 1:
        node >>= 1
        one = _peak(row, pool, floats, tree, 2 * node)
        least = min(one, _peak(row, pool, floats, tree, 2 * node + 1))
        at = row[tree[0] + BASE] + node * tree[1] + tree[2]
        if floats[at] == least:
            return
        floats[at] = least


@apart
def peaks_moved(row: Array, pool: Array, floats: Array, tree: Any) -> None:
    """The window has a larger ring, in which nodes lie elsewhere."""
    for node in range(row[tree[0] + CAPACITY] - 1, 0, -1):
        one = _peak(row, pool, floats, tree, 2 * node)
        least = min(one, _peak(row, pool, floats, tree, 2 * node + 1))
        floats[row[tree[0] + BASE] + node * tree[1] + tree[2]] = least


@inlined
def _first_place(
    row: Array, pool: Array, floats: Array, tree: Any, low: Any, high: Any, bound: Any
) -> Any:
    """The first of the places from `low` up to `high` with a value below the bound, or -1."""
    node, span = low + row[tree[0] + CAPACITY], 1
    while low < high:
        if low + span <= high and not _peak(row, pool, floats, tree, node) < bound:
            low += span
            node += 1
            while node & 1 == 0:
                node >>= 1
                span *= 2
        elif span == 1:
            return low
        else:
            node *= 2
            span //= 2
    return -1


@inlined
def _last_place(
    row: Array, pool: Array, floats: Array, tree: Any, low: Any, high: Any, bound: Any
) -> Any:
    node, span = high - 1 + row[tree[0] + CAPACITY], 1
    while low < high:
        if high - span >= low and not _peak(row, pool, floats, tree, node) < bound:
            high -= span
            node -= 1
            while node & 1 == 1 and node > 1:
                node >>= 1
                span *= 2
        elif span == 1:
            return high - 1
        else:
            node = 2 * node + 1
            span //= 2
    return -1


@apart
def first_below(
    row: Array, pool: Array, floats: Array, tree: Any, start: Any, end: Any, bound: Any
) -> Any:
    """The first position from `start` up to `end` with a value below a bound, or -1."""
    size = row[tree[0] + CAPACITY]
    if start >= end:
        return np.int64(-1)
    low = start & (size - 1)
    high = low + (end - start)
    place = _first_place(row, pool, floats, tree, low, min(high, size), bound)
    if place < 0 and high > size:
        place = _first_place(row, pool, floats, tree, np.int64(0), high - size, bound)
        place = place + size if place >= 0 else place
    return start + place - low if place >= 0 else np.int64(-1)


@apart
def last_below(
    row: Array, pool: Array, floats: Array, tree: Any, start: Any, end: Any, bound: Any
) -> Any:
    size = row[tree[0] + CAPACITY]
    if start >= end:
        return np.int64(-1)
    low = start & (size - 1)
    high, place = low + (end - start), np.int64(-1)
    if high > size:
        place = _last_place(row, pool, floats, tree, np.int64(0), high - size, bound)
        place = place + size if place >= 0 else place
    if place < 0:
        place = _last_place(row, pool, floats, tree, low, min(high, size), bound)
    return start + place - low if place >= 0 else np.int64(-1)


# --- MATCH ------------------------------------------------------------------------------


@inlined
def _number(row: Array, floats: Array, tree: Any, position: Any) -> Any:
    return floats[place_of(row, tree[0], tree[1], position) + VALUES + tree[3]]


@inlined
def _last_of_run(
    row: Array, pool: Array, floats: Array, tree: Any, turned: Any, place: Any, x: Any
) -> Any:
    """The last of the equal numbers that follow one; what is no number is passed over."""
    end = row[tree[0] + SEEN]
    greater = first_below(row, pool, floats, turned, place, end, -x)
    end = greater if greater >= 0 else end
    less = first_below(row, pool, floats, tree, place, end, x)
    return last_below(row, pool, floats, tree, place, less if less >= 0 else end, np.inf)


@apart
def window_match_below(
    row: Array, pool: Array, floats: Array, tree: Any, turned: Any, x: Any, status: Any
) -> Any:
    """MATCH with mode 1: by halving, as if the numbers rose; what is no number is passed over.

    Where it meets the number it goes on to the last of the equal ones that follow; `turned` is the
    tree of the greatest values.
    """
    if status >= _FIRST_ERROR:
        return 0.0, status
    first = row[tree[0] + FIRST]
    low, high, best = first, row[tree[0] + SEEN] - 1, np.int64(-1)
    while low <= high:
        middle = first + (low + high - 2 * first) // 2
        probe = first_below(row, pool, floats, tree, middle, high + 1, np.inf)
        if probe < 0:
            high = middle - 1
            continue
        value = _number(row, floats, tree, probe)
        if value == x:
            best = _last_of_run(row, pool, floats, tree, turned, probe, x)
            break
        if value < x:
            best = probe
            low = probe + 1
        else:
            high = middle - 1
    return (float(best - first + 1), 0) if best >= 0 else (0.0, _NA)


@apart
def window_match_above(
    row: Array, pool: Array, floats: Array, tree: Any, x: Any, status: Any
) -> Any:
    """MATCH with mode -1: the first that is equal, else the last before one that is smaller."""
    if status >= _FIRST_ERROR:
        return 0.0, status
    first, end = row[tree[0] + FIRST], row[tree[0] + SEEN]
    position = first_below(row, pool, floats, tree, first, end, np.nextafter(x, np.inf))
    if position < 0 or _number(row, floats, tree, position) != x:
        position = last_below(
            row, pool, floats, tree, first, position if position >= 0 else end, np.inf
        )
    return (float(position - first + 1), 0) if position >= 0 else (0.0, _NA)
