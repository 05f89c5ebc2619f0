"""Statements of pipes: `name = pipe;` or `pipe;`, each read on its own.

s = readFromWrapper("SALES");
big = s -> filter $.amount > 10 -> transform {$.part, twice: $.amount * 2};
j = join b in big, p in read("PART") where b.part == p.part into {p.name, b.twice};
j -> istream -> cubify(config.conf);
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, NoReturn

from millstream.errors import Fault, listing, suggest
from millstream.queries import ast
from millstream.queries.read_terms import TermReader
from millstream.queries.tokens import Cursor, Stop, Token, tokens_of
from millstream.queries.windows import read_window
from millstream.source import Source, Span

_STREAMS = {"istream": ast.StreamOperator.ISTREAM, "dstream": ast.StreamOperator.DSTREAM,
            "rstream": ast.StreamOperator.RSTREAM}  # fmt: skip
_STEPS = ("window", "filter", "transform", "group", *_STREAMS, "cubify")
_NUMBER = re.compile(
    r"(?P<sign>[+-]?)(?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)", re.ASCII
)
_BEGINNINGS = 'readFromWrapper("STREAM"), read("RELATION"), join a in x, b in y, or a name'


@dataclass(frozen=True, slots=True)
class Piped:
    """What a pipe has come to: a source as a query can name it, or a cube."""

    source: ast.Named | ast.Nested
    is_stream: bool
    cube: Cubed | None = None


@dataclass(frozen=True, slots=True)
class Cubed:
    """The file of a cube, and what is made of its outputs."""

    file: str
    span: Span
    operator: ast.StreamOperator | None = None


class PipeReader:
    """Mutable: reads the statements of a text; `names` have values from outside."""

    def __init__(self, source: Source, names: Mapping[str, str]) -> None:
        self.source = source
        self.names = names
        self.faults: list[Fault] = []
        self.known: dict[str, Piped] = {}
        #: Names of pipes that nothing has been made of yet.
        self.unused: dict[str, ast.Word] = {}
        #: Streams and relations that come from outside, and whether they are relations.
        self.inputs: dict[str, tuple[ast.Word, bool]] = {}
        self.statements: list[ast.Statement] = []
        self.unnamed = {"query": 0, "cube": 0}
        self.has_lost_names = False

    def read(self) -> None:
        for part in _split(self._tokens()):
            cursor = Cursor(self.source, part, self.faults)
            try:
                self.statement(cursor)
            except Stop:  # its fault is noted; the next statement is read too
                self.has_lost_names = True
        if not self.statements and not self.faults:
            end = len(self.source.text)
            self.faults.append(Fault("this file has no pipe", Span(self.source, end, end)))

    def _tokens(self) -> list[Token]:
        """Texts in double quotes are texts, names that are set are what they are set to."""
        tokens = tokens_of(self.source, slashed=True)
        made: list[Token] = []
        for number, token in enumerate(tokens):
            after = tokens[number + 1].text if number + 1 < len(tokens) else ""
            is_part = bool(made) and made[-1].text == "."
            if token.kind == "quoted":
                made.append(replace(token, kind="string"))
            elif token.text in self.names and not is_part and after not in (".", ":", "="):
                made += _value_of(self.names[token.text], token.span)
            else:
                made.append(token)
        return _without_dollars(made)

    # --- statements ---

    def statement(self, cursor: Cursor) -> None:
        name = None
        if cursor.kind() == "word" and cursor.text(1) == "=":
            name = cursor.word("a name")
            cursor.require("=")
            if name.name in self.known:
                cursor.fail(f'"{name.name}" is defined more than once', name.span)
        start = cursor.span()
        piped = self.pipe(cursor)
        if not cursor.is_done:
            cursor.expected('"->" or ";"', f"steps are: {listing(_STEPS)}")
        if piped.cube is not None:
            self.statements.append(self._cube(name, piped, piped.cube, start))
        elif name is None:
            named = self._unnamed("query", start)
            self.statements.append(ast.Output(named, _query(piped)))
        else:
            self._define(name, piped)

    def _define(self, name: ast.Word, piped: Piped) -> None:
        """A source is known by its new name; a query becomes a view."""
        if isinstance(piped.source, ast.Nested):
            self.statements.append(ast.View(name, (), piped.source.query))
            source = ast.Named(name, None, piped.source.window, name.span)
            piped = Piped(source, piped.is_stream)
        self.known[name.name] = piped
        self.unused[name.name] = name

    def _cube(self, name: ast.Word | None, piped: Piped, cube: Cubed, start: Span) -> ast.Cube:
        word = name or self._unnamed("cube", start)
        self.known[word.name] = Piped(ast.Named(word, None, None, word.span), is_stream=False)
        return ast.Cube(word, _query(piped), cube.file, cube.span, cube.operator)

    def _unnamed(self, kind: str, span: Span) -> ast.Word:
        self.unnamed[kind] += 1
        number = self.unnamed[kind]
        return ast.Word(kind if kind == "cube" and number == 1 else f"{kind}{number}", span)

    # --- pipes ---

    def pipe(self, cursor: Cursor) -> Piped:
        start = cursor.span()
        piped = self.beginning(cursor)
        steps: dict[str, Callable[[Cursor, Piped, Span], Piped]] = {
            "window": self.window, "filter": self.filter, "transform": self.transform,
            "group": self.group, "cubify": self.cubify,
        }  # fmt: skip
        while cursor.take("->"):
            step = cursor.text()
            if step not in _STEPS:
                near = suggest(step, _STEPS) or ""
                cursor.expected("a step", f"steps are: {listing(_STEPS)}. {near}".strip())
            span = cursor.next().span
            if piped.cube is not None and (step not in _STREAMS or piped.cube.operator):
                hint = "give the cube a name, and begin another pipe with it"
                cursor.fail("only istream, dstream or rstream can follow cubify", span, hint)
            if step in _STREAMS:
                piped = self.streamed(cursor, piped, _STREAMS[step], span)
            else:
                piped = steps[step](cursor, piped, start)
        return piped

    def beginning(self, cursor: Cursor) -> Piped:
        word = cursor.text()
        if word in ("readfromwrapper", "read") and cursor.text(1) == "(":
            return self.outside(cursor, is_relation=word == "read")
        if word == "join":
            return self.join(cursor)
        if cursor.kind() != "word":
            cursor.expected("a pipe", f"it begins with {_BEGINNINGS}")
        name = cursor.word("a name")
        known = self.known.get(name.name)
        if known is None:
            if self.has_lost_names:
                raise Stop
            near = suggest(name.name, self.known) or ""
            hint = f"there are: {listing(self.known)}. {near}".strip()
            cursor.fail(f'unknown name "{name.name}"', name.span, hint)
        self.unused.pop(name.name, None)
        return known

    def outside(self, cursor: Cursor, *, is_relation: bool) -> Piped:
        """`readFromWrapper("S")`, with a flag that says nothing here, and `read("R")`."""
        cursor.at += 2
        span = cursor.span()
        word = ast.Word(cursor.string("the name of a stream, in quotes"), span, is_quoted=True)
        if not is_relation and cursor.take(","):
            if not (cursor.take("true") or cursor.take("false")):
                cursor.expected("true or false")
        cursor.require(")")
        before = self.inputs.setdefault(word.name, (word, is_relation))
        if before[1] != is_relation:
            message = f'"{word.name}" is read as a stream and as a relation'
            cursor.fail(message, span, f"first at {before[0].span.place}")
        return Piped(ast.Named(word, None, None, span), is_stream=not is_relation)

    def join(self, cursor: Cursor) -> Piped:
        start = cursor.next().span
        sources = cursor.separated(lambda: self.joined(cursor))
        where = None
        if len(sources) < 2:
            cursor.expected('"," and what is joined', "write join a in x, b in y where a.k == b.k")
        if cursor.take("where"):
            where = self.term(cursor)
        items: tuple[ast.Item | ast.Star, ...] = (ast.Star(None, start),)
        if cursor.take("into"):
            items = self.items(cursor, {})
        select = ast.Select(items, sources, cursor.since(start), where=where)
        return _nested(select, is_stream=False)

    def joined(self, cursor: Cursor) -> ast.Joined:
        alias = cursor.word("a name for what is joined")
        cursor.require("in")
        piped = self.pipe(cursor)
        if piped.cube is not None:
            hint = "give the cube a name, and join that"
            cursor.fail("a cube cannot be made inside of a join", piped.cube.span, hint)
        return ast.Joined(replace(piped.source, alias=alias))

    # --- steps ---

    def window(self, cursor: Cursor, piped: Piped, start: Span) -> Piped:
        if cursor.text(1) == "rows" and cursor.kind(2) == "word":
            cursor.at += 2
            word = cursor.text()
            cursor.fail(f'"{word}" is not set', hint=f"give it a value: --set {word}=10000")
        window = read_window(cursor)
        if window is None:
            cursor.expected("a window", "such as window[rows 10] or window[range 5 minutes]")
        if not piped.is_stream:
            hint = "put -> istream before it"
            cursor.fail("a window is of a stream, but this is a relation", window.span, hint)
        source = piped.source
        if isinstance(source, ast.Nested) and not isinstance(source.query, ast.Streamed):
            # Rows of a stream that were looked at one by one are a stream still.
            query = ast.Streamed(ast.StreamOperator.ISTREAM, source.query, source.span)
            source = replace(source, query=query)
        return Piped(replace(source, window=window), is_stream=False)

    def filter(self, cursor: Cursor, piped: Piped, start: Span) -> Piped:
        where = self.term(cursor)
        star = ast.Star(None, start)
        sources = (ast.Joined(piped.source),)
        select = ast.Select((star,), sources, cursor.since(start), where=where)
        return _nested(select, is_stream=piped.is_stream)

    def transform(self, cursor: Cursor, piped: Piped, start: Span) -> Piped:
        items = self.items(cursor, {})
        select = ast.Select(items, (ast.Joined(piped.source),), cursor.since(start))
        return _nested(select, is_stream=piped.is_stream)

    def group(self, cursor: Cursor, piped: Piped, start: Span) -> Piped:
        """`group [by k = $.a, ...] into {k, total: sum($[*].x)}`."""
        keys: dict[str, ast.Expression] = {}
        if cursor.take("by"):
            keys = dict(cursor.separated(lambda: self.key(cursor)))
        cursor.require("into")
        items = self.items(cursor, keys)
        sources = (ast.Joined(piped.source),)
        span = cursor.since(start)
        select = ast.Select(items, sources, span, group_by=tuple(keys.values()))
        return _nested(select, is_stream=False)

    def key(self, cursor: Cursor) -> tuple[str, ast.Expression]:
        if cursor.text(1) != "=":
            value = self.term(cursor)
            name = value.name.name if isinstance(value, ast.Reference) else ""
            return name, value
        name = cursor.word("the name of a key").name
        cursor.require("=")
        return name, self.term(cursor)

    def streamed(
        self, cursor: Cursor, piped: Piped, operator: ast.StreamOperator, span: Span
    ) -> Piped:
        if piped.cube is not None:
            return replace(piped, cube=replace(piped.cube, operator=operator))
        if piped.is_stream:
            message = f"{operator.value.lower()} takes a relation, but this is a stream"
            cursor.fail(message, span, "put a window before it, or leave it out")
        return _nested(ast.Streamed(operator, _query(piped), span), is_stream=True)

    def cubify(self, cursor: Cursor, piped: Piped, start: Span) -> Piped:
        """`cubify(config.conf)`."""
        cursor.require("(")
        first = span = cursor.span()
        while not cursor.is_done and cursor.text() != ")":
            cursor.next()
            span = cursor.since(first)
        cursor.require(")")
        file = span.text.strip("\"'")
        if file in ("", ")"):
            cursor.fail("cubify needs a configuration", span, "write cubify(config.conf)")
        if not piped.is_stream:
            hint = "write -> istream -> cubify(...), of what comes"
            cursor.fail("a cube is made of a stream, but this is a relation", span, hint)
        return replace(piped, cube=Cubed(file, span))

    # --- what is inside ---

    def items(
        self, cursor: Cursor, keys: Mapping[str, ast.Expression]
    ) -> tuple[ast.Item | ast.Star, ...]:
        """`{a.c, $.d, new: expression}`; a key stands for what it was set to."""
        cursor.require("{")
        items = cursor.separated(lambda: self.item(cursor, keys))
        cursor.require("}", 'a comma or "}"')
        return items

    def item(self, cursor: Cursor, keys: Mapping[str, ast.Expression]) -> ast.Item | ast.Star:
        start = cursor.span()
        alias = None
        if cursor.text(0) == "*" and cursor.text(1) in (",", "}"):
            return ast.Star(None, cursor.next().span)
        if cursor.kind() == "word" and cursor.text(1) == "." and cursor.text(2) == "*":
            owner = cursor.word("a name")
            cursor.at += 2
            return ast.Star(owner, cursor.since(start))
        if cursor.kind() == "word" and cursor.text(1) == ":":
            alias = cursor.word("a name")
            cursor.require(":")
        value = self.term(cursor)
        if isinstance(value, ast.Reference) and value.owner is None and value.name.name in keys:
            alias = alias or value.name
        return ast.Item(_with_keys(value, keys), alias, cursor.since(start))

    def term(self, cursor: Cursor) -> ast.Expression:
        def no_query() -> NoReturn:
            cursor.fail("a pipe has no queries inside expressions")

        return TermReader(cursor, no_query, is_script=False).term()


def _value_of(text: str, span: Span) -> list[Token]:
    """What stands for a name that is set: a number with its sign, true, false, null or a text."""
    if text in ("true", "false", "null"):
        return [Token("word", text, span)]
    match = _NUMBER.fullmatch(text)
    if match is None:
        return [Token("string", text, span)]
    sign = [Token("symbol", "-", span)] if match["sign"] == "-" else []
    return [*sign, Token("number", match["number"], span)]


def _with_keys(value: Any, keys: Mapping[str, ast.Expression]) -> Any:
    """An expression with what the keys of its group were set to."""
    if isinstance(value, ast.Reference) and value.owner is None:
        return keys.get(value.name.name, value)
    if isinstance(value, tuple):
        return tuple(_with_keys(one, keys) for one in value)
    if not is_dataclass(value) or isinstance(value, type | Span | ast.Word):
        return value
    parts = {f.name: getattr(value, f.name) for f in fields(value) if f.init}
    changed = {name: _with_keys(part, keys) for name, part in parts.items()}
    return replace(value, **{n: v for n, v in changed.items() if v is not parts[n]})


def _nested(query: ast.Query, *, is_stream: bool) -> Piped:
    return Piped(ast.Nested(query, None, None, query.span), is_stream)


def _query(piped: Piped) -> ast.Query:
    source = piped.source
    if isinstance(source, ast.Nested) and source.window is None:
        return source.query
    star = ast.Star(None, source.span)
    return ast.Select((star,), (ast.Joined(replace(source, alias=None)),), source.span)


def _split(tokens: Sequence[Token]) -> list[list[Token]]:
    parts: list[list[Token]] = [[]]
    for token in tokens:
        if (token.kind, token.text) == ("symbol", ";"):
            parts.append([])
        else:
            parts[-1].append(token)
    return [part for part in parts if part]


def _without_dollars(tokens: list[Token]) -> list[Token]:
    """`$.x` and `$[*].x` are the column x of what flows; `$[*]` alone is all rows of a group."""
    made: list[Token] = []
    at = 0
    while at < len(tokens):
        if (tokens[at].kind, tokens[at].text) != ("symbol", "$"):
            made.append(tokens[at])
            at += 1
            continue
        is_all = [t.text for t in tokens[at + 1 : at + 4]] == ["[", "*", "]"]
        after = at + (4 if is_all else 1)
        if after < len(tokens) and tokens[after].text == ".":
            at = after + 1
        else:
            made.append(Token("symbol", "*", tokens[at].span))
            at = after
    return made
