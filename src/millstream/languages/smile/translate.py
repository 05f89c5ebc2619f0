"""From the statements of a file to one program of the calculus."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from millstream.calculus.functions import Assign, Filter, Fold, Map, Range, Update
from millstream.calculus.graph import Input, Variable
from millstream.calculus.terms import Call, Column, Literal, VariableField
from millstream.calculus.types import (
    BOOLEAN,
    DURATION,
    INT64_MIN,
    INTEGER,
    TIME,
    Field,
    QueueType,
    Schema,
)
from millstream.calculus.wiring import Queue
from millstream.errors import CheckError, Fault, ParseError, listing, suggest
from millstream.languages.language import Translation, beside
from millstream.languages.served import MASK_COLUMN, CountedBound
from millstream.languages.smile.build import Build, NoRule
from millstream.languages.smile.cells import FALSE, TRUE, Cell, Mask, View, negated
from millstream.languages.smile.extent import MAXTIME, ONE, Extent, Size
from millstream.languages.smile.flows import RowFlow
from millstream.languages.smile.ranges import can_be_bounded
from millstream.languages.smile.select import Selecting
from millstream.languages.smile.sources import Calls
from millstream.languages.smile.statements import (
    Called,
    Domain,
    ReadText,
    Stream,
    Subscription,
)
from millstream.languages.smile.types import types_text
from millstream.queries import ast
from millstream.queries import translate as queries
from millstream.queries.build import Flow, KnownSource
from millstream.queries.tokens import Stop, stop
from millstream.source import Source, Span

_NOTHING = Literal(0, INTEGER)


def translate(source: Source, read: ReadText) -> Translation:
    """The verified program of a text, or an error with every fault in it."""
    translator = Translator(source, read)
    outputs = translator.outputs()
    faults = [*read.faults, *translator.faults]
    if not read.subscriptions and not faults:
        end = len(source.text)
        hint = "say which views leave: subscriptions A, B;"
        faults.append(Fault("this file has no subscriptions", Span(source, end, end), hint))
    if faults:
        in_order = sorted(faults, key=lambda f: f.span.start if f.span else 0)
        raise (ParseError if read.faults else CheckError)(in_order)
    program = translator.build.wiring.program(outputs)
    used = set(program.input_names)
    sources = {s.name.name: s.source for s in read.streams if s.source and s.name.name in used}
    views = [v for v in translator.views.values() if v is not None]
    types = types_text(translator.build.until, views)
    aside = tuple(name for name in outputs if name in translator.taken.values())
    return Translation(program, sources, aside=aside, types=types)


class Translator:
    """Mutable: the streams and views so far; a view is translated when it is first named.

    One that is live leaves out, without a fault, what has an answer only as of the horizon.
    """

    def __init__(
        self, source: Source, read: ReadText, *, is_live: bool = False, keeps_accounts: bool = True
    ) -> None:
        self.read = read
        self.is_live = is_live
        self.queries = queries.Translator(beside(source), knows_all=not read.has_lost_names)
        self.faults = self.queries.faults
        self.build = Build(self.queries.builder.wiring, is_live, keeps_accounts)
        #: None if it is at fault, or not known yet.
        self.views: dict[str, View | None] = {}
        self.written = {v.name.name: v for v in read.views}
        self.calls = {call.name: call for call in read.calls}
        self.within: list[str] = []
        #: Outputs of rows whose tick was taken, by stream.
        self.taken: dict[str, str] = {}
        self.asides: dict[str, Queue] = {}
        first = self._names()
        # What leaves has the names that are written; what is made on the way has others.
        self.build.wiring.names.update(s.view.name for s in read.subscriptions)
        for stream in read.streams:
            if stream.name in first:
                self.views[stream.name.name] = self.declared(stream)

    def _names(self) -> list[ast.Word]:
        """The words that name something first."""
        seen: set[str] = set()
        first: list[ast.Word] = []
        for word in (*(s.name for s in self.read.streams), *(v.name for v in self.read.views)):
            if word.name.lower() in seen:
                self.faults.append(Fault(f'"{word.name}" is defined more than once', word.span))
            else:
                first.append(word)
            seen.add(word.name.lower())
        return first

    # --- streams ---

    def declared(self, stream: Stream) -> View:
        """The view of a stream: every known row, for ever."""
        name, key = stream.name.name, stream.key.name
        columns = [(key, Domain("time", TIME)), *((w.name, d) for w, d in stream.columns)]
        schema = Schema(tuple(Field(n, d.type) for n, d in columns))
        bounds = [(n, d.low, d.high) for n, d in columns if (d.low, d.high) != (None, None)]
        ends = None
        if stream.until is not None:
            self.build.until[name] = stream.until
            bounds.append((key, None, stream.until))
            ends = stream.until + 1
        given = self.build.wiring.input(Input(
            name, QueueType(schema), None if self.is_live else key, stream.slack,
            stream.name.span, keys=schema.names, within=tuple(bounds), ends=ends,
        ))  # fmt: skip
        rows = given if self.is_live else self.alone_at_ticks(given, stream)
        self.build.streams[name] = (rows, key)
        queue = self.build.wiring.add(Range(None), rows, name=f"{name}_rows")
        cells = tuple(
            self._cell(n, domain, tick_of=name if n == key else None) for n, domain in columns
        )
        tick = key if not self.is_live and not stream.shifts_ties else None
        flow = RowFlow(rows, {f.name: rows.column(f.name) for f in rows.schema}, tick)
        # Of ticks that are known before their time nobody could say how many are open.
        brings = 1 if self.is_live or not stream.shifts_ties else None
        view = View(name, queue, cells, frozenset((name,)), stream=rows, keys=(key,), flow=flow,
                    brings=brings)  # fmt: skip
        known = KnownSource(stream.name, Flow(rows.name, rows.type), is_declared=True)
        self.queries.known[name] = known
        return view

    @staticmethod
    def _cell(name: str, domain: Domain, tick_of: str | None) -> Cell:
        value = Column(name, domain.type)
        extent = domain.extent(name) if tick_of is None else Extent(None, Size.named(MAXTIME))
        return Cell(name, value, value, value, extent, ONE, True, domain.name, tick_of)

    def alone_at_ticks(self, given: Queue, stream: Stream) -> Queue:
        """The rows of a stream, of which a tick has one at most.

        A row whose tick is taken takes the next free one; if there is none, it leaves aside.
        """
        wiring, name = self.build.wiring, stream.name.name
        variable = wiring.fresh_variable(f"{name}_tick")
        tick = given.column(stream.key.name)
        last = VariableField(variable, "last", TIME)
        taken = VariableField(variable, "taken", BOOLEAN)
        is_free = Call(">", (tick, last), BOOLEAN)
        beyond = Call("+", (last, Literal(1, DURATION)), TIME)
        after = Call("if", (is_free, tick, beyond if stream.shifts_ties else last), TIME)
        is_refused = negated(is_free)
        if stream.shifts_ties and stream.until is not None:
            is_refused = Call(">", (after, Literal(stream.until, TIME)), BOOLEAN)
        updates = (Update(variable, "last", after), Update(variable, "taken", is_refused))
        fields = (Field("last", TIME), Field("taken", BOOLEAN))
        state = Variable(variable, fields, (INT64_MIN, False))
        columns = [Assign(f.name, given.column(f.name)) for f in given.schema]
        if stream.shifts_ties:
            columns[0] = Assign(columns[0].name, Call("if", (taken, tick, last), TIME))
        if stream.shifts_ties and stream.until is None:
            columns[0] = Assign(columns[0].name, last)
            function = Fold((), None, updates, tuple(columns))
            return wiring.fold(function, given, state, f"{name}_ticks")
        function = Fold((), None, updates, (*columns, Assign(".taken", taken)))
        told = wiring.fold(function, given, state, f"{name}_ticks")
        is_taken = Column(".taken", BOOLEAN)
        names = {n: n for n in given.schema.names}
        self.taken[name] = wiring.fresh(f"{name}_taken")
        refused = wiring.add(Filter(is_taken), told, name=f"{name}_refused")
        self.asides[self.taken[name]] = wiring.columns(refused, names, f"{name}_refused")
        free = wiring.add(Filter(negated(is_taken)), told, name=f"{name}_free")
        return wiring.columns(free, names, f"{name}_free")

    # --- views ---

    def view(self, word: ast.Word) -> View:
        """The view of a name, or `Stop` with the fault noted."""
        known = {n.lower(): n for n in (*self.written, *self.views) if n not in self.calls}
        name = word.name if word.name in self.calls else known.get(word.name.lower())
        if name is None:
            if self.read.has_lost_names:
                raise Stop
            near = suggest(word.name, known.values())
            hint = f"there are: {listing(known.values())}. {near or ''}".strip()
            stop(self.faults, f'unknown stream or view "{word.name}"', word.span, hint)
        if name in self.within:
            path = " -> ".join([*self.within[self.within.index(name) :], name])
            stop(self.faults, "a view cannot be made of itself", word.span, path)
        if name not in self.views:
            self.views[name] = None
            self.within.append(name)
            try:
                if name in self.calls:
                    self.views[name] = self.called(self.calls[name])
                else:
                    self.views[name] = self.translated(self.written[name])
            except Stop:
                self.views[name] = None  # its fault is noted, and what hangs on it is left out
            finally:
                self.within.pop()
        view = self.views[name]
        if view is None:
            raise Stop
        return view

    def called(self, call: Called) -> View:
        if self.is_live and not call.is_merge:
            raise Stop  # silence is known as of the horizon
        view = Calls(self.build, self.faults, self.view).view(call)
        word = ast.Word(call.name, call.span, is_quoted=True)
        self.queries.known[call.name] = KnownSource(word, self._seen(view), is_declared=False)
        return view

    def translated(self, written: ast.View) -> View:
        name = written.name.name
        parts_before = len(self.faults)
        try:
            view = self.by_rules(written.query, name)
        except NoRule as reason:
            if len(self.faults) > parts_before:
                raise Stop from None
            view = self.as_of(written, str(reason))
        flow = self._seen(view)
        self.queries.known[name] = KnownSource(written.name, flow, is_declared=False)
        return view

    def by_rules(self, query: ast.Query, name: str) -> View:
        if not isinstance(query, ast.Select):
            self._name_all(query)
            kind = query.kind.upper() if isinstance(query, ast.Combined) else "this query"
            raise NoRule(kind)
        parts: list[tuple[str, View, ast.Joined]] = []
        reason: str | None = None
        for number, joined in enumerate(query.sources, 1):
            source = joined.source
            if isinstance(source, ast.Named):
                view, alias = self.view(source.name), source.name.name
                reason = reason or (view.as_of and f"{alias} is as of")
            else:
                view, alias = self.nested(source.query, f"{name}_from{number}"), f"from{number}"
            if source.window is not None:
                reason = "a window in FROM"
            if source.columns:
                reason = "other names for columns in FROM"
            parts.append((source.alias.name if source.alias else alias, view, joined))
        if reason is not None:
            raise NoRule(reason)
        selecting = Selecting(self.build, self.faults, query, name, self.view)
        whole = [(alias, view.whole or view, how) for alias, view, how in parts]
        made = selecting.view(whole if selecting.is_grouped else parts)
        is_dropping = not selecting.is_grouped or query.having is not None
        if made.mask.is_certain or not is_dropping:
            return made
        # Steps never become fewer: what counts them counts those of rows that are gone too.
        all_rows = Selecting(self.build, self.faults, query, name, self.view, drops=False)
        return replace(made, whole=all_rows.view(whole))

    def nested(self, query: ast.Query, name: str) -> View:
        """The view of a source that has no name; a call is one that only its text names."""
        words = sources_of(query)
        if len(words) == 1 and words[0].name in self.calls and query.span == words[0].span:
            return self.view(words[0])
        return self.by_rules(query, name)

    def _name_all(self, query: ast.Query) -> None:
        """Have all views translated that a query without a rule names."""
        for word in sources_of(query):
            known = {n.lower() for n in (*self.written, *self.views, *self.calls)}
            if word.name.lower() in known:
                self.view(word)

    def as_of(self, written: ast.View, reason: str) -> View:
        """A query without a rule: the answer of CQL to all that is known at the horizon."""
        if self.is_live:
            raise Stop
        name = written.name.name
        self._name_all(written.query)
        flow = self.queries.relation(written.query, name)
        streams = frozenset(s.name.name for s in self.read.streams)
        is_open = self.build.open_ticks(streams)
        values = [Column(f.name, f.type) for f in flow.schema]
        cells = tuple(Cell(v.name, v, None, None, steps=Size.named(MAXTIME)) for v in values)
        mask = Mask(TRUE, FALSE if is_open == TRUE else negated(is_open))
        steps = Literal(None, INTEGER)
        return View(name, flow.wired, cells, streams, steps=steps, mask=mask, is_open=is_open,
                    as_of=reason)  # fmt: skip

    def _seen(self, view: View) -> Flow:
        """The rows of a view that are in now, as a query of CQL sees them."""
        queue = view.queue
        if view.mask.is_in != TRUE:
            queue = self.build.wiring.add(Filter(view.mask.is_in), queue, name=f"{view.name}_in")
        names = {c.name: c.value.name for c in view.cells if isinstance(c.value, Column)}
        queue = self.build.wiring.columns(queue, names, f"{view.name}_in")
        return Flow(queue.name, queue.type)

    # --- what leaves ---

    def outputs(self) -> dict[str, Queue]:
        outputs: dict[str, Queue] = {}
        for word in (v.name for v in self.read.views):
            try:
                self.view(word)
            except Stop:
                continue  # noted
        for one in self.read.subscriptions:
            if one.view.name in outputs:
                message = f'"{one.view.name}" is subscribed to twice'
                self.faults.append(Fault(message, one.view.span))
                continue
            try:
                outputs[one.view.name] = self.output(one)
            except Stop:
                continue  # noted
        return outputs | self.asides

    def output(self, one: Subscription, *, is_served: bool = False) -> Queue:
        """The changes of a view as they leave; a broker is told which rows are in for ever."""
        view = self.view(one.view)
        if view.name in {s.name.name for s in self.read.streams}:
            hint = f"make a view of it, with all columns of {view.name}"
            stop(self.faults, "a stream is no view", one.view.span, hint)
        queue = self.build.timed(view.queue, [view.mask.is_in, view.is_final])
        if view.mask.is_in != TRUE:
            queue = self.build.wiring.add(Filter(view.mask.is_in), queue, name=f"{view.name}_in")
        columns = [Assign(c.name, c.value) for c in view.cells]
        if one.has_ranges and view.as_of is None:
            columns += _bounds(view.cells)
        if view.as_of is None:
            columns.append(Assign("_steps", view.steps))
        columns.append(Assign("_final", view.is_final))
        if view.as_of is not None:
            columns.append(Assign("_asof", TRUE))
        if is_served:
            columns.append(Assign(MASK_COLUMN, view.mask.is_sure))
        names = [c.name for c in columns]
        for name in names:
            if names.count(name) > 1:
                message = f'"{view.name}" has a column "{name}" already'
                stop(self.faults, message, one.view.span, "give it another name")
        queue = self.build.timed(queue, [c.term for c in columns])
        return self.build.wiring.add(Map(tuple(columns)), queue, name=f"{view.name}_changes")


def _bounds(cells: Sequence[Cell]) -> list[Assign]:
    """The bounds of columns that can still change; null where there is none."""
    made: list[Assign] = []
    for cell in cells:
        if cell.is_exact or not can_be_bounded(cell):
            continue
        for end, bound in (("low", cell.low), ("high", cell.high)):
            made.append(Assign(f"{cell.name}_{end}", bound or Literal(None, cell.type)))
        for stream, gain in (cell.gains or {}).items():
            for end, term in (("low", gain.low), ("high", gain.high)):
                if term != _NOTHING:
                    made.append(Assign(per_tick(cell, end, stream), term))
    return made


def per_tick(cell: Cell, end: str, stream: str) -> str:
    """The column that says how much an open tick of a stream may still add."""
    return f"{cell.name}_{end}_per_{stream}"


def counted_bounds(view: View) -> tuple[CountedBound, ...]:
    """The bounds that open ticks give, as `_bounds` has named their columns."""
    made: list[CountedBound] = []
    for cell in view.cells:
        for end in ("low", "high"):
            streams = {
                s: per_tick(cell, end, s)
                for s, gain in (cell.gains or {}).items()
                if (gain.low if end == "low" else gain.high) != _NOTHING
            }
            if streams and not cell.is_exact:
                made.append(CountedBound(f"{cell.name}_{end}", cell.name, streams))
    return tuple(made)


def sources_of(query: ast.Query) -> list[ast.Word]:
    """The names in the FROM clauses of a query, those of subqueries apart."""
    match query:
        case ast.Select(sources=sources):
            found: list[ast.Word] = []
            for joined in sources:
                source = joined.source
                found += (
                    [source.name] if isinstance(source, ast.Named) else sources_of(source.query)
                )
            return found
        case ast.Combined(left=left, right=right):
            return [*sources_of(left), *sources_of(right)]
        case ast.Streamed(query=inner) | ast.Final(inner) | ast.Early(inner):
            return sources_of(inner)
        case ast.Framed(source=source):
            return [source.name] if isinstance(source, ast.Named) else sources_of(source.query)
        case ast.With(views, inner):
            return [w for v in views for w in sources_of(v.query)] + sources_of(inner)
