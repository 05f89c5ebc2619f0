"""How items get from queue to queue: a mover fills one queue in the order of its course.

It takes whole rounds of its order, all items of one queue at a time. Part of a round is moved
only if nobody else can go on, for then that is all there is.
"""

from __future__ import annotations

from typing import Any

from millstream.compiled import apart
from millstream.kernels.loop.scalar_arrays import pointer_i, pointer_i32
from millstream.kernels.nets.table import (
    CARRIES,
    COUNT,
    GIVEN,
    HAS_CYCLE,
    IDLE,
    IS_EAGER,
    LAST_TIME,
    LIST,
    MAY_MOVE,
    MOVED,
    NEEDED,
    NO_ROOM,
    Q_CHUNK,
    Q_END,
    Q_FIRST,
    Q_IS_OUTPUT,
    Q_ROOM,
    Q_START,
    Q_TAKINGS,
    Q_WIDTH_F,
    Q_WIDTH_I,
    QF,
    QI,
    QT,
    RAN,
    ROUND,
    T_COUNT,
    T_IS_ALL,
    T_IS_RUN,
    T_LEAST,
    T_LIST,
    T_MOST,
    T_NEEDED,
    T_NEXT,
    T_QUEUE,
    T_STEP,
    TAKINGS,
)
from millstream.plan.batch import Array

# --- room -------------------------------------------------------------------------------


@apart
def copy_cells(source: int, begin: int, target: int, place: int, count: int) -> None:
    """Cells of four bytes, from the front to the back."""
    a, b = pointer_i32(source), pointer_i32(target)
    for n in range(count):
        b[place + n] = a[begin + n]


@apart
def _to_front(queues: Array, queue: int, kept: int, status: Array) -> None:
    start = queues[queue, Q_START]
    for at, width in ((QF, queues[queue, Q_WIDTH_F]), (QI, queues[queue, Q_WIDTH_I])):
        cells = queues[queue, at]
        copy_cells(cells, start * width, cells, 0, kept * width)
    if status[CARRIES]:
        times = pointer_i(queues[queue, QT])
        for n in range(kept):
            times[n] = times[start + n]
    queues[queue, Q_FIRST] += start
    queues[queue, Q_START], queues[queue, Q_END] = 0, kept


@apart
def held(queues: Array, queue: int) -> int:
    count: int = queues[queue, Q_END] - queues[queue, Q_START]
    return count


@apart
def _forget(queues: Array, takings: Array, queue: int) -> None:
    """What all that read it have taken is not needed any more."""
    taking = queues[queue, Q_TAKINGS]
    if taking < 0:
        return
    needed = takings[taking, T_NEEDED]
    while taking >= 0:
        needed = min(needed, takings[taking, T_NEEDED])
        taking = takings[taking, T_NEXT]
    place = min(needed - queues[queue, Q_FIRST], queues[queue, Q_END])
    queues[queue, Q_START] = max(place, queues[queue, Q_START])


@apart
def make_room(queues: Array, takings: Array, queue: int, more: int, status: Array) -> bool:
    """Room for so many items behind the last one; what was taken is forgotten."""
    if queues[queue, Q_END] + more <= queues[queue, Q_ROOM]:
        return True
    _forget(queues, takings, queue)
    kept = held(queues, queue)
    # To the front only if that makes much room, so that items are not moved again and again.
    if 2 * (kept + more) > queues[queue, Q_ROOM]:
        status[NEEDED], status[NEEDED + 1] = queue, kept + more
        return False
    _to_front(queues, queue, kept, status)
    return True


@apart
def is_full(queues: Array, takings: Array, queue: int, status: Array) -> bool:
    """Whether its readers should go on first."""
    if status[IS_EAGER] or queues[queue, Q_IS_OUTPUT]:
        return False
    _forget(queues, takings, queue)
    return bool(held(queues, queue) >= 2 * queues[queue, Q_CHUNK])


# --- whole rounds -----------------------------------------------------------------------


@apart
def _gather(a: Any, begin: int, step: int, b: Any, place: int, size: int, rounds: int,
            lists: Array, at: int, count: int, is_run: int, is_all: int) -> None:  # fmt: skip
    """One cell for each item: `count` of them in each round, to places that the list tells."""
    if is_run and count == size and size == step:
        begin, place = begin + lists[at + count], place + lists[at]
        for n in range(rounds * size):
            b[place + n] = a[begin + n]
    elif is_run and count > 4:
        begin, place = begin + lists[at + count], place + lists[at]
        for turn in range(rounds):
            for n in range(count):
                b[place + turn * size + n] = a[begin + turn * step + n]
    elif count <= 4:
        for n in range(count):
            first, to = begin + lists[at + count + n], place + lists[at + n]
            for turn in range(rounds):
                b[to + turn * size] = a[first + turn * step]
    elif is_all:
        for _ in range(rounds):
            for n in range(count):
                b[place + n] = a[begin + lists[at + count + n]]
            place, begin = place + size, begin + step
    else:
        for _ in range(rounds):
            for n in range(count):
                b[place + lists[at + n]] = a[begin + lists[at + count + n]]
            place, begin = place + size, begin + step


@apart
def _gather_wide(a: Any, begin: int, step: int, b: Any, place: int, size: int, rounds: int,
                 lists: Array, at: int, count: int, width: int) -> None:  # fmt: skip
    for turn in range(rounds):
        for n in range(count):
            to = (place + turn * size + lists[at + n]) * width
            first = (begin + turn * step + lists[at + count + n]) * width
            for cell in range(width):
                b[to + cell] = a[first + cell]


@apart
def _take_rounds(taking: Array, queues: Array, given: int, size: int, done: int, rounds: int,
                 lists: Array, status: Array) -> None:  # fmt: skip
    """All that a mover takes of one queue in so many rounds."""
    source, step, at, count = taking[T_QUEUE], taking[T_STEP], taking[T_LIST], taking[T_COUNT]
    begin, place = done * step - queues[source, Q_FIRST], queues[given, Q_END]
    for which, width in ((QF, queues[source, Q_WIDTH_F]), (QI, queues[source, Q_WIDTH_I])):
        a, b = pointer_i32(queues[source, which]), pointer_i32(queues[given, which])
        if width == 1:
            how = taking[T_IS_RUN], taking[T_IS_ALL]
            _gather(a, begin, step, b, place, size, rounds, lists, at, count, *how)
        elif width:
            _gather_wide(a, begin, step, b, place, size, rounds, lists, at, count, width)
    if status[CARRIES]:
        times, to = pointer_i(queues[source, QT]), pointer_i(queues[given, QT])
        for turn in range(rounds):
            for n in range(count):
                first = begin + turn * step + lists[at + count + n]
                to[place + turn * size + lists[at + n]] = times[first]


@apart
def _rounds(actors: Array, k: int, queues: Array, takings: Array) -> int:
    """How many rounds can be moved as a whole, and should be at a time."""
    size, begin = actors[k, ROUND], actors[k, TAKINGS]
    done = actors[k, MOVED] // size
    rounds: int = max(1, queues[actors[k, GIVEN], Q_CHUNK] // size)
    rounds = min(rounds, (actors[k, MAY_MOVE] - actors[k, MOVED]) // size)
    for n in range(begin, begin + actors[k, COUNT]):
        queue = takings[n, T_QUEUE]
        last = queues[queue, Q_FIRST] + queues[queue, Q_END] - 1
        there = (last - takings[n, T_MOST]) // takings[n, T_STEP] + 1
        rounds = min(rounds, there - done)
    return rounds


# --- part of a round --------------------------------------------------------------------


@apart
def _there(actors: Array, k: int, queues: Array, takings: Array, lists: Array) -> int:
    """How many items are there of what is left of a round."""
    size, place = actors[k, ROUND], actors[k, LIST]
    done, at = actors[k, MOVED] // size, actors[k, MOVED] % size
    count: int = min(size - at, actors[k, MAY_MOVE] - actors[k, MOVED])
    for n in range(at, at + count):
        taking, number = lists[place + 2 * n], lists[place + 2 * n + 1]
        queue = takings[taking, T_QUEUE]
        if number + done * takings[taking, T_STEP] >= queues[queue, Q_FIRST] + queues[queue, Q_END]:
            count = n - at
            break
    return count


@apart
def _take_some(actors: Array, k: int, queues: Array, takings: Array, lists: Array, count: int,
               status: Array) -> None:  # fmt: skip
    size, place, given = actors[k, ROUND], actors[k, LIST], actors[k, GIVEN]
    done, at = actors[k, MOVED] // size, actors[k, MOVED] % size
    for n in range(count):
        taking, number = lists[place + 2 * (at + n)], lists[place + 2 * (at + n) + 1]
        queue = takings[taking, T_QUEUE]
        source = number + done * takings[taking, T_STEP] - queues[queue, Q_FIRST]
        target = queues[given, Q_END] + n
        for which, wide in ((QF, queues[queue, Q_WIDTH_F]), (QI, queues[queue, Q_WIDTH_I])):
            cells, to = queues[queue, which], queues[given, which]
            copy_cells(cells, source * wide, to, target * wide, wide)
        if status[CARRIES]:
            times, stamps = pointer_i(queues[queue, QT]), pointer_i(queues[given, QT])
            stamps[target] = times[source]


# --- movers -----------------------------------------------------------------------------


@apart
def _done(actors: Array, k: int, queues: Array, takings: Array, count: int, status: Array) -> int:
    given, begin = actors[k, GIVEN], queues[actors[k, GIVEN], Q_END]
    if status[CARRIES]:
        # What is joined leaves no earlier than what has left before.
        times, last = pointer_i(queues[given, QT]), actors[k, LAST_TIME]
        for n in range(begin, begin + count):
            last = max(last, times[n])
            times[n] = last
        actors[k, LAST_TIME] = last
    queues[given, Q_END] += count
    actors[k, MOVED] += count
    rounds = actors[k, MOVED] // actors[k, ROUND]
    for n in range(actors[k, TAKINGS], actors[k, TAKINGS] + actors[k, COUNT]):
        takings[n, T_NEEDED] = takings[n, T_LEAST] + rounds * takings[n, T_STEP]
    return RAN


@apart
def move(actors: Array, k: int, queues: Array, takings: Array, lists: Array, status: Array) -> int:
    """Whole rounds if there are any, else what is left of one."""
    given, size = actors[k, GIVEN], actors[k, ROUND]
    if is_full(queues, takings, given, status):
        return IDLE
    begins = actors[k, MOVED] % size == 0
    rounds = _rounds(actors, k, queues, takings) if begins else 0
    if rounds > 0:
        if not make_room(queues, takings, given, rounds * size, status):
            return NO_ROOM
        done = actors[k, MOVED] // size
        for n in range(actors[k, TAKINGS], actors[k, TAKINGS] + actors[k, COUNT]):
            _take_rounds(takings[n], queues, given, size, done, rounds, lists, status)
        return _done(actors, k, queues, takings, rounds * size, status)
    if begins and not (status[IS_EAGER] or status[HAS_CYCLE]):
        return IDLE
    count = _there(actors, k, queues, takings, lists)
    if count == 0:
        return IDLE
    if not make_room(queues, takings, given, count, status):
        return NO_ROOM
    _take_some(actors, k, queues, takings, lists, count, status)
    return _done(actors, k, queues, takings, count, status)
