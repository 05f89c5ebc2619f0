"""Queries: tokens without windows go through sqlglot and come out as our own tree.

sqlglot accepts far more than CQL has; every clause that we do not know is a fault, never
passed over in silence.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from sqlglot import Dialect, TokenType, exp
from sqlglot import Token as SqlToken
from sqlglot.errors import ParseError as SqlError

from millstream.errors import Fault
from millstream.languages.cql.ast import (
    Combined,
    Item,
    Joined,
    JoinKind,
    Limit,
    Named,
    Nested,
    Ordering,
    Query,
    Select,
    Star,
    Streamed,
    StreamOperator,
    View,
    Window,
    With,
)
from millstream.languages.cql.lift import Lifted, lift_windows
from millstream.languages.cql.names import AGGREGATES, FUNCTIONS, GRAMMATICAL
from millstream.languages.cql.read_terms import CALL, Node, TermReader
from millstream.languages.cql.shorthands import SHORTHANDS
from millstream.languages.cql.tokens import Stop, Token, span_of_token
from millstream.source import Source, Span

#: Functions whose names sqlglot shall have no ideas about.
_OURS = (frozenset(FUNCTIONS) | frozenset(AGGREGATES) | frozenset(SHORTHANDS)).difference(
    GRAMMATICAL
)

_SELECT_CLAUSES = frozenset(
    {
        "expressions",
        "distinct",
        "from_",
        "joins",
        "where",
        "group",
        "having",
        "order",
        "limit",
        "with_",
    }
)
_STREAM_OPERATORS = {one.value.lower(): one for one in StreamOperator}
_SET_OPERATIONS: dict[type[Any], str] = {
    exp.Union: "union", exp.Except: "except", exp.Intersect: "intersect",
}  # fmt: skip


def read_query(source: Source, tokens: Sequence[Token], faults: list[Fault]) -> Query:
    """The query of some tokens. Raises `Stop` when it cannot be read."""
    lifted = lift_windows(source, tokens, faults)
    whole = span_of_token(source, tokens[0]).to(span_of_token(source, tokens[-1]))
    try:
        parsed = (
            Dialect.get_or_raise(None)
            .parser()
            .parse(_prepared(_turned(lifted.tokens)), source.text)
        )
    except SqlError as error:
        faults.append(_syntax_fault(source, tokens, error))
        raise Stop from None
    except RecursionError:
        faults.append(Fault("this is nested too deep", whole))
        raise Stop from None
    return _QueryReader(source, whole, faults, lifted, parsed[0]).whole_query(parsed[0])


def _turned(tokens: Sequence[Token]) -> Sequence[Token]:
    """`WITH v AS (...) Istream(SELECT ...)` with WITH inside, where sqlglot can read it."""
    if tokens[0].text.lower() != "with":
        return tokens
    depth = 0
    for at, token in enumerate(tokens[:-1]):
        depth += token.token_type is TokenType.L_PAREN
        depth -= token.token_type is TokenType.R_PAREN
        is_call = tokens[at + 1].token_type is TokenType.L_PAREN
        # `SELECT Istream(...)` is read as it is, and so is a view of that name.
        is_first = tokens[at - 1].token_type is TokenType.R_PAREN
        if depth == 0 and is_call and is_first and token.text.lower() in _STREAM_OPERATORS:
            return (*tokens[at : at + 2], *tokens[:at], *tokens[at + 2 :])
    return tokens


def _prepared(tokens: Sequence[Token]) -> list[Token]:
    """Calls of our functions get names that sqlglot has no ideas about."""
    prepared: list[Token] = []
    for number, token in enumerate(tokens):
        following = tokens[number + 1].token_type if number + 1 < len(tokens) else None
        is_plain = token.token_type not in (TokenType.STRING, TokenType.IDENTIFIER)
        if is_plain and following is TokenType.L_PAREN and token.text.lower() in _OURS:
            place = (token.line, token.col, token.start, token.end)
            prepared.append(SqlToken(TokenType.VAR, CALL + token.text, *place))
        else:
            prepared.append(token)
    return prepared


def _syntax_fault(source: Source, tokens: Sequence[Token], error: SqlError) -> Fault:
    """What sqlglot says, in our words and at our place."""
    (first, *_) = error.errors
    at = next((t for t in tokens if t.line == first["line"] and t.col == first["col"]), tokens[-1])
    said = str(first["description"] or "")
    expected = re.match(r"Expect(?:ed|ing) (.+?)(?: but got.*)?$", said)
    found = str(at.text)
    if expected:
        message = f'expected {expected[1]}, found "{found}"'
    elif "missing" in said:
        message = f'something is missing at "{found}"'
    else:
        message = f'this cannot stand here: "{found}"'
    return Fault(message, span_of_token(source, at))


class _QueryReader:
    """Mutable: collects faults while sqlglot's tree is read."""

    def __init__(
        self, source: Source, whole: Span, faults: list[Fault], lifted: Lifted, root: Node
    ) -> None:
        self.faults = faults
        self.after_name = dict(lifted.after_name)
        self.terms = TermReader(source, whole, faults, self.query, root)
        self.of_queries = self.windows_of_queries(root, lifted)

    def whole_query(self, root: Node) -> Query:
        query = self.query(root)
        self.faults += [_misplaced(window) for window in self.after_name.values()]
        return query

    def fail(self, message: str, node: Node, hint: str | None = None) -> None:
        self.terms.fail(message, self.terms.span(node), hint)

    # --- queries ---

    def query(self, node: Node) -> Query:
        local = node.args.get("with_")
        if local is None:
            return self.plain_query(node)
        if local.args.get("recursive"):
            self.fail("WITH RECURSIVE is not part of CQL", node)
        views = tuple(self.view(one) for one in local.expressions)
        return With(views, self.plain_query(node), self.terms.span(node))

    def view(self, node: Node) -> View:
        """`name (columns) AS (query)` of a WITH clause."""
        self.only(node, {"this", "alias"})
        alias = node.args["alias"]
        columns = tuple(self.terms.word(c) for c in alias.args.get("columns") or ())
        return View(self.terms.word(alias.this), columns, self.query(node.this))

    def plain_query(self, node: Node) -> Query:
        span = self.terms.span(node)
        if isinstance(node, exp.Subquery):
            self.only(node, {"this", "alias", "with_"})
            return self.query(node.this)
        if isinstance(node, exp.Select):
            return self.select(node, span)
        if type(node) in _SET_OPERATIONS:
            return self.combined(node, span)
        operator = self.stream_operator(node)
        if operator is not None:
            return self.streamed(node, operator, span)
        self.fail("expected a query, such as SELECT ... FROM ...", node)
        raise AssertionError

    def streamed(self, node: Node, operator: StreamOperator, span: Span) -> Query:
        """`Istream(query)`, or `Istream(name)` for all that is in it."""
        if len(node.expressions) != 1:
            self.fail(f"{operator.value} takes one query", node)
        (inner,) = node.expressions
        if isinstance(inner, exp.Column) and not inner.args.get("table"):
            name = self.terms.word(inner.this)
            source = Joined(Named(name, None, self.window_after(inner.this), name.span))
            everything = Select((Star(None, name.span),), (source,), name.span)
            return Streamed(operator, everything, span)
        return Streamed(operator, self.query(inner), span)

    def stream_operator(self, node: Node) -> StreamOperator | None:
        is_call = isinstance(node, exp.Anonymous)
        return _STREAM_OPERATORS.get(str(node.this).lower()) if is_call else None

    def only(self, node: Node, known: frozenset[str] | set[str]) -> None:
        """Every clause that is there must be one that we read."""
        for name, value in node.args.items():
            if value and name not in known:
                shown = name.rstrip("_").upper().replace("_", " ")
                self.fail(f"{shown} is not part of CQL", value if hasattr(value, "walk") else node)

    def combined(self, node: Node, span: Span) -> Query:
        self.only(node, {"this", "expression", "distinct", "order", "limit", "with_"})
        kind = _SET_OPERATIONS[type(node)]
        keeps = not node.args.get("distinct")
        if keeps and kind != "union":
            self.fail(f"{kind.upper()} ALL is not part of CQL", node,
                      f"{kind.upper()} compares sets of rows; to compare how often a row is "
                      "there, count it with GROUP BY")  # fmt: skip
        left, right = self.query(node.this), self.query(node.expression)
        return Combined(kind, keeps, left, right, span, self.limit(node))

    def select(self, node: Node, span: Span) -> Query:
        self.only(node, _SELECT_CLAUSES)
        listed, operator = node.expressions, None
        is_distinct = node.args.get("distinct") is not None
        if len(listed) == 1:
            operator = self.stream_operator(listed[0])
        if operator is not None:
            (call,), listed = listed, listed[0].expressions
            if len(listed) == 1 and isinstance(listed[0], exp.Distinct):
                is_distinct, listed = True, listed[0].expressions
            if not listed:
                self.fail("this select list is empty", call)
        if is_distinct and node.args["distinct"] and node.args["distinct"].args.get("on"):
            self.fail("DISTINCT ON is not part of CQL", node)
        where, having = node.args.get("where"), node.args.get("having")
        if node.args.get("from_") is None:
            self.fail("a query needs a FROM clause", node)
        query = Select(
            tuple(self.item(one) for one in listed),
            self.sources(node),
            span,
            is_distinct,
            self.terms.term(where.this) if where else None,
            self.group(node),
            self.terms.term(having.this) if having else None,
            self.limit(node),
        )
        return query if operator is None else Streamed(operator, query, span)

    def item(self, node: Node) -> Item | Star:
        span = self.terms.span(node)
        if isinstance(node, exp.Star):
            self.only(node, set())
            return Star(None, span)
        if isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
            return Star(self.terms.word(node.args["table"]), span)
        if isinstance(node, exp.Alias):
            return Item(self.terms.term(node.this), self.terms.word(node.args["alias"]), span)
        return Item(self.terms.term(node), None, span)

    def group(self, node: Node) -> tuple[Any, ...]:
        group = node.args.get("group")
        if group is None:
            return ()
        self.only(group, {"expressions"})
        return tuple(self.terms.term(one) for one in group.expressions)

    def limit(self, node: Node) -> Limit | None:
        order, limit = node.args.get("order"), node.args.get("limit")
        if order is None and limit is None:
            return None
        if limit is None:
            self.fail("a relation has no order", order,
                      "ORDER BY needs LIMIT: the first rows in that order")  # fmt: skip
        if order is None:
            self.fail("LIMIT needs ORDER BY: which rows are the first?", limit)
        self.only(limit, {"expression"})
        count = limit.expression
        span = self.terms.span(limit)
        if not isinstance(count, exp.Literal) or count.is_string or not str(count.this).isdigit():
            self.fail("LIMIT takes a whole number", limit)
        if int(str(count.this)) < 1:
            self.fail("LIMIT takes at least 1", limit)
        return Limit(tuple(self.ordering(o) for o in order.expressions), int(str(count.this)), span)

    def ordering(self, node: Node) -> Ordering:
        is_descending = bool(node.args.get("desc"))
        nulls_first = node.args.get("nulls_first")
        first = not is_descending if nulls_first is None else bool(nulls_first)
        return Ordering(self.terms.term(node.this), is_descending, first)

    # --- sources ---

    def sources(self, node: Node) -> tuple[Joined, ...]:
        first = node.args["from_"].this
        found = [Joined(self.source(first)), *self.attached(first)]
        for join in node.args.get("joins") or ():
            found += [self.joined(join), *self.attached(join.this)]
        return tuple(found)

    def attached(self, table: Node) -> list[Joined]:
        """Joins that sqlglot hangs on the table before them."""
        return [self.joined(join) for join in table.args.get("joins") or ()]

    def joined(self, join: Node) -> Joined:
        if join.args.get("method"):
            self.fail(f"{join.args['method']} joins are not part of CQL", join,
                      "say the columns: JOIN ... USING (a, b)")  # fmt: skip
        self.only(join, {"this", "side", "kind", "on", "using"})
        side = str(join.args.get("side") or "").lower()
        word = str(join.args.get("kind") or "").lower()
        if word not in ("", "inner", "outer", "cross"):
            self.fail(f"{word.upper()} joins are not part of CQL", join)
        on, using = join.args.get("on"), join.args.get("using") or ()
        kind = JoinKind(side) if side else JoinKind.INNER
        if kind is not JoinKind.INNER and on is None and not using:
            self.fail("this join needs a condition", join, "write JOIN ... ON condition")
        return Joined(
            self.source(join.this),
            kind,
            self.terms.term(on) if on is not None else None,
            tuple(self.terms.word(one) for one in using),
        )

    def source(self, node: Node) -> Named | Nested:
        span = self.terms.span(node)
        alias = node.args.get("alias")
        word = self.terms.word(alias.this) if alias is not None and alias.this else None
        if isinstance(node, exp.Subquery):
            self.only(node, {"this", "alias", "joins"})
            return Nested(self.query(node.this), word, self.of_queries.get(id(node)), span)
        self.only(node, {"this", "alias", "joins"})
        if isinstance(node.this, exp.Identifier):
            return Named(self.terms.word(node.this), word, self.window_after(node.this), span)
        if self.stream_operator(node.this) is not None:
            return Nested(self.query(node.this), word, self.of_queries.get(id(node)), span)
        self.fail("expected a stream, a relation or a query in parentheses", node)
        raise AssertionError

    def window_after(self, identifier: Node) -> Window | None:
        return self.after_name.pop(identifier.meta.get("end"), None)

    def windows_of_queries(self, root: Node, lifted: Lifted) -> dict[int, Window]:
        """The window of each query in a FROM clause: of the outermost between its parentheses."""
        found: dict[int, Window] = {}
        for (start, end), window in lifted.after_query.items():
            for node in root.bfs():
                inside = _query_inside(node)
                span = self.terms.span(inside) if inside is not None else None
                if span is not None and start < span.start and span.end <= end + 1:
                    found[id(node)] = window
                    break
            else:
                self.faults.append(_misplaced(window))
        return found


def _query_inside(node: Node) -> Node | None:
    """The query in a part of a FROM clause, if it is one."""
    if isinstance(node, exp.Subquery):
        return node.this
    if isinstance(node, exp.Table) and isinstance(node.this, exp.Anonymous):
        return next(iter(node.this.expressions), None)
    return None


def _misplaced(window: Window) -> Fault:
    hint = "write: FROM stream [Range 5 Minutes]"
    return Fault("a window can only stand after a stream in a FROM clause", window.span, hint)
