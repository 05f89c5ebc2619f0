"""Expressions: from sqlglot's tree to ours."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from sqlglot import exp

from millstream.calculus.instants import parse_time
from millstream.calculus.types import BOOLEAN, DURATION, INTEGER, NUMBER, TEXT, TIME
from millstream.errors import Fault, listing, suggest
from millstream.languages.cql.ast import (
    Apply,
    Constant,
    Expression,
    Membership,
    Quantified,
    Query,
    Reference,
    Scalar,
    Total,
    Word,
)
from millstream.languages.cql.names import (
    AGGREGATES,
    FUNCTIONS,
    SHOWN_TYPES,
    TIME_PARTS,
    TYPES,
)
from millstream.languages.cql.tokens import UNITS, Stop
from millstream.source import Source, Span

Node = Any
"""A node of sqlglot's tree."""

#: Put before the names of our functions, so that sqlglot takes none of them for its own.
CALL = "call "

_BINARY: dict[type[Any], str] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.IntDiv: "div", exp.Mod: "%",
    exp.EQ: "==", exp.NEQ: "!=", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
    exp.And: "and", exp.Or: "or", exp.DPipe: "||", exp.Like: "like",
}  # fmt: skip

#: Operators that may stand before ALL and ANY.
_COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">="})
#: Powers of ten beyond these are of no use to 64-bit floating point numbers.
MOST_DIGITS = 15
_QUANTIFIED = "such as x >= ALL (SELECT ...)"


class TermReader:
    """Mutable: collects faults. `query` reads the subqueries inside expressions."""

    def __init__(
        self,
        source: Source,
        whole: Span,
        faults: list[Fault],
        query: Callable[[Node], Query],
        root: Node,
    ) -> None:
        self.source = source
        self.root = root  # nodes are known by their identity as long as they live
        self.places = _places(root)
        self.whole = whole
        self.faults = faults
        self.query = query
        self.tables: dict[type[Any], Callable[[Node, Span], Expression]] = {
            exp.Column: self.column,
            exp.Identifier: self.column,
            exp.Literal: self.literal,
            exp.Null: lambda _, span: Constant(None, None, span),
            exp.Boolean: lambda node, span: Constant(bool(node.this), BOOLEAN, span),
            exp.Paren: lambda node, _: self.term(node.this),
            exp.Not: lambda node, span: self.apply("not", [node.this], span),
            exp.Neg: lambda node, span: self.apply("neg", [node.this], span),
            exp.Between: self.between,
            exp.In: self.membership,
            exp.Exists: lambda node, span: Membership(None, self.query(node.this), span),
            exp.Is: self.is_null,
            exp.Case: self.case,
            exp.If: self.if_,
            exp.Cast: self.cast,
            exp.Interval: self.interval,
            exp.Extract: self.extract,
            exp.Substring: self.substring,
            exp.Trim: self.trim,
            exp.Coalesce: lambda n, span: self.apply("coalesce", [n.this, *n.expressions], span),
            exp.Anonymous: self.call,
            exp.Filter: self.filtered,
        }

    # --- places and faults ---

    def span(self, node: Node) -> Span:
        """The stretch of all in a node that has a place; the statement if nothing has."""
        found = self.places.get(id(node))
        return self.whole if found is None else Span(self.source, *found)

    def fail(self, message: str, span: Span, hint: str | None = None) -> None:
        self.faults.append(Fault(message, span, hint))
        raise Stop

    def word(self, identifier: Node) -> Word:
        is_quoted = bool(identifier.args.get("quoted"))
        return Word(str(identifier.this), self.span(identifier), is_quoted)

    # --- terms ---

    def term(self, node: Node) -> Expression:
        span = self.span(node)
        name = _BINARY.get(type(node))
        if name is not None and isinstance(node.expression, (exp.All, exp.Any)):
            return self.quantified(node, name, span)
        if name is not None:
            return self.apply(name, [node.this, node.expression], span)
        read = self.tables.get(type(node))
        if read is not None:
            return read(node, span)
        if isinstance(node, (exp.Subquery, exp.Select, exp.SetOperation)):
            return Scalar(self.query(node), span)
        if isinstance(node, (exp.All, exp.Any)):
            self.fail("ALL and ANY stand after a comparison", span, _QUANTIFIED)
        if isinstance(node, exp.Func):
            # Unknown to us, which is told when names are looked up.
            return Apply(self.written(node), (), span)
        return self.unsupported(node, span)

    def unsupported(self, node: Node, span: Span) -> Expression:
        self.fail(f"this is not part of CQL: {node.key.upper()}", span)
        raise AssertionError

    def apply(self, name: str, args: Iterable[Node], span: Span) -> Apply:
        return Apply(Word(name, span), tuple(self.term(a) for a in args), span)

    def column(self, node: Node, span: Span) -> Expression:
        if isinstance(node.this, exp.Star):
            self.fail("* stands in a select list or in COUNT(*)", span)
        if node.args.get("db"):
            self.fail("a column has at most one owner: owner.column", span)
        if isinstance(node, exp.Identifier):
            return Reference(None, self.word(node), span)
        owner = node.args.get("table")
        return Reference(self.word(owner) if owner else None, self.word(node.this), span)

    def literal(self, node: Node, span: Span) -> Expression:
        if node.is_string:
            return Constant(str(node.this), TEXT, span)
        text = str(node.this)
        if text.isdigit():
            return Constant(int(text), INTEGER, span)
        return Constant(float(text), NUMBER, span)

    def between(self, node: Node, span: Span) -> Expression:
        low = self.apply(">=", [node.this, node.args["low"]], span)
        high = self.apply("<=", [node.this, node.args["high"]], span)
        return Apply(Word("and", span), (low, high), span)

    def membership(self, node: Node, span: Span) -> Expression:
        query = node.args.get("query")
        if query is not None:
            return Membership(self.term(node.this), self.query(query), span)
        if not node.expressions:
            self.fail("IN needs values or a query in parentheses", span)
        equal = [self.apply("==", [node.this, one], span) for one in node.expressions]
        found = equal[0]
        for one in equal[1:]:
            found = Apply(Word("or", span), (found, one), span)
        return found

    def quantified(self, node: Node, operator: str, span: Span) -> Expression:
        """`x > ALL (query)`; two of them are IN by another name."""
        is_all = isinstance(node.expression, exp.All)
        inner = node.expression.this
        if not isinstance(inner, (exp.Subquery, exp.Select, exp.SetOperation)):
            self.fail("ALL and ANY take a query in parentheses", span)
        if operator not in _COMPARISONS:
            self.fail("ALL and ANY stand after a comparison", span, _QUANTIFIED)
        operand, query = self.term(node.this), self.query(inner)
        if (operator, is_all) == ("==", False):
            return Membership(operand, query, span)
        if (operator, is_all) == ("!=", True):
            return Apply(Word("not", span), (Membership(operand, query, span),), span)
        return Quantified(operand, operator, is_all, query, span)

    def is_null(self, node: Node, span: Span) -> Expression:
        if not isinstance(node.expression, exp.Null):
            self.fail("IS can only be followed by NULL or NOT NULL", span)
        return self.apply("is_null", [node.this], span)

    def case(self, node: Node, span: Span) -> Expression:
        default = node.args.get("default")
        found: Expression = self.term(default) if default else Constant(None, None, span)
        for one in reversed(node.args["ifs"]):
            condition = (
                self.term(one.this)
                if node.this is None
                else self.apply("==", [node.this, one.this], span)
            )
            found = Apply(Word("if", span), (condition, self.term(one.args["true"]), found), span)
        return found

    def if_(self, node: Node, span: Span) -> Expression:
        other = node.args.get("false")
        last = self.term(other) if other else Constant(None, None, span)
        args = (self.term(node.this), self.term(node.args["true"]), last)
        return Apply(Word("if", span), args, span)

    def cast(self, node: Node, span: Span) -> Expression:
        name = node.to.sql().lower().split("(")[0]
        if name not in TYPES:
            self.fail(f'unknown type "{name}"', span, f"types are: {listing(SHOWN_TYPES)}")
        if TYPES[name] == TIME and isinstance(node.this, exp.Literal) and node.this.is_string:
            moment = parse_time(str(node.this.this))
            if moment is None:
                self.fail(f"{node.this.this!r} is not a time", span,
                          "write an ISO 8601 time, such as 2026-01-31T12:00:00Z")  # fmt: skip
            return Constant(moment, TIME, span)
        return self.apply(TYPES[name].kind.value, [node.this], span)

    def interval(self, node: Node, span: Span) -> Expression:
        unit = str(node.args["unit"].this).lower() if node.args.get("unit") else ""
        amount = node.this
        is_plain = isinstance(amount, exp.Literal) and _is_number(str(amount.this))
        if unit not in UNITS or not is_plain:
            self.fail("expected an interval such as INTERVAL '5' MINUTES", span,
                      f"units are: {listing(UNITS, 40)}")  # fmt: skip
        return Constant(int(float(str(amount.this)) * UNITS[unit]), DURATION, span)

    def extract(self, node: Node, span: Span) -> Expression:
        part = str(node.this.this).lower()
        if part not in TIME_PARTS:
            near = suggest(part, TIME_PARTS)
            hint = f"parts of a time are: {listing(TIME_PARTS)}. {near or ''}".strip()
            self.fail(f'unknown part of a time "{part}"', span, hint)
        return self.apply(part, [node.expression], span)

    def substring(self, node: Node, span: Span) -> Expression:
        given = [node.this, node.args.get("start"), node.args.get("length")]
        return self.apply("substring", [a for a in given if a is not None], span)

    def trim(self, node: Node, span: Span) -> Expression:
        if node.args.get("expression") or node.args.get("position"):
            self.fail("TRIM takes one text", span)
        return self.apply("trim", [node.this], span)

    # --- calls ---

    def written(self, node: Node) -> Word:
        """The name of a function as it was written."""
        meta = node.meta
        if "start" not in meta:
            return Word(node.sql_name().lower(), self.span(node))
        span = Span(self.source, meta["start"], meta["end"] + 1)
        return Word(span.text, span)

    def call(self, node: Node, span: Span) -> Expression:
        word = self.written(node)
        name = word.name.lower()
        args = list(node.expressions)
        if name in AGGREGATES:
            return self.total(word, args, span)
        if name in ("all", "any", "some"):
            self.fail("ALL and ANY take a query in parentheses", span)
        if name == "nullif" and len(args) == 2:
            same = self.apply("==", args, span)
            null = Constant(None, None, span)
            return Apply(Word("if", span), (same, null, self.term(args[0])), span)
        if name == "concat" and args:
            found = self.term(args[0])
            for one in args[1:]:
                found = Apply(Word("||", span), (found, self.term(one)), span)
            return found
        if name == "round" and len(args) == 2:
            return self.rounded(args, span)
        if name == "date_trunc" and len(args) == 2:
            return self.date_trunc(args, span)
        known = Word(FUNCTIONS.get(name, word.name), word.span)
        return Apply(known, tuple(self.term(a) for a in args), span)

    def date_trunc(self, args: list[Node], span: Span) -> Expression:
        unit = str(args[0].this).lower()
        if unit not in UNITS:
            self.fail(f'unknown unit of time "{unit}"', self.span(args[0]),
                      f"units are: {listing(UNITS, 40)}")  # fmt: skip
        step = Constant(UNITS[unit], DURATION, self.span(args[0]))
        return Apply(Word("floor_time", span), (self.term(args[1]), step), span)

    def rounded(self, args: list[Node], span: Span) -> Expression:
        """`ROUND(x, n)`: to n digits after the point, or before it if n is negative."""
        digits = self.term(args[1])
        sign = 1
        if isinstance(digits, Apply) and digits.function.name == "neg":
            sign, (digits,) = -1, digits.args
        number = digits.value if isinstance(digits, Constant) else None
        if not isinstance(number, int) or isinstance(number, bool) or number > MOST_DIGITS:
            self.fail(f"ROUND takes a number of digits from -{MOST_DIGITS} to {MOST_DIGITS}",
                      self.span(args[1]))  # fmt: skip
        assert isinstance(number, int)
        scale = Constant(float(10**number), NUMBER, span)
        there, back = ("*", "/") if sign > 0 else ("/", "*")
        scaled = Apply(Word(there, span), (self.term(args[0]), scale), span)
        return Apply(Word(back, span), (Apply(Word("round", span), (scaled,), span), scale), span)

    def filtered(self, node: Node, span: Span) -> Expression:
        total = self.term(node.this)
        if not isinstance(total, Total):
            self.fail("FILTER stands after an aggregate", span)
        assert isinstance(total, Total)
        return replace(total, where=self.term(node.expression.this), span=span)

    def total(self, word: Word, args: list[Node], span: Span) -> Expression:
        function = Word(AGGREGATES[word.name.lower()], word.span)
        is_distinct = len(args) == 1 and isinstance(args[0], exp.Distinct)
        if is_distinct:
            args = list(args[0].expressions)
        if len(args) != 1:
            self.fail(f"{word.name} takes one argument, got {len(args)}", span)
        if isinstance(args[0], exp.Star):
            if function.name != "count" or is_distinct:
                self.fail(f"{word.name} needs a column; only COUNT(*) counts rows", span)
            return Total(function, None, is_distinct=False, span=span)
        return Total(function, self.term(args[0]), is_distinct, span)


def _is_number(text: str) -> bool:
    try:
        return float(text) >= 0
    except ValueError:
        return False


def _places(root: Node) -> dict[int, tuple[int, int]]:
    """For every node the stretch of all in it that has a place."""
    found: dict[int, tuple[int, int]] = {}
    for node in reversed(list(root.bfs())):
        parts = [found[id(n)] for n in node.iter_expressions() if id(n) in found]
        if "start" in node.meta:
            parts.append((node.meta["start"], node.meta["end"] + 1))
        if parts:
            found[id(node)] = (min(p[0] for p in parts), max(p[1] for p in parts))
    return found
