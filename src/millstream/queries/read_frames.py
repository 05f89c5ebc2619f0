"""Windows of time as calls: `TUMBLE(TABLE s, DESCRIPTOR(t), INTERVAL '1' MINUTE)` and its like.

In GROUP BY they take a time instead of a stream: `GROUP BY TUMBLE(_time, 1 MINUTE), symbol`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from millstream.calculus.library.event_windows import END, MOST_WINDOWS, START, stretches
from millstream.calculus.types import DURATION, TIME_COLUMN
from millstream.queries import ast
from millstream.queries.tokens import Cursor
from millstream.source import Span

#: The lengths that each kind of window has, in the order in which they are written.
FRAMES: dict[str, tuple[str, ...]] = {
    "tumble": ("size", "offset"),
    "hop": ("slide", "size", "offset"),
    "session": ("gap",),
}
_SOURCE = {
    "tumble": "TUMBLE(TABLE stream, DESCRIPTOR(time), INTERVAL '1' MINUTE)",
    "hop": "HOP(TABLE stream, DESCRIPTOR(time), INTERVAL '1' MINUTE, INTERVAL '5' MINUTES): "
    "the slide, then the size",
    "session": "SESSION(TABLE stream PARTITION BY key, DESCRIPTOR(time), INTERVAL '5' MINUTES)",
}
_KEY = {
    "tumble": "GROUP BY TUMBLE(time, INTERVAL '1' MINUTE)",
    "hop": "GROUP BY HOP(time, INTERVAL '1' MINUTE, INTERVAL '5' MINUTES): "
    "the slide, then the size",
    "session": "GROUP BY SESSION(time, INTERVAL '5' MINUTES)",
}


@dataclass(frozen=True, slots=True)
class Lengths:
    """How long windows are, in microseconds; those that hop or tumble begin every `slide`."""

    size: int
    slide: int
    offset: int


@dataclass(frozen=True, slots=True)
class Grouped:
    """A window of time among the keys of GROUP BY."""

    kind: str
    time: ast.Reference
    lengths: Lengths
    span: Span


class FrameReader:
    """Mutable: reads windows of time with a cursor."""

    def __init__(
        self,
        cursor: Cursor,
        term: Callable[[], ast.Expression],
        source: Callable[[], ast.Named | ast.Nested],
    ) -> None:
        self.cursor = cursor
        self.term = term
        self.source = source

    def comes(self) -> bool:
        return self.cursor.text() in FRAMES and self.cursor.text(1) == "("

    def framed(self) -> ast.Framed | None:
        """A window in FROM, perhaps as `TABLE(TUMBLE(...))`, if one comes."""
        cursor = self.cursor
        start = cursor.span()
        if cursor.text() == "cumulate" and cursor.text(1) == "(":
            hint = "a TUMBLE tells its sums with every row, and with EMIT FINAL at its end"
            cursor.fail("CUMULATE is not part of CQL", hint=hint)
        is_wrapped = cursor.text() == "table" and cursor.text(1) == "("
        if is_wrapped and cursor.text(2) in FRAMES and cursor.text(3) == "(":
            cursor.at += 2
            inside = self._call(start)
            cursor.require(")", 'the ")" of TABLE(...)')
            return replace(inside, span=cursor.since(start))
        return self._call(start) if self.comes() else None

    def _call(self, start: Span) -> ast.Framed:
        cursor = self.cursor
        kind = cursor.next().text.lower()
        cursor.require("(")
        self._named("data")
        cursor.take("table")
        source = self.source()
        by = self._partition(kind)
        if not (cursor.text() == "," and self._is_length(1)):
            cursor.require(",", f"a comma and the time; write {_SOURCE[kind]}")
            time = self._time()
        else:  # the rows' own time
            time = ast.Reference(None, ast.Word(TIME_COLUMN, cursor.span()), cursor.span())
        lengths = self._lengths(kind, _SOURCE[kind])
        return ast.Framed(
            kind, source, time, lengths.size, lengths.slide, lengths.offset, by,
            cursor.since(start),
        )  # fmt: skip

    def _is_length(self, ahead: int) -> bool:
        """Whether a length comes rather than a column: a number, or INTERVAL and a text."""
        cursor = self.cursor
        return cursor.text(ahead)[:1].isdigit() or (
            cursor.text(ahead) == "interval" and cursor.text(ahead + 1) not in (",", ".")
        )

    def _time(self) -> ast.Reference:
        cursor = self.cursor
        self._named("timecol")
        is_described = cursor.text() == "descriptor" and cursor.text(1) == "("
        if is_described:
            cursor.at += 2
        time = self._column("the column of the time")
        if is_described:
            cursor.require(")")
        return time

    def grouped(self) -> Grouped:
        """A window in GROUP BY."""
        cursor = self.cursor
        start, kind = cursor.span(), cursor.next().text.lower()
        cursor.require("(")
        time = self._column("a column of times, such as _time")
        lengths = self._lengths(kind, _KEY[kind])
        return Grouped(kind, time, lengths, cursor.since(start))

    def _named(self, word: str) -> None:
        if self.cursor.text(1) == "=>" and self.cursor.text() == word:
            self.cursor.at += 2

    def _partition(self, kind: str) -> tuple[ast.Reference, ...]:
        cursor = self.cursor
        start = cursor.span()
        if not cursor.take("partition", "by"):
            return ()
        if kind != "session":
            hint = "group by the column beside window_start and window_end"
            cursor.fail("only SESSION has PARTITION BY", cursor.since(start), hint)
        if not cursor.take("("):
            return (self._column("a column"),)
        columns = cursor.separated(lambda: self._column("a column"))
        cursor.require(")", 'a comma or ")"')
        return columns

    def _column(self, what: str) -> ast.Reference:
        cursor = self.cursor
        span = cursor.span()
        word = cursor.word(what)
        if cursor.take("."):
            return ast.Reference(word, cursor.word("a column"), cursor.since(span))
        if cursor.text() not in (",", ")"):
            cursor.fail("the time of a window is a column", cursor.since(span))
        return ast.Reference(None, word, word.span)

    # --- lengths ---

    def _lengths(self, kind: str, usage: str) -> Lengths:
        cursor = self.cursor
        words = FRAMES[kind]
        given: dict[str, tuple[int, Span]] = {}
        while cursor.take(","):
            start = cursor.span()
            name = words[min(len(given), len(words) - 1)]
            if cursor.text(1) == "=>":
                name = cursor.next().text.lower()
                cursor.next()
            if name not in words or name in given:
                cursor.fail(f"{kind.upper()} is given too much", start, f"usage: {usage}")
            given[name] = (self._duration(name), cursor.since(start))
        if cursor.text() != ")":
            cursor.expected('a comma or ")"', f"usage: {usage}")
        missing = [w for w in words if w != "offset" and w not in given]
        if missing:
            cursor.fail(f"{kind.upper()} needs a {missing[0]}", hint=f"usage: {usage}")
        cursor.next()
        self._check(kind, given)
        lengths = {word: length for word, (length, _) in given.items()}
        size = lengths["gap" if kind == "session" else "size"]
        return Lengths(size, lengths.get("slide", size), lengths.get("offset", 0))

    def _check(self, kind: str, given: dict[str, tuple[int, Span]]) -> None:
        for word, (length, span) in given.items():
            if length < 1 and word != "offset":
                self.cursor.fail(f"a {word} must be longer than nothing", span)
        if kind == "hop" and stretches(given["size"][0], given["slide"][0]) > MOST_WINDOWS:
            message = f"every row would be in more than {MOST_WINDOWS} windows"
            hint = "HOP takes the slide first, and then the size"
            self.cursor.fail(message, given["size"][1], hint)

    def _duration(self, what: str) -> int:
        """`INTERVAL '1' MINUTE`, or just `1 MINUTE`."""
        cursor = self.cursor
        if cursor.text() != "interval":
            return cursor.duration(f"the {what} of a window")
        span = cursor.span()
        value = self.term()
        if not (isinstance(value, ast.Constant) and value.type == DURATION):
            cursor.fail("the length of a window is an interval", span, "write INTERVAL '1' MINUTE")
        assert isinstance(value.value, int)
        return value.value


def with_window(query: ast.Select, window: Grouped, cursor: Cursor) -> ast.Select:
    """`GROUP BY TUMBLE(...)` as a window in FROM, grouped by its start and end."""
    if len(query.sources) != 1:
        hint = f"write FROM {_SOURCE[window.kind]} AS w JOIN ..., GROUP BY window_start, window_end"
        message = f"GROUP BY {window.kind.upper()} is of a single stream"
        cursor.fail(message, window.span, hint)
    (joined,) = query.sources
    source = joined.source
    keys: list[ast.Reference] = []
    for key in query.group_by if window.kind == "session" else ():
        if not isinstance(key, ast.Reference):
            hint = "name the expression in a subquery in FROM"
            cursor.fail("the other keys of SESSION are columns", key.span, hint)
        keys.append(key)
    lengths = window.lengths
    framed = ast.Framed(
        window.kind, replace(source, window=None), window.time, lengths.size, lengths.slide,
        lengths.offset, tuple(keys), window.span,
    )  # fmt: skip
    name = source.alias or (source.name if isinstance(source, ast.Named) else None)
    outside = ast.Nested(framed, name, source.window, source.span)
    ends = (ast.Reference(None, ast.Word(n, window.span), window.span) for n in (START, END))
    sources = (replace(joined, source=outside),)
    return replace(query, sources=sources, group_by=(*query.group_by, *ends))
