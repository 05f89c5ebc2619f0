"""Expressions: from sqlglot's tree to ours."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from sqlglot import exp

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
from millstream.languages.cql.shorthands import SHORTHANDS
from millstream.languages.cql.tokens import UNITS, Stop
from millstream.source import Source, Span
from millstream.values.instants import parse_time

Node = Any
"""A node of sqlglot's tree."""

#: Put before the names of our functions, so that sqlglot takes none of them for its own.
CALL = "call "

_BINARY: dict[type[Any], str] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.IntDiv: "div", exp.Mod: "%",
    exp.EQ: "==", exp.NEQ: "!=", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
    exp.And: "and", exp.Or: "or", exp.DPipe: "||",
}  # fmt: skip

#: What is read of each node. Whatever else sqlglot has found in it is a fault, so that
#: nothing that was written is ever passed over: in this way `NOT` comes before `LIKE`.
_PARTS: dict[type[Any], frozenset[str]] = {
    exp.Column: frozenset({"this", "table", "db"}),
    exp.Identifier: frozenset({"this", "quoted"}),
    exp.Literal: frozenset({"this", "is_string"}),
    exp.Between: frozenset({"this", "low", "high"}),
    exp.In: frozenset({"this", "query", "expressions"}),
    exp.Case: frozenset({"this", "ifs", "default"}),
    exp.If: frozenset({"this", "true", "false"}),
    exp.Cast: frozenset({"this", "to"}),
    exp.Interval: frozenset({"this", "unit"}),
    exp.Substring: frozenset({"this", "start", "length"}),
    exp.Trim: frozenset({"this", "expression", "position"}),
    exp.Coalesce: frozenset({"this", "expressions"}),
    exp.Anonymous: frozenset({"this", "expressions"}),
    exp.StrPosition: frozenset({"this", "substr"}),
    exp.Like: frozenset({"this", "expression", "negate"}),
    exp.ILike: frozenset({"this", "expression", "negate"}),
}
#: The last two are not written: how sqlglot's own dialects divide and concatenate.
_USUAL_PARTS = frozenset({"this", "expression", "typed", "safe"})

#: Operators that may stand before ALL and ANY.
_COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">="})
_QUANTIFIED = "such as x >= ALL (SELECT ...)"

#: What to write instead of what is not there.
_INSTEAD: dict[type[Any], str] = {
    exp.Escape: "% and _ cannot be escaped; use contains, starts_with or ends_with",
    exp.Window: "use a window in the FROM clause, and GROUP BY",
    exp.Tuple: "compare the values one by one",
    exp.RegexpLike: "use LIKE, contains, starts_with or ends_with",
    exp.SimilarTo: "use LIKE, contains, starts_with or ends_with",
    exp.Bracket: "a window stands in the FROM clause, after the name of a stream",
}


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
            exp.Is: self.is_,
            exp.NullSafeEQ: self.same,
            exp.NullSafeNEQ: lambda node, span: self.negated(self.same(node, span), span),
            exp.Like: self.like,
            exp.ILike: self.like,
            exp.StrPosition: lambda node, span: self.apply(
                "position", [node.this, node.args["substr"]], span
            ),
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
            self.check_parts(node, span)
            return self.apply(name, [node.this, node.expression], span)
        read = self.tables.get(type(node))
        if read is not None:
            self.check_parts(node, span)
            return read(node, span)
        if isinstance(node, (exp.Subquery, exp.Select, exp.SetOperation)):
            return Scalar(self.query(node), span)
        if isinstance(node, (exp.All, exp.Any)):
            self.fail("ALL and ANY stand after a comparison", span, _QUANTIFIED)
        if isinstance(node, exp.Func):
            # Unknown to us, which is told when names are looked up.
            return Apply(self.written(node), (), span)
        return self.unsupported(node, span)

    def check_parts(self, node: Node, span: Span) -> None:
        """Nothing that sqlglot has found in a node may be left unread."""
        parts = _PARTS.get(type(node), _USUAL_PARTS)
        for name, value in node.args.items():
            if value and name not in parts:
                shown = name.rstrip("_").upper().replace("_", " ")
                self.fail(f"{shown} is not part of CQL here", span)

    def unsupported(self, node: Node, span: Span) -> Expression:
        hint = _INSTEAD.get(type(node))
        self.fail(f"this is not part of CQL: {node.key.upper()}", span, hint)
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

    def like(self, node: Node, span: Span) -> Expression:
        """`LIKE`, `ILIKE` for letters of any case, and both with `NOT` before them."""
        if isinstance(node.expression, (exp.All, exp.Any)):
            self.fail("ALL and ANY stand after a comparison", span, _QUANTIFIED)
        sides = [self.term(node.this), self.term(node.expression)]
        if isinstance(node, exp.ILike):
            sides = [Apply(Word("lower", one.span), (one,), one.span) for one in sides]
        found = Apply(Word("like", span), tuple(sides), span)
        return self.negated(found, span) if node.args.get("negate") else found

    def negated(self, term: Expression, span: Span) -> Expression:
        return Apply(Word("not", span), (term,), span)

    def is_(self, node: Node, span: Span) -> Expression:
        """`IS NULL`, `IS TRUE`, `IS FALSE`: none of them is ever null."""
        asked = node.expression
        if isinstance(asked, exp.Null):
            return self.apply("is_null", [node.this], span)
        if not isinstance(asked, exp.Boolean):
            self.fail("IS is followed by NULL, TRUE, FALSE or DISTINCT FROM", span)
        operand = self.term(node.this)
        compared = operand if asked.this else self.negated(operand, span)
        return Apply(Word("coalesce", span), (compared, Constant(False, BOOLEAN, span)), span)

    def same(self, node: Node, span: Span) -> Expression:
        """`IS NOT DISTINCT FROM`: nulls are the same as each other and as nothing else."""
        one, other = self.term(node.this), self.term(node.expression)

        def apply(name: str, *args: Expression) -> Expression:
            return Apply(Word(name, span), args, span)

        equal = apply("coalesce", apply("==", one, other), Constant(False, BOOLEAN, span))
        return apply("if", apply("is_null", one), apply("is_null", other), equal)

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
        is_text = isinstance(node.this, exp.Literal) and node.this.is_string
        if name == "date" and is_text:
            name = "timestamp"  # a day is its first instant
        if name not in TYPES:
            self.fail(f'unknown type "{name}"', span, f"types are: {listing(SHOWN_TYPES)}")
        if TYPES[name] == TIME and is_text:
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
        if part == "epoch":
            micros = self.apply("integer", [node.expression], span)
            million = Constant(1_000_000, INTEGER, span)
            return Apply(Word("/", span), (micros, million), span)
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
        shorthand = SHORTHANDS.get(name)
        if shorthand is not None:
            return shorthand.read(self, word, args, span)
        known = Word(FUNCTIONS.get(name, word.name), word.span)
        return Apply(known, tuple(self.term(a) for a in args), span)

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
