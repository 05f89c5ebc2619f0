"""Queries: from tokens to our tree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from millstream.queries import ast
from millstream.queries.names import ABSENT, RESERVED
from millstream.queries.read_frames import FrameReader, Grouped, with_window
from millstream.queries.read_terms import TermReader
from millstream.queries.tokens import Cursor
from millstream.queries.windows import read_window
from millstream.source import Span

_STREAM_OPERATORS = {one.value.lower(): one for one in ast.StreamOperator}
_SIDES = {"left": ast.JoinKind.LEFT, "right": ast.JoinKind.RIGHT, "full": ast.JoinKind.FULL}
_EMIT = (
    "EMIT FINAL tells each window once, when it has ended; EMIT CHANGES all along; EMIT EARLY "
    "before the slack has passed"
)
_WINDOW = "write: FROM stream [Range 5 Minutes]"


def read_query(cursor: Cursor, *, is_script: bool = False) -> ast.Query:
    """The query of the tokens that are left. Raises `Stop` when it cannot be read.

    A script is a statement in the style of the STREAM prototype.
    """
    return QueryReader(cursor, is_script=is_script).whole()


class QueryReader:
    """Mutable: reads queries with a cursor; a language may read more sources and calls."""

    def __init__(self, cursor: Cursor, *, is_script: bool = False) -> None:
        self.cursor = cursor
        self.is_script = is_script
        self.terms = TermReader(cursor, self.query, is_script=is_script)
        self.frames = FrameReader(cursor, self.terms.term, self.framed_source)

    # --- queries ---

    def whole(self) -> ast.Query:
        """The query of all the tokens that are left."""
        query, cursor = self.query(), self.cursor
        if cursor.text() == "[":
            cursor.fail("a window can only stand after a stream in a FROM clause", hint=_WINDOW)
        if not cursor.is_done:
            cursor.expected("the end of the query")
        return query

    def query(self) -> ast.Query:
        """A whole query, with the views that only it can name."""
        cursor = self.cursor
        start = cursor.span()
        if not cursor.take("with"):
            return self.emitted(self.ordered(), start)
        if cursor.take("recursive"):
            cursor.fail("WITH RECURSIVE is not part of CQL", cursor.since(start))
        views = cursor.separated(self.view)
        query = self.ordered()
        return self.emitted(ast.With(views, query, cursor.since(start)), start)

    def emitted(self, query: ast.Query, start: Span) -> ast.Query:
        """A query, perhaps with EMIT FINAL, EMIT CHANGES or EMIT EARLY behind it."""
        cursor = self.cursor
        if not cursor.take("emit"):
            return query
        if cursor.take("changes"):
            return query  # as every relation is told
        if cursor.take("early"):
            return ast.Early(query, cursor.since(start))
        if not (cursor.take("final") or cursor.take("on", "window", "close")):
            cursor.expected("FINAL, CHANGES or EARLY after EMIT", _EMIT)
        return ast.Final(query, cursor.since(start))

    def view(self) -> ast.View:
        """`name (columns) AS (query)` of a WITH clause."""
        cursor = self.cursor
        name = cursor.name("a name")
        columns = self.names_of_columns()
        cursor.require("as", "AS and a query in parentheses")
        return ast.View(name, columns, self.terms.parenthesised())

    def names_of_columns(self) -> tuple[ast.Word, ...]:
        if not self.cursor.take("("):
            return ()
        columns = self.cursor.words("the name of a column")
        self.cursor.require(")", 'a comma or ")"')
        return columns

    def ordered(self) -> ast.Query:
        """A query with ORDER BY and LIMIT, which are of all that is tied by UNION and its like."""
        cursor = self.cursor
        start, is_inside = cursor.span(), cursor.text() == "("
        query = self.combined()
        limit = self.limit()
        if limit is None:
            return query
        span = cursor.since(start)
        if isinstance(query, ast.Streamed):
            cursor.fail(f"ORDER BY and LIMIT stand inside {query.operator.value}(...)", limit.span)
        if isinstance(query, ast.Select) and not is_inside:
            return replace(query, limit=limit, span=span)
        everything = (ast.Star(None, query.span),)
        return ast.Select(
            everything, (ast.Joined(ast.Nested(query, None, None, span)),), span, limit=limit
        )

    def combined(self) -> ast.Query:
        """Queries tied by UNION and EXCEPT, from the left."""
        return self.tied(("union", "except"), self.intersected)

    def intersected(self) -> ast.Query:
        """Queries tied by INTERSECT, which binds more tightly."""
        return self.tied(("intersect",), self.operand)

    def tied(self, kinds: tuple[str, ...], operand: Callable[[], ast.Query]) -> ast.Query:
        cursor = self.cursor
        start, is_name = cursor.span(), self.is_name()
        query = operand()
        while cursor.text() in kinds:
            kind = cursor.next().text.lower()
            keeps = cursor.take("all")
            if not keeps:
                cursor.take("distinct")
            # The union of two names in a script is that of bags, as in the prototype.
            keeps |= kind == "union" and is_name and self.is_name()
            right = operand()
            query = ast.Combined(kind, keeps, query, right, cursor.since(start))
        return query

    def operand(self) -> ast.Query:
        """A query without set operations, or one in parentheses."""
        cursor = self.cursor
        start, word = cursor.span(), cursor.text()
        if word == "(":
            return self.terms.parenthesised()
        if word == "select":
            return self.select()
        if word in _STREAM_OPERATORS and cursor.text(1) == "(":
            return self.streamed(start)
        if self.is_name():
            return self.everything()
        cursor.expected("a query, such as SELECT ... FROM ...")

    def is_name(self) -> bool:
        """Is a whole relation named, as in `Istream(name)`, and in a script anywhere?"""
        cursor = self.cursor
        is_word = cursor.kind() == "word" and cursor.text() not in RESERVED
        is_around = cursor.at > 1 and cursor.text(-2) in _STREAM_OPERATORS
        return is_word and cursor.text(1) != "(" and (self.is_script or is_around)

    def everything(self) -> ast.Query:
        """All that is in a relation."""
        source = self.named()
        star = ast.Star(None, source.span, self.is_script)
        return ast.Select((star,), (ast.Joined(source),), source.span)

    def streamed(self, start: Span) -> ast.Query:
        """`Istream(query)`, or `Istream(name)` for all that is in it."""
        operator = _STREAM_OPERATORS[self.cursor.next().text.lower()]
        query = self.terms.parenthesised()
        return ast.Streamed(operator, query, self.cursor.since(start))

    # --- SELECT ---

    def select(self) -> ast.Query:
        cursor = self.cursor
        start = cursor.span()
        cursor.require("select")
        outer, self.terms.overs.known = self.terms.overs.known, {}
        is_distinct = self.is_distinct()
        operator = _STREAM_OPERATORS.get(cursor.text()) if cursor.text(1) == "(" else None
        if operator is not None:
            cursor.at += 2
            is_distinct |= self.is_distinct()
        items = cursor.separated(self.item)
        if operator is not None:
            cursor.require(")", 'a comma or ")"')
        if cursor.text() in ("", ")", ";"):
            cursor.fail("a query needs a FROM clause", cursor.since(start))
        cursor.require("from", "a comma or FROM")
        sources = self.sources()
        where = self.terms.term() if cursor.take("where") else None
        keys = self.group()
        plain = tuple(k for k in keys if not isinstance(k, Grouped))
        having = self.terms.term() if cursor.take("having") else None
        if cursor.take("window"):
            self.terms.overs.clause()
        query = ast.Select(
            items, sources, cursor.since(start), is_distinct, where, plain, having,
            qualify=self.terms.term() if cursor.take("qualify") else None,
        )  # fmt: skip
        self.terms.overs.known = outer
        windows = [k for k in keys if isinstance(k, Grouped)]
        if len(windows) > 1:
            cursor.fail("a query has one window of time in GROUP BY", windows[1].span)
        if windows:
            query = with_window(query, windows[0], cursor)
        return query if operator is None else ast.Streamed(operator, query, query.span)

    def is_distinct(self) -> bool:
        cursor = self.cursor
        if cursor.take("all") or not cursor.take("distinct"):
            return False
        if cursor.text() == "on" and cursor.text(1) == "(":
            cursor.fail("DISTINCT ON is not part of CQL", hint="use [Partition By column Rows 1]")
        return True

    def item(self) -> ast.Item | ast.Star:
        cursor = self.cursor
        start = cursor.span()
        if cursor.take("*"):
            return ast.Star(None, start, self.is_script)
        if cursor.kind() in ("word", "quoted") and (cursor.text(1), cursor.text(2)) == (".", "*"):
            owner = cursor.name("an expression")
            cursor.at += 2
            return ast.Star(owner, cursor.since(start), self.is_script)
        value = self.terms.term()
        if cursor.text() == "[":
            cursor.fail("a window can only stand after a stream in a FROM clause", hint=_WINDOW)
        return ast.Item(value, self.alias(), cursor.since(start))

    def alias(self) -> ast.Word | None:
        """A name after AS, or without it if the word can be nothing else."""
        cursor = self.cursor
        if cursor.take("as"):
            return cursor.word("a name")
        is_other = cursor.text() in RESERVED or cursor.text() in ABSENT
        is_other |= cursor.text() == "emit" and cursor.kind(1) == "word"
        is_other |= cursor.text() == "partition" and cursor.text(1) == "by"
        is_name = cursor.kind() in ("word", "quoted") and not is_other
        if cursor.kind() == "string":
            cursor.expected("a comma or FROM", "texts are joined with ||, names stand after AS")
        return cursor.word("a name") if is_name else None

    def group(self) -> tuple[ast.Expression | Grouped, ...]:
        if not self.cursor.take("group"):
            return ()
        self.cursor.require("by", "BY")
        return self.cursor.separated(self.group_key)

    def group_key(self) -> ast.Expression | Grouped:
        return self.frames.grouped() if self.frames.comes() else self.terms.term()

    def limit(self) -> ast.Limit | None:
        """`ORDER BY ... LIMIT count`: neither means anything without the other."""
        cursor = self.cursor
        start = cursor.span()
        order: tuple[ast.Ordering, ...] = ()
        if cursor.take("order"):
            cursor.require("by", "BY")
            order = cursor.separated(self.terms.totals.ordering)
        if cursor.text() != "limit":
            if order and (cursor.is_done or cursor.text() == ")"):
                cursor.fail("a relation has no order", cursor.since(start),
                            "ORDER BY needs LIMIT: the first rows in that order")  # fmt: skip
            if order:
                cursor.expected("LIMIT")
            return None
        limit = cursor.next().span
        count = cursor.number("a whole number")
        if count != int(count) or count < 1:
            cursor.fail("LIMIT takes a whole number of at least 1", cursor.since(limit))
        if not order:
            cursor.fail("LIMIT needs ORDER BY: which rows are the first?", cursor.since(limit))
        return ast.Limit(order, int(count), cursor.since(start))

    # --- sources ---

    def sources(self) -> tuple[ast.Joined, ...]:
        cursor = self.cursor
        sources = [ast.Joined(self.source())]
        has_comma = False
        while True:
            if cursor.take(","):
                has_comma = True
                sources.append(ast.Joined(self.source()))
                continue
            start = cursor.span()
            joined = self.joined()
            if joined is None:
                return tuple(sources)
            if has_comma and joined.kind in (ast.JoinKind.RIGHT, ast.JoinKind.FULL):
                message = "after a comma this join is only of the sources since the comma"
                hint = "write the outer joins first, and then the comma"
                cursor.fail(message, cursor.since(start), hint)
            sources.append(joined)

    def joined(self) -> ast.Joined | None:
        """The join that comes next, if one does."""
        cursor = self.cursor
        start, word = cursor.span(), cursor.text()
        if word == "natural":
            cursor.fail("NATURAL joins are not part of CQL",
                        hint="say the columns: JOIN ... USING (a, b)")  # fmt: skip
        kind = _SIDES.get(word, ast.JoinKind.INNER)
        if word in ("inner", "cross", *_SIDES):
            cursor.next()
        if word in _SIDES:
            cursor.take("outer")
        if not cursor.take("join"):
            if word in ("inner", "cross", *_SIDES):
                cursor.expected("JOIN")
            return None
        source = self.source()
        if word == "cross":
            return ast.Joined(source)
        if cursor.take("on"):
            return ast.Joined(source, kind, self.terms.term(), is_said=word == "inner")
        if cursor.take("using"):
            if cursor.text() != "(":
                cursor.expected("columns in parentheses")
            using = self.names_of_columns()
            return ast.Joined(source, kind, None, using, is_said=word == "inner")
        hint = "write JOIN ... ON condition, or JOIN ... USING (column)"
        if kind is ast.JoinKind.INNER:
            hint += "; for all pairs CROSS JOIN"
        cursor.fail("this join needs a condition", cursor.since(start), hint)

    def source(self) -> ast.Named | ast.Nested:
        cursor = self.cursor
        start, word = cursor.span(), cursor.text()
        made = self.called()
        if made is not None:
            query = made
        elif word == "(":
            query = self.terms.parenthesised()
        elif word in _STREAM_OPERATORS and cursor.text(1) == "(":
            query = self.streamed(start)
        else:
            named = self.named()
            alias, columns = self.renamed()
            return replace(named, alias=alias, columns=columns)
        window = read_window(cursor)
        span = cursor.since(start)
        alias, columns = self.renamed()
        return ast.Nested(query, alias, window, span, columns)

    def called(self) -> ast.Query | None:
        """A source that is written as a call; a language may have others."""
        return self.frames.framed()

    def framed_source(self) -> ast.Named | ast.Nested:
        """What a window of time is of: a name, or a query in parentheses."""
        start = self.cursor.span()
        if self.cursor.text() == "(":
            query = self.terms.parenthesised()
            return ast.Nested(query, None, None, self.cursor.since(start))
        name = self.cursor.name("a stream, or a query in parentheses")
        return ast.Named(name, None, None, name.span)

    def named(self) -> ast.Named:
        """A stream, relation or view with its window."""
        cursor = self.cursor
        name = cursor.name("a stream, a relation or a query in parentheses")
        if cursor.text() in (".", "("):
            cursor.expected("a window, an alias or a join", "a source is a single name")
        window: ast.Window | None = read_window(cursor)
        return ast.Named(name, None, window, name.span)

    def renamed(self) -> tuple[ast.Word | None, tuple[ast.Word, ...]]:
        """The alias of a source, and other names for its columns."""
        alias = self.alias()
        if self.cursor.text() == "[":
            self.cursor.fail("a window stands before the alias",
                             hint="write: FROM stream [Range 5 Minutes] AS name")  # fmt: skip
        return alias, self.names_of_columns() if alias is not None else ()
