"""From the statements of a file to one program of the calculus.

The shape is that of the paper: one operator for each operator of the query, with its
state in variables of its own. What can be done better is left to the optimiser.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NoReturn

from millstream.calculus import functions
from millstream.calculus.graph import Input, Program
from millstream.calculus.library.cube import add_cube, cube_warnings, written_cube
from millstream.calculus.library.cube_changing import overlapping
from millstream.calculus.terms import Call, Column, Literal, Term
from millstream.calculus.types import INTEGER, NUMBER, Field, QueueType, Schema
from millstream.calculus.wiring import Queue
from millstream.errors import CheckError, Fault, MillstreamError, ParseError, listing, suggest
from millstream.queries import ast
from millstream.queries.build import Builder, Flow, KnownSource
from millstream.queries.early import Early
from millstream.queries.frames import Framing
from millstream.queries.joins import JoinedSource
from millstream.queries.scope import ROW_TIME, Names
from millstream.queries.select import SelectTranslator
from millstream.queries.sets import SetOperation
from millstream.queries.sources import Windows
from millstream.queries.terms import names_time
from millstream.queries.tokens import Stop, stop
from millstream.source import Source, Span


@dataclass(frozen=True)
class Read:
    """The statements of a text that can be read, and what is wrong with the others.

    `has_lost_names`: some of the others may have defined what these ask for.
    """

    statements: tuple[ast.Statement, ...]
    faults: list[Fault]
    has_lost_names: bool
    #: How something is asked for, for a text that asks for nothing.
    how_to_ask: str = "write CREATE OUTPUT name AS SELECT ..., or just SELECT ..."
    #: Streams and relations of others, which could be read as well.
    elsewhere: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Translated:
    """A verified program, where its text says that things lie, and what is odd in it."""

    program: Program
    sources: Mapping[str, str]
    sinks: Mapping[str, str]
    warnings: tuple[Fault, ...]


#: From the name of a file in a text to that file.
ReadFile = Callable[[str], Source]


def translate(read: Read, read_file: ReadFile) -> Translated:
    """The verified program of some statements, or an error with every fault.

    Where statements that could not be read may have defined anything, names that are not
    known are no faults.
    """
    statements, unread = read.statements, read.faults
    translator = Translator(read_file, knows_all=not read.has_lost_names)
    translator.elsewhere = read.elsewhere
    translator.later = [statement.name.name for statement in statements]
    for statement in statements:
        translator.statement(statement)
        translator.later.remove(statement.name.name)
    program: Program | None = None
    asks = bool(translator.outputs) or translator.has_cubes
    if asks and not (unread or translator.faults):
        program = translator.builder.program(tuple(translator.inputs), translator.outputs)
        program = translator.early.marked(program)
    faults = [*unread, *translator.faults]
    if not (asks or faults):
        last = statements[-1]
        faults.append(Fault("this file has no query", last.name.span, read.how_to_ask))
    if faults:
        in_order = sorted(faults, key=lambda f: f.span.start if f.span else 0)
        raise (ParseError if unread else CheckError)(in_order)
    assert program is not None, "a file without faults asks for something"
    used = set(program.input_names)
    sources = {name: text for name, text in translator.sources.items() if name in used}
    return Translated(program, sources, translator.sinks, cube_warnings(program))


class Translator:
    """Mutable: what is known so far, the operators and the faults."""

    def __init__(self, read_file: ReadFile, *, knows_all: bool) -> None:
        self.read_file = read_file
        self.knows_all = knows_all
        #: What this text could read as well, if it named it as others do.
        self.elsewhere: tuple[str, ...] = ()
        #: Names of the statements that have not been taken in yet, the current one included.
        self.later: list[str] = []
        self.faults: list[Fault] = []
        self.builder = Builder(self.faults)
        self.known: dict[str, KnownSource] = {}
        #: What the query sees around the subquery that is translated.
        self.around: Names | None = None
        #: Whether windows of time are told when they have ended, and how many there are.
        self.is_final = False
        self.framed_count = 0
        self.early = Early(self)
        self.windows = Windows(self.builder, self.early, self.faults)
        self.has_faulty_views = False
        self.inputs: list[Input] = []
        self.outputs: dict[str, Flow] = {}
        self.sources: dict[str, str] = {}
        self.sinks: dict[str, str] = {}
        self.has_cubes = False

    # --- statements ---

    def statement(self, statement: ast.Statement) -> None:
        """Take in a statement; what is wrong with it is noted, and the next can be read."""
        name = statement.name.name
        if name in self.known or name in self.outputs:
            message = f'"{name}" is defined more than once'
            self.faults.append(Fault(message, statement.name.span))
            return
        before = len(self.faults)
        # No hidden column leaves a statement, and equal statements should look equal.
        self.builder.hidden_columns = 0
        flow = None
        try:
            match statement:
                case ast.Declaration():
                    self.declare(statement)
                case ast.View():
                    flow = self.view(statement, name)
                case ast.Output():
                    self.output(statement)
                case ast.Cube():
                    self.cube(statement)
        except Stop:
            # Its fault is noted, and what hangs on it is left out without further ado.
            assert len(self.faults) > before or self.has_faulty_views or not self.knows_all
        if isinstance(statement, ast.View):
            scope = dict(self.known)
            self.known[name] = KnownSource(
                statement.name, flow, is_declared=False, view=statement, scope=scope
            )
            self.has_faulty_views |= flow is None

    def declare(self, declaration: ast.Declaration) -> None:
        name = declaration.name.name
        schema = Schema(tuple(Field(c.name.name, c.type) for c in declaration.columns))
        # A key of unknown columns has been told where the declaration was read.
        is_keyed = (
            bool(declaration.key)
            and not declaration.is_read_once
            and all(k.name in schema for k in declaration.key)
        )
        type_ = QueueType(schema, declaration.is_relation and not is_keyed)
        time = declaration.time.name if declaration.time else None
        self.inputs.append(
            Input(
                name,
                type_,
                time,
                declaration.slack,
                declaration.name.span,
                declaration.is_read_once,
                is_keyed,
            )
        )
        self.builder.wiring.names.add(name)
        if declaration.source is not None:
            self.sources[name] = declaration.source
        beats = (
            frozenset((declaration.heartbeat,))
            if declaration.heartbeat is not None
            else frozenset[int]()
        )
        flow = Flow(name, type_, declaration.is_read_once, beats)
        if is_keyed:
            keys = tuple(k.name for k in declaration.key)
            flow = self.builder.add(
                functions.Latest(keys),
                flow,
                name=f"{name}_latest",
                span=declaration.name.span,
                is_monotone=False,
            )
        self.known[name] = KnownSource(declaration.name, flow, is_declared=True)

    def view(self, view: ast.View, prefix: str) -> Flow:
        flow = self.query(view.query, prefix)
        if view.columns and len(view.columns) != len(flow.schema):
            self.complain_about_names(flow, view.columns, "this view")
        flow = self.renamed(flow, view.columns, prefix)
        return flow if view.declared is None else self.as_declared(flow, view.declared, prefix)

    def renamed(self, flow: Flow, words: Sequence[ast.Word], prefix: str) -> Flow:
        """The flow with other names for its first columns."""
        if not words:
            return flow
        if len(words) > len(flow.schema):
            self.complain_about_names(flow, words, "this")
        old = flow.schema.names
        new = [*(w.name for w in words), *old[len(words) :]]
        for number, word in enumerate(words):
            if word.name in [*new[:number], *old[len(words) :]]:
                self.fail(f'there are two columns "{word.name}"', word.span)
        mapping = dict(zip(new, old, strict=True))
        return self.builder.columns(flow, mapping, f"{prefix}_columns", words[0].span)

    def complain_about_names(self, flow: Flow, words: Sequence[ast.Word], what: str) -> NoReturn:
        has = f"{what} has the columns {listing(flow.schema.names)}"
        span = words[0].span.to(words[-1].span)
        self.fail(f"{has}, but here are names for {len(words)}", span)

    def as_declared(self, flow: Flow, declared: ast.Declaration, prefix: str) -> Flow:
        """A view whose `vtable` says what its columns hold, and whether it is a stream."""
        is_stream = not flow.type.is_relation
        if is_stream == declared.is_relation and (is_stream or not flow.is_monotone):
            this, other = ("stream", "relation") if is_stream else ("relation", "stream")
            message = f"this query gives a {this}, but is registered as a {other}"
            hint = f"write register {this} {declared.name.name} (...)"
            self.fail(message, declared.name.span, hint)
        columns: list[functions.Assign] = []
        before = len(self.faults)
        for column, field in zip(declared.columns, flow.schema, strict=True):
            term: Term = Column(field.name, field.type)
            if field.name in flow.untyped:
                term = Literal(None, column.type)
            elif (field.type, column.type) == (INTEGER, NUMBER):
                term = Call("number", (term,), NUMBER)
            elif field.type != column.type:
                message = f'"{field.name}" is declared as {column.type}, but holds {field.type}'
                hint = "declare it as float, or make it an integer with integer(...) or a DIV b"
                is_wider = (field.type, column.type) == (NUMBER, INTEGER)
                fault = Fault(message, column.name.span, hint if is_wider else None)
                self.faults.append(fault)
            columns.append(functions.Assign(field.name, term))
        if len(self.faults) > before:
            raise Stop
        if all(c.term == Column(c.name, f.type) for c, f in zip(columns, flow.schema, strict=True)):
            return flow
        name = f"{prefix}_columns"
        return self.builder.add(
            functions.Map(tuple(columns)), flow, name=name, span=declared.name.span
        )

    def fail(self, message: str, span: Span | None, hint: str | None = None) -> NoReturn:
        stop(self.faults, message, span, hint)

    def output(self, output: ast.Output) -> None:
        name = output.name.name
        query = output.query
        if isinstance(query, ast.Early):
            with self.early.told(name):
                flow = self.query(query.query, name)
        else:
            flow = self.query(query, name)
        flow = self.timeless(flow, name, query.span)
        if flow.type.is_relation and flow.is_monotone:
            # What only ever grows is a stream of what comes, by the language's default.
            span = output.query.span
            flow = self.builder.add(functions.Istream(), flow, name=f"{name}_istream", span=span)
        self.outputs[name] = flow
        self.builder.wiring.names.add(name)
        if output.to is not None:
            self.sinks[name] = output.to

    def timeless(self, flow: Flow, prefix: str, span: Span) -> Flow:
        """What leaves has a `_time` of its own: that of its rows is called `time` there."""
        if ROW_TIME not in flow.schema:
            return flow
        if "time" in flow.schema:
            hint = "write _time AS another name"
            self.fail(
                '_time is called "time" in what leaves, and there is such a column', span, hint
            )
        names = {"time" if n == ROW_TIME else n: n for n in flow.schema.names}
        return self.builder.columns(flow, names, f"{prefix}_columns", span)

    def cube(self, cube: ast.Cube) -> None:
        """The vertices that leave a cube; other queries can read them by their names."""
        name, span = cube.name.name, cube.query.span
        flow = self.timeless(self.query(cube.query, name), name, span)
        if flow.type.is_relation and flow.is_monotone:
            flow = self.builder.add(functions.Istream(), flow, name=f"{name}_istream", span=span)
        if flow.type.is_relation:
            message = "a cube is made of a stream, but this query is a relation"
            self.fail(message, span, "write FROM (SELECT ISTREAM(*) FROM ...), of what comes")
        try:
            source = self.read_file(cube.file)
        except MillstreamError as error:
            self.fail(f'cannot read "{cube.file}"', cube.span, error.faults[0].message)
        versions = self.versions()
        schemas = {known: queue.schema for known, queue in versions.items()}
        made_of = written_cube(source, flow.schema, schemas, self.faults)
        if made_of is None:
            raise Stop
        self.has_cubes = True
        if overlaps := overlapping(self.builder.wiring, versions, made_of):
            self.faults += overlaps
            raise Stop
        for output, queue in add_cube(
            self.builder.wiring, flow.wired, made_of, name, cube.name.span, versions
        ).items():
            made = Flow(queue.name, queue.type, beats=flow.beats)
            self.known[output] = KnownSource(cube.name, made, is_declared=False)
            if cube.operator is not None:
                made = self.to_stream(cube.operator, made, output, cube.span)
            self.outputs[output] = made

    def versions(self) -> dict[str, Queue]:
        """All that there is, of which a cube may take the versions of its members."""
        flows = {name: known.flow for name, known in self.known.items()}
        return {name: flow.wired for name, flow in flows.items() if flow is not None}

    # --- queries ---

    def query(self, query: ast.Query, prefix: str) -> Flow:
        match query:
            case ast.Streamed():
                return self.streamed(query, prefix)
            case ast.Select():
                return SelectTranslator(self, query, prefix).flow()
            case ast.Combined():
                return self.combined(query, prefix)
            case ast.With():
                with self.local(query.views, prefix):
                    return self.query(query.query, prefix)
            case ast.Framed():
                self.framed_count += 1
                return Framing(self, query, prefix).flow()
            case ast.Final():
                return self.final(query, prefix)
            case ast.Early():
                hint = (
                    "write it behind the query of an output; the views that it reads are early too"
                )
                self.fail("EMIT EARLY is of what leaves", query.span, hint)

    def final(self, query: ast.Final, prefix: str) -> Flow:
        """The stream of the answers for windows that have ended."""
        why = "it tells a window when no row can come to it any more"
        self.early.refuse("EMIT FINAL", query.span, why)
        outside, before = self.is_final, self.framed_count
        self.is_final = True
        try:
            flow = self.query(query.query, prefix)
        finally:
            self.is_final = outside
        if self.framed_count == before:
            hint = "it has none of TUMBLE, HOP and SESSION; leave EMIT FINAL out"
            self.fail("EMIT FINAL is of a query with windows of time", query.span, hint)
        if not flow.type.is_relation:
            return flow
        return self.to_stream(ast.StreamOperator.ISTREAM, flow, prefix, query.span)

    @contextmanager
    def local(self, views: Sequence[ast.View], prefix: str) -> Iterator[None]:
        """Names that are known for as long as a query is translated; they hide others."""
        outside = dict(self.known)
        try:
            names = [v.name.name for v in views]
            for number, view in enumerate(views):
                if view.name.name in names[:number]:
                    message = f'"{view.name.name}" is defined more than once'
                    stop(self.faults, message, view.name.span)
                flow = None
                try:
                    flow = self.view(view, f"{prefix}_{view.name.name}")
                except Stop:
                    self.has_faulty_views = True  # its fault is noted; the others are looked at
                self.known[view.name.name] = KnownSource(
                    view.name, flow, is_declared=False, is_early=self.early.is_on
                )
            yield
        finally:
            self.known = outside

    @contextmanager
    def inside(self, names: Names) -> Iterator[None]:
        """While a subquery is translated of a query that sees these names."""
        before, self.around = self.around, names
        try:
            yield
        finally:
            self.around = before

    def relation(self, query: ast.Query, prefix: str) -> Flow:
        """The relation of a subquery, which must not be a stream."""
        flow = self.query(query, prefix)
        if not flow.type.is_relation:
            message = "a relation is needed here, but this query is a stream"
            hint = "leave out Istream, Dstream or Rstream, or put a window after the query"
            stop(self.faults, message, query.span, hint)
        return flow

    def streamed(self, query: ast.Streamed, prefix: str) -> Flow:
        why = "a stream cannot be taken back; leave it out, and the answer is a relation"
        self.early.refuse(query.operator.value, query.span, why)
        flow = self.query(query.query, prefix)
        operator = query.operator
        if not flow.type.is_relation:
            message = f"{operator.value} takes a relation, but this query is already a stream"
            hint = "put a window after the inner query, or take one of the two away"
            stop(self.faults, message, query.span, hint)
        return self.to_stream(operator, flow, prefix, query.span)

    def to_stream(self, operator: ast.StreamOperator, flow: Flow, prefix: str, span: Span) -> Flow:
        function: functions.Function = {
            ast.StreamOperator.ISTREAM: functions.Istream(),
            ast.StreamOperator.DSTREAM: functions.Dstream(),
            ast.StreamOperator.RSTREAM: functions.Rstream(tuple(sorted(flow.beats))),
        }[operator]
        name = f"{prefix}_{operator.value.lower()}"
        return self.builder.add(function, flow, name=name, span=span, is_monotone=False)

    # --- sources ---

    def parts(self, query: ast.Select, prefix: str) -> list[JoinedSource]:
        """The sources of a FROM clause; the faults of all of them are noted."""
        parts: list[JoinedSource] = []
        sources, shows_time = query.sources, names_time(query)
        for number, joined in enumerate(sources, 1):
            try:
                name = f"subquery{number}"
                part = self.part(joined, f"{prefix}_from{number}", name, shows_time=shows_time)
                parts.append(part)
            except Stop:
                continue  # its fault is noted; the other sources are looked at too
        if len(parts) < len(sources):
            raise Stop
        return parts

    def part(self, joined: ast.Joined, prefix: str, name: str, *, shows_time: bool) -> JoinedSource:
        """A source under its alias, or the name it is given."""
        source = joined.source
        if isinstance(source, ast.Named):
            flow, is_declared = self.named(source.name)
            name = self.find(source.name).word.name
        else:
            flow, is_declared = self.query(source.query, prefix), False
        flow = self.windows.windowed(flow, source, is_declared=is_declared, shows_time=shows_time)
        name = source.alias.name if source.alias else name
        return JoinedSource(self.renamed(flow, source.columns, prefix), name, joined)

    def named(self, word: ast.Word) -> tuple[Flow, bool]:
        """What has that name, and whether it comes from outside."""
        known = self.find(word)
        if known.flow is None:
            raise Stop  # what it hangs on is at fault, and that has been said
        if self.early.is_on:
            return self.early.flow(known, word.span), known.is_declared
        return known.flow, known.is_declared

    def look_up(self, word: ast.Word) -> KnownSource | None:
        """What has that name, by letter or else in any case."""
        known = self.known.get(word.name)
        if known is None and not word.is_quoted:
            loose = [k for n, k in self.known.items() if n.lower() == word.name.lower()]
            known = loose[0] if len(loose) == 1 else None
        return known

    def find(self, word: ast.Word) -> KnownSource:
        known = self.look_up(word)
        if known is None and not self.knows_all:
            raise Stop
        if known is None:
            names = list(dict.fromkeys((*self.known, *self.elsewhere)))
            hint = f"there are: {listing(names)}. {suggest(word.name, names) or ''}".strip()
            if not names:
                hint = "streams and relations are declared before they are read"
            if word.name in self.outputs:
                hint = "it is the result of a query; name it as a view to read it again"
            if word.name in self.later:
                hint = (
                    "it is defined by this statement or by a later one; a view reads earlier ones"
                )
            stop(self.faults, f'unknown stream or relation "{word.name}"', word.span, hint)
        return known

    # --- set operations ---

    def combined(self, query: ast.Combined, prefix: str) -> Flow:
        sides: list[Flow] = []
        for one, word in ((query.left, "left"), (query.right, "right")):
            try:
                sides.append(self.relation(one, f"{prefix}_{word}"))
            except Stop:
                continue  # its fault is noted; the other side is looked at too
        if len(sides) < 2:
            raise Stop
        return SetOperation(self.builder, prefix, self.faults, query).combined(*sides)
