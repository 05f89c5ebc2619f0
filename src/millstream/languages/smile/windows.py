"""WINDOW(t, 1 HOUR, 1 MINUTE): a row is in every window that its tick lies in.

A row in slot f (of the length of a step) is in the windows that begin at f, one step before, and
so on. A window is over when time has passed its end, whether it has rows or not:

    over = Except(windows, Until[begin + length](Istream(windows)))
"""

from __future__ import annotations

from dataclasses import replace

from millstream.calculus.functions import (
    Assign,
    Branch,
    Distinct,
    Except,
    FlatMap,
    Istream,
    Join,
    Lookup,
    Map,
    Until,
)
from millstream.calculus.library.columns import kept
from millstream.calculus.terms import Call, Literal, Term
from millstream.calculus.types import BOOLEAN, DURATION, TIME
from millstream.calculus.wiring import Queue
from millstream.languages.smile.build import OVER, Build
from millstream.languages.smile.cells import FALSE, Cell, TickWindows, View
from millstream.languages.smile.extent import ANY, ONE

#: So many windows may a row be in.
MOST = 64
COLUMN = "window.begin"
_END = ".end"


def windowed(build: Build, view: View, tick: str, window: TickWindows) -> View:
    """The rows of a view, each once for every window that its tick is in."""
    slots = range(window.length // window.step)
    begins = [_begin(view.queue.column(tick), window.step, n) for n in slots]
    branches = tuple(Branch(None, (*kept(view.queue.schema), Assign(COLUMN, b))) for b in begins)
    queue = build.wiring.add(FlatMap(branches), view.queue, name=f"{view.name}_windows")
    value = queue.column(COLUMN)
    mark = None if window.stream is None else window
    cell = Cell(COLUMN, value, value, value, ANY, ONE, is_exact=True, window=mark)
    cells = (*view.cells, cell)
    # Rows that can change, and those of joins, may do so when their window is over.
    ends = view.mask.is_certain and view.is_open == FALSE and view.streams == {window.stream}
    return replace(view, queue=queue, cells=cells, stream=None, flow=None,
                   lasts=window.length if ends else None,
                   brings=view.brings and view.brings * len(slots))  # fmt: skip


def over(build: Build, rows: Queue, begin: str, window: TickWindows) -> Queue:
    """The windows that are over, of those that rows name in a column."""
    wiring = build.wiring
    begins = wiring.columns(rows, {COLUMN: begin}, "window_begins")
    there = wiring.add(Distinct(), begins, name="window_there")
    ends = Call("+", (there.column(COLUMN), Literal(window.length, DURATION)), TIME)
    if build.is_live:
        return _below_horizon(build, there, ends, window)
    come = wiring.add(Istream(), there, name="window_come")
    ending = Map((Assign(COLUMN, come.column(COLUMN)), Assign(_END, ends)))
    ending_rows = wiring.add(ending, come, name="window_ends")
    lasting = wiring.add(Until(_END), ending_rows, name="window_lasts")
    lasting = wiring.columns(lasting, {COLUMN: COLUMN}, "window_lasts")
    return wiring.add(Except(), there, lasting, name="window_over")


def with_over(build: Build, rows: Queue, begin: str, ended: Queue, name: str) -> Queue:
    """Rows, and whether the windows that a column of theirs names are among those that are over."""
    return build.wiring.add(Lookup(OVER, ((begin, COLUMN),)), rows, ended, name=f"{name}_over")


def _below_horizon(build: Build, there: Queue, ends: Term, window: TickWindows) -> Queue:
    """The same of a live program: those that end before the first tick that is not known.

    Ends are multiples of a step, so that it is enough to know in which step that tick lies.
    """
    wiring = build.wiring
    assert window.stream is not None
    horizon = build.horizon(window.stream)
    first_open = Call("+", (horizon.column("known"), Literal(1, DURATION)), TIME)
    slot = Call("floor_time", (first_open, Literal(window.step, DURATION)), TIME)
    known = wiring.add(Map((Assign(".slot", slot),)), horizon, name="window_slot")
    is_over = Call("<=", (ends, known.column(".slot")), BOOLEAN)
    met = wiring.add(Join((), is_over), there, known, name="window_met")
    return wiring.columns(met, {COLUMN: COLUMN}, "window_over")


def _begin(tick: Term, step: int, number: int) -> Term:
    """When the window begins that a tick is in, so many steps before its own slot."""
    slot = Call("floor_time", (tick, Literal(step, DURATION)), TIME)
    if number == 0:
        return slot
    return Call("-", (slot, Literal(number * step, DURATION)), TIME)
