"""The compiled loop of a join: which pairs an instant changes, as columns of what is told.

First those pairs are told that are there before the instant, while rows that come are not among
those of their key yet; then rows are taken out and put in, and the pairs are told that were not
there. So each pair is told once, and nothing that undoes itself is told. Where each row is
there once, these are whole runs: one row of a side with rows of the other that lie side by side.
"""

from __future__ import annotations

from typing import Any

from millstream.compiled import inlined, tight
from millstream.kernels.relational.join_few import change_few
from millstream.kernels.relational.join_pairs import (
    AT_LEFT,
    AT_RIGHT,
    IS_IN_ORDER,
    IS_NET,
    NOW,
    PARTNER,
    SIZE,
    STAGE,
    TOUCHED_LEAD,
    TOUCHED_OTHER,
    TURN,
    KeyWords,
    Pairs,
    SideChanges,
    prefetch_change,
    tell_common,
    tell_run,
)
from millstream.kernels.relational.keyed_blocks import (
    MULTIPLES,
    PATIENCE,
    KeyBlocks,
    count_of,
    first_of,
    place_of,
    put_row,
    take_row,
)
from millstream.kernels.relational.keyed_lists import BEFORE, ROWS, count_before, is_touched
from millstream.plan.batch import Array

#: To find the next instant, to see how it can be told, to tell what goes (and to take rows out), to
#: put rows in, to tell what comes.
BEGIN, ENTERING, GOING, PUTTING, COMING = range(5)

#: Why the loop has stopped: it is done, there is no more room for pairs, or none for rows.
DONE, FULL, CROWDED = range(3)

#: Of an instant that changes more rows of a key than this all rows are looked at to find these.
_FEW = 12


@inlined
def _turns(side: SideChanges, row: Any, sign: Any) -> Any:
    """Whether a row that is there once goes, or comes if the sign says so."""
    return (side.records[row, side.extra + ROWS] != 0) == (sign > 0)


# --- of one key, in order ---------------------------------------------------------------


@inlined
def _sorted_in(values: Array, count: Any, value: Any) -> None:
    """Put a value among so many that are in order."""
    k = count
    while k > 0 and values[k - 1] > value:
        values[k] = values[k - 1]
        k -= 1
    values[k] = value


@inlined
def _find_places(side: SideChanges, touched: Any, sign: Any, keys: KeyBlocks, rows: Array) -> Any:
    """Where the rows are that go, or come, in order; how many these are."""
    count = 0
    if touched > _FEW:
        side.notes[PATIENCE] -= rows.size
        for i in range(rows.size):
            if is_touched(side, rows[i]) and _turns(side, rows[i], sign):
                side.places[count] = i
                count += 1
        return count
    for k in range(touched):
        row = side.touched[k]
        if _turns(side, row, sign):
            _sorted_in(side.places, count, place_of(row, side, keys))
            count += 1
    return count


@inlined
def _tell_in_order(
    sign: Any, lead: SideChanges, other: SideChanges, touched: Any, keys: KeyBlocks, work: Any
) -> None:
    """Tell the pairs of an instant that touches one key; there is room for them."""
    cursor, common, out = work
    key = lead.records[lead.touched[0], 0] if touched[0] else other.records[other.touched[0], 0]
    first = (first_of(key, lead.number, keys), first_of(key, other.number, keys))
    leaders = keys.numbers[first[0] : first[0] + count_of(key, lead.number, keys)]
    partners = keys.numbers[first[1] : first[1] + count_of(key, other.number, keys)]
    if leaders.size == 0 or partners.size == 0:
        return
    turning = _find_places(lead, touched[0], sign, keys, leaders)
    others = _find_places(other, touched[1], sign, keys, partners)
    for k in range(others):
        other.places[k] = partners[other.places[k]]
    turned = other.places[:others]
    size = start = cursor[SIZE]
    at = 0
    for k in range(turning + 1):
        end = lead.places[k] if k < turning else leaders.size
        # Rows that stay meet the others that turn, one that turns all of them.
        if others == 1 and at < end:
            size = tell_run(turned[0], other, leaders[at:end], lead, size, out)
        elif others > 1:
            for i in range(at, end):
                size = tell_run(leaders[i], lead, turned, other, size, out)
        if k < turning:
            size = tell_run(leaders[end], lead, partners, other, size, out)
        at = end + 1
    tell_common(key, keys, common, (cursor[NOW], sign), start, size, out)
    lead.notes[PATIENCE] += size - start
    other.notes[PATIENCE] += size - start
    cursor[SIZE] = size


# --- of any keys ------------------------------------------------------------------------


@inlined
def _change(sign: Any, row: Any, side: SideChanges, match: Any, other: SideChanges) -> Any:
    """By how much a pair is to change that is there before the instant, or that is not."""
    before = count_before(side, row) * count_before(other, match)
    if (before == 0) != (sign > 0):
        return 0
    return side.records[row, side.extra + ROWS] * other.records[match, other.extra + ROWS] - before


@inlined
def _tell_each(
    sign: Any,
    row: Any,
    side: SideChanges,
    partners: Array,
    other: SideChanges,
    is_second: Any,
    work: Any,
) -> Any:
    """Tell a row with its partners, one by one; False if there is no more room."""
    cursor, keys, common, out = work
    key, size = side.records[row, 0], cursor[SIZE]
    while cursor[PARTNER] < partners.size:
        at = cursor[PARTNER]
        match = partners[at]
        if not is_second or not is_touched(other, match):
            weight = _change(sign, row, side, match, other)
            if weight != 0:
                if size == out.time.size:
                    cursor[SIZE] = size
                    return False
                tell_run(row, side, partners[at : at + 1], other, size, out)
                tell_common(key, keys, common, (cursor[NOW], weight), size, size + 1, out)
                size += 1
        cursor[PARTNER] = at + 1
    cursor[SIZE] = size
    return True


@inlined
def _tell_row(
    sign: Any, row: Any, side: SideChanges, other: SideChanges, is_second: Any, work: Any
) -> Any:
    """Tell the pairs of a row that an instant changes; False if there is no more room."""
    cursor, keys, common, out = work
    key, is_single = (
        side.records[row, 0],
        side.notes[MULTIPLES] == 0 and other.notes[MULTIPLES] == 0,
    )
    was, count = count_before(side, row), side.records[row, side.extra + ROWS]
    if (was == 0 if sign < 0 else count == 0) or (is_single and (count if sign < 0 else was) != 0):
        return True
    first = first_of(key, other.number, keys)
    partners = keys.numbers[first : first + count_of(key, other.number, keys)]
    if not is_single or is_second:
        if not _tell_each(sign, row, side, partners, other, is_second, work):
            return False
    else:
        start, at = cursor[SIZE], cursor[PARTNER]
        more = min(partners.size - at, out.time.size - start)
        size = tell_run(row, side, partners[at : at + more], other, start, out)
        tell_common(key, keys, common, (cursor[NOW], sign), start, size, out)
        cursor[SIZE], cursor[PARTNER] = size, at + more
        if at + more < partners.size:
            return False
    cursor[PARTNER] = 0
    return True


@inlined
def _tell_plainly(sign: Any, lead: SideChanges, other: SideChanges, touched: Any, work: Any) -> Any:
    """Tell the pairs of all rows that an instant changes; False if there is no more room."""
    cursor = work[0]
    while cursor[TURN] < touched[0]:
        if not _tell_row(sign, lead.touched[cursor[TURN]], lead, other, False, work):
            return False
        cursor[TURN] += 1
    while cursor[TURN] < touched[0] + touched[1]:
        row = other.touched[cursor[TURN] - touched[0]]
        if not _tell_row(sign, row, other, lead, touched[0] > 0, work):
            return False
        cursor[TURN] += 1
    cursor[TURN] = 0
    return True


# --- instants ---------------------------------------------------------------------------


@inlined
def _next_instant(left: Array, right: Array, cursor: Array) -> Any:
    """Go to the next instant at which a side changes; False if there is none."""
    i, j = cursor[AT_LEFT], cursor[AT_RIGHT]
    if i == left.size and j == right.size:
        return False
    is_left = j == right.size or (i < left.size and left[i] <= right[j])
    cursor[NOW] = left[i] if is_left else right[j]
    return True


@inlined
def _touch(side: SideChanges, start: Any, now: Any, keys: KeyBlocks) -> Any:
    """Count the changes of an instant; where they end, and how many rows they change."""
    records, extra = side.records, side.extra
    count, i = 0, start
    while i < side.time.size and side.time[i] == now:
        prefetch_change(side, i, keys)
        row = side.rows[i]
        if records[row, extra + BEFORE] == 0:
            records[row, extra + BEFORE] = 2 * records[row, extra + ROWS] + 1
            side.touched[count] = row
            count += 1
        records[row, extra + ROWS] += side.weight[i]
        i += 1
    kept = 0
    for k in range(count):
        row = side.touched[k]
        before, after = records[row, extra + BEFORE] >> 1, records[row, extra + ROWS]
        if before == after:
            records[row, extra + BEFORE] = 0
        else:
            side.notes[MULTIPLES] += int(after >> 1 != 0)
            side.touched[kept] = row
            kept += 1
    return i, kept


@inlined
def _have_key(side: SideChanges, count: Any, key: Any) -> Any:
    for k in range(count):  # noqa: SIM110  numba does not compile all()
        if side.records[side.touched[k], 0] != key:
            return False
    return True


@inlined
def _is_quick(side: SideChanges, count: Any, key: Any, keys: KeyBlocks) -> Any:
    """Whether the rows that an instant changes are soon found among those of their key."""
    return count <= _FEW or count_of(key, side.number, keys) <= side.notes[PATIENCE]


@inlined
def _is_in_order(lead: SideChanges, other: SideChanges, touched: Any, keys: KeyBlocks) -> Any:
    """Whether the pairs of an instant can be told in order: they are of one key."""
    if lead.order.is_text.size + other.order.is_text.size == 0:
        return False
    if lead.notes[MULTIPLES] != 0 or other.notes[MULTIPLES] != 0:
        return False
    key = lead.records[lead.touched[0], 0] if touched[0] else other.records[other.touched[0], 0]
    return (
        _have_key(lead, touched[0], key)
        and _have_key(other, touched[1], key)
        and _is_quick(lead, touched[0], key, keys)
        and _is_quick(other, touched[1], key, keys)
    )


@inlined
def _most_pairs(
    side: SideChanges, count: Any, other: SideChanges, others: Any, keys: KeyBlocks
) -> Any:
    """No more pairs than this are told of the rows of a side that an instant changes."""
    most = 0
    for k in range(count):
        row = side.touched[k]
        partners = count_of(side.records[row, 0], other.number, keys)
        if count_before(side, row) != 0:
            most += partners
        if side.records[row, side.extra + ROWS] != 0:
            most += partners + others
    return most


@inlined
def _begin(
    left: SideChanges, right: SideChanges, lead: SideChanges, keys: KeyBlocks, cursor: Array
) -> Any:
    """Go to the next instant that changes rows; False if there is none."""
    touched_left, touched_right = 0, 0
    while touched_left + touched_right == 0:
        if not _next_instant(left.time, right.time, cursor):
            return False
        now = cursor[NOW]
        cursor[AT_LEFT], touched_left = _touch(left, cursor[AT_LEFT], now, keys)
        cursor[AT_RIGHT], touched_right = _touch(right, cursor[AT_RIGHT], now, keys)
    is_left = lead.number == 0
    cursor[TOUCHED_LEAD] = touched_left if is_left else touched_right
    cursor[TOUCHED_OTHER] = touched_right if is_left else touched_left
    cursor[STAGE], cursor[TURN], cursor[PARTNER] = ENTERING, 0, 0
    return True


@inlined
def _enter(lead: SideChanges, other: SideChanges, touched: Any, keys: KeyBlocks, work: Any) -> Any:
    """See how an instant can be told; False if that is better done in an empty room."""
    cursor, out = work
    most = _most_pairs(lead, touched[0], other, touched[1], keys)
    most += _most_pairs(other, touched[1], lead, touched[0], keys)
    is_whole = most <= out.time.size - cursor[SIZE]
    if not is_whole and cursor[SIZE] > out.time.size // 2:
        return False
    cursor[IS_IN_ORDER] = int(is_whole and _is_in_order(lead, other, touched, keys))
    if not cursor[IS_IN_ORDER]:
        cursor[IS_NET] = 0
    cursor[STAGE] = GOING
    return True


@inlined
def _tell(
    sign: Any, lead: SideChanges, other: SideChanges, touched: Any, keys: KeyBlocks, work: Any
) -> Any:
    """Tell the pairs that go, or those that come; False if there is no more room."""
    cursor, common, out = work
    if cursor[IS_IN_ORDER]:
        _tell_in_order(sign, lead, other, touched, keys, work)
        return True
    return _tell_plainly(sign, lead, other, touched, (cursor, keys, common, out))


@inlined
def _take_rows(side: SideChanges, count: Any, keys: KeyBlocks) -> None:
    for k in range(count):
        row = side.touched[k]
        if side.records[row, side.extra + ROWS] == 0:
            take_row(row, side, keys)


@inlined
def _put_rows(side: SideChanges, start: Any, end: Any, keys: KeyBlocks) -> Any:
    """Put those rows in that were not there; how far that has come before there was no memory."""
    for k in range(start, end):
        row = side.touched[k]
        if count_before(side, row) == 0 and not put_row(row, side, keys):
            return k
    return max(start, end)


@inlined
def _settle(side: SideChanges, count: Any) -> None:
    """What is now is what will have been."""
    for k in range(count):
        row = side.touched[k]
        side.notes[MULTIPLES] -= int(count_before(side, row) >> 1 != 0)
        side.records[row, side.extra + BEFORE] = 0


@tight
def join_changes(
    left: SideChanges,
    right: SideChanges,
    keys: KeyBlocks,
    common: KeyWords,
    cursor: Array,
    out: Pairs,
    lead_number: int,
) -> int:
    """Tell the pairs that change; why it has stopped, to be called again unless it is done."""
    lead, other = (left, right) if lead_number == 0 else (right, left)
    work = (cursor, common, out)
    while True:
        if cursor[STAGE] == BEGIN:
            change_few(left, right, keys, work)
            if not _begin(left, right, lead, keys, cursor):
                return DONE
        touched = (cursor[TOUCHED_LEAD], cursor[TOUCHED_OTHER])
        if cursor[STAGE] == ENTERING and not _enter(lead, other, touched, keys, (cursor, out)):
            return FULL
        if cursor[STAGE] == GOING:
            if not _tell(-1, lead, other, touched, keys, work):
                return FULL
            _take_rows(lead, touched[0], keys)
            _take_rows(other, touched[1], keys)
            cursor[STAGE] = PUTTING
        if cursor[STAGE] == PUTTING:
            at = _put_rows(lead, cursor[TURN], touched[0], keys)
            if at >= touched[0]:
                more = _put_rows(other, at - touched[0], touched[1], keys)
                at = touched[0] + more
            cursor[TURN] = at
            if at < touched[0] + touched[1]:
                return CROWDED
            cursor[STAGE], cursor[TURN] = COMING, 0
        if not _tell(1, lead, other, touched, keys, work):
            return FULL
        _settle(lead, touched[0])
        _settle(other, touched[1])
        cursor[STAGE] = BEGIN
