"""Compiled loops for rows in order and what follows from the rows around them.

Whatever changes, the rows that may be told otherwise are listed before and after, each with its
columns, and only where the two lists differ something is told. So nothing has to be kept of what
was told. Where no row looks at more than some neighbours, the rows listed are those around a
change; else all of its group. A row that is there several times stands in a list as often.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from millstream.compiled import inlined, tight
from millstream.kernels.relational.framed_columns import (
    LAST,
    LEAST,
    NEIGHBOUR,
    FramedColumns,
    FramedShape,
    Listing,
    Work,
    tell_columns,
)
from millstream.kernels.relational.in_order import COUNT, Changed
from millstream.kernels.windows.counted_list import WORDS, change_copies, place_of, row_at
from millstream.kernels.windows.skip_list import Lists, compare_rows
from millstream.plan.batch import Array

#: Kept with each row behind how often it is there: how often it stands in its list, and its links.
LISTED, LINKS = 1, 2
#: Kept with each group behind how many rows stand in its list: the list.
HEADS = 1

#: Where the loop stands: at which change, how much is told, how much room is needed, whether
#: changes may have undone each other.
AT, SIZE, NEED, IS_MIXED = range(4)


class Framed(NamedTuple):
    """What is told: rows with their columns."""

    time: Array
    rows: Array
    weight: Array
    words: Array
    nulls: Array


# --- lists of rows ---


@inlined
def _list_of(group: Any, groups: Array, shape: FramedShape, lists: Lists) -> Lists:
    start = shape.group + HEADS
    return Lists(
        lists.records, groups[group, start : start + WORDS], lists.links, lists.signs,
        lists.is_text, lists.texts, lists.path, lists.nulls,
    )  # fmt: skip


@inlined
def _listed(
    listing: Listing, start: Any, most: Any, shape: FramedShape, own: Lists, cursor: Array
) -> Any:
    """List so many rows from a place on, of which the first is 0; how many there are."""
    size, link, passed = 0, own.heads[0], 0
    if start > 0 and link != 0:
        link = row_at(start + 1, own) + 1
        passed = start - place_of(link - 1, own)
    while link != 0 and size < most:
        row = link - 1
        copies = own.records[row, shape.row + LISTED]
        if copies > 1:
            cursor[IS_MIXED] = 1
        for _ in range(min(copies - passed, most - size)):
            listing.rows[size] = row
            size += 1
        passed = 0
        link = own.records[row, own.links]
    return size


# --- what is told ---


@inlined
def _is_same(
    one: Listing, i: Any, other: Listing, j: Any, columns: FramedColumns, lists: Lists
) -> Any:
    """Whether all columns of two rows are alike."""
    for k in range(columns.kind.size):
        if one.nulls[i, k] != other.nulls[j, k]:
            return False
        a, b, kind = one.words[i, k], other.words[j, k], columns.kind[k]
        if one.nulls[i, k] or a == b:
            continue
        is_value = (kind >= NEIGHBOUR and kind <= LAST) or kind >= LEAST
        source = columns.source[k]
        if not is_value or lists.records[a, source] != lists.records[b, source]:
            return False
    return True


@inlined
def _tell(listing: Listing, i: Any, now: Any, weight: Any, cursor: Array, out: Framed) -> None:
    size = cursor[SIZE]
    out.time[size], out.rows[size], out.weight[size] = now, listing.rows[i], weight
    for k in range(out.words.shape[1]):
        out.words[size, k], out.nulls[size, k] = listing.words[i, k], listing.nulls[i, k]
    cursor[SIZE] = size + 1


@inlined
def _tell_difference(
    now: Any, old: Any, new: Any, columns: FramedColumns, work: Work, lists: Lists, cursor: Array,
    out: Framed,
) -> None:  # fmt: skip
    """Take back what was told of rows, and tell what there is now, where that is not the same.

    Old and new are the first place and the last of each list, the latter not included.
    """
    before, after = work.before, work.after
    i, old_end = old
    j, new_end = new
    while i < old_end or j < new_end:
        if i == old_end:
            order = 1
        elif j == new_end:
            order = -1
        else:
            order = compare_rows(before.rows[i], after.rows[j], lists)
        if order < 0:
            _tell(before, i, now, -1, cursor, out)
            i += 1
        elif order > 0:
            _tell(after, j, now, 1, cursor, out)
            j += 1
        else:
            if not _is_same(before, i, after, j, columns, lists):
                _tell(before, i, now, -1, cursor, out)
                _tell(after, j, now, 1, cursor, out)
            i += 1
            j += 1


@inlined
def _settle(row: Any, group: Any, shape: FramedShape, groups: Array, own: Lists) -> None:
    """Let a row stand in its list as often as it is there."""
    kept, records = shape.row, own.records
    there, wanted = records[row, kept + LISTED], max(records[row, kept + COUNT], 0)
    if there != wanted:
        change_copies(row, there, wanted, own)
        groups[group, shape.group] += wanted - there
        records[row, kept + LISTED] = wanted


@inlined
def _around(
    row: Any, listing: Listing, columns: FramedColumns, work: Work, shape: FramedShape, own: Lists,
    cursor: Array,
) -> Any:  # fmt: skip
    """List the rows that look at one, with their columns; the first of them and the end."""
    place, copies = place_of(row, own), own.records[row, shape.row + LISTED]
    first = max(place - shape.ahead, 0)
    start = max(first - shape.back, 0)
    end = place + copies + shape.back
    size = _listed(listing, start, end + shape.ahead - start, shape, own, cursor)
    end = min(end - start, size)
    tell_columns(first - start, end, size, columns, listing, work, shape, own)
    return first - start, max(end, first - start)


@inlined
def _change_near(
    at: Any, end: Any, changes: Changed, columns: FramedColumns, shape: FramedShape, groups: Array,
    own: Lists, work: Work, cursor: Array, out: Framed,
) -> None:  # fmt: skip
    """Tell what becomes of the rows around each change of a group at an instant."""
    if end - at > 1:
        cursor[IS_MIXED] = 1
    for i in range(at, end):
        row = changes.rows[i]
        records, kept = own.records, shape.row
        if records[row, kept + LISTED] != max(records[row, kept + COUNT], 0):
            old = _around(row, work.before, columns, work, shape, own, cursor)
            _settle(row, changes.groups[i], shape, groups, own)
            new = _around(row, work.after, columns, work, shape, own, cursor)
            _tell_difference(changes.time[i], old, new, columns, work, own, cursor, out)


@inlined
def _change_all(
    at: Any, end: Any, changes: Changed, columns: FramedColumns, shape: FramedShape, groups: Array,
    own: Lists, work: Work, cursor: Array, out: Framed,
) -> None:  # fmt: skip
    """Tell what becomes of all rows of a group that changes at an instant."""
    size = _listed(work.before, 0, shape.most, shape, own, cursor)
    old = 0, min(size, shape.told)
    tell_columns(0, old[1], size, columns, work.before, work, shape, own)
    for i in range(at, end):
        _settle(changes.rows[i], changes.groups[i], shape, groups, own)
    size = _listed(work.after, 0, shape.most, shape, own, cursor)
    new = 0, min(size, shape.told)
    tell_columns(0, new[1], size, columns, work.after, work, shape, own)
    _tell_difference(changes.time[at], old, new, columns, work, own, cursor, out)


@inlined
def _most_listed(
    at: Any, end: Any, changes: Changed, shape: FramedShape, groups: Array, records: Array
) -> Any:
    """How many rows there are at most in one list, and in all lists of a group at an instant."""
    longest, total = 0, 0
    if not shape.is_near:
        longest = groups[changes.groups[at], shape.group]
    for i in range(at, end):
        more = abs(changes.weight[i])
        if shape.is_near:
            copies = max(records[changes.rows[i], shape.row + LISTED], 0) + more
            listed = 2 * (shape.back + shape.ahead) + copies
            longest = max(longest, listed)
            total += 2 * listed
        else:
            longest += more
    if not shape.is_near:
        longest = min(longest, shape.most)
        total = 2 * longest
    return longest, total


@tight
def tell_framed(
    changes: Changed, columns: FramedColumns, shape: FramedShape, groups: Array, lists: Lists,
    work: Work, cursor: Array, out: Framed,
) -> bool:  # fmt: skip
    """Take in changes, which come by instants and groups; False if there is not enough room.

    Then so much room is needed as the cursor says, in lists or for what is told.
    """
    records = lists.records
    while cursor[AT] < changes.time.size:
        at = end = cursor[AT]
        now, group = changes.time[at], changes.groups[at]
        while end < changes.time.size and changes.time[end] == now and changes.groups[end] == group:
            end += 1
        longest, total = _most_listed(at, end, changes, shape, groups, records)
        if longest > work.places.size or total > out.time.size - cursor[SIZE]:
            cursor[NEED] = max(longest, total)
            return False
        for i in range(at, end):
            records[changes.rows[i], shape.row + COUNT] += changes.weight[i]
        own = _list_of(group, groups, shape, lists)
        if shape.is_near:
            _change_near(at, end, changes, columns, shape, groups, own, work, cursor, out)
        else:
            _change_all(at, end, changes, columns, shape, groups, own, work, cursor, out)
        cursor[AT] = end
    return True
