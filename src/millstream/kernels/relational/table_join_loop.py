"""The compiled loop of a join of tables: each row of the first has one partner at most.

At an instant a key changes from one row to another, at most. What has gone is told first,
with the rows as they were: those of the first table, then the partners of those of the
second. What has come is told last, with the rows as they are. So each pair is told once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from millstream.compiled import inlined, tight
from millstream.kernels.runtime.hashing import FAR, NEAR, prefetch
from millstream.plan.batch import Array

#: What is kept with each key of the first table after its words: a link to the key of the
#: second that its row refers to (number plus one; zero if there is no row), its neighbours
#: in the list of that key, and then the words of the row.
REFERS, NEXT, PREVIOUS = range(3)
LEFT_EXTRA = 3

#: What is kept with each key of the second table: how many rows need it (its own and those
#: that refer to it), whether it has a row, a link to the first row that refers to it, and
#: then the words of its row.
NEEDED, IS_THERE, FIRST = range(3)
RIGHT_EXTRA = 3

#: Where the loop stands: the next change of each side, how many pairs are told; the instant,
#: and within it the phase, the change and the link at which it goes on; and by how many the
#: keys that are needed have grown.
AT_LEFT, AT_RIGHT, SIZE, NOW, PHASE, AT, LINK, MORE_LEFT, MORE_RIGHT = range(9)
CURSOR = 9


class Changes(NamedTuple):
    """The changes of one table: when, of which key, and to which words.

    `refers` has the keys of the second table that rows of the first refer to.
    """

    time: Array
    ids: Array
    weight: Array
    words: Array
    refers: Array


class TableKeys(NamedTuple):
    """The records of keys, and how many words of them are the key itself.

    `lines` are the same records by cache lines, `depth` of them each.
    """

    records: Array
    width: int
    lines: Array
    depth: int


class PairChanges(NamedTuple):
    """Pairs: the words of the first key, of the first row, and of the second row."""

    time: Array
    weight: Array
    words: Array


@inlined
def _tell(
    out: PairChanges, cursor: Array, change: Any, left: Array, right: Array, widths: Any
) -> None:
    size = cursor[SIZE]
    out.time[size], out.weight[size] = change
    key_width, row_width, other_width, right_start = widths
    for j in range(key_width):
        out.words[size, j] = left[j]
    start = key_width + LEFT_EXTRA
    for j in range(row_width):
        out.words[size, key_width + j] = left[start + j]
    for j in range(other_width):
        out.words[size, key_width + row_width + j] = right[right_start + j]
    cursor[SIZE] = size + 1


@inlined
def _need(record: Array, width: Any, cursor: Array) -> None:
    if record[width + NEEDED] == 0:
        cursor[MORE_RIGHT] += 1
    record[width + NEEDED] += 1


@inlined
def _need_not(record: Array, width: Any, cursor: Array) -> None:
    record[width + NEEDED] -= 1
    if record[width + NEEDED] == 0:
        cursor[MORE_RIGHT] -= 1


@inlined
def _link(row: Any, key: Any, left: TableKeys, right: TableKeys, cursor: Array) -> None:
    record, width = left.records[row], left.width
    other = right.records[key]
    first = other[right.width + FIRST]
    record[width + REFERS] = key + 1
    record[width + NEXT] = first
    record[width + PREVIOUS] = 0
    if first != 0:
        left.records[first - 1, width + PREVIOUS] = row + 1
    other[right.width + FIRST] = row + 1
    cursor[MORE_LEFT] += 1
    _need(other, right.width, cursor)


@inlined
def _unlink(row: Any, left: TableKeys, right: TableKeys, cursor: Array) -> None:
    record, width = left.records[row], left.width
    other = right.records[record[width + REFERS] - 1]
    following, before = record[width + NEXT], record[width + PREVIOUS]
    if before == 0:
        other[right.width + FIRST] = following
    else:
        left.records[before - 1, width + NEXT] = following
    if following != 0:
        left.records[following - 1, width + PREVIOUS] = before
    record[width + REFERS] = 0
    cursor[MORE_LEFT] -= 1
    _need_not(other, right.width, cursor)


@inlined
def _tell_all(
    key: Any, change: Any, tables: Any, out: PairChanges, cursor: Array, widths: Any
) -> Any:
    """Tell the pairs of a key of the second table; False if there is no more room.

    It goes on where it has stopped.
    """
    left, right = tables
    if cursor[LINK] == 0:
        cursor[LINK] = right.records[key, right.width + FIRST]
    while cursor[LINK] != 0:
        if cursor[SIZE] == out.time.size:
            return False
        record = left.records[cursor[LINK] - 1]
        _tell(out, cursor, change, record, right.records[key], widths)
        cursor[LINK] = record[left.width + NEXT]
    return True


@inlined
def _left_gone(
    i: Any, a: Changes, tables: Any, out: PairChanges, cursor: Array, widths: Any
) -> Any:
    left, right = tables
    row = a.ids[i]
    record = left.records[row]
    if record[left.width + REFERS] == 0:
        return True
    other = right.records[record[left.width + REFERS] - 1]
    if other[right.width + IS_THERE] != 0:
        if cursor[SIZE] == out.time.size:
            return False
        _tell(out, cursor, (a.time[i], -1), record, other, widths)
    _unlink(row, left, right, cursor)
    return True


@inlined
def _left_come(
    i: Any, a: Changes, tables: Any, out: PairChanges, cursor: Array, widths: Any
) -> Any:
    left, right = tables
    row, key = a.ids[i], a.refers[i]
    other = right.records[key]
    if other[right.width + IS_THERE] != 0 and cursor[SIZE] == out.time.size:
        return False
    record = left.records[row]
    start = left.width + LEFT_EXTRA
    for j in range(a.words.shape[1]):
        record[start + j] = a.words[i, j]
    _link(row, key, left, right, cursor)
    if other[right.width + IS_THERE] != 0:
        _tell(out, cursor, (a.time[i], 1), record, other, widths)
    return True


@inlined
def _right_gone(
    j: Any, b: Changes, tables: Any, out: PairChanges, cursor: Array, widths: Any
) -> Any:
    _, right = tables
    if not _tell_all(b.ids[j], (b.time[j], -1), tables, out, cursor, widths):
        return False
    record = right.records[b.ids[j]]
    record[right.width + IS_THERE] = 0
    _need_not(record, right.width, cursor)
    return True


@inlined
def _right_come(
    j: Any, b: Changes, tables: Any, out: PairChanges, cursor: Array, widths: Any
) -> Any:
    _, right = tables
    record = right.records[b.ids[j]]
    if record[right.width + IS_THERE] == 0:  # not if the telling has stopped on the way
        start = right.width + RIGHT_EXTRA
        for k in range(b.words.shape[1]):
            record[start + k] = b.words[j, k]
        record[right.width + IS_THERE] = 1
        _need(record, right.width, cursor)
    return _tell_all(b.ids[j], (b.time[j], 1), tables, out, cursor, widths)


@inlined
def _end(time: Array, start: Any, now: Any) -> Any:
    end = start
    while end < time.size and time[end] == now:
        end += 1
    return end


@inlined
def _ask_record(row: Any, keys: TableKeys) -> None:
    for line in range(keys.depth):
        prefetch(keys.lines, row * keys.depth + line)


@inlined
def _ask(changes: Changes, i: Any, keys: TableKeys) -> None:
    if i + FAR < changes.ids.size:
        _ask_record(changes.ids[i + FAR], keys)


@tight
def join_tables(
    a: Changes, b: Changes, left: TableKeys, right: TableKeys, cursor: Array, out: PairChanges
) -> bool:
    """Tell the pairs that change; False if there is no more room: to be called again."""
    tables = (left, right)
    other_width = b.words.shape[1]
    widths = (left.width, a.words.shape[1], other_width, right.width + RIGHT_EXTRA)
    while cursor[AT_LEFT] < a.time.size or cursor[AT_RIGHT] < b.time.size:
        i, j = cursor[AT_LEFT], cursor[AT_RIGHT]
        if j == b.time.size or (i < a.time.size and a.time[i] <= b.time[j]):
            now = a.time[i]
        else:
            now = b.time[j]
        cursor[NOW] = now
        _ask(a, i, left)
        _ask(b, j, right)
        if i + NEAR < a.refers.size:
            _ask_record(a.refers[i + NEAR], right)
        if j + NEAR < b.ids.size:
            _ask_record(right.records[b.ids[j + NEAR], right.width + FIRST] - 1, left)
        last_i, last_j = _end(a.time, i, now), _end(b.time, j, now)
        # Where this instant was left for want of room is known by phase and place.
        while cursor[PHASE] < 4:
            phase = cursor[PHASE]
            is_left = phase in (0, 3)
            start, end = (i, last_i) if is_left else (j, last_j)
            while start + cursor[AT] < end:
                k = start + cursor[AT]
                done = True
                if phase == 0:
                    if a.weight[k] < 0:
                        done = _left_gone(k, a, tables, out, cursor, widths)
                elif phase == 1:
                    if b.weight[k] < 0:
                        done = _right_gone(k, b, tables, out, cursor, widths)
                elif phase == 2:
                    if b.weight[k] > 0:
                        done = _right_come(k, b, tables, out, cursor, widths)
                elif a.weight[k] > 0:
                    done = _left_come(k, a, tables, out, cursor, widths)
                if not done:
                    return False
                cursor[AT] += 1
            cursor[PHASE], cursor[AT] = phase + 1, 0
        cursor[AT_LEFT], cursor[AT_RIGHT], cursor[PHASE] = last_i, last_j, 0
    return True
