"""Compiled loops for skip lists that know which row is at a place, kept up under any change.

A row counts as often as it is there. Beside each link stands how many copies it passes: those
of the rows behind the one it leaves, up to and with the one it leads to. What stands beside a
link that leads nowhere means nothing.

These are lists as in `skip_list`, with twice the room: for each level a link, then for each
level its count. So have the heads, and `path`, which after a row has been looked for has how
many copies come before it on each level.
"""

from __future__ import annotations

from typing import Any

from millstream.compiled import apart, inlined
from millstream.kernels.windows.skip_list import LEVELS, Lists, compare_rows, height, next_row

#: How many words a list needs with each row, and with each head.
WORDS = 2 * LEVELS


@inlined
def _span(row: Any, level: Any, lists: Lists) -> Any:
    """How many copies the link behind a row passes, or that of the head for -1."""
    if row < 0:
        return lists.heads[LEVELS + level]
    return lists.records[row, lists.links + LEVELS + level]


@inlined
def _put(row: Any, level: Any, link: Any, span: Any, lists: Lists) -> None:
    if row < 0:
        lists.heads[level], lists.heads[LEVELS + level] = link, span
    else:
        lists.records[row, lists.links + level] = link
        lists.records[row, lists.links + LEVELS + level] = span


@inlined
def _find(row: Any, lists: Lists) -> None:
    """Put into the path the last row before this one, and the copies up to it, of each level."""
    before, copies = -1, 0
    for k in range(LEVELS):
        level = LEVELS - 1 - k
        link = next_row(before, level, lists)
        while link != 0 and compare_rows(link - 1, row, lists) < 0:
            copies += _span(before, level, lists)
            before = link - 1
            link = next_row(before, level, lists)
        lists.path[level], lists.path[LEVELS + level] = before, copies


@apart
def change_copies(row: Any, there: Any, wanted: Any, lists: Lists) -> None:
    """Put a row in order, take it out, or let it count otherwise than before."""
    _find(row, lists)
    links, records = lists.links, lists.records
    is_new, is_gone = there == 0, wanted == 0
    levels = height(row)
    for level in range(LEVELS):
        before = lists.path[level]
        link, span = next_row(before, level, lists), _span(before, level, lists)
        if level < levels and is_new:
            passed = lists.path[LEVELS] - lists.path[LEVELS + level]
            records[row, links + level] = link
            records[row, links + LEVELS + level] = span - passed
            _put(before, level, row + 1, passed + wanted, lists)
        elif level < levels and is_gone:
            behind = records[row, links + LEVELS + level]
            _put(before, level, records[row, links + level], span - there + behind, lists)
            records[row, links + level], records[row, links + LEVELS + level] = 0, 0
        else:
            _put(before, level, link, span + wanted - there, lists)


@apart
def row_at(place: Any, lists: Lists) -> Any:
    """The row at a place, of which the first is 1; there are as many copies."""
    before, left = -1, place
    for k in range(LEVELS):
        level = LEVELS - 1 - k
        link = next_row(before, level, lists)
        while link != 0 and _span(before, level, lists) < left:
            left -= _span(before, level, lists)
            before = link - 1
            link = next_row(before, level, lists)
    return next_row(before, 0, lists) - 1


@apart
def place_of(row: Any, lists: Lists) -> Any:
    """How many copies come before those of a row, whether it is there or not."""
    _find(row, lists)
    return lists.path[LEVELS]
