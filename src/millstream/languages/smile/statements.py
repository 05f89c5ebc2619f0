"""The statements of a file: types, streams, views and subscriptions, each read on its own.

CREATE TYPE lot AS INTEGER BETWEEN 0 AND 1000;
CREATE STREAM Buys (buyid: time -> issue: string, #bid: lot) SLACK 2 SECONDS;
CREATE VIEW Sums (SELECT issue, SUM(#bid) AS total FROM Buys GROUP BY issue);
subscriptions Sums WITH RANGES;
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from millstream.calculus.types import DURATION, INTEGER, NUMBER, TIME, Type
from millstream.errors import Fault, listing, suggest
from millstream.languages.smile.extent import Extent, Size
from millstream.queries import ast
from millstream.queries.names import SHOWN_TYPES, TYPES
from millstream.queries.read import QueryReader
from millstream.queries.read_forms import read_type
from millstream.queries.tokens import Cursor, Stop, Token, tokens_of
from millstream.source import Source, Span
from millstream.values.instants import parse_time

_OPTIONS = (
    "SLACK 2 SECONDS, FROM 'file', UNTIL '2026-12-31T17:00:00Z', HEARTBEAT 5 SECONDS, TIES SHIFT"
)
_STARTS = ("create", "subscriptions")
#: What a select list calls an aggregate that the calculus does not have, and a window.
LATEST, WINDOW = "latest", "window"
#: Sources that are written as calls.
MERGE, QUIET = "merge", "quiet"


@dataclass(frozen=True, slots=True)
class Domain:
    """The values that a column may have."""

    name: str
    type: Type
    low: int | float | None = None
    high: int | float | None = None

    def extent(self, column: str) -> Extent:
        """Its bounds; those that nobody has given have names."""
        if self.type not in (INTEGER, NUMBER):
            return Extent()
        low = Size.number(self.low) if self.low is not None else Size.named(f"MIN({column})")
        high = Size.number(self.high) if self.high is not None else Size.named(f"MAX({column})")
        return Extent(low, high)


#: Types that every file has.
DOMAINS = {
    "shares": Domain("shares", INTEGER, 0),
    "centspershare": Domain("centspershare", INTEGER, 0),
}


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream: its key is a tick of time, at which there is one row or none."""

    name: ast.Word
    key: ast.Word
    columns: tuple[tuple[ast.Word, Domain], ...]
    slack: int = 0
    source: str | None = None
    until: int | None = None
    shifts_ties: bool = False
    #: A broker declares ticks silent that lie so far behind its clock; of files it says nothing.
    heartbeat: int | None = None


@dataclass(frozen=True, slots=True)
class Called:
    """`MERGE(A, B)`, or `QUIET(S BY k, 3 MINUTES)`; its name is how it is written."""

    name: str
    is_merge: bool
    sources: tuple[ast.Word, ...]
    span: Span
    by: tuple[ast.Word, ...] = ()
    length: int = 0


@dataclass(frozen=True, slots=True)
class Subscription:
    view: ast.Word
    has_ranges: bool


@dataclass(frozen=True)
class ReadText:
    """What a text says, and what is wrong with it."""

    streams: tuple[Stream, ...]
    views: tuple[ast.View, ...]
    subscriptions: tuple[Subscription, ...]
    calls: tuple[Called, ...]
    faults: list[Fault]
    has_lost_names: bool


def read_statements(source: Source) -> ReadText:
    reader = _Reader(source)
    parts = _split(tokens_of(source, hashed=True))
    is_type = [[t.text.lower() for t in part[:2]] == ["create", "type"] for part in parts]
    # Types first: a stream may use one that is declared after it.
    ordered = [p for p, one in zip(parts, is_type, strict=True) if one]
    ordered += [p for p, one in zip(parts, is_type, strict=True) if not one]
    for part in ordered:
        try:
            reader.statement(Cursor(source, part, reader.faults))
        except Stop:  # its fault is among those collected; the next statement is read too
            reader.has_lost_names |= part[0].text.lower() != "subscriptions"
    return ReadText(
        tuple(reader.streams), tuple(reader.views), tuple(reader.subscriptions),
        tuple(reader.calls), reader.faults,
        reader.has_lost_names,
    )  # fmt: skip


def _split(tokens: Sequence[Token]) -> list[list[Token]]:
    """The tokens between semicolons."""
    parts: list[list[Token]] = [[]]
    for token in tokens:
        if (token.kind, token.text) == ("symbol", ";"):
            parts.append([])
        else:
            parts[-1].append(token)
    return [part for part in parts if part]


class _Reader:
    """Mutable: collects statements and faults."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.faults: list[Fault] = []
        self.domains = dict(DOMAINS)
        self.streams: list[Stream] = []
        self.views: list[ast.View] = []
        self.subscriptions: list[Subscription] = []
        self.calls: list[Called] = []
        self.has_lost_names = False

    def statement(self, cursor: Cursor) -> None:
        if cursor.take("create"):
            kinds = {"type": self.type, "stream": self.stream, "view": self.view}
            kind = cursor.text()
            if kind not in kinds:
                known = ("TYPE", "STREAM", "VIEW")
                cursor.expected(listing(known), suggest(kind.upper(), known) if kind else None)
            cursor.next()
            kinds[kind](cursor)
        elif cursor.take("subscriptions") or cursor.take("subscription"):
            self.subscriptions += cursor.separated(lambda: self.subscription(cursor))
        else:
            hint = "such as CREATE STREAM, CREATE VIEW or subscriptions V;"
            cursor.expected("a statement", suggest(cursor.text(), _STARTS) or hint)
        if not cursor.is_done:
            cursor.expected('";"')

    def subscription(self, cursor: Cursor) -> Subscription:
        view = cursor.word("a view")
        has_ranges = cursor.take("with")
        if has_ranges:
            cursor.require("ranges", "RANGES")
        return Subscription(view, has_ranges)

    # --- types ---

    def type(self, cursor: Cursor) -> None:
        name = cursor.word("a name")
        cursor.require("as", "AS and a type")
        span = cursor.span()
        type_ = read_type(cursor)
        if name.name.lower() in (*TYPES, *self.domains):
            cursor.fail(f'there is a type "{name.name}" already', name.span)
        low: int | float | None = None
        high: int | float | None = None
        if cursor.take("between"):
            if type_ not in (INTEGER, NUMBER):
                cursor.fail("only integers and numbers have bounds", span)
            low = self.bound(cursor, type_)
            cursor.require("and", "AND and the larger bound")
            high = self.bound(cursor, type_)
            if low > high:
                cursor.fail("the lower bound is above the upper one", cursor.since(span))
        self.domains[name.name.lower()] = Domain(name.name, type_, low, high)

    def bound(self, cursor: Cursor, type_: Type) -> int | float:
        sign = -1 if cursor.take("-") else 1
        span = cursor.span()
        value = cursor.number("a bound")
        if type_ == NUMBER:
            return sign * float(value)
        if value != int(value):
            cursor.fail("the bounds of integers are integers", span)
        return sign * int(value)

    def domain(self, cursor: Cursor) -> Domain:
        name = cursor.text()
        if name in self.domains:
            cursor.next()
            return self.domains[name]
        if cursor.kind() == "word" and name not in TYPES:
            known = [*SHOWN_TYPES, *self.domains]
            hint = f"types are: {listing(known)}. {suggest(name, [*known, *TYPES]) or ''}"
            cursor.fail(f'unknown type "{name}"', hint=hint.strip())
        type_ = read_type(cursor)
        return Domain(str(type_), type_)

    # --- streams ---

    def stream(self, cursor: Cursor) -> None:
        name = cursor.word("a name")
        cursor.require("(", "( and the key of the stream")
        key = cursor.word("the key")
        cursor.require(":", '":" and the type time')
        span = cursor.span()
        if self.domain(cursor).type != TIME:
            hint = f"write {key.name}: time"
            message = "the key of a stream is a tick of time"
            self.faults.append(Fault(message, cursor.since(span), hint))
        columns: list[tuple[ast.Word, Domain]] = []
        if cursor.take("->") or cursor.take("=>"):
            columns += cursor.separated(lambda: self.column(cursor))
        elif cursor.text() == ",":
            hint = "write: key: time -> column: type, column: type"
            cursor.fail("a stream has one key, and then an arrow", hint=hint)
        cursor.require(")", 'a comma or ")"')
        names = [key.name.lower()]
        for word, _ in columns:
            if word.name.lower() in names:
                self.faults.append(Fault(f'there are two columns "{word.name}"', word.span))
            names.append(word.name.lower())
        stream = Stream(name, key, tuple(columns))
        given: set[str] = set()
        while not cursor.is_done:
            if cursor.text() in given:
                cursor.fail(f"{cursor.text().upper()} is said twice")
            given.add(cursor.text())
            stream = self.option(cursor, stream)
        self.streams.append(stream)

    def column(self, cursor: Cursor) -> tuple[ast.Word, Domain]:
        word = cursor.word("a column")
        cursor.require(":", '":" and a type')
        return word, self.domain(cursor)

    def option(self, cursor: Cursor, stream: Stream) -> Stream:
        if cursor.take("slack"):
            return replace(stream, slack=cursor.duration("a slack"))
        if cursor.take("from"):
            return replace(stream, source=cursor.string("a file in quotes"))
        if cursor.take("until"):
            return replace(stream, until=self.moment(cursor))
        if cursor.take("ties"):
            cursor.require("shift", "SHIFT")
            return replace(stream, shifts_ties=True)
        if cursor.take("heartbeat"):
            return replace(stream, heartbeat=self.heartbeat(cursor))
        cursor.expected("an option or the end", f"options are: {_OPTIONS}")

    @staticmethod
    def heartbeat(cursor: Cursor) -> int:
        span = cursor.span()
        length = cursor.duration("a length of time")
        if length < 1:
            cursor.fail("a heartbeat takes longer than nothing", cursor.since(span))
        return length

    def moment(self, cursor: Cursor) -> int:
        span = cursor.span()
        if cursor.kind() == "number":
            return int(cursor.number("a time"))
        text = cursor.string("a time in quotes")
        moment = parse_time(text)
        if moment is None:
            hint = "write an ISO 8601 time, such as 2026-12-31T17:00:00Z"
            cursor.fail(f"{text!r} is not a time", cursor.since(span), hint)
        return moment

    # --- views ---

    def view(self, cursor: Cursor) -> None:
        name = cursor.word("a name")
        is_bare = cursor.take("as")
        opening = cursor.span()
        if not is_bare and cursor.text() != "(":
            cursor.expected("AS or a query in parentheses", "write CREATE VIEW V (SELECT ...);")
        if not is_bare and cursor.take("("):
            end = _closing(cursor)
            if end is None:
                hint = 'put a ")" before the semicolon'
                cursor.fail("this parenthesis is never closed", opening, hint)
            if end < len(cursor.tokens) - 1:
                cursor.at = end + 1
                cursor.expected('";"', "a view ends where its parenthesis is closed")
            cursor.tokens = cursor.tokens[:end]
        self.views.append(ast.View(name, (), SmileReader(cursor, self.calls).whole()))


def _closing(cursor: Cursor) -> int | None:
    """Where the parenthesis just passed is closed."""
    depth = 1
    for at in range(cursor.at, len(cursor.tokens)):
        if cursor.tokens[at].kind == "symbol":
            depth += {"(": 1, ")": -1}.get(cursor.tokens[at].text, 0)
        if depth == 0:
            return at
    return None


class SmileReader(QueryReader):
    """Mutable: queries, with windows as keys, the latest of a group, and sources as calls."""

    def __init__(self, cursor: Cursor, calls: list[Called]) -> None:
        super().__init__(cursor)
        self.calls = calls
        self.terms.grammar[WINDOW] = self.window
        self.terms.grammar[LATEST] = self.latest

    def latest(self, start: Span) -> ast.Expression:
        """`LATEST(x)`."""
        self.cursor.require("(")
        arg = self.terms.term()
        self.cursor.require(")")
        word = ast.Word(LATEST, start)
        return ast.Total(word, arg, is_distinct=False, span=self.cursor.since(start))

    def window(self, start: Span) -> ast.Expression:
        """`WINDOW(t, 1 HOUR)`, or `WINDOW(t, 1 HOUR, 1 MINUTE)` for one that begins each minute."""
        cursor = self.cursor
        cursor.require("(")
        arg = self.terms.term()
        cursor.require(",", "a comma and a length, such as 1 HOUR")
        lengths = cursor.separated(lambda: self.length(cursor))
        cursor.require(")")
        span = cursor.since(start)
        if len(lengths) > 2:
            cursor.fail("WINDOW takes a tick, a length and a step", span)
        if len(lengths) == 2 and lengths[0] % lengths[1]:
            cursor.fail("the length of a window is a multiple of its step", span)
        if lengths[0] // lengths[-1] > 64:
            cursor.fail("a row can be in 64 windows, not in more", span)
        micros = tuple(ast.Constant(n, DURATION, span) for n in (lengths[0], lengths[-1]))
        return ast.Apply(ast.Word(WINDOW, start), (arg, *micros), span)

    @staticmethod
    def length(cursor: Cursor) -> int:
        span = cursor.span()
        length = cursor.duration("a length")
        if length < 1:
            cursor.fail("a window is longer than nothing", cursor.since(span))
        return length

    def called(self) -> ast.Query | None:
        """`MERGE(A, B)` and `QUIET(S BY k, 3 MINUTES)` are views that have no other name."""
        cursor, word = self.cursor, self.cursor.text()
        if word not in (MERGE, QUIET) or cursor.text(1) != "(":
            return None
        start = cursor.next().span
        cursor.require("(")
        by: tuple[ast.Word, ...] = ()
        length = 0
        if word == MERGE:
            sources = cursor.words("a stream")
        else:
            sources = (cursor.word("a stream"),)
            if cursor.take("by"):
                by = self._keys()
            cursor.require(",", "a comma and a length, such as 3 MINUTES")
            length = self.length(cursor)
        cursor.require(")", 'a comma or ")"')
        span = cursor.since(start)
        if word == MERGE and len(sources) < 2:
            cursor.fail("MERGE takes two streams or more", span)
        call = Called(" ".join(span.text.split()), word == MERGE, sources, span, by, length)
        if all(call.name != one.name for one in self.calls):
            self.calls.append(call)
        named = ast.Named(ast.Word(call.name, span, is_quoted=True), None, None, span)
        return ast.Select((ast.Star(None, span),), (ast.Joined(named),), span)

    def _keys(self) -> tuple[ast.Word, ...]:
        """Columns up to the comma that a number follows."""
        keys = [self.cursor.word("a column")]
        while self.cursor.text() == "," and self.cursor.kind(1) in ("word", "quoted"):
            self.cursor.next()
            keys.append(self.cursor.word("a column"))
        return tuple(keys)
