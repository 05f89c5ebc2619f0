"""The compiled loop of joins: the exact difference that each instant makes.

At one instant both sides may change. Let L and R be how often a row is present after it,
and l and r before: a pair changes by LR - lr. Pairs of a changed left row are told with
its list of right rows, pairs of a changed right row with those left rows that have not
changed. So each pair is told once, and nothing that undoes itself is told.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from millstream.compiled import inlined, tight
from millstream.kernels.loops_join import (
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
from millstream.plan.batch import Array

#: Where the loop stands: the next change of each side; the instant, whether it has been
#: begun, and how many rows of each side it touches; which of these rows is being told
#: (left ones first), whether its list has been entered, and the link at which it goes on;
#: and how many pairs there are.
AT_LEFT, AT_RIGHT, NOW, IS_BEGUN, TOUCHED_LEFT, TOUCHED_RIGHT = range(6)
TELLING, IS_ENTERED, LINK, SIZE = range(6, 10)
CURSOR = 10


class Pairs(NamedTuple):
    time: Array
    left: Array
    right: Array
    weight: Array


@inlined
def _count_before(side: Side, row: Any) -> Any:
    is_touched = side.records[row, side.extra + IS_TOUCHED] != 0
    return side.records[row, side.extra + (BEFORE if is_touched else ROWS)]


@inlined
def _tell_row(row: Any, one: Side, other: Side, cursor: Array, pairs: Pairs) -> Any:
    """Tell the pairs of a touched row from LINK on; False if there is no more room."""
    records, extra = other.records, other.extra
    before, after = one.records[row, one.extra + BEFORE], one.records[row, one.extra + ROWS]
    while cursor[LINK] != 0:
        match = cursor[LINK] - 1
        if one.number == 0 or records[match, extra + IS_TOUCHED] == 0:
            change = after * records[match, extra + ROWS] - before * _count_before(other, match)
            if change != 0:
                size = cursor[SIZE]
                if size == pairs.time.size:
                    return False
                pairs.time[size], pairs.weight[size] = cursor[NOW], change
                pairs.left[size] = row if one.number == 0 else match
                pairs.right[size] = match if one.number == 0 else row
                cursor[SIZE] = size + 1
        cursor[LINK] = records[match, extra + NEXT]
    return True


@inlined
def _begin(left: Side, right: Side, keys: Keys, cursor: Array) -> Any:
    """Apply the changes of the next instant; False if there is none."""
    i, j = cursor[AT_LEFT], cursor[AT_RIGHT]
    if i == left.time.size and j == right.time.size:
        return False
    if j == right.time.size or (i < left.time.size and left.time[i] <= right.time[j]):
        cursor[NOW] = left.time[i]
    else:
        cursor[NOW] = right.time[j]
    cursor[AT_LEFT], cursor[TOUCHED_LEFT] = apply_changes(left, right, i, cursor[NOW], keys)
    cursor[AT_RIGHT], cursor[TOUCHED_RIGHT] = apply_changes(right, left, j, cursor[NOW], keys)
    cursor[IS_BEGUN] = 1
    cursor[TELLING] = 0
    return True


@inlined
def _tell(k: Any, one: Side, other: Side, keys: Keys, work: tuple[Array, Pairs]) -> Any:
    """Tell the pairs of the k-th touched row of a side; False if there is no more room."""
    cursor, pairs = work
    row = one.touched[k]
    if not cursor[IS_ENTERED]:
        key = one.records[row, 0]
        cursor[LINK] = keys.records[key, keys.extra + FIRST + other.number]
        cursor[IS_ENTERED] = 1
    if not _tell_row(row, one, other, cursor, pairs):
        return False
    cursor[IS_ENTERED] = 0
    return True


@tight
def join_changes(left: Side, right: Side, keys: Keys, cursor: Array, pairs: Pairs) -> bool:
    """Tell the pairs that change; False if there is no more room: to be called again."""
    work = (cursor, pairs)
    while True:
        if not cursor[IS_BEGUN] and not _begin(left, right, keys, cursor):
            return True
        while cursor[TELLING] < cursor[TOUCHED_LEFT]:
            if not _tell(cursor[TELLING], left, right, keys, work):
                return False
            cursor[TELLING] += 1
        while cursor[TELLING] < cursor[TOUCHED_LEFT] + cursor[TOUCHED_RIGHT]:
            if not _tell(cursor[TELLING] - cursor[TOUCHED_LEFT], right, left, keys, work):
                return False
            cursor[TELLING] += 1
        settle(left, cursor[TOUCHED_LEFT], keys)
        settle(right, cursor[TOUCHED_RIGHT], keys)
        cursor[IS_BEGUN] = 0
