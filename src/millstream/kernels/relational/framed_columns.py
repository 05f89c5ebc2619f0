"""Compiled loops for rows in order and their columns, which follow from the rows around them.

Rows of a group are listed one after the other, one that is there several times as often. Then
each column goes along the list, and the frame of a row begins and
ends no earlier than that of the row before it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from millstream.compiled import apart, inlined
from millstream.kernels.runtime.utf8 import compare_texts
from millstream.kernels.windows.skip_list import Lists
from millstream.kernels.windows.sums import (
    CELL,
    LOW,
    WIDE,
    Wides,
    add_integer,
    add_number,
    bits_of_float,
    fits_integer,
    float_of_bits,
    give_back,
    integer_sum_as_float,
    number_sum,
)
from millstream.kernels.windows.sums import COUNT as ADDED
from millstream.plan.batch import Array

#: What a column is made of. The value of another row is told by the number of that row.
NUMBER, RANK, DENSE, NEIGHBOUR, FIRST, LAST, ROWS, VALUES, SUM, MEAN, LEAST, LARGEST = range(12)
#: Which ends a frame has: none, so many rows away, the equals of a row, so far from its value.
OPEN, AWAY, EQUALS, DISTANCE = range(4)

_SIGN_OFF = np.int64(0x7FFFFFFFFFFFFFFF)
_NAN = np.int64(0x7FF8000000000000)


class FramedColumns(NamedTuple):
    """What is asked for, a row of numbers each.

    Which kind, of which column of rows, whether that has floats, and of a neighbour how far away;
    then both ends of the frame, and how far they are.
    """

    kind: Array
    source: Array
    is_float: Array
    offset: Array
    start_kind: Array
    start: Array
    end_kind: Array
    end: Array


class FramedShape(NamedTuple):
    """How rows are looked at.

    Where in records what is kept with rows and groups begins, by how many columns rows are ordered
    and whether the first has floats; how far a row looks back and ahead, if that is known; how many
    rows of a group are told, and how many are looked at.
    """

    row: int
    group: int
    on: int
    has_floats: bool
    is_near: bool
    back: int
    ahead: int
    told: int
    most: int


class Listing(NamedTuple):
    """Rows one after the other, the first and last of their equals, their kinds; their columns."""

    rows: Array
    first: Array
    last: Array
    kinds: Array
    words: Array
    nulls: Array


class Work(NamedTuple):
    """Lists before and after a change; sums, also as floats; places in order of their values."""

    before: Listing
    after: Listing
    cells: Array
    floats: Array
    wides: Wides
    places: Array


# --- values of rows ---


@inlined
def _is_null(row: Any, column: Any, lists: Lists) -> Any:
    return (lists.records[row, lists.nulls + column // 63] >> (column % 63)) & 1


@inlined
def _float_of(word: Any) -> Any:
    return float_of_bits(word ^ ((word >> 63) & _SIGN_OFF))


@inlined
def _are_peers(one: Any, other: Any, shape: FramedShape, lists: Lists) -> Any:
    are_alike = True
    for j in range(shape.on):
        if (
            lists.records[one, j] != lists.records[other, j]
            or _is_null(one, j, lists) != _is_null(other, j, lists)
        ):  # fmt: skip
            are_alike = False
    return are_alike


@inlined
def _moved_order(row: Any, other: Any, distance: Any, shape: FramedShape, lists: Lists) -> Any:
    """The sign of the order of a row and of what is so far from another in the first column."""
    sign, order = lists.signs[0], 0
    word, moved, step = lists.records[row, 0], lists.records[other, 0], sign * distance
    if _is_null(row, 0, lists):
        order = -1
    elif shape.has_floats:
        if _NAN in (word, moved):
            order = (word == _NAN) - (moved == _NAN)
        else:
            value, bound = _float_of(word), _float_of(moved) + step
            order = (value > bound) - (value < bound)
    else:
        bound = moved + step
        if step > 0 and bound < moved:  # beyond all integers
            order = -1
        elif step < 0 and bound > moved:
            order = 1
        else:
            order = (word > bound) - (word < bound)
    return order * sign


@inlined
def _find_peers(listing: Listing, size: Any, shape: FramedShape, lists: Lists) -> None:
    rows, first, last, kinds = listing.rows, listing.first, listing.last, listing.kinds
    for i in range(size):
        is_new = i == 0 or not _are_peers(rows[i - 1], rows[i], shape, lists)
        first[i] = i if is_new else first[i - 1]
        kinds[i] = 1 if i == 0 else kinds[i - 1] + is_new
    for k in range(size):
        i = size - 1 - k
        last[i] = i if i == size - 1 or first[i + 1] == i + 1 else last[i + 1]


# --- columns ---


@inlined
def _start_of(
    i: Any, at: Any, size: Any, k: Any, columns: FramedColumns, listing: Listing,
    shape: FramedShape, lists: Lists,
) -> Any:  # fmt: skip
    """Where the frame of a row begins, which is not before where that of the last one did."""
    kind, distance = columns.start_kind[k], columns.start[k]
    if kind == OPEN:
        return 0
    if kind == AWAY:
        return min(max(i + distance, 0), size)
    row = listing.rows[i]
    if kind == EQUALS or _is_null(row, 0, lists):
        return listing.first[i]
    while at < size and _moved_order(listing.rows[at], row, distance, shape, lists) < 0:
        at += 1
    return at


@inlined
def _end_of(
    i: Any, at: Any, size: Any, k: Any, columns: FramedColumns, listing: Listing,
    shape: FramedShape, lists: Lists,
) -> Any:  # fmt: skip
    """Where the frame of a row is over, likewise."""
    kind, distance = columns.end_kind[k], columns.end[k]
    if kind == OPEN:
        return size
    if kind == AWAY:
        return min(max(i + distance + 1, 0), size)
    row = listing.rows[i]
    if kind == EQUALS or _is_null(row, 0, lists):
        return listing.last[i] + 1
    while at < size and _moved_order(listing.rows[at], row, distance, shape, lists) <= 0:
        at += 1
    return at


@inlined
def _forget(k: Any, work: Work) -> None:
    if work.cells[k, WIDE] != 0:
        give_back(work.cells[k], work.wides)
    for j in range(CELL):
        work.cells[k, j] = 0


@inlined
def _count_value(
    row: Any, weight: Any, k: Any, columns: FramedColumns, work: Work, lists: Lists
) -> None:
    """A row comes into the frame of a sum, or leaves it."""
    source = columns.source[k]
    if _is_null(row, source, lists):
        return
    work.cells[k, ADDED] += weight
    word = lists.records[row, source]
    if columns.kind[k] == VALUES:
        return
    if columns.is_float[k]:
        add_number(work.cells[k], work.floats[k], _float_of(word), weight, work.wides)
    else:
        add_integer(work.cells[k], word, weight)


@inlined
def _sum_of(k: Any, columns: FramedColumns, work: Work) -> Any:
    """The word of a sum, a mean or a number of values, and whether there is none."""
    cell, kind = work.cells[k], columns.kind[k]
    count = cell[ADDED]
    if kind == VALUES:
        return count, False
    if count <= 0:
        return np.int64(0), True
    if kind == SUM and not columns.is_float[k]:
        return (cell[LOW], False) if fits_integer(cell) else (np.int64(0), True)
    if columns.is_float[k]:
        total = number_sum(cell, work.floats[k], work.wides)
    else:
        total = integer_sum_as_float(cell)
    if kind == MEAN:
        total = total / count + 0.0
    return bits_of_float(total), False


@inlined
def _is_beaten(one: Any, other: Any, source: Any, kind: Any, lists: Lists) -> Any:
    """Whether a value counts no more beside a later one: it is not less, or not larger."""
    a, b = lists.records[one, source], lists.records[other, source]
    order = compare_texts(a, b, lists.texts) if lists.is_text[source] else (a > b) - (a < b)
    return order >= 0 if kind == LEAST else order <= 0


@apart
def _tell_sums(
    k: Any, first: Any, end: Any, size: Any, columns: FramedColumns, listing: Listing, work: Work,
    shape: FramedShape, lists: Lists,
) -> None:  # fmt: skip
    """A sum, a mean or a number of values, as the frame goes along the rows."""
    start, stop, inside, known = 0, 0, 0, 0
    for i in range(first, end):
        start = _start_of(i, start, size, k, columns, listing, shape, lists)
        stop = _end_of(i, stop, size, k, columns, listing, shape, lists)
        if start >= known:
            _forget(k, work)
            inside = known = start
        while known < stop:
            _count_value(listing.rows[known], 1, k, columns, work, lists)
            known += 1
        while inside < start:
            _count_value(listing.rows[inside], -1, k, columns, work, lists)
            inside += 1
        listing.words[i, k], listing.nulls[i, k] = _sum_of(k, columns, work)


@apart
def _tell_extremes(
    k: Any, first: Any, end: Any, size: Any, columns: FramedColumns, listing: Listing, work: Work,
    shape: FramedShape, lists: Lists,
) -> None:  # fmt: skip
    """The row of the least or the largest value, as the frame goes along the rows.

    Those of which one may still be it are kept, the first of which is.
    """
    places, source, kind = work.places, columns.source[k], columns.kind[k]
    start, stop, known, head, tail = 0, 0, 0, 0, 0
    for i in range(first, end):
        start = _start_of(i, start, size, k, columns, listing, shape, lists)
        stop = _end_of(i, stop, size, k, columns, listing, shape, lists)
        if start >= known:
            known, head, tail = start, 0, 0
        while known < stop:
            row = listing.rows[known]
            if not _is_null(row, source, lists):
                while tail > head and _is_beaten(
                    listing.rows[places[tail - 1]], row, source, kind, lists
                ):
                    tail -= 1
                places[tail] = known
                tail += 1
            known += 1
        while head < tail and places[head] < start:
            head += 1
        listing.nulls[i, k] = head == tail
        listing.words[i, k] = listing.rows[places[head]] if head < tail else -1


@inlined
def _tell_plain(
    k: Any, first: Any, end: Any, size: Any, columns: FramedColumns, listing: Listing,
    shape: FramedShape, lists: Lists,
) -> None:  # fmt: skip
    """Places, the values of other rows, and how many rows a frame has."""
    kind, source, start, stop = columns.kind[k], columns.source[k], 0, 0
    for i in range(first, end):
        word: Any = 0
        is_null: Any = False
        if kind == NUMBER:
            word = i + 1
        elif kind == RANK:
            word = listing.first[i] + 1
        elif kind == DENSE:
            word = listing.kinds[i]
        elif kind == NEIGHBOUR:
            place = i + columns.offset[k]
            word = listing.rows[place] if 0 <= place < size else -1
        else:
            start = _start_of(i, start, size, k, columns, listing, shape, lists)
            stop = _end_of(i, stop, size, k, columns, listing, shape, lists)
            if kind == ROWS:
                word = max(stop - start, 0)
            elif stop > start:
                word = listing.rows[start if kind == FIRST else stop - 1]
            else:
                word = -1
        if kind >= NEIGHBOUR and kind <= LAST:
            is_null = word < 0 or _is_null(word, source, lists) != 0
            word = -1 if is_null else word
        listing.words[i, k], listing.nulls[i, k] = word, is_null


@inlined
def tell_columns(
    first: Any, end: Any, size: Any, columns: FramedColumns, listing: Listing, work: Work,
    shape: FramedShape, lists: Lists,
) -> None:  # fmt: skip
    if not shape.is_near:
        _find_peers(listing, size, shape, lists)
    for k in range(columns.kind.size):
        kind = columns.kind[k]
        if kind <= ROWS:
            _tell_plain(k, first, end, size, columns, listing, shape, lists)
        elif kind <= MEAN:
            _tell_sums(k, first, end, size, columns, listing, work, shape, lists)
        else:
            _tell_extremes(k, first, end, size, columns, listing, work, shape, lists)
