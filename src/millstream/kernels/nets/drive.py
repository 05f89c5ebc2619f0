"""The driver of a net: every actor in turn fires as often as it can, until nobody can.

An actor waits while much lies before its readers, unless nobody could go on otherwise. The
driver comes back early where Python is needed: for more room, for an actor that is walked, and
for a fault.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from millstream.compiled import apart, tight
from millstream.kernels.loop.scalar_arrays import pointer_i
from millstream.kernels.nets.moving import copy_cells, held, is_full, make_room, move
from millstream.kernels.nets.table import (
    BACKUP_F,
    BACKUP_I,
    CARRIES,
    CHUNK,
    CURSOR,
    DUE,
    FAULT,
    FILTER,
    FIRED,
    FIRST_PEEK,
    FIRST_POP,
    FIRST_PUSH,
    FRAME,
    FUNCTION,
    GIVEN,
    HAS_FIRST,
    HAS_RUN,
    IDLE,
    IS_EAGER,
    IS_PACED,
    KIND,
    LAST_TIME,
    MOVER,
    NO_PRINT_ROOM,
    NO_ROOM,
    PEEK,
    POP,
    PRINTS,
    PUSH,
    Q_CHUNK,
    Q_END,
    Q_START,
    Q_WIDTH_F,
    Q_WIDTH_I,
    QF,
    QI,
    QT,
    RAN,
    READY,
    SIZE_F,
    SIZE_I,
    TAKEN,
    TOLD,
    TOLD_COUNT,
    TOLD_LAST,
    TOLD_ROOM,
    WALK,
)
from millstream.plan.batch import Array


@intrinsic
def _called(_: Any, address: Any, mode: Any, count: Any, frame: Any) -> Any:
    """Call a compiled code by its address."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        whole = ir.IntType(64)
        type_ = ir.FunctionType(whole, [whole, whole, whole.as_pointer()])
        function = builder.inttoptr(values[0], type_.as_pointer())
        given = builder.inttoptr(values[3], whole.as_pointer())
        return builder.call(function, [values[1], values[2], given])

    number: Any = types.int64
    return number(number, number, number, number), generate


# What numba declares about intrinsics does not say how to call them.
_call: Any = _called


# --- filters ----------------------------------------------------------------------------


@apart
def _ready(actors: Array, k: int, queues: Array, pop: int, peek: int, push: int) -> int:
    """How often a filter can fire, and should."""
    most = CHUNK
    if actors[k, GIVEN] >= 0:
        most = max(1, queues[actors[k, GIVEN], Q_CHUNK] // max(push, 1))
    if actors[k, IS_PACED]:
        due: int = actors[k, DUE] - actors[k, FIRED]
        return min(due, most)
    there = held(queues, actors[k, TAKEN])
    if there < max(peek, 1):
        return 0
    if pop:
        most = min(most, max(1, queues[actors[k, TAKEN], Q_CHUNK] // pop))
    return min(most, (there - max(peek, 1)) // pop + 1 if pop else 1)


@apart
def _stamp(
    actors: Array, k: int, queues: Array, count: int, pop: int, peek: int, push: int
) -> None:
    """An item has the time of the last one that its firing looks at, or of one before it."""
    given = actors[k, GIVEN]
    out = pointer_i(queues[given, QT] if given >= 0 else 0)
    end = queues[given, Q_END] if given >= 0 else 0
    if given < 0:
        push = 0
    if actors[k, IS_PACED]:
        first = actors[k, FIRED] + 1
        for n in range(count):
            for item in range(push):
                out[end + n * push + item] = first + n
    else:
        taken = actors[k, TAKEN]
        times = pointer_i(queues[taken, QT])
        first = queues[taken, Q_START] + max(peek, 1) - 1
        last = actors[k, LAST_TIME]
        n = 0
        while n < count and times[first + n * pop] < last:
            for item in range(push):
                out[end + n * push + item] = last
            n += 1
        _repeat_times(out, end + n * push, times, first + n * pop, pop, push, count - n)
        actors[k, LAST_TIME] = max(last, times[first + (count - 1) * pop])
    if actors[k, PRINTS]:
        _tell(actors, k, queues, count, pop, peek)


@apart
def _repeat_times(
    out: Any, place: int, times: Any, first: int, pop: int, push: int, count: int
) -> None:
    if push == 1:
        for n in range(count):
            out[place + n] = times[first + n * pop]
        return
    for n in range(count):
        time = times[first + n * pop]
        for item in range(push):
            out[place + n * push + item] = time


@apart
def _tell(actors: Array, k: int, queues: Array, count: int, pop: int, peek: int) -> None:
    """The times of firings that print."""
    texts, place = pointer_i(actors[k, TOLD]), actors[k, TOLD_COUNT]
    is_paced, last = actors[k, IS_PACED], actors[k, TOLD_LAST]
    times = pointer_i(queues[actors[k, TAKEN], QT] if not is_paced else 0)
    first = 0 if is_paced else queues[actors[k, TAKEN], Q_START] + max(peek, 1) - 1
    for n in range(count):
        time = actors[k, FIRED] + 1 + n if is_paced else times[first + n * pop]
        last = max(last, time)
        texts[place + n] = last
    actors[k, TOLD_LAST] = last


@apart
def _put_back(actors: Array, k: int, frame: Any) -> None:
    copy_cells(actors[k, BACKUP_F], 0, frame[6], 0, actors[k, SIZE_F])
    copy_cells(actors[k, BACKUP_I], 0, frame[7], 0, actors[k, SIZE_I])


@apart
def _keep(actors: Array, k: int, frame: Any) -> None:
    copy_cells(frame[6], 0, actors[k, BACKUP_F], 0, actors[k, SIZE_F])
    copy_cells(frame[7], 0, actors[k, BACKUP_I], 0, actors[k, SIZE_I])


@apart
def _fire(actors: Array, k: int, queues: Array, takings: Array, status: Array) -> int:
    is_first = actors[k, HAS_FIRST] and actors[k, FIRED] == 0
    pop, peek, push = actors[k, POP], actors[k, PEEK], actors[k, PUSH]
    if is_first:
        pop, peek, push = actors[k, FIRST_POP], actors[k, FIRST_PEEK], actors[k, FIRST_PUSH]
    taken, given = actors[k, TAKEN], actors[k, GIVEN]
    count = _ready(actors, k, queues, pop, peek, push)
    if count <= 0 or (given >= 0 and is_full(queues, takings, given, status)):
        return IDLE
    if is_first:
        count = 1
    if given >= 0 and not make_room(queues, takings, given, count * push, status):
        return NO_ROOM
    frame = pointer_i(actors[k, FRAME])
    if actors[k, PRINTS]:
        if actors[k, TOLD_COUNT] + count > actors[k, TOLD_ROOM]:
            return NO_PRINT_ROOM
        _keep(actors, k, frame)
    said, said_f, said_i = frame[27], frame[28], frame[29]
    _set_frame(queues, frame, taken, given, actors[k, IS_PACED])
    frame[13], frame[14], frame[15], frame[16], frame[30] = (
        pop,
        peek,
        push,
        0,
        actors[k, TOLD_COUNT],
    )
    _call(actors[k, FUNCTION], 1 if is_first else 2, count, actors[k, FRAME])
    if frame[16]:
        return FAULT
    if frame[27] > frame[24] or frame[28] > frame[25] or frame[29] > frame[26]:
        _put_back(actors, k, frame)
        frame[27], frame[28], frame[29] = said, said_f, said_i
        return NO_PRINT_ROOM
    if status[CARRIES]:
        _stamp(actors, k, queues, count, pop, peek, push)
    if not actors[k, IS_PACED]:
        queues[taken, Q_START] += count * pop
    if given >= 0:
        queues[given, Q_END] += count * push
    actors[k, FIRED] += count
    if actors[k, PRINTS]:
        actors[k, TOLD_COUNT] += count
    return RAN


@apart
def _set_frame(queues: Array, frame: Any, taken: int, given: int, is_paced: int) -> None:
    if not is_paced:
        frame[0], frame[1], frame[2] = queues[taken, QF], queues[taken, QI], queues[taken, Q_START]
        frame[9], frame[10] = queues[taken, Q_WIDTH_F], queues[taken, Q_WIDTH_I]
    if given >= 0:
        frame[3], frame[4], frame[5] = queues[given, QF], queues[given, QI], queues[given, Q_END]
        frame[11], frame[12] = queues[given, Q_WIDTH_F], queues[given, Q_WIDTH_I]


# --- all actors -------------------------------------------------------------------------


@apart
def _visit(
    actors: Array, k: int, queues: Array, takings: Array, lists: Array, status: Array
) -> int:
    kind = actors[k, KIND]
    if kind == FILTER:
        return _fire(actors, k, queues, takings, status)
    if kind == MOVER:
        return move(actors, k, queues, takings, lists, status)
    return WALK


@tight
def drive(actors: Array, queues: Array, takings: Array, lists: Array, status: Array) -> int:
    """Until nobody can fire, or Python is needed; called again, it goes on where it was."""
    while True:
        while status[CURSOR] < actors.shape[0]:
            done = _visit(actors, status[CURSOR], queues, takings, lists, status)
            if done < IDLE:
                return done
            if done == RAN:
                status[HAS_RUN] = 1
            status[CURSOR] += 1
        status[CURSOR] = 0
        if status[HAS_RUN]:
            status[HAS_RUN] = status[IS_EAGER] = 0
        elif status[IS_EAGER]:
            status[IS_EAGER] = 0
            return READY
        else:
            status[IS_EAGER] = 1
