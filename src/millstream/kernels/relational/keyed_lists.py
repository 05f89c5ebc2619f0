"""What the compiled loops of joins share: rows in lists by key, and changes of them."""

from __future__ import annotations

from typing import Any, NamedTuple

from millstream.compiled import inlined
from millstream.kernels.runtime.hashing import FAR, NEAR, prefetch
from millstream.kernels.runtime.hashing import NEXT as SOON
from millstream.kernels.windows.skip_list import insert_row, remove_row
from millstream.plan.batch import Array

#: What is kept with each row after its words: how often it is present; if this instant has changed
#: it, twice how often it was before and one, else zero; and its neighbours in the list of its key
#: (links: number plus one, or zero). Who goes through a list needs what is first here.
ROWS, BEFORE, NEXT, PREVIOUS = range(4)
ROW_EXTRA = 4

#: What is kept with each key after its words: how many rows are in its lists, and links
#: to the first row of each side.
KEY_ROWS, FIRST = 0, 1
KEY_EXTRA = 3

#: Where a loop over two sides stands: the next change of each; the instant, whether it has been
#: begun, and how many rows (or keys) of each side it touches; which of these is being told (left
#: ones first), whether its list has been entered, and the link at which it goes on; and how much
#: has been told.
AT_LEFT, AT_RIGHT, NOW, IS_BEGUN, TOUCHED_LEFT, TOUCHED_RIGHT = range(6)
TELLING, IS_ENTERED, LINK, SIZE = range(6, 10)
CURSOR = 10


class Side(NamedTuple):
    """The changes of one side; `touched` is room for the rows one instant changes.

    `records` has the rows by number, the number of their key first; `extra` is where in
    a record the words named above begin.
    """

    number: int
    time: Array
    rows: Array
    weight: Array
    touched: Array
    records: Array
    extra: int


class ListKeys(NamedTuple):
    records: Array
    extra: int


@inlined
def is_touched(side: Any, row: Any) -> Any:
    """Whether this instant has changed a row."""
    return side.records[row, side.extra + BEFORE] != 0


@inlined
def count_before(side: Any, row: Any) -> Any:
    """How often a row was present before this instant."""
    before = side.records[row, side.extra + BEFORE]
    return before >> 1 if before != 0 else side.records[row, side.extra + ROWS]


@inlined
def next_instant(left: Array, right: Array, cursor: Array) -> Any:
    """Go to the next instant at which a side changes; False if there is none."""
    i, j = cursor[AT_LEFT], cursor[AT_RIGHT]
    if i == left.size and j == right.size:
        return False
    if j == right.size or (i < left.size and left[i] <= right[j]):
        cursor[NOW] = left[i]
    else:
        cursor[NOW] = right[j]
    cursor[IS_BEGUN], cursor[TELLING] = 1, 0
    return True


@inlined
def _link(row: Any, side: Side, keys: ListKeys) -> None:
    """Put a row before all others of its key."""
    records, extra = side.records, side.extra
    key, place = records[row, 0], keys.extra + FIRST + side.number
    first = keys.records[key, place]
    records[row, extra + NEXT] = first
    records[row, extra + PREVIOUS] = 0
    if first != 0:
        records[first - 1, extra + PREVIOUS] = row + 1
    keys.records[key, place] = row + 1


@inlined
def _unlink(row: Any, side: Side, keys: ListKeys) -> None:
    records, extra = side.records, side.extra
    key, place = records[row, 0], keys.extra + FIRST + side.number
    following, previous = records[row, extra + NEXT], records[row, extra + PREVIOUS]
    if following != 0:
        records[following - 1, extra + PREVIOUS] = previous
    if previous == 0:
        keys.records[key, place] = following
    else:
        records[previous - 1, extra + NEXT] = following


@inlined
def _prefetch(side: Side, other: Side, i: Any, keys: ListKeys) -> None:
    """Ask for what later changes of a side will need."""
    records, rows = side.records, side.rows
    if i + FAR < rows.size:
        prefetch(records, rows[i + FAR])
        row = rows[i + NEAR]
        prefetch(keys.records, records[row, 0])
        prefetch(records, records[row, side.extra + NEXT] - 1)
        prefetch(records, records[row, side.extra + PREVIOUS] - 1)
        key, first = records[rows[i + SOON], 0], keys.extra + FIRST
        prefetch(records, keys.records[key, first + side.number] - 1)
        prefetch(other.records, keys.records[key, first + other.number] - 1)


@inlined
def apply_changes(side: Side, other: Side, start: Any, now: Any, keys: ListKeys, lists: Any) -> Any:
    """Apply the changes of an instant; where they end, and how many rows they touch.

    The rows of a key are in a list of its own, or in order in `lists` if there are any.
    """
    records, extra = side.records, side.extra
    count, i = 0, start
    while i < side.time.size and side.time[i] == now:
        if lists is None:
            _prefetch(side, other, i, keys)
        row = side.rows[i]
        if records[row, extra + BEFORE] == 0:
            records[row, extra + BEFORE] = 2 * records[row, extra + ROWS] + 1
            side.touched[count] = row
            count += 1
            if records[row, extra + ROWS] == 0:
                if lists is None:
                    _link(row, side, keys)
                else:
                    insert_row(row, lists)
                keys.records[records[row, 0], keys.extra + KEY_ROWS] += 1
        records[row, extra + ROWS] += side.weight[i]
        i += 1
    return i, count


@inlined
def settle(side: Side, count: Any, keys: ListKeys, lists: Any) -> None:
    """Take the rows that are gone out of their lists."""
    for k in range(count):
        row = side.touched[k]
        side.records[row, side.extra + BEFORE] = 0
        if side.records[row, side.extra + ROWS] == 0:
            if lists is None:
                _unlink(row, side, keys)
            else:
                remove_row(row, lists)
            keys.records[side.records[row, 0], keys.extra + KEY_ROWS] -= 1
