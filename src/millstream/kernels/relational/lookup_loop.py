"""The compiled loops of lookups: whose answer an instant turns.

Where values are compared, the rows of each key are kept in the order of theirs, and one
value of the other side decides: for `<` the greatest. If another one decides, the answers
turn of the rows that lie between the two, and only these are looked at.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from millstream.compiled import inlined, tight
from millstream.kernels.relational.keyed_lists import (
    AT_LEFT,
    AT_RIGHT,
    FIRST,
    IS_BEGUN,
    IS_ENTERED,
    KEY_ROWS,
    LINK,
    NEXT,
    NOW,
    ROWS,
    SIZE,
    TELLING,
    TOUCHED_LEFT,
    TOUCHED_RIGHT,
    ListKeys,
    Side,
    apply_changes,
    count_before,
    is_touched,
    next_instant,
    settle,
)  # fmt: skip
from millstream.kernels.runtime.utf8 import compare_pools
from millstream.kernels.windows.skip_list import LEVELS, Lists, compare_rows, next_row
from millstream.plan.batch import Array

#: An answer that turns is told as one that goes and one that comes.
LEAST_ROOM = 2


class Answers(NamedTuple):
    time: Array
    rows: Array
    found: Array
    weight: Array


Work = tuple[Array, Answers]


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
    before, after = count_before(left, row), left.records[row, left.extra + ROWS]
    was, is_found = turn
    if was == is_found:
        _answer(answers, cursor, row, is_found, after - before)
    else:
        _answer(answers, cursor, row, was, -before)
        _answer(answers, cursor, row, is_found, after)


@inlined
def _answer_turned(row: Any, turn: Any, left: Side, cursor: Array, answers: Answers) -> Any:
    """Turn the answer of a row, unless it is touched and told already; False without room."""
    if not is_touched(left, row):
        if answers.time.size - cursor[SIZE] < LEAST_ROOM:
            return False
        count = left.records[row, left.extra + ROWS]
        _answer(answers, cursor, row, turn[0], -count)
        _answer(answers, cursor, row, turn[1], count)
    return True


# --- equal keys -------------------------------------------------------------------------

#: What is kept with each key: how many rows of both sides it has, a link to the first row
#: of the left side, how many rows the right side has and had before this instant, and
#: whether this instant has changed that.
COUNT, COUNT_BEFORE, KEY_IS_TOUCHED = range(2, 5)
KEY_EXTRA = 5


class AskedKeys(NamedTuple):
    """The changes of the right side of a lookup, as numbers of keys."""

    time: Array
    keys: Array
    weight: Array
    touched: Array


@inlined
def _apply_keys(asked: AskedKeys, start: Any, now: Any, keys: ListKeys) -> Any:
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
def _found(key: Any, keys: ListKeys) -> Any:
    """Whether a key was found before this instant, and whether it is."""
    records, extra = keys.records, keys.extra
    is_touched = records[key, extra + KEY_IS_TOUCHED] != 0
    was = records[key, extra + (COUNT_BEFORE if is_touched else COUNT)] > 0
    return was, records[key, extra + COUNT] > 0


@inlined
def _answer_key(key: Any, left: Side, keys: ListKeys, work: Any) -> Any:
    """Turn the answers of the rows of a key, if it has turned; False without room."""
    cursor, answers = work
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


# --- values in order --------------------------------------------------------------------

#: What is kept with each key: how many rows of both sides it has, and a link to the row of
#: the right side that decides, now and before this instant.
DECIDES, DECIDED = 1, 2
ORDERED_KEY_EXTRA = 3

#: Links in order take the place of those in lists; the words before them are the same.
LINKS = NEXT
ORDERED_ROW_EXTRA = LINKS + LEVELS


class ByKeyAndValue(NamedTuple):
    """The rows of both sides by key and value.

    Of the left side those to which any value applies come first, of the right what decides;
    `side` has the changes of that one.
    """

    left: Lists
    right: Lists
    side: Side
    allows_equal: bool


@inlined
def _holds(row: Any, link: Any, order: ByKeyAndValue) -> Any:
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
def _first_beyond(key: Any, link: Any, lists: Lists, order: ByKeyAndValue) -> Any:
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
def _decide(right: Side, count: Any, keys: ListKeys, order: ByKeyAndValue) -> Any:
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
def _answer_between(key: Any, left: Side, keys: ListKeys, order: ByKeyAndValue, work: Any) -> Any:
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


# --- the loop ---------------------------------------------------------------------------

# Of `asked` and `order` one is None, which numba knows when it compiles: what is said of the
# other is then all that is left.


@inlined
def _begin(left: Side, asked: Any, keys: ListKeys, order: Any, cursor: Array) -> Any:
    """Apply the changes of the next instant; False if there is none."""
    if asked is not None:
        if not next_instant(left.time, asked.time, cursor):
            return False
        i, j, now = cursor[AT_LEFT], cursor[AT_RIGHT], cursor[NOW]
        cursor[AT_LEFT], cursor[TOUCHED_LEFT] = apply_changes(left, left, i, now, keys, None)
        cursor[AT_RIGHT], cursor[TOUCHED_RIGHT] = _apply_keys(asked, j, now, keys)
    if order is not None:
        right = order.side
        if not next_instant(left.time, right.time, cursor):
            return False
        i, j, now = cursor[AT_LEFT], cursor[AT_RIGHT], cursor[NOW]
        cursor[AT_LEFT], cursor[TOUCHED_LEFT] = apply_changes(left, left, i, now, keys, order.left)
        cursor[AT_RIGHT], count = apply_changes(right, right, j, now, keys, order.right)
        settle(right, count, keys, order.right)
        cursor[TOUCHED_RIGHT] = _decide(right, count, keys, order)
    return True


@inlined
def _turn_of(row: Any, left: Side, keys: ListKeys, order: Any) -> Any:
    """Whether a row had a match before this instant, and whether it has."""
    key = left.records[row, 0]
    if order is None:
        return _found(key, keys)
    was = _holds(row, keys.records[key, keys.extra + DECIDED], order)
    return was, _holds(row, keys.records[key, keys.extra + DECIDES], order)


@inlined
def _turn_key(key: Any, left: Side, keys: ListKeys, order: Any, work: Any) -> Any:
    """Turn the answers of the rows of a key that have turned; False without room."""
    if order is None:
        return _answer_key(key, left, keys, work)
    return _answer_between(key, left, keys, order, work)


@inlined
def _end(left: Side, touched: Array, keys: ListKeys, order: Any, cursor: Array) -> None:
    """What is now is what will have been."""
    if order is None:
        settle(left, cursor[TOUCHED_LEFT], keys, None)
    else:
        settle(left, cursor[TOUCHED_LEFT], keys, order.left)
    for k in range(cursor[TOUCHED_RIGHT]):
        record = keys.records[touched[k]]
        if order is None:
            record[keys.extra + KEY_IS_TOUCHED] = 0
        else:
            record[keys.extra + DECIDED] = record[keys.extra + DECIDES]
    cursor[IS_BEGUN] = 0


@tight
def lookup_changes(
    left: Side,
    asked: AskedKeys | None,
    keys: ListKeys,
    order: ByKeyAndValue | None,
    touched: Array,
    work: Work,
) -> bool:
    """Tell the answers that change; False if there is no more room: to be called again.

    With an order rows must compare with one of the right side, else only have its key; the
    keys that an instant touches are put into `touched`.
    """
    cursor, answers = work
    while True:
        if not cursor[IS_BEGUN] and not _begin(left, asked, keys, order, cursor):
            return True
        rows = cursor[TOUCHED_LEFT]
        while cursor[TELLING] < rows:
            if answers.time.size - cursor[SIZE] < LEAST_ROOM:
                return False
            row = left.touched[cursor[TELLING]]
            _answer_row(row, _turn_of(row, left, keys, order), left, cursor, answers)
            cursor[TELLING] += 1
        while cursor[TELLING] < rows + cursor[TOUCHED_RIGHT]:
            key = touched[cursor[TELLING] - rows]
            if not _turn_key(key, left, keys, order, work):
                return False
            cursor[TELLING] += 1
        _end(left, touched, keys, order, cursor)
