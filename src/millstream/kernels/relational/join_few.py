"""Instants at which a row of one side of a join comes, goes or is replaced.

Most instants are of this kind, and then nothing has to be asked of any other row.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from millstream.compiled import inlined
from millstream.kernels.relational.join_pairs import (
    AT_LEFT,
    AT_RIGHT,
    IS_NET,
    SIZE,
    SideChanges,
    prefetch_change,
    tell_common,
    tell_run,
)
from millstream.kernels.relational.keyed_blocks import (
    MULTIPLES,
    PATIENCE,
    KeyBlocks,
    can_put,
    count_of,
    first_of,
    put_row,
    take_row,
)
from millstream.kernels.relational.keyed_lists import ROWS
from millstream.kernels.runtime.hashing import natural
from millstream.plan.batch import Array

#: After all instants.
NEVER = np.iinfo(np.int64).max


@inlined
def _change_one(
    row: Any, weight: Any, side: SideChanges, other: SideChanges, now: Any, work: Any
) -> None:
    """Take in by how much there is more or less of a row, and tell it with all its partners."""
    cursor, keys, common, out = work
    key, at = natural(side.records[row, 0]), side.extra + ROWS
    before = side.records[row, at]
    if before == 0:
        put_row(row, side, keys)
    count = count_of(key, other.number, keys)
    if count != 0:
        first, size = first_of(key, other.number, keys), cursor[SIZE]
        partners = keys.numbers[first : first + count]
        end = tell_run(row, side, partners, other, size, out)
        tell_common(key, keys, common, (now, weight), size, end, out)
        if other.notes[MULTIPLES] != 0:
            for k in range(count):
                out.weight[size + k] = weight * other.records[partners[k], other.extra + ROWS]
        if side.order.is_text.size + other.order.is_text.size != 0:
            side.notes[PATIENCE] += count
            other.notes[PATIENCE] += count
        cursor[SIZE] = end
    side.records[row, at] = before + weight
    multiples = side.notes[MULTIPLES] + other.notes[MULTIPLES]
    side.notes[MULTIPLES] += int((before + weight) >> 1 != 0) - int(before >> 1 != 0)
    if multiples + side.notes[MULTIPLES] != 0:
        cursor[IS_NET] = 0
    if before + weight == 0:
        take_row(row, side, keys)


@inlined
def _change_two(start: Any, end: Any, side: SideChanges, other: SideChanges, work: Any) -> Any:
    """Take in one or two changes of an instant, first what goes; False if nothing has been done.

    That is so if there is no room, or more to these changes.
    """
    cursor, keys, _, out = work
    now, most = side.time[start], cursor[SIZE]
    for i in range(start, end):
        row, weight = natural(side.rows[i]), side.weight[i]
        before = side.records[row, side.extra + ROWS]
        if weight == 0 or before + weight < 0 or (before == 0 and not can_put(row, side, keys)):
            return False
        most += count_of(natural(side.records[row, 0]), other.number, keys)
    if most > out.time.size:
        return False
    at, then = start, end - 1
    if at != then:
        row, last = side.rows[at], side.rows[then]
        if row == last or (side.weight[at] < 0) == (side.weight[then] < 0):
            return False
        if side.records[row, 0] != side.records[last, 0]:
            cursor[IS_NET] = 0
        if side.weight[at] > 0:
            at, then = then, at
    for _ in range(start, end):
        _change_one(natural(side.rows[at]), side.weight[at], side, other, now, work)
        at = then
    return True


@inlined
def _time_at(times: Array, i: Any) -> Any:
    return times[i] if i < times.size else NEVER


@inlined
def _end_of(start: Any, now: Any, side: SideChanges, keys: KeyBlocks) -> Any:
    """Where the changes of an instant end, if these are no more than two; else zero."""
    prefetch_change(side, start, keys)
    if _time_at(side.time, start + 1) != now:
        return start + 1
    prefetch_change(side, start + 1, keys)
    return start + 2 if _time_at(side.time, start + 2) != now else 0


@inlined
def change_few(left: SideChanges, right: SideChanges, keys: KeyBlocks, work: Any) -> None:
    """Take in and tell instants as long as they are of this kind."""
    inner = (work[0], keys, work[1], work[2])
    cursor, is_done = work[0], True
    while is_done:
        i, j = cursor[AT_LEFT], cursor[AT_RIGHT]
        now, then = _time_at(left.time, i), _time_at(right.time, j)
        is_done = False
        if now < then:
            end = _end_of(i, now, left, keys)
            is_done = end != 0 and _change_two(i, end, left, right, inner)
            cursor[AT_LEFT] = end if is_done else i
        elif then < now:
            end = _end_of(j, then, right, keys)
            is_done = end != 0 and _change_two(j, end, right, left, inner)
            cursor[AT_RIGHT] = end if is_done else j
