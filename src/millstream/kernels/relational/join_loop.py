"""The compiled loops of joins and lookups: the exact difference that each instant makes.

At one instant both sides may change. Let L and R be how often a row is present after it,
and l and r before: a pair changes by LR - lr. Pairs of a changed left row are told with
its list of right rows, pairs of a changed right row with those left rows that have not
changed. So each pair is told once, and nothing that undoes itself is told.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from millstream.compiled import inlined, tight
from millstream.kernels.relational.keyed_lists import (
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


# --- lookups ----------------------------------------------------------------------------

#: What is kept with each key of a lookup: how many rows of both sides it has, a link to
#: the first row of the left side, how many rows the right side has and had before this
#: instant, and whether this instant has changed that.
COUNT, COUNT_BEFORE, KEY_IS_TOUCHED = range(2, 5)
LOOKUP_KEY_EXTRA = 5


class Asked(NamedTuple):
    """The changes of the right side of a lookup, as numbers of keys."""

    time: Array
    keys: Array
    weight: Array
    touched: Array


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
def _begin_lookup(left: Side, asked: Asked, keys: Keys, cursor: Array) -> Any:
    i, j = cursor[AT_LEFT], cursor[AT_RIGHT]
    if i == left.time.size and j == asked.time.size:
        return False
    if j == asked.time.size or (i < left.time.size and left.time[i] <= asked.time[j]):
        cursor[NOW] = left.time[i]
    else:
        cursor[NOW] = asked.time[j]
    cursor[AT_LEFT], cursor[TOUCHED_LEFT] = apply_changes(left, left, i, cursor[NOW], keys)
    cursor[AT_RIGHT], cursor[TOUCHED_RIGHT] = _apply_keys(asked, j, cursor[NOW], keys)
    cursor[IS_BEGUN], cursor[TELLING] = 1, 0
    return True


@inlined
def _was_found(key: Any, keys: Keys) -> Any:
    is_touched = keys.records[key, keys.extra + KEY_IS_TOUCHED] != 0
    return keys.records[key, keys.extra + (COUNT_BEFORE if is_touched else COUNT)] > 0


@inlined
def _answer_row(row: Any, left: Side, keys: Keys, cursor: Array, answers: Answers) -> None:
    """Say what an instant has done to a row that it has touched."""
    key = left.records[row, 0]
    before, after = left.records[row, left.extra + BEFORE], left.records[row, left.extra + ROWS]
    was, is_found = _was_found(key, keys), keys.records[key, keys.extra + COUNT] > 0
    if was == is_found:
        _answer(answers, cursor, row, is_found, after - before)
    else:
        _answer(answers, cursor, row, was, -before)
        _answer(answers, cursor, row, is_found, after)


@inlined
def _answer_key(key: Any, left: Side, keys: Keys, cursor: Array, answers: Answers) -> None:
    """Turn the answer of all rows of a key, if it has turned; touched ones have been told."""
    was, is_found = _was_found(key, keys), keys.records[key, keys.extra + COUNT] > 0
    link = keys.records[key, keys.extra + FIRST] if was != is_found else 0
    while link != 0:
        row = link - 1
        if left.records[row, left.extra + IS_TOUCHED] == 0:
            count = left.records[row, left.extra + ROWS]
            _answer(answers, cursor, row, was, -count)
            _answer(answers, cursor, row, is_found, count)
        link = left.records[row, left.extra + NEXT]


@tight
def lookup_changes(left: Side, asked: Asked, keys: Keys, cursor: Array, answers: Answers) -> bool:
    """Tell the answers that change; False if there is no more room: to be called again."""
    while True:
        if not cursor[IS_BEGUN] and not _begin_lookup(left, asked, keys, cursor):
            return True
        touched = cursor[TOUCHED_LEFT]
        while cursor[TELLING] < touched + cursor[TOUCHED_RIGHT]:
            room = answers.time.size - cursor[SIZE]
            if cursor[TELLING] < touched:
                if room < 2:
                    return False
                _answer_row(left.touched[cursor[TELLING]], left, keys, cursor, answers)
            else:
                key = asked.touched[cursor[TELLING] - touched]
                count = keys.records[key, keys.extra + COUNT]
                if room < 2 * (keys.records[key, keys.extra + KEY_ROWS] - count):
                    return False
                _answer_key(key, left, keys, cursor, answers)
            cursor[TELLING] += 1
        settle(left, touched, keys)
        for k in range(cursor[TOUCHED_RIGHT]):
            keys.records[asked.touched[k], keys.extra + KEY_IS_TOUCHED] = 0
        cursor[IS_BEGUN] = 0
