"""The compiled loop of a join with the rows of an instant.

Those rows are there for a microsecond: nothing of them is kept in lists, they only visit
the rows of the other side, once when they come and once when they leave.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from millstream.compiled import inlined, tight
from millstream.kernels.relational.keyed_lists import (
    BEFORE,
    FIRST,
    IS_TOUCHED,
    NEXT,
    ROWS,
    Keys,
    Side,
    apply_changes,
    settle,
)
from millstream.kernels.runtime.hashing import FAR, NEAR, prefetch
from millstream.plan.batch import Array

#: Where the loop stands: the next visitor to leave and to come, the next change of the
#: other side; the instant, whether it has been begun and how many rows of the other side
#: it touches; the link at which a visitor goes on, or that it has not begun; the pairs.
LEAVES, COMES, AT, NOW, IS_BEGUN, TOUCHED, LINK, SIZE = range(8)
CURSOR = 8
NOT_ENTERED = -1


class Visitors(NamedTuple):
    """Rows of a stream, and the numbers of their keys; `leaving` of them leave by now.

    With `only_news` they leave without a word, unless others come just then.
    """

    time: Array
    keys: Array
    leaving: int
    only_news: bool


class Visits(NamedTuple):
    """Pairs of a visitor and a row of the other side."""

    time: Array
    visitors: Array
    rows: Array
    weight: Array


@inlined
def _prefetch(visitors: Visitors, x: Any, side: Side, keys: Keys) -> None:
    if x + FAR < visitors.keys.size:
        prefetch(keys.records, visitors.keys[x + FAR])
        first = keys.extra + FIRST + side.number
        prefetch(side.records, keys.records[visitors.keys[x + NEAR], first] - 1)


@inlined
def _visit(key: Any, visitor: Any, sign: Any, side: Side, keys: Keys, work: Any) -> Any:
    """Tell the pairs of a visitor; False if there is no more room."""
    cursor, visits = work
    records, extra = side.records, side.extra
    if cursor[LINK] == NOT_ENTERED:
        cursor[LINK] = keys.records[key, keys.extra + FIRST + side.number]
    while cursor[LINK] != 0:
        row = cursor[LINK] - 1
        is_old = sign < 0 and records[row, extra + IS_TOUCHED] != 0
        count = records[row, extra + (BEFORE if is_old else ROWS)]
        if count != 0:
            size = cursor[SIZE]
            if size == visits.time.size:
                return False
            visits.time[size], visits.weight[size] = cursor[NOW], sign * count
            visits.visitors[size], visits.rows[size] = visitor, row
            cursor[SIZE] = size + 1
        cursor[LINK] = records[row, extra + NEXT]
    cursor[LINK] = NOT_ENTERED
    return True


@inlined
def _begin(visitors: Visitors, side: Side, keys: Keys, cursor: Array) -> Any:
    """Go to the next instant and apply what it does to the other side; False if none is left."""
    comes, at = cursor[COMES], cursor[AT]
    is_there = False
    now = 0
    if comes < visitors.time.size:
        now, is_there = visitors.time[comes], True
    if at < side.time.size and (not is_there or side.time[at] < now):
        now, is_there = side.time[at], True
    if visitors.only_news:
        while cursor[LEAVES] < visitors.leaving and visitors.time[cursor[LEAVES]] < now - 1:
            cursor[LEAVES] += 1
    elif cursor[LEAVES] < visitors.leaving:
        end = visitors.time[cursor[LEAVES]] + 1
        if not is_there or end < now:
            now, is_there = end, True
    if not is_there:
        return False
    cursor[NOW], cursor[IS_BEGUN] = now, 1
    cursor[AT], cursor[TOUCHED] = apply_changes(side, side, at, now, keys)
    return True


@tight
def visit_rows(visitors: Visitors, side: Side, keys: Keys, cursor: Array, visits: Visits) -> bool:
    """Tell the pairs that change; False if there is no more room: to be called again."""
    work = (cursor, visits)
    while True:
        if not cursor[IS_BEGUN] and not _begin(visitors, side, keys, cursor):
            return True
        now = cursor[NOW]
        while cursor[LEAVES] < visitors.leaving and visitors.time[cursor[LEAVES]] < now:
            x = cursor[LEAVES]
            if not _visit(visitors.keys[x], x, -1, side, keys, work):
                return False
            cursor[LEAVES] += 1
        while cursor[COMES] < visitors.time.size and visitors.time[cursor[COMES]] == now:
            x = cursor[COMES]
            _prefetch(visitors, x, side, keys)
            if not _visit(visitors.keys[x], x, 1, side, keys, work):
                return False
            cursor[COMES] += 1
        settle(side, cursor[TOUCHED], keys)
        cursor[IS_BEGUN] = 0
