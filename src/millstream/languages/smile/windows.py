"""WINDOW(t, 1 HOUR, 1 MINUTE): a row is in every window that its tick lies in.

A window is over when time has passed its end. A row in slot f (of the length of a step) is in
the windows that begin at f, one step before, and so on; the last step of the window that begins
i steps before f ends when i steps fewer than it has have passed behind f. So the windows that are
over are those of rows that a window of CQL has let go:

    over = Except(Range[unbounded; slide step], Range[length; slide step])
"""

from __future__ import annotations

from dataclasses import replace

from millstream.calculus.functions import (
    Assign,
    Branch,
    Distinct,
    Except,
    FlatMap,
    Join,
    Map,
    Merge,
    Range,
)
from millstream.calculus.library.columns import kept
from millstream.calculus.terms import Call, Literal, Term
from millstream.calculus.types import BOOLEAN, DURATION, TIME
from millstream.calculus.wiring import Queue
from millstream.languages.smile.build import Build
from millstream.languages.smile.cells import Cell, View
from millstream.languages.smile.extent import ANY, ONE

#: So many windows may a row be in.
MOST = 64
COLUMN = "window.begin"


def windowed(build: Build, view: View, tick: str, length: int, step: int) -> View:
    """The rows of a view of one stream, each once for every window it is in."""
    begins = [_begin(view.queue.column(tick), step, n) for n in range(length // step)]
    branches = tuple(Branch(None, (*kept(view.queue.schema), Assign(COLUMN, b))) for b in begins)
    queue = build.wiring.add(FlatMap(branches), view.queue, name=f"{view.name}_windows")
    value = queue.column(COLUMN)
    (stream,) = view.streams
    cell = Cell(COLUMN, value, value, value, ANY, ONE, is_exact=True, window_of=stream)
    cells = (*view.cells, cell)
    return replace(view, queue=queue, cells=cells, stream=None, flow=None, lasts=length)


def over(build: Build, stream: Queue, tick: str, length: int, step: int) -> Queue:
    """The windows that have rows and are over, by when they begin."""
    wiring = build.wiring
    ticks = wiring.columns(stream, {tick: tick}, "window_ticks")
    come = wiring.add(Range(None, step), ticks, name="window_come")
    flows: list[Queue] = []
    count = length // step
    for number in range(count):
        there = wiring.add(Range((count - 1 - number) * step, step), ticks, name="window_there")
        gone = wiring.add(Except(), come, there, name="window_gone")
        begin = Assign(COLUMN, _begin(gone.column(tick), step, number))
        flows.append(wiring.add(Map((begin,)), gone, name="window_over"))
    merged = wiring.add(Merge(), *flows, name="window_over") if count > 1 else flows[0]
    return wiring.add(Distinct(), merged, name="window_over")


def over_by_horizon(build: Build, view: View, stream: str, length: int, step: int) -> Queue:
    """The same of a live program: those that end before the first tick that is not known.

    Ends are multiples of a step, so that it is enough to know in which step that tick lies.
    """
    wiring = build.wiring
    begins = wiring.columns(view.queue, {COLUMN: COLUMN}, "window_begins")
    there = wiring.add(Distinct(), begins, name="window_there")
    horizon = build.horizon(stream)
    first_open = Call("+", (horizon.column("known"), Literal(1, DURATION)), TIME)
    slot = Assign(".slot", Call("floor_time", (first_open, Literal(step, DURATION)), TIME))
    known = wiring.add(Map((slot,)), horizon, name="window_slot")
    end = Call("+", (there.column(COLUMN), Literal(length, DURATION)), TIME)
    is_over = Call("<=", (end, known.column(".slot")), BOOLEAN)
    met = wiring.add(Join((), is_over), there, known, name="window_met")
    return wiring.columns(met, {COLUMN: COLUMN}, "window_over")


def _begin(tick: Term, step: int, number: int) -> Term:
    """When the window begins that a tick is in, so many steps before its own slot."""
    slot = Call("floor_time", (tick, Literal(step, DURATION)), TIME)
    if number == 0:
        return slot
    return Call("-", (slot, Literal(number * step, DURATION)), TIME)
