"""The statements of a file: declarations, views and queries, in two styles.

    register stream S (a integer) time at;       CREATE STREAM S (a INTEGER) TIME at;
                                                 CREATE STREAM S FROM 'a.parquet';
    vquery v : select ...;                       CREATE VIEW v AS SELECT ...;
    query q : select ...;                        CREATE OUTPUT q AS SELECT ...;

Each statement is read on its own, so that the faults of all are found at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from millstream.calculus.types import INTEGER, TIME
from millstream.errors import Fault, listing, suggest
from millstream.queries import ast
from millstream.queries.read import read_query
from millstream.queries.read_forms import read_type
from millstream.queries.tokens import Cursor, Stop, Token, tokens_of
from millstream.queries.translate import Read
from millstream.source import Source, Span

_OPTIONS = "TIME column, SLACK 2 SECONDS, HEARTBEAT 1 SECOND, KEY (column), FROM 'file', ONCE"
_STARTS = ("create", "register", "query", "vquery", "table", "vtable", "source", "dest",
           "select", "with", "istream", "dstream", "rstream", "(")  # fmt: skip


#: Gives a declaration without columns those of its source, or says why it cannot.
Declare = Callable[[ast.Declaration], ast.Declaration | Fault]


def read_statements(source: Source, declare: Declare) -> Read:
    reader = _StatementReader(source, declare)
    for part in _split(source, tokens_of(source)):
        try:
            reader.statement(part)
        except Stop:  # its fault is among those collected; the next statement is read too
            reader.has_lost_names |= not _is_output(part)
    reader.finish()
    return Read(tuple(reader.statements), reader.faults, reader.has_lost_names)


def _is_output(tokens: Sequence[Token]) -> bool:
    """Is it a query whose result no other can ask for?"""
    words = [token.text.lower() for token in tokens[:2]]
    return words[0] in ("select", "with", "query") or words == ["create", "output"]


def _split(source: Source, tokens: Sequence[Token]) -> list[list[Token]]:
    """The tokens between semicolons; `source : path` and `dest : path` end with their line."""
    parts: list[list[Token]] = [[]]
    for token in tokens:
        part = parts[-1]
        is_file = len(part) > 2 and part[0].text.lower() in ("source", "dest") \
            and part[1].text == ":"  # fmt: skip
        if (token.kind, token.text) == ("symbol", ";"):
            parts.append([])
        elif is_file and "\n" in source.text[part[-1].span.end : token.span.start]:
            parts.append([token])
        else:
            part.append(token)
    return [part for part in parts if part]


class _StatementReader:
    """Mutable: collects statements and faults."""

    def __init__(self, source: Source, declare: Declare) -> None:
        self.source = source
        self.declare = declare
        self.faults: list[Fault] = []
        self.statements: list[ast.Statement] = []
        #: A `vquery` whose name a `vtable` must give, and its place.
        self.unnamed_view: tuple[ast.Query, Span] | None = None
        self.unnamed = 0
        self.has_lost_names = False

    def finish(self) -> None:
        if self.unnamed_view is not None:
            self._complain_about_unnamed_view()
        if not self.statements and not self.faults:
            end = len(self.source.text)
            self.faults.append(Fault("this file has no statement", Span(self.source, end, end)))

    def statement(self, tokens: list[Token]) -> None:
        cursor = Cursor(self.source, tokens, self.faults)
        if self.unnamed_view is not None and cursor.text() != "vtable":
            self._complain_about_unnamed_view()
        if cursor.text() in ("source", "dest") and cursor.text(1) == ":":
            self.place(cursor)
        elif cursor.take("create"):
            self.create(cursor)
        elif cursor.text() in ("table", "vtable", "register"):
            self.register(cursor)
        elif cursor.text() in ("query", "vquery"):
            self.query(cursor)
        elif cursor.text() in _STARTS:
            self.output(None, cursor)
        else:
            near = suggest(cursor.text(), _STARTS)
            cursor.expected("a statement", near or "such as CREATE STREAM, CREATE VIEW or SELECT")

    def _complain_about_unnamed_view(self) -> None:
        assert self.unnamed_view is not None
        hint = "write vquery NAME : ..., or vtable : register stream NAME (...); after it"
        self.faults.append(Fault("this view has no name", self.unnamed_view[1], hint))
        self.unnamed_view = None
        self.has_lost_names = True

    # --- queries ---

    def rest(self, cursor: Cursor, *, is_script: bool = False) -> ast.Query:
        """The query of what is left, in a script that of the prototype's style."""
        if cursor.is_done:
            cursor.expected("a query")
        return read_query(cursor, is_script=is_script)

    def output(self, name: ast.Word | None, cursor: Cursor, *, is_script: bool = False) -> None:
        span = cursor.span()
        to = _destination(cursor)
        query = self.rest(cursor, is_script=is_script)
        if name is None:
            self.unnamed += 1
            name = ast.Word(f"query{self.unnamed}", span)
        self.statements.append(ast.Output(name, query, to))

    def query(self, cursor: Cursor) -> None:
        """`query [name] : select ...` and `vquery [name] : select ...`."""
        is_view = cursor.take("vquery")
        if not is_view:
            cursor.require("query")
        name = None
        if cursor.text() not in (":", "as"):
            name = cursor.word("a name or a colon")
        if not (cursor.take(":") or cursor.take("as")):
            cursor.expected('":"')
        span = cursor.span()
        if not is_view:
            self.output(name, cursor, is_script=True)
        elif name is not None:
            self.statements.append(ast.View(name, (), self.rest(cursor, is_script=True)))
        else:
            self.unnamed_view = (self.rest(cursor, is_script=True), span)

    def create(self, cursor: Cursor) -> None:
        kind = cursor.text()
        if kind in ("stream", "relation"):
            cursor.take(kind)
            self.statements.append(self.declaration(cursor, is_relation=kind == "relation"))
        elif kind in ("view", "output"):
            cursor.take(kind)
            name = cursor.word("a name")
            columns: tuple[ast.Word, ...] = ()
            if kind == "view" and cursor.take("("):
                columns = cursor.words("a column")
                cursor.require(")")
            cursor.require("as")
            if kind == "output":
                self.output(name, cursor)
            else:
                self.statements.append(ast.View(name, columns, self.rest(cursor)))
        elif cursor.take("cube"):
            self.cube(cursor)
        else:
            known = ("STREAM", "RELATION", "VIEW", "OUTPUT", "CUBE")
            cursor.expected(listing(known), suggest(kind.upper(), known) if kind else None)

    def cube(self, cursor: Cursor) -> None:
        """`CREATE CUBE name FROM query WITH 'file'`; the query may be a name."""
        name = cursor.word("a name")
        cursor.require("from")
        tokens = cursor.tokens
        if len(tokens) < 2 or tokens[-1].kind != "string" or tokens[-2].text.lower() != "with":
            cursor.at = len(tokens)
            cursor.expected("WITH 'config.conf'", "a cube needs a configuration")
        cursor.tokens = tokens[:-2]
        if len(cursor.tokens) == cursor.at + 1 and cursor.kind() in ("word", "quoted"):
            source = cursor.word("a stream")
            star = ast.Star(None, source.span)
            named = ast.Named(source, None, None, source.span)
            query: ast.Query = ast.Select((star,), (ast.Joined(named),), source.span)
        else:
            query = self.rest(cursor)
        self.statements.append(ast.Cube(name, query, tokens[-1].text, tokens[-1].span))

    def register(self, cursor: Cursor) -> None:
        """`[table :] register stream ...`; `vtable :` names the view before it."""
        is_of_view = cursor.take("vtable")
        if is_of_view or cursor.take("table"):
            cursor.require(":")
        cursor.require("register")
        kind = cursor.text()
        if kind not in ("stream", "relation"):
            cursor.expected("stream or relation")
        cursor.take(kind)
        declared = self.declaration(
            cursor, is_relation=kind == "relation", has_options=not is_of_view
        )
        if not is_of_view:
            self.statements.append(declared)
            return
        name = declared.name
        if self.unnamed_view is None:
            cursor.fail("a vtable names the vquery before it, but there is none", name.span)
        query, _ = self.unnamed_view
        self.unnamed_view = None
        columns = tuple(c.name for c in declared.columns)
        self.statements.append(ast.View(name, columns, query, declared))

    def place(self, cursor: Cursor) -> None:
        """`source : file` of the declaration before, `dest : file` of the query before."""
        is_source = cursor.text() == "source"
        span = cursor.span()
        cursor.at += 2
        if cursor.is_done:
            cursor.expected("a file")
        first, last = cursor.tokens[cursor.at], cursor.tokens[-1]
        text = first.span.to(last.span).text.strip("'\"")
        before = self.statements[-1] if self.statements else None
        if is_source and isinstance(before, ast.Declaration) and before.source is None:
            self.statements[-1] = replace(before, source=text)
        elif not is_source and isinstance(before, ast.Output) and before.to is None:
            self.statements[-1] = replace(before, to=text)
        else:
            what = "a declaration" if is_source else "a query"
            cursor.fail(f"this must follow {what} that has no file yet", span)

    # --- declarations ---

    def declaration(
        self, cursor: Cursor, *, is_relation: bool, has_options: bool = True
    ) -> ast.Declaration:
        name = cursor.word("a name")
        columns: list[ast.Declared] = []
        keys: list[ast.Word] = []
        if cursor.is_done or cursor.text() == "(" or not has_options:
            self.columns(cursor, columns, keys)
        declared = ast.Declaration(name, is_relation, tuple(columns))
        given: set[str] = set()
        while not cursor.is_done and has_options:
            if cursor.text() in given:
                cursor.fail(f"{cursor.text().upper()} is said twice")
            given.add(cursor.text())
            declared = self.option(cursor, declared, keys)
        if not cursor.is_done or (keys and not has_options):
            cursor.fail("a vtable only names the columns of the vquery before it")
        declared = replace(declared, key=tuple(keys))
        if not columns:
            declared = self.declared_by_source(cursor, declared)
        self.check(declared)
        return declared

    def columns(self, cursor: Cursor, columns: list[ast.Declared], keys: list[ast.Word]) -> None:
        cursor.require("(", "( and the columns")
        while True:
            if not self.key(cursor, keys):
                columns.append(self.column(cursor, keys))
            if not cursor.take(","):
                break
        cursor.require(")", 'a comma or ")"')

    def declared_by_source(self, cursor: Cursor, declaration: ast.Declaration) -> ast.Declaration:
        if declaration.source is None:
            name = declaration.name
            hint = f"write {name.name} (column type, ...), or FROM 'file' to take its columns"
            cursor.fail("this has no columns", name.span, hint)
        declared = self.declare(declaration)
        if isinstance(declared, Fault):
            cursor.fail(declared.message, declared.span, declared.hint)
        return declared

    def column(self, cursor: Cursor, keys: list[ast.Word]) -> ast.Declared:
        name = cursor.word("a column")
        type_ = read_type(cursor)
        if cursor.take("primary", "key") or cursor.take("key"):
            keys.append(name)
        return ast.Declared(name, type_)

    def key(self, cursor: Cursor, keys: list[ast.Word]) -> bool:
        """`[PRIMARY] KEY (a, b)`."""
        words = ("primary", "key") if cursor.text() == "primary" else ("key",)
        if cursor.text(len(words)) != "(" or not cursor.take(*words):
            return False
        cursor.require("(")
        keys += cursor.words("a column")
        cursor.require(")")
        return True

    def option(
        self, cursor: Cursor, declared: ast.Declaration, keys: list[ast.Word]
    ) -> ast.Declaration:
        if self.key(cursor, keys):
            return declared
        if cursor.take("time") or cursor.take("timestamp"):
            cursor.take("by")
            return replace(declared, time=cursor.word("the column of the event time"))
        if cursor.take("slack"):
            return replace(declared, slack=cursor.duration("a slack"))
        if cursor.take("heartbeat"):
            cursor.take("every")
            span = cursor.span()
            every = cursor.duration("a heartbeat")
            if every < 1:
                cursor.fail("a heartbeat must be longer than nothing", span)
            return replace(declared, heartbeat=every)
        if cursor.take("from") or cursor.take("source"):
            return replace(declared, source=cursor.string("a file in quotes"))
        cursor.take("read")
        if cursor.take("once"):
            return replace(declared, is_read_once=True)
        cursor.expected("an option or the end", f"options are: {_OPTIONS}")

    def check(self, declared: ast.Declaration) -> None:
        """Options that contradict each other."""

        def fail(message: str, span: Span, hint: str | None = None) -> None:
            self.faults.append(Fault(message, span, hint))

        names = [c.name.name for c in declared.columns]
        for number, column in enumerate(declared.columns):
            if column.name.name in names[:number]:
                fail(f'there are two columns "{column.name.name}"', column.name.span)
        for key in declared.key:
            if key.name not in names:
                hint = (
                    f"{declared.name.name} has: {listing(names)}. {suggest(key.name, names) or ''}"
                )
                fail(f'unknown column "{key.name}"', key.span, hint.strip())
        if declared.key and not declared.is_relation:
            fail("a stream has no key: its rows are never replaced", declared.key[0].span,
                 "declare a relation, or use [Partition By key Rows 1]")  # fmt: skip
        timed = next(
            (c for c in declared.columns if declared.time and c.name.name == declared.time.name),
            None,
        )
        if timed is not None and timed.type not in (TIME, INTEGER):
            assert declared.time is not None
            fail(f'"{timed.name.name}" is a {timed.type}, but an event time must be a time',
                 declared.time.span)  # fmt: skip
        if declared.is_read_once and not declared.is_relation:
            fail("only a relation can be read once", declared.name.span)
        if declared.is_read_once and declared.time is not None:
            fail("a relation that is read once has no times", declared.time.span)
        if declared.is_read_once and (declared.slack or declared.heartbeat):
            fail(
                "a relation that is read once has neither slack nor heartbeats", declared.name.span
            )


def _destination(cursor: Cursor) -> str | None:
    """The file after a final `TO`, if there is one; the cursor ends before it."""
    tokens = cursor.tokens
    if len(tokens) < 3 or tokens[-1].kind != "string" or tokens[-2].text.lower() != "to":
        return None
    cursor.tokens = tokens[:-2]
    return tokens[-1].text
