"""Compiled loops for skip lists of rows: an order that is kept up under any change.

A row stands in the list of level 0, and in that of each higher level with a quarter of
the chance, decided by its number so that equal histories give equal lists. A link is the
number of a row plus one, zero for none, so that zeroed memory is empty.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from millstream.compiled import apart, inlined
from millstream.kernels.runtime.utf8 import Texts, compare_texts
from millstream.plan.batch import Array

LEVELS = 12


class Lists(NamedTuple):
    """All levels. `links` is where in a record the links of a row begin.

    Rows are ordered by their first words, column by column; the sign of a column is -1
    where the order is downwards. `nulls` is where in a record the bits for nulls begin.
    `path` is room for one row per level; after a row has been looked for it has the rows
    before it.
    """

    records: Array
    heads: Array
    links: int
    signs: Array
    is_text: Array
    texts: Texts
    path: Array
    nulls: int


@apart
def compare_rows(one: Any, other: Any, lists: Lists) -> Any:
    """The sign of the order of two rows; null is less than all else, equals go by number."""
    words = lists.records
    for j in range(lists.signs.size):
        null_word = lists.nulls + j // 63
        a_null = (words[one, null_word] >> (j % 63)) & 1
        b_null = (words[other, null_word] >> (j % 63)) & 1
        if a_null != b_null:
            return (b_null - a_null) * lists.signs[j]
        a, b = words[one, j], words[other, j]
        if a != b:
            if lists.is_text[j]:
                return compare_texts(a, b, lists.texts) * lists.signs[j]
            return -lists.signs[j] if a < b else lists.signs[j]
    return np.sign(one - other)


@inlined
def height(row: Any) -> Any:
    """In how many levels a row stands: at least one."""
    mixed = (row + 1) * 0x1E3779B97F4A7C15
    mixed ^= mixed >> 29
    height = 1
    while height < LEVELS and (mixed & 3) == 0:
        mixed >>= 2
        height += 1
    return height


@inlined
def next_row(row: Any, level: Any, lists: Lists) -> Any:
    """The link after a row, or after the head for -1."""
    if row < 0:
        return lists.heads[level]
    return lists.records[row, lists.links + level]


@inlined
def _find(row: Any, lists: Lists) -> None:
    """Put into the path, for each level, the last row before this one, -1 for the head."""
    before = -1
    for k in range(LEVELS):
        level = LEVELS - 1 - k
        following = next_row(before, level, lists)
        while following != 0 and compare_rows(following - 1, row, lists) < 0:
            before = following - 1
            following = next_row(before, level, lists)
        lists.path[level] = before


@inlined
def _link(before: Any, level: Any, link: Any, lists: Lists) -> None:
    if before < 0:
        lists.heads[level] = link
    else:
        lists.records[before, lists.links + level] = link


@apart
def insert_row(row: Any, lists: Lists) -> None:
    _find(row, lists)
    for level in range(height(row)):
        before = lists.path[level]
        lists.records[row, lists.links + level] = next_row(before, level, lists)
        _link(before, level, row + 1, lists)


@apart
def remove_row(row: Any, lists: Lists) -> None:
    _find(row, lists)
    for level in range(height(row)):
        _link(lists.path[level], level, lists.records[row, lists.links + level], lists)
        lists.records[row, lists.links + level] = 0


@apart
def sort_numbers(rows: Array, lists: Lists) -> None:
    """Sort numbers of rows in place by the order of the rows: a heap sort."""
    for start in range(rows.size // 2 - 1, -1, -1):
        _sift(rows, start, rows.size, lists)
    for end in range(rows.size - 1, 0, -1):
        rows[0], rows[end] = rows[end], rows[0]
        _sift(rows, 0, end, lists)


@inlined
def _sift(rows: Array, start: Any, end: Any, lists: Lists) -> None:
    """Let a row sink until those below it are not greater."""
    at = start
    while 2 * at + 1 < end:
        child = 2 * at + 1
        if child + 1 < end and compare_rows(rows[child], rows[child + 1], lists) < 0:
            child += 1
        if compare_rows(rows[at], rows[child], lists) >= 0:
            return
        rows[at], rows[child] = rows[child], rows[at]
        at = child
