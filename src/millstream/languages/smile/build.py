"""What all rules build with: clocks, columns of cells, and rows that are dropped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from millstream.calculus.functions import (
    Assign,
    Filter,
    Istream,
    Join,
    Lookup,
    Map,
    Merge,
    Range,
)
from millstream.calculus.graph import Input
from millstream.calculus.library.outer_joins import without_partner
from millstream.calculus.rename import substitute
from millstream.calculus.terms import Call, Column, Literal, Term, columns_read
from millstream.calculus.types import BOOLEAN, START_OF_TIME, TIME, QueueType, Schema
from millstream.calculus.wiring import Queue, Wiring
from millstream.languages.smile.accounts import Opening
from millstream.languages.smile.cells import (
    CERTAIN,
    FALSE,
    TRUE,
    Account,
    Cell,
    Gain,
    Mask,
    View,
    either,
    negated,
)
from millstream.languages.smile.flows import FlowGroups, RowFlow, projected
from millstream.source import Span

_OPEN = ".open "
#: Columns of a queue beside those of cells.
STEPS, IN, SURE, OPEN = ".steps", ".in", ".sure", ".open"
#: Whether the window of a row is over.
OVER = ".over"


def horizon_of(stream: str) -> str:
    """What a live program calls the input that says how far a stream is known."""
    return f"{stream} horizon"


class NoRule(Exception):
    """A query for which there is no rule: it is answered as of the horizon. Says why."""


@dataclass
class Build:
    """Mutable: the wiring, and the clocks of streams that end.

    A program that is live is given rows when they arrive, whatever their ticks are, and how far
    the ticks of each stream are known; else time is that of the ticks.
    """

    wiring: Wiring
    is_live: bool = False
    #: Whether rows that can never be in again are forgotten; else views are made of views alone.
    keeps_accounts: bool = True
    until: dict[str, int] = field(default_factory=dict)
    clocks: dict[str, Queue] = field(default_factory=dict)
    #: The rows of streams as they come, and the columns of their ticks.
    streams: dict[str, tuple[Queue, str]] = field(default_factory=dict)
    #: A relation with one row that was always there, if any view needs it.
    one_row: Queue | None = None

    # --- clocks ---

    def open_ticks(self, streams: Iterable[str]) -> Term:
        """Whether any of these streams has an open tick: a column that is added when needed."""
        names = sorted(streams)
        if any(name not in self.until for name in names):
            return TRUE
        return either(*(Column(f"{_OPEN}{name}", BOOLEAN) for name in names))

    def timed(self, queue: Queue, terms: Iterable[Term | None]) -> Queue:
        """The queue with the columns of clocks that terms read."""
        read = frozenset().union(*(columns_read(t) for t in terms if t is not None))
        for column in sorted(read):
            if column.startswith(_OPEN) and column not in queue.schema:
                clock = self._clock(column.removeprefix(_OPEN))
                queue = self.wiring.add(Lookup(column), queue, clock, name=f"{queue.name}_open")
        return queue

    def _clock(self, stream: str) -> Queue:
        """A relation with one row, for as long as the stream has open ticks."""
        if stream not in self.clocks and self.is_live:
            self.clocks[stream] = self._live_clock(stream)
        if stream not in self.clocks:
            given = self._one_row(f"{stream}_clock", "is_open")
            name = given.name
            begun = self.wiring.add(Istream(), given, name=f"{name}_begins")
            lasts = Range(self.until[stream] - START_OF_TIME)
            self.clocks[stream] = self.wiring.add(lasts, begun, name=f"{name}_lasts")
        return self.clocks[stream]

    def _one_row(self, name: str, column: str) -> Queue:
        """A relation with one row, from the beginning of time."""
        row = QueueType(Schema.of(**{column: BOOLEAN}), is_relation=True)
        given = Input(self.wiring.fresh(name), row, is_read_once=True, values=((True,),))
        return self.wiring.input(given)

    def never_empty(self, queue: Queue, empty: Mapping[str, Term], name: str) -> Queue:
        """A relation of one row at most, and in its place another as long as there is none."""
        if self.one_row is None:
            self.one_row = self._one_row("always", "is_there")
        made = tuple(Assign(n, empty[n]) for n in queue.schema.names)
        other = without_partner(self.wiring, self.one_row, queue, (), made, name=f"{name}_empty")
        return self.wiring.add(Merge(), queue, other, name=name)

    def horizon(self, stream: str) -> Queue:
        """A relation with one row: the tick up to which a stream is known."""
        type_ = QueueType(Schema.of(known=TIME), is_relation=True)
        return self.wiring.input(Input(horizon_of(stream), type_))

    def below_horizon(self, rows: Queue, tick: str, stream: str) -> Queue:
        """The rows, with a column that says whether all ticks up to theirs are known."""
        known = self.wiring.columns(self.horizon(stream), {".known": "known"}, f"{stream}_known")
        met = self.wiring.add(Join(()), rows, known, name=f"{stream}_met")
        is_below = Call("<=", (met.column(tick), met.column(".known")), BOOLEAN)
        kept = [Assign(f.name, met.column(f.name)) for f in rows.schema if f.name != SURE]
        made = Map((*kept, Assign(SURE, is_below)))
        return self.wiring.add(made, met, name=f"{stream}_below")

    def _live_clock(self, stream: str) -> Queue:
        horizon, until = self.horizon(stream), Literal(self.until[stream], TIME)
        is_open = Call("<", (horizon.column("known"), until), BOOLEAN)
        lasts = self.wiring.add(Filter(is_open), horizon, name=f"{stream}_open")
        return self.wiring.add(Map((Assign("is_open", TRUE),)), lasts, name=f"{stream}_clock")

    # --- rows ---

    def streamed(self, view: View) -> View:
        """The view of rows of one stream, all as they came, with these rows and their tick first.

        Other views stay as they are, and have no stream.
        """
        tick = next((c for c in view.cells if c.tick_of is not None), None)
        is_sure = view.mask.is_certain and view.is_open == FALSE
        if view.stream is not None or tick is None or not is_sure:
            return view
        if not isinstance(view.flow, RowFlow) or view.streams != {tick.tick_of}:
            return view
        cells = (tick, *(c for c in view.cells if c != tick))
        names = [c.value.name for c in cells if isinstance(c.value, Column)]
        columns = tuple(Assign(n, view.flow.columns[n]) for n in names)
        stream = self.wiring.add(Map(columns), view.flow.stream, name=f"{view.name}_come")
        return replace(view, cells=cells, stream=stream, keys=(names[0],))

    def prefixed(self, view: View, prefix: str) -> View:
        """The view with a prefix before all columns of its queue."""
        names = {n: f"{prefix}{n}" for n in view.queue.schema.names}
        renamed = {new: old for old, new in names.items()}
        queue = self.wiring.columns(view.queue, renamed, f"{view.name}_as")
        whole = view.whole and self.prefixed(view.whole, prefix)
        return replace(view.moved(queue, names), whole=whole)

    def selected(self, view: View, mask: Mask, condition: Term, span: Span | None) -> View:
        """The rows of a view that a condition lets in; those that are out for ever are dropped."""
        if mask.is_certain or (mask.is_sure == TRUE and view.mask.is_certain):
            queue = self.timed(view.queue, [condition])
            kept = self.wiring.add(Filter(condition), queue, name=view.name, origin=span)
            account = view.account and view.account.selected(mask)
            flow = self._filtered(view.flow, condition)
            return replace(view, queue=kept, defaults=None, flow=flow, account=account)
        met = view.mask & mask
        queue = self.timed(view.queue, [met.is_in, met.is_sure])
        columns = [Assign(f.name, Column(f.name, f.type)) for f in queue.schema
                   if f.name not in (IN, SURE)]  # fmt: skip
        stored = {IN: met.is_in, SURE: met.is_sure}
        columns += [Assign(n, t) for n, t in stored.items() if not isinstance(t, Literal)]
        queue = self.wiring.add(Map(tuple(columns)), queue, name=f"{view.name}_mask", origin=span)
        is_in, is_sure = (
            t if isinstance(t, Literal) else Column(n, BOOLEAN) for n, t in stored.items()
        )
        met = replace(met, is_in=is_in, is_sure=is_sure)
        account = view.account and view.account.selected(mask)
        return replace(view, queue=queue, mask=met, defaults=None, flow=None, account=account)

    def _filtered(self, flow: RowFlow | FlowGroups | None, condition: Term) -> RowFlow | None:
        """The rows of a flow that a condition lets in; groups are none."""
        if not isinstance(flow, RowFlow) or columns_read(condition) - set(flow.columns):
            return None
        only = Filter(flow.of(condition))
        return replace(flow, stream=self.wiring.add(only, flow.stream, name="only"))

    def without_dropped(self, view: View, span: Span | None = None) -> View:
        """Without the rows that are out for ever."""
        if view.mask.stays_out and view.account is not None and self.keeps_accounts:
            return self._opened(view, view.account, span)
        mask = view.mask
        is_kept = mask.is_in if mask.stays_out else negated(mask.is_out)
        if is_kept == TRUE:
            return view
        queue = self.timed(view.queue, [is_kept])
        queue = self.wiring.add(Filter(is_kept), queue, name=view.name, origin=span)
        # What can never be sure to be in, and is still there, can still change.
        mask = mask if mask.can_be_true else replace(mask, is_sure=FALSE)
        return replace(
            view, queue=queue, mask=replace(mask, is_in=TRUE) if mask.stays_out else mask
        )

    def _opened(self, view: View, account: Account, span: Span | None) -> View:
        """The rows that are in, of which nothing is kept once they are out."""
        queue = Opening(self.wiring, account, view.name, span).queue()
        all_in = replace(view, queue=queue, mask=CERTAIN, account=None)
        made = self.selected(all_in, account.mask, account.mask.is_in, span)
        is_sure = made.mask.is_sure if made.mask.can_be_true else FALSE
        mask = replace(made.mask, is_in=TRUE, is_sure=is_sure)
        return replace(made, mask=mask, closed=account)

    def made(self, view: View, cells: Sequence[Cell], name: str, span: Span | None = None) -> View:
        """A view of other cells, computed of the columns of a view."""
        columns: dict[str, Term] = {}
        placed: list[Cell] = []
        for cell in cells:
            columns[cell.name] = cell.value
            value = Column(cell.name, cell.type)
            low, high = cell.low, cell.high
            if cell.is_exact:
                low = high = value
            else:
                low = _placed(columns, f"{cell.name}.low", cell.low, cell)
                high = _placed(columns, f"{cell.name}.high", cell.high, cell)
            gains = cell.gains and {
                stream: Gain(*(
                    _gain(columns, f"{cell.name}.{end}.{stream}", term)
                    for end, term in (("low", gain.low), ("high", gain.high))
                ))
                for stream, gain in cell.gains.items()
            }  # fmt: skip
            placed.append(replace(cell, value=value, low=low, high=high, gains=gains))
        rest = {STEPS: view.steps, IN: view.mask.is_in, SURE: view.mask.is_sure}
        if any(c in view.queue.schema for c in columns_read(view.is_open)):
            rest[OPEN] = view.is_open
        kept: dict[str, Term] = {n: t for n, t in rest.items() if isinstance(t, Literal)}
        columns |= {n: t for n, t in rest.items() if not isinstance(t, Literal)}
        kept |= {n: Column(n, t.type) for n, t in rest.items() if n not in kept}
        queue = self.timed(view.queue, columns.values())
        made = tuple(Assign(n, t) for n, t in columns.items())
        queue = self.wiring.add(Map(made), queue, name=name, origin=span)
        keys = {c.value.name: c.name for c in cells if isinstance(c.value, Column)}
        is_total = view.defaults is not None and all(k in keys for k in view.keys)
        defaults = _defaults(columns, view.defaults, placed) if is_total else None
        mask = replace(view.mask, is_in=kept[IN], is_sure=kept[SURE])
        flow = projected(view.flow, columns) if view.mask.is_certain else None
        return replace(
            view, name=name, flow=flow, account=None, queue=queue, cells=tuple(placed),
            steps=kept[STEPS], mask=mask,
            is_open=kept.get(OPEN, view.is_open), defaults=defaults, stream=None,
            keys=tuple(keys[k] for k in view.keys) if defaults is not None else (),
        )  # fmt: skip


def _placed(columns: dict[str, Term], name: str, bound: Term | None, cell: Cell) -> Term | None:
    """Where a bound is found: in a column of its own, unless it is the value."""
    if bound is None:
        return None
    if bound == cell.value:
        return Column(cell.name, cell.type)
    columns[name] = bound
    return Column(name, bound.type)


def _gain(columns: dict[str, Term], name: str, term: Term) -> Term:
    if isinstance(term, Literal):
        return term
    columns[name] = term
    return Column(name, term.type)


def _defaults(
    columns: Mapping[str, Term], defaults: Mapping[str, Term] | None, cells: Sequence[Cell]
) -> dict[str, Term] | None:
    """What columns are where no row is; None if that hangs on what the key is."""
    assert defaults is not None
    exact = {c.name for c in cells if c.is_exact and isinstance(columns[c.name], Column)}
    made = {n: substitute(t, dict(defaults)) for n, t in columns.items() if n not in exact}
    read = frozenset().union(*(columns_read(t) for t in made.values()))
    return made if all(n == OVER or n.startswith(_OPEN) for n in read) else None
