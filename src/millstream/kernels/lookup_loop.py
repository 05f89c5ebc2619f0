"""The compiled loops of lookups: whose answer an instant turns.

Where values are compared, the rows of each key are kept in the order of theirs, and one
value of the other side decides: for `<` the greatest. If another one decides, the answers
turn of the rows that lie between the two, and only these are looked at.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from millstream.compiled import inlined, tight
from millstream.kernels.loops_join import (
    BEFORE,
    FIRST,
    IS_TOUCHED,
    KEY_ROWS,
    NEXT,
    ROWS,
    Keys,
    Side,
    apply_changes,
    settle,
)
from millstream.kernels.loops_skip import (
    LEVELS,
    Lists,
    compare_rows,
    insert_row,
    next_row,
    remove_row,
)
from millstream.kernels.loops_text import compare_pools
from millstream.plan.batch import Array

#: Where a loop stands: the next change of each side; the instant, whether it has been
#: begun, how many rows of the left side it touches, and how many keys; which of these is
#: being told (rows first), whether the rows of a key have been entered, and the link at which
#: they go on; and how many answers there are.
AT_LEFT, AT_RIGHT, NOW, IS_BEGUN, TOUCHED_LEFT, TOUCHED_KEYS = range(6)
TELLING, IS_ENTERED, LINK, SIZE = range(6, 10)
CURSOR = 10

#: An answer that turns is told as one that goes and one that comes.
LEAST_ROOM = 2


class Answers(NamedTuple):
    time: Array
    rows: Array
    found: Array
    weight: Array


@inlined
def _answer(answers: Answers, cursor: Array, row: Any, is_found: Any, weight: Any) -> None:
    if weight != 0:
        size = cursor[SIZE]
        answers.time[size], answers.rows[size] = cursor[NOW], row
        answers.found[size], answers.weight[size] = is_found, weight
        cursor[SIZE] = size + 1


@inlined
def _answer_row(row: Any, turn: Any, left: Side, cursor: Array, answers: Answers) -> None:
    """Say what an instant has done to a row that it has touched."""
    before, after = left.records[row, left.extra + BEFORE], left.records[row, left.extra + ROWS]
    was, is_found = turn
    if was == is_found:
        _answer(answers, cursor, row, is_found, after - before)
    else:
        _answer(answers, cursor, row, was, -before)
        _answer(answers, cursor, row, is_found, after)


@inlined
def _answer_turned(row: Any, turn: Any, left: Side, cursor: Array, answers: Answers) -> Any:
    """Turn the answer of a row, unless it is touched and told already; False without room."""
    if left.records[row, left.extra + IS_TOUCHED] == 0:
        if answers.time.size - cursor[SIZE] < LEAST_ROOM:
            return False
        count = left.records[row, left.extra + ROWS]
        _answer(answers, cursor, row, turn[0], -count)
        _answer(answers, cursor, row, turn[1], count)
    return True


@inlined
def _next_instant(left: Array, right: Array, cursor: Array) -> Any:
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


# --- equal keys -------------------------------------------------------------------------

#: What is kept with each key: how many rows of both sides it has, a link to the first row
#: of the left side, how many rows the right side has and had before this instant, and
#: whether this instant has changed that.
COUNT, COUNT_BEFORE, KEY_IS_TOUCHED = range(2, 5)
KEY_EXTRA = 5


class Asked(NamedTuple):
    """The changes of the right side of a lookup, as numbers of keys."""

    time: Array
    keys: Array
    weight: Array
    touched: Array


@inlined
def _apply_keys(asked: Asked, start: Any, now: Any, keys: Keys) -> Any:
    """Apply the changes of the right side at an instant; where they end, how many keys."""
    records, extra = keys.records, keys.extra
    count, i = 0, start
    while i < asked.time.size and asked.time[i] == now:
        key = asked.keys[i]
        if records[key, extra + KEY_IS_TOUCHED] == 0:
            records[key, extra + KEY_IS_TOUCHED] = 1
            records[key, extra + COUNT_BEFORE] = records[key, extra + COUNT]
            asked.touched[count] = key
            count += 1
        records[key, extra + COUNT] += asked.weight[i]
        records[key, extra + KEY_ROWS] += asked.weight[i]
        i += 1
    return i, count


@inlined
def _found(key: Any, keys: Keys) -> Any:
    """Whether a key was found before this instant, and whether it is."""
    records, extra = keys.records, keys.extra
    is_touched = records[key, extra + KEY_IS_TOUCHED] != 0
    was = records[key, extra + (COUNT_BEFORE if is_touched else COUNT)] > 0
    return was, records[key, extra + COUNT] > 0


@inlined
def _answer_key(key: Any, left: Side, keys: Keys, cursor: Array, answers: Answers) -> Any:
    """Turn the answers of the rows of a key, if it has turned; False without room."""
    turn = _found(key, keys)
    if not cursor[IS_ENTERED]:
        cursor[LINK] = keys.records[key, keys.extra + FIRST] if turn[0] != turn[1] else 0
        cursor[IS_ENTERED] = 1
    while cursor[LINK] != 0:
        row = cursor[LINK] - 1
        if not _answer_turned(row, turn, left, cursor, answers):
            return False
        cursor[LINK] = left.records[row, left.extra + NEXT]
    cursor[IS_ENTERED] = 0
    return True


@tight
def lookup_changes(left: Side, asked: Asked, keys: Keys, cursor: Array, answers: Answers) -> bool:
    """Tell the answers that change; False if there is no more room: to be called again."""
    while True:
        if not cursor[IS_BEGUN]:
            if not _next_instant(left.time, asked.time, cursor):
                return True
            now = cursor[NOW]
            cursor[AT_LEFT], cursor[TOUCHED_LEFT] = apply_changes(
                left, left, cursor[AT_LEFT], now, keys
            )
            cursor[AT_RIGHT], cursor[TOUCHED_KEYS] = _apply_keys(asked, cursor[AT_RIGHT], now, keys)
        touched = cursor[TOUCHED_LEFT]
        while cursor[TELLING] < touched:
            if answers.time.size - cursor[SIZE] < LEAST_ROOM:
                return False
            row = left.touched[cursor[TELLING]]
            _answer_row(row, _found(left.records[row, 0], keys), left, cursor, answers)
            cursor[TELLING] += 1
        while cursor[TELLING] < touched + cursor[TOUCHED_KEYS]:
            key = asked.touched[cursor[TELLING] - touched]
            if not _answer_key(key, left, keys, cursor, answers):
                return False
            cursor[TELLING] += 1
        settle(left, touched, keys)
        for k in range(cursor[TOUCHED_KEYS]):
            keys.records[asked.touched[k], keys.extra + KEY_IS_TOUCHED] = 0
        cursor[IS_BEGUN] = 0


# --- values in order --------------------------------------------------------------------

#: What is kept with each key: how many rows of both sides it has, and a link to the row of
#: the right side that decides, now and before this instant.
DECIDES, DECIDED = 1, 2
ORDERED_KEY_EXTRA = 3

#: Links in order take the place of those in lists; the words before them are the same.
LINKS = NEXT
ORDERED_ROW_EXTRA = LINKS + LEVELS


class Order(NamedTuple):
    """The rows of both sides by key and value.

    Of the left side those to which any value applies come first, of the right what decides.
    """

    left: Lists
    right: Lists
    allows_equal: bool


@inlined
def _apply_ordered(side: Side, lists: Lists, start: Any, now: Any, keys: Keys) -> Any:
    """Apply the changes of an instant; where they end, and how many rows they touch."""
    records, extra = side.records, side.extra
    count, i = 0, start
    while i < side.time.size and side.time[i] == now:
        row = side.rows[i]
        if records[row, extra + IS_TOUCHED] == 0:
            records[row, extra + IS_TOUCHED] = 1
            records[row, extra + BEFORE] = records[row, extra + ROWS]
            side.touched[count] = row
            count += 1
            if records[row, extra + ROWS] == 0:
                insert_row(row, lists)
                keys.records[records[row, 0], keys.extra + KEY_ROWS] += 1
        records[row, extra + ROWS] += side.weight[i]
        i += 1
    return i, count


@inlined
def _settle_ordered(side: Side, lists: Lists, count: Any, keys: Keys) -> None:
    """Take the rows that are gone out of their order."""
    for k in range(count):
        row = side.touched[k]
        side.records[row, side.extra + IS_TOUCHED] = 0
        if side.records[row, side.extra + ROWS] == 0:
            remove_row(row, lists)
            keys.records[side.records[row, 0], keys.extra + KEY_ROWS] -= 1


@inlined
def _holds(row: Any, link: Any, order: Order) -> Any:
    """Whether a row of the left side compares so with one of the right; not if there is none."""
    if link == 0:
        return False
    left, right = order.left, order.right
    a, b = left.records[row, 1], right.records[link - 1, 1]
    if left.is_text[1]:
        sign = compare_pools(a, left.texts, b, right.texts)
    else:
        sign = int(a > b) - int(a < b)
    return sign * left.signs[1] < order.allows_equal


@inlined
def _first_beyond(key: Any, link: Any, lists: Lists, order: Order) -> Any:
    """A link to the first row of a key to which a value does not apply, or to one of another."""
    before = -1
    following = 0
    for n in range(LEVELS):
        level = LEVELS - 1 - n
        following = next_row(before, level, lists)
        while following != 0 and (
            lists.records[following - 1, 0] < key
            or (lists.records[following - 1, 0] == key and _holds(following - 1, link, order))
        ):
            before = following - 1
            following = next_row(before, level, lists)
    return following


@inlined
def _decide(right: Side, count: Any, keys: Keys, order: Order) -> Any:
    """Find what decides for the keys of touched rows.

    Those for which that changes are put in the place of the rows; how many there are.
    """
    size = 0
    for k in range(count):
        key = right.records[right.touched[k], 0]
        decides = _first_beyond(key, 0, order.right, order)
        if decides != 0 and right.records[decides - 1, 0] != key:
            decides = 0
        if keys.records[key, keys.extra + DECIDES] != decides:
            keys.records[key, keys.extra + DECIDES] = decides
            right.touched[size] = key
            size += 1
    return size


@inlined
def _answer_between(key: Any, left: Side, keys: Keys, order: Order, work: Any) -> Any:
    """Turn the answers of the rows between what decided and what decides; False without room."""
    cursor, answers = work
    old, new = keys.records[key, keys.extra + DECIDED], keys.records[key, keys.extra + DECIDES]
    is_found = old == 0 or (new != 0 and compare_rows(new - 1, old - 1, order.right) < 0)
    near, far = (old, new) if is_found else (new, old)
    if not cursor[IS_ENTERED]:
        cursor[LINK] = _first_beyond(key, near, order.left, order)
        cursor[IS_ENTERED] = 1
    while cursor[LINK] != 0:
        row = cursor[LINK] - 1
        if left.records[row, 0] != key or not _holds(row, far, order):
            break
        if not _answer_turned(row, (not is_found, is_found), left, cursor, answers):
            return False
        cursor[LINK] = next_row(row, 0, order.left)
    cursor[IS_ENTERED] = 0
    return True


@tight
def compare_changes(
    left: Side, right: Side, keys: Keys, order: Order, work: tuple[Array, Answers]
) -> bool:
    """As `lookup_changes`, for rows that must compare with one of the right side."""
    cursor, answers = work
    while True:
        if not cursor[IS_BEGUN]:
            if not _next_instant(left.time, right.time, cursor):
                return True
            now = cursor[NOW]
            cursor[AT_LEFT], cursor[TOUCHED_LEFT] = _apply_ordered(
                left, order.left, cursor[AT_LEFT], now, keys
            )
            cursor[AT_RIGHT], count = _apply_ordered(
                right, order.right, cursor[AT_RIGHT], now, keys
            )
            _settle_ordered(right, order.right, count, keys)
            cursor[TOUCHED_KEYS] = _decide(right, count, keys, order)
        touched = cursor[TOUCHED_LEFT]
        while cursor[TELLING] < touched:
            if answers.time.size - cursor[SIZE] < LEAST_ROOM:
                return False
            row = left.touched[cursor[TELLING]]
            key = left.records[row, 0]
            was = _holds(row, keys.records[key, keys.extra + DECIDED], order)
            is_found = _holds(row, keys.records[key, keys.extra + DECIDES], order)
            _answer_row(row, (was, is_found), left, cursor, answers)
            cursor[TELLING] += 1
        while cursor[TELLING] < touched + cursor[TOUCHED_KEYS]:
            key = right.touched[cursor[TELLING] - touched]
            if not _answer_between(key, left, keys, order, work):
                return False
            cursor[TELLING] += 1
        _settle_ordered(left, order.left, touched, keys)
        for k in range(cursor[TOUCHED_KEYS]):
            record = keys.records[right.touched[k]]
            record[keys.extra + DECIDED] = record[keys.extra + DECIDES]
        cursor[IS_BEGUN] = 0
