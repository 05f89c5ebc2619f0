"""Where characters of a set come next in a text, found 64 at a time.

A set is a row of `sets` (of each byte whether it is in it) and one of `ranges`: how many ranges of
bytes it is made of, whether of those that are not in it instead, and behind that for each the first
and how many follow, both 64 times, to be compared with as they are. A set of many ranges has none,
and its characters are looked at one by one. Bytes beyond ASCII may be in a set or not: no text that
is looked at has any.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from millstream.blocks64 import between64, first_bit, within64
from millstream.compiled import inlined
from millstream.plan.batch import Array

#: More ranges than this are not worth it.
MOST_RANGES = 4
#: How many bytes stand before the ranges of a set, and how many are of each.
_HEAD, _RANGE = 64, 128
_ALL, _NOTHING, _ONE = np.uint64(0xFFFFFFFFFFFFFFFF), np.uint64(0), np.uint8(0)


def set_table(sets: list[frozenset[int]]) -> Array:
    table = np.zeros((max(1, len(sets)), 256), np.bool_)
    for row, of in enumerate(sets):
        table[row, sorted(of)] = True
    return table


def range_table(sets: list[frozenset[int]]) -> Array:
    table = np.zeros((max(1, len(sets)), _HEAD + _RANGE * MOST_RANGES), np.uint8)
    for row, of in enumerate(sets):
        inside, outside = _ranges(of), _ranges(frozenset(range(128)) - of)
        ranges = outside if len(outside) < len(inside) else inside
        if len(ranges) > MOST_RANGES:
            table[row, 0] = 255
            continue
        table[row, :2] = len(ranges), len(outside) < len(inside)
        for n, (low, high) in enumerate(ranges):
            at = _HEAD + n * _RANGE
            table[row, at : at + 64], table[row, at + 64 : at + 128] = low, high - low
    return table


def _ranges(of: frozenset[int]) -> list[tuple[int, int]]:
    ranges: list[tuple[int, int]] = []
    for c in sorted(c for c in of if c < 128):
        if ranges and ranges[-1][1] == c - 1:
            ranges[-1] = (ranges[-1][0], c)
        else:
            ranges.append((c, c))
    return ranges


@inlined
def has_ranges(ranges: Array, of: int) -> Any:
    return ranges[of, 0] != 255


@inlined
def members64(ranges: Array, of: int, data: Array, at: int) -> Any:
    """Which of the next 64 bytes are of a set that has ranges."""
    members, place = _NOTHING, of * (_HEAD + _RANGE * MOST_RANGES) + _HEAD
    for _ in range(ranges[of, 0]):
        members |= between64(data, at, ranges, place)
        place += _RANGE
    return members if ranges[of, 1] == 0 else ~members


@inlined
def run_end(sets: Array, ranges: Array, of: int, data: Array, at: int, limit: int) -> Any:
    """The first place from here on with a byte that is not of a set, or the limit."""
    place = at
    if has_ranges(ranges, of):
        while place < limit and place + 64 <= data.size:
            outside = ~members64(ranges, of, data, place)
            if outside != 0:
                return min(place + first_bit(outside), limit)
            place += 64
    # Indexes without a sign are not looked at for being negative.
    rest, end = np.uint64(place), np.uint64(limit)
    while rest < end and sets[of, data[rest]]:
        rest += np.uint64(1)
    return np.int64(rest) if rest < end else limit


@inlined
def next_of_two(
    sets: Array, ranges: Array, first: int, one: int, second: int, other: int, data: Array,
    at: int, limit: int,
) -> Any:  # fmt: skip
    """The next place at which a byte of one set comes `first` behind, of another `second` behind.

    Or a place from the limit on.
    """
    last = data.size - max(first, second)
    if has_ranges(ranges, one) and has_ranges(ranges, other):
        while at < limit and at + 64 <= last:
            both = members64(ranges, one, data, at + first)
            if both != 0:
                both &= members64(ranges, other, data, at + second)
            if both != 0:
                return at + first_bit(both)
            at += 64
    limit = min(limit, last)
    while at < limit and not (sets[one, data[at + first]] and sets[other, data[at + second]]):
        at += 1
    return at


@inlined
def next_bytes(data: Array, at: int, limit: int, one: int, two: int) -> Any:
    """Where a byte comes next, and another one behind it unless that is -1; or from a limit on."""
    last = data.size - (two >= 0)
    first, second = np.uint8(one), np.uint8(max(two, 0))
    while at < limit and at + 64 <= last:
        both = within64(data, at, first, _ONE)
        if two >= 0 and both != 0:
            both &= within64(data, at + 1, second, _ONE)
        if both != 0:
            return at + first_bit(both)
        at += 64
    limit = min(limit, last)
    while at < limit and (data[at] != first or (two >= 0 and data[at + 1] != second)):
        at += 1
    return at
