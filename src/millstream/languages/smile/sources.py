"""Sources that are written as calls: MERGE(A, B), and QUIET(S BY k, 3 MINUTES).

MERGE   the rows of several streams, by tick and number of input
QUIET   stretches in which a stream, or a key of it, was silent for so long:
ended   an event, and the one before it more than so long ago
open    the latest event of a key, once it is no longer within the window
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from millstream.calculus.functions import (
    Assign,
    Except,
    Filter,
    Fold,
    Latest,
    Map,
    Merge,
    Range,
    Rows,
    Update,
)
from millstream.calculus.graph import Variable
from millstream.calculus.terms import Call, Column, Literal, Term, VariableField, is_known
from millstream.calculus.types import BOOLEAN, DURATION, INTEGER, TIME, Field
from millstream.calculus.wiring import Queue
from millstream.errors import Fault, listing
from millstream.languages.smile.build import OPEN, STEPS, Build
from millstream.languages.smile.cells import (
    FALSE,
    TRUE,
    Cell,
    View,
    added,
    both,
    choose,
    either,
    negated,
    null,
)
from millstream.languages.smile.extent import ANY, ONE, Size
from millstream.languages.smile.statements import Called
from millstream.queries import ast
from millstream.queries.scope import Seen, find
from millstream.queries.tokens import stop

#: The column of a merge that says which of its streams a row is of, from 1.
NUMBER = "_input"
SINCE, UNTIL = "since", "until"


@dataclass
class Calls:
    """Mutable: the views of calls."""

    build: Build
    faults: list[Fault]
    find: Callable[[ast.Word], View]

    def view(self, call: Called) -> View:
        found = [self._stream(word, call) for word in call.sources]
        return self._merged(call, found) if call.is_merge else self._quiet(call, found[0])

    def _stream(self, word: ast.Word, call: Called) -> tuple[View, Queue]:
        view = self.build.streamed(self.find(word))
        if view.stream is None:
            what = "MERGE" if call.is_merge else "QUIET"
            hint = "it is none that only selects of a stream and shows its tick"
            stop(self.faults, f"{what} takes streams, and {word.name} is a view", word.span, hint)
        return view, view.stream

    # --- MERGE ---

    def _merged(self, call: Called, found: Sequence[tuple[View, Queue]]) -> View:
        first = found[0][0]
        wanted = [(c.name, c.type) for c in first.cells[1:]]
        for word, (view, _) in zip(call.sources, found, strict=True):
            if [(c.name, c.type) for c in view.cells[1:]] != wanted:
                has = listing(f"{c.name} {c.type}" for c in first.cells[1:])
                message = f"the columns of {word.name} are not those of {call.sources[0].name}"
                stop(self.faults, message, word.span, f"they should be: {has}")
        wiring, name = self.build.wiring, call.name
        flows: list[Queue] = []
        for number, (view, stream) in enumerate(found, 1):
            columns = [
                Assign(new.name, Column(old.name, old.type))
                for new, old in zip(first.cells, view.cells, strict=True)
            ]
            columns.append(Assign(NUMBER, Literal(number, INTEGER)))
            flows.append(wiring.add(Map(tuple(columns)), stream, name=f"merge_{number}"))
        merged = wiring.add(Merge(), *flows, name="merge", origin=call.span)
        queue = wiring.add(Range(None), merged, name="merge_rows")
        streams = frozenset().union(*(view.streams for view, _ in found))
        cells = tuple(
            _common([view.cells[n] for view, _ in found], queue) for n, _ in enumerate(first.cells)
        )
        return View(name, queue, (*cells, _exact(NUMBER, queue)), streams, stream=merged,
                    keys=(first.cells[0].name, NUMBER), brings=_brought(found))  # fmt: skip

    # --- QUIET ---

    def _quiet(self, call: Called, found: tuple[View, Queue]) -> View:
        view, stream = found
        seen = tuple(Seen(c.name, c.name, c.type) for c in view.cells)
        by: list[str] = []
        for word in call.by:
            column = find(seen, word)
            if column is None:
                has = listing(c.name for c in view.cells)
                message = f'{view.name} has no column "{word.name}"'
                stop(self.faults, message, word.span, f"it has: {has}")
            by.append(column.name)
        tick = view.keys[0]
        columns = (*(Assign(n, stream.column(n)) for n in by), Assign(SINCE, stream.column(tick)))
        events = self.build.wiring.add(Map(columns), stream, name="quiet_events", origin=call.span)
        ended = self._ended(events, tuple(by), call.length)
        silent = self._open(events, tuple(by), call.length)
        queue = self.build.wiring.add(Merge(), ended, silent, name="quiet", origin=call.span)
        cells = [_exact(n, queue) for n in (*by, SINCE)]
        if not by:  # from the start of the stream on
            cells[-1] = replace(cells[-1], can_be_null=True)
        value, low, high = (queue.column(n) for n in (UNTIL, f"{UNTIL}.low", f"{UNTIL}.high"))
        cells.append(Cell(UNTIL, value, low, high, ANY, Size.number(2), can_be_null=True))
        is_open = both(queue.column(OPEN), self.build.open_ticks(view.streams))
        return View(call.name, queue, tuple(cells), view.streams, steps=queue.column(STEPS),
                    is_open=is_open, keys=(*by, SINCE))  # fmt: skip

    def _ended(self, events: Queue, by: tuple[str, ...], length: int) -> Queue:
        """Silences that an event has ended."""
        wiring = self.build.wiring
        variable = wiring.fresh_variable("quiet")
        last, before = (VariableField(variable, n, TIME) for n in ("last", "before"))
        updates = (Update(variable, "before", last), Update(variable, "last", events.column(SINCE)))
        fields = (Field("last", TIME), Field("before", TIME))
        state = Variable(variable, fields, (None, None))
        emit = (*(Assign(n, events.column(n)) for n in by),
                Assign(SINCE, before), Assign(UNTIL, last))  # fmt: skip
        pairs = wiring.fold(Fold(by, None, updates, emit), events, state, "quiet_pairs")
        while_ = Call("-", (pairs.column(UNTIL), pairs.column(SINCE)), DURATION)
        is_long = Call(">", (while_, Literal(length, DURATION)), BOOLEAN)
        has_before = is_known(pairs.column(SINCE))
        condition = both(has_before, is_long) if by else either(negated(has_before), is_long)
        kept = wiring.add(Filter(condition), pairs, name="quiet_long")
        until = kept.column(UNTIL)
        rows = self._told(kept, by, until, until, until, 1, FALSE)
        return wiring.add(Range(None), rows, name="quiet_ended")

    def _open(self, events: Queue, by: tuple[str, ...], length: int) -> Queue:
        """The latest event of each key, from when it lies further back than so long.

        Of a whole stream, before its first event, that is its start.
        """
        wiring = self.build.wiring
        window = Latest(by) if by else Rows(1)
        latest = wiring.add(window, events, name="quiet_latest")
        if not by:
            latest = self.build.never_empty(latest, {SINCE: null(TIME)}, "quiet_latest")
        recent = wiring.add(Range(length), events, name="quiet_recent")
        silent = wiring.add(Except(), latest, recent, name="quiet_silent")
        low = Call("+", (silent.column(SINCE), Literal(length + 1, DURATION)), TIME)
        return self._told(silent, by, null(TIME), low, null(TIME), 0, TRUE)

    def _told(
        self, rows: Queue, by: tuple[str, ...], until: Term, low: Term, high: Term, ends: int,
        is_open: Term,
    ) -> Queue:  # fmt: skip
        """Rows are made of the event before, if there is one, and of the one that ends them."""
        begun = choose(is_known(rows.column(SINCE)), Literal(1, INTEGER), Literal(0, INTEGER))
        steps = Literal(ends + 1, INTEGER) if by else added(begun, Literal(ends, INTEGER))
        made = [Assign(n, rows.column(n)) for n in (*by, SINCE)]
        made += [Assign(UNTIL, until), Assign(f"{UNTIL}.low", low), Assign(f"{UNTIL}.high", high)]
        made += [Assign(STEPS, steps), Assign(OPEN, is_open)]
        return self.build.wiring.add(Map(tuple(made)), rows, name="quiet_told")


def _brought(merged: Sequence[tuple[View, Queue]]) -> int | None:
    """How many rows an open tick of any of them brings at most."""
    rows: Counter[str] = Counter()
    for view, _ in merged:
        if view.brings is None:
            return None
        rows.update(dict.fromkeys(view.streams, view.brings))
    return max(rows.values())


def _exact(name: str, queue: Queue) -> Cell:
    value = queue.column(name)
    return Cell(name, value, value, value, ANY, ONE, is_exact=True)


def _common(cells: Sequence[Cell], queue: Queue) -> Cell:
    """A column of which every row has the value of one of these."""
    first = cells[0]
    if first.tick_of is not None:
        return _exact(first.name, queue)
    extent = first.extent
    for cell in cells[1:]:
        extent = extent.around(cell.extent)
    domain = first.domain if all(c.domain == first.domain for c in cells) else ""
    return replace(_exact(first.name, queue), extent=extent, domain=domain)
