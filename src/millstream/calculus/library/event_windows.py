"""Windows that rows are in by their times: tumbling, hopping and sessions.

    tumbling   each row, with the start and the end of the stretch of time that it lies in
    hopping    the same for each of several stretches that overlap
    sessions   rows of a key of which each follows the one before within a gap:
               starts   = Fold: the start of the session of each row, from the row before
               running  = Join(all rows, Latest(start, time + gap)): the end moves with each row
               complete = Held(time + gap): the rows of a session when no more can come

Windows are half-open: a row at the end of one is in the next. Of `complete` windows the rows are
held back until the end, and are there at that instant only.
"""

from __future__ import annotations

from collections.abc import Sequence

from millstream.calculus.functions import (
    Assign,
    Branch,
    FlatMap,
    Fold,
    Held,
    Join,
    Latest,
    Map,
    Range,
    Update,
)
from millstream.calculus.graph import Variable
from millstream.calculus.library.columns import kept
from millstream.calculus.terms import Call, Column, Literal, Term, VariableField
from millstream.calculus.types import (
    BOOLEAN,
    DURATION,
    TIME,
    TIME_COLUMN,
    Field,
    Schema,
)
from millstream.calculus.wiring import Queue, Wiring

START, END = "window_start", "window_end"
#: The event time of a row of a stream.
EVENT_TIME = Column(TIME_COLUMN, TIME)


#: In so many windows a row may be; each of them is a row.
MOST_WINDOWS = 1000


def stretches(size: int, slide: int) -> int:
    """In how many windows a row is at most."""
    return -(-size // slide)


def tumbling(
    wiring: Wiring, flow: Queue, time: Column, size: int, offset: int = 0, *, name: str
) -> Queue:
    """Each row with the window that it lies in; windows begin at multiples of their size."""
    return wiring.add(Map(_columns(flow.schema, _floor(time, size, offset), size)), flow, name=name)


def hopping(
    wiring: Wiring, flow: Queue, time: Column, slide: int, size: int, offset: int = 0, *, name: str
) -> Queue:
    """Each row with every window that it lies in; one begins at each multiple of the slide."""
    last = _floor(time, slide, offset)
    branches: list[Branch] = []
    for number in range(stretches(size, slide)):
        start = _later(last, -number * slide) if number else last
        columns = _columns(flow.schema, start, size)
        is_within = Call("<", (time, columns[-1].term), BOOLEAN)
        # The earliest may have ended already, unless a size is some whole number of slides.
        is_sure = (number + 1) * slide <= size
        branches.append(Branch(None if is_sure else is_within, columns))
    return wiring.add(FlatMap(tuple(branches)), flow, name=name)


def complete(wiring: Wiring, windows: Queue, *, name: str) -> Queue:
    """The rows of tumbling or hopping windows, when these have ended."""
    return wiring.add(Held(END, is_alone=True), windows, name=name)


def sessions(
    wiring: Wiring, flow: Queue, by: Sequence[str], gap: int, *, is_complete: bool, name: str
) -> Queue:
    """The rows of a stream with their sessions: as far as these have come, or complete ones."""
    begun = _begun(wiring, flow, by, gap, name)
    end = Assign(END, _later(EVENT_TIME, gap))
    if is_complete:
        stamped = wiring.add(Map((*kept(begun.schema), end)), begun, name=name)
        return wiring.add(Held(END, tuple(by)), stamped, name=name)
    key = tuple(dict.fromkeys((*by, START)))
    ends = Map((*(Assign(n, begun.column(n)) for n in key), end))
    rows = wiring.add(Range(None), begun, name=name)
    latest = wiring.add(Latest(key), wiring.add(ends, begun, name=name), name=name)
    on = tuple((n, n) for n in key)
    return wiring.add(Join(on, nulls_match=True), rows, latest, name=name)


def _begun(wiring: Wiring, flow: Queue, by: Sequence[str], gap: int, name: str) -> Queue:
    """Each row with the start of its session: its own time, if none was there shortly before."""
    variable = wiring.fresh_variable(f"{name}_session")
    last, start = (VariableField(variable, f, TIME) for f in ("last", "start"))
    since = Call("-", (EVENT_TIME, last), DURATION)
    goes_on = Call("<=", (since, Literal(gap, DURATION)), BOOLEAN)
    goes_on = Call("coalesce", (goes_on, Literal(False, BOOLEAN)), BOOLEAN)
    updates = (
        Update(variable, "last", EVENT_TIME),
        Update(variable, "start", Call("if", (goes_on, start, EVENT_TIME), TIME)),
    )
    emitted = (*_others(flow.schema), Assign(START, start))
    fields = (Field("last", TIME), Field("start", TIME))
    return wiring.fold(
        Fold(tuple(by), None, updates, emitted), flow, Variable(variable, fields, (None, None)),
        name,
    )  # fmt: skip


def _columns(schema: Schema, start: Term, size: int) -> tuple[Assign, ...]:
    return (*_others(schema), Assign(START, start), Assign(END, _later(start, size)))


def _others(schema: Schema) -> tuple[Assign, ...]:
    """The columns of a row; windows that it was in before are forgotten."""
    return tuple(c for c in kept(schema) if c.name not in (START, END))


def _later(time: Term, micros: int) -> Term:
    function = "+" if micros >= 0 else "-"
    return Call(function, (time, Literal(abs(micros), DURATION)), TIME)


def _floor(time: Term, step: int, offset: int) -> Term:
    """The last multiple of a step before or at a time, counted from an offset."""
    length = Literal(step, DURATION)
    if not offset % step:
        return Call("floor_time", (time, length), TIME)
    moved = Call("floor_time", (_later(time, -(offset % step)), length), TIME)
    return _later(moved, offset % step)
