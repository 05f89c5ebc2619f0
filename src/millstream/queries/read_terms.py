"""Expressions: from tokens to our tree, operators by how tightly they bind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from millstream.calculus.types import BOOLEAN, DURATION, INTEGER, NUMBER, TEXT
from millstream.queries import ast
from millstream.queries.names import (
    AGGREGATES,
    FUNCTIONS,
    QUOTIENT,
    RESERVED,
)
from millstream.queries.read_forms import FormReader, listed
from millstream.queries.read_over import OF_PLACES, USAGE
from millstream.queries.read_totals import TotalReader
from millstream.queries.readable import check_pattern, check_zone, path_of
from millstream.queries.shorthands import SHORTHANDS
from millstream.queries.tokens import Cursor, Token
from millstream.source import Span

#: How tightly operators bind, as in PostgreSQL; prefixes bind what comes after them.
_OR, _AND, _NOT, _IS, _COMPARED, _AMONG, _JOINED, _ADDED, _TIMES, _SIGN, _CAST = range(1, 12)

_BINARY: dict[str, tuple[str, int]] = {
    "or": ("or", _OR), "and": ("and", _AND),
    "=": ("==", _COMPARED), "==": ("==", _COMPARED), "<>": ("!=", _COMPARED),
    "!=": ("!=", _COMPARED), "<": ("<", _COMPARED), "<=": ("<=", _COMPARED),
    ">": (">", _COMPARED), ">=": (">=", _COMPARED), "||": ("||", _JOINED),
    "+": ("+", _ADDED), "-": ("-", _ADDED), "*": ("*", _TIMES), "/": ("/", _TIMES),
    "%": ("%", _TIMES), "div": ("div", _TIMES),
}  # fmt: skip
_OTHERS = {
    **dict.fromkeys(("in", "like", "ilike", "between", "regexp", "rlike", "~", "!~"), _AMONG),
    **dict.fromkeys(("->", "->>"), _CAST),
    **dict.fromkeys(("is", "isnull", "notnull"), _IS),
    "::": _CAST,
}
_QUERIES = ("select", "with", "(", "istream", "dstream", "rstream")
_AFTER_QUERIES = (")", "union", "except", "intersect", "order", "limit")
_QUANTIFIERS = ("all", "any", "some")
_QUANTIFIED = "such as x >= ALL (SELECT ...)"
_MOMENTS = ("date", "timestamp", "datetime", "timestamptz", "time")
_CONSTANTS = {"null": (None, None), "true": (True, BOOLEAN), "false": (False, BOOLEAN)}
#: So many levels deep may an expression be; what comes after reading is recursive.
_DEEPEST = 120


class TermReader:
    """Mutable: reads expressions with a cursor. `query` reads the subqueries inside them.

    In a script of the prototype's style texts may stand in double quotes, and `/` of integers
    is an integer.
    """

    def __init__(self, cursor: Cursor, query: Callable[[], ast.Query], *, is_script: bool) -> None:
        self.cursor = cursor
        self.query = query
        self.is_script = is_script
        self.depth = 0
        self.totals = TotalReader(cursor, self.term)
        self.overs = self.totals.overs
        self.forms = FormReader(cursor, self.term, among=_AMONG)
        self.apply = self.forms.apply
        self.grammar: dict[str, Callable[[Span], ast.Expression]] = {
            "case": self.case,
            "cast": self.forms.cast,
            "exists": self.exists,
            "extract": self.forms.extract,
            "position": self.forms.position,
            "substring": self.forms.substring,
            "trim": self.forms.trim,
        }

    # --- operators ---

    def term(self, tightness: int = 0) -> ast.Expression:
        """An expression of operators that bind more tightly than that."""
        start = self.cursor.span()
        before = self.depth
        self.deeper()
        left = self.prefix(start)
        power = self.power()
        while power > tightness:
            self.deeper()
            left = self.infix(left, start, power)
            if power == _COMPARED == self.power():
                hint = "tie two comparisons with AND, or use parentheses"
                self.cursor.fail("a comparison cannot be compared again", hint=hint)
            power = self.power()
        self.depth = before
        return left

    def deeper(self) -> None:
        self.depth += 1
        if self.depth > _DEEPEST:
            self.cursor.fail("this is nested too deep")

    def power(self) -> int:
        """How tightly the coming operator binds; 0 if none comes."""
        word = self.cursor.text()
        if word == "at" and self.cursor.text(1) == "time":
            return _CAST
        if word in ("->", "->>") and self.cursor.kind(1) not in ("string", "number"):
            return 0  # which ties pipes together
        if word == "not":
            word = self.cursor.text(1)
            return _AMONG if _OTHERS.get(word) == _AMONG else 0
        return _BINARY[word][1] if word in _BINARY else _OTHERS.get(word, 0)

    def infix(self, left: ast.Expression, start: Span, power: int) -> ast.Expression:
        word = self.cursor.next().text.lower()
        if word in ("and", "or"):
            return self.chain(left, start, word, power)
        if power == _COMPARED and self.cursor.text() in _QUANTIFIERS:
            return self.quantified(left, start, _BINARY[word][0])
        if word in _BINARY:
            name = QUOTIENT if word == "/" and self.is_script else _BINARY[word][0]
            return self.apply(name, start, left, self.term(power))
        if power == _IS:
            return self.is_(left, start, word)
        if word == "at":
            return self.apply("local_time", start, left, self.zone())
        if word in ("->", "->>"):
            key = self.term(_CAST)
            path = ast.Constant(path_of(self.cursor, word, key), TEXT, key.span)
            function = "json_query" if word == "->" else "json_text"
            return self.apply(function, start, left, path)
        if power == _CAST:
            return self.forms.converted(left, start)
        if word == "!~":
            return self.negated(self.among(left, start, "~"), start)
        if word != "not":
            return self.among(left, start, word)
        return self.negated(self.among(left, start, self.cursor.next().text.lower()), start)

    def chain(self, left: ast.Expression, start: Span, word: str, power: int) -> ast.Expression:
        """All conditions that are tied by the same word."""
        parts = [left, self.term(power)]
        while self.cursor.take(word):
            parts.append(self.term(power))
        return self.tied(word, parts, self.cursor.since(start))

    def tied(self, name: str, parts: Sequence[ast.Expression], span: Span) -> ast.Expression:
        """Parts tied in pairs from the left; in halves if they are many, so as not to be deep."""
        if len(parts) > 8:
            half = len(parts) // 2
            parts = [self.tied(name, some, span) for some in (parts[:half], parts[half:])]
        tied = parts[0]
        for part in parts[1:]:
            tied = ast.Apply(ast.Word(name, span), (tied, part), span)
        return tied

    def negated(self, term: ast.Expression, start: Span) -> ast.Expression:
        return self.apply("not", start, term)

    def quantified(self, left: ast.Expression, start: Span, operator: str) -> ast.Expression:
        """`x > ALL (query)`; two of them are IN by another name."""
        is_all = self.cursor.next().text.lower() == "all"
        if self.cursor.text() != "(" or self.cursor.text(1) not in _QUERIES:
            self.cursor.fail("ALL and ANY take a query in parentheses")
        query = self.parenthesised()
        span = self.cursor.since(start)
        if operator == "==" and not is_all:
            return ast.Membership(left, query, span)
        if operator == "!=" and is_all:
            return self.negated(ast.Membership(left, query, span), start)
        return ast.Quantified(left, operator, is_all, query, span)

    def is_(self, left: ast.Expression, start: Span, word: str) -> ast.Expression:
        """`IS NULL`, `IS TRUE`, `IS DISTINCT FROM`...: none of them is ever null."""
        cursor = self.cursor
        if word != "is":
            is_null = self.apply("is_null", start, left)
            return is_null if word == "isnull" else self.negated(is_null, start)
        is_negated = cursor.take("not")
        if cursor.take("distinct"):
            cursor.require("from")
            same = self.same(left, self.term(_IS), start)
            return same if is_negated else self.negated(same, start)
        answer: ast.Expression
        if cursor.take("null"):
            answer = self.apply("is_null", start, left)
        elif cursor.take("unknown"):  # of a condition, as `not` makes sure
            answer = self.apply("is_null", start, self.negated(left, start))
        elif cursor.text() in ("true", "false"):
            asked = left if cursor.next().text.lower() == "true" else self.negated(left, start)
            no = ast.Constant(False, BOOLEAN, cursor.since(start))
            answer = self.apply("coalesce", start, asked, no)
        else:
            cursor.expected("NULL, TRUE, FALSE or DISTINCT FROM after IS")
        return self.negated(answer, start) if is_negated else answer

    def same(self, left: ast.Expression, right: ast.Expression, start: Span) -> ast.Expression:
        """Nulls are the same as each other and as nothing else."""
        no = ast.Constant(False, BOOLEAN, self.cursor.since(start))
        equal = self.apply("coalesce", start, self.apply("==", start, left, right), no)
        nulls = (self.apply("is_null", start, one) for one in (left, right))
        return self.apply("if", start, *nulls, equal)

    def among(self, left: ast.Expression, start: Span, word: str) -> ast.Expression:
        """`BETWEEN`, `IN`, `LIKE` and `ILIKE`."""
        if word == "between":
            if self.cursor.text() == "symmetric" and self.cursor.text(1) != "and":
                self.cursor.fail("SYMMETRIC is not part of CQL", hint="write the smaller one first")
            low = self.term(_AMONG)
            self.cursor.require("and")
            high = self.term(_AMONG)
            parts = [self.apply(">=", start, left, low), self.apply("<=", start, left, high)]
            return self.apply("and", start, *parts)
        if word == "in":
            return self.membership(left, start)
        if word in ("regexp", "rlike", "~"):
            check_pattern(self.cursor, pattern := self.term(_AMONG))
            return self.apply("regexp_like", start, left, pattern)
        if self.cursor.text() in _QUANTIFIERS:
            self.cursor.fail("ALL and ANY stand after a comparison", hint=_QUANTIFIED)
        sides = [left, self.term(_AMONG)]
        if self.cursor.take("escape"):
            sides.append(self.escape(sides[1], is_caseless=word == "ilike"))
        if word == "ilike":
            sides = [ast.Apply(ast.Word("lower", one.span), (one,), one.span) for one in sides]
        return self.apply("like", start, *sides)

    def zone(self) -> ast.Expression:
        """What stands behind AT."""
        if not self.cursor.take("time", "zone"):
            self.cursor.expected("TIME ZONE")
        zone = self.term(_CAST)
        check_zone(self.cursor, zone)
        return zone

    def escape(self, pattern: ast.Expression, *, is_caseless: bool) -> ast.Expression:
        """What takes the meaning from the `%` or `_` behind it."""
        span = self.cursor.span()
        mark = self.term(_AMONG)
        sign = mark.value if isinstance(mark, ast.Constant) else None
        if not isinstance(sign, str) or len(sign) != 1:
            self.cursor.fail("an escape is a text of one character", span, "write ESCAPE '!'")
        if is_caseless and sign.lower() != sign.upper():
            self.cursor.fail("letters cannot be escapes of ILIKE", span, "write ESCAPE '!'")
        written = pattern.value if isinstance(pattern, ast.Constant) else ""
        if isinstance(written, str) and written.replace(sign * 2, "").endswith(sign):
            message = "nothing follows the escape at the end of the pattern"
            self.cursor.fail(message, pattern.span, f"write {sign}{sign} for {sign} itself")
        return mark

    def membership(self, left: ast.Expression, start: Span) -> ast.Expression:
        if self.cursor.text() == "(" and self.is_query():
            query = self.parenthesised()
            return ast.Membership(left, query, self.cursor.since(start))
        if isinstance(left, ast.Apply) and left.function.name == ast.ROW:
            return self.among_rows(left, start)
        self.cursor.require("(", "values or a query in parentheses")
        values = listed(self.cursor, self.term)
        span = self.cursor.since(start)
        return self.tied("or", [self.apply("==", start, left, v) for v in values], span)

    def among_rows(self, left: ast.Apply, start: Span) -> ast.Expression:
        """`(a, b) IN ((1, 2), (3, 4))`."""

        def row() -> ast.Expression:
            self.cursor.require("(", "values in parentheses")
            span = self.cursor.span()
            values = listed(self.cursor, self.term)
            if len(values) != len(left.args):
                message = f"{len(left.args)} values are compared with {len(values)}"
                self.cursor.fail(message, span)
            pairs = zip(left.args, values, strict=True)
            equal = [self.apply("==", start, a, b) for a, b in pairs]
            return self.tied("and", equal, self.cursor.since(start))

        self.cursor.require("(", "rows or a query in parentheses")
        rows = self.cursor.separated(row)
        self.cursor.require(")", 'a comma or ")"')
        return self.tied("or", list(rows), self.cursor.since(start))

    # --- what an expression begins with ---

    def prefix(self, start: Span) -> ast.Expression:
        cursor = self.cursor
        kind, word = cursor.kind(), cursor.text()
        if kind == "number":
            return self.number(cursor.next())
        if kind == "string" or (kind == "quoted" and self.is_script):
            return ast.Constant(cursor.next().text, TEXT, start)
        if word in _CONSTANTS:
            cursor.next()
            return ast.Constant(*_CONSTANTS[word], start)
        if kind == "word":
            return self.named(start, word)
        if kind == "quoted":
            return self.column(start)
        if cursor.take("-"):
            return self.minus(start)
        if cursor.take("+"):  # of a number, as the sum makes sure
            return self.apply("+", start, ast.Constant(0, INTEGER, start), self.term(_SIGN))
        if word == "(":
            return self.inside_parentheses(start)
        if word == "*":
            cursor.fail("* stands in a select list or in COUNT(*)")
        if word == "[":
            cursor.fail("a window stands in the FROM clause, after the name of a stream")
        is_parameter = word in ("?", ":", "$", "@")
        hint = "a query has no parameters: write the value" if is_parameter else None
        cursor.expected("an expression", hint)

    def named(self, start: Span, word: str) -> ast.Expression:
        cursor = self.cursor
        if word == "not":
            cursor.next()
            return self.negated(self.term(_NOT), start)
        if word in self.grammar and (word == "case" or cursor.text(1) == "("):
            cursor.next()
            return self.grammar[word](start)
        if word == "interval" and (cursor.kind(1) in ("string", "number") or cursor.text(1) == "-"):
            cursor.next()
            return self.forms.interval(start)
        if word in _MOMENTS and cursor.kind(1) == "string":
            cursor.next()
            return self.forms.moment(start)
        if word in _QUANTIFIERS:
            cursor.fail("ALL and ANY stand after a comparison", hint=_QUANTIFIED)
        if cursor.text(1) == "(" and word not in RESERVED - {"left", "right"}:
            return self.call(start)
        return self.column(start)

    def inside_parentheses(self, start: Span) -> ast.Expression:
        if self.is_query():
            return ast.Scalar(self.parenthesised(), self.cursor.since(start))
        self.cursor.require("(")
        term = self.term()
        if self.cursor.text() == ",":
            return self.row(term, start)
        self.cursor.require(")")
        return replace(term, span=self.cursor.since(start))

    def row(self, first: ast.Expression, start: Span) -> ast.Expression:
        """Several values in parentheses: they can only stand before IN."""
        comma = self.cursor.span()
        self.cursor.next()
        values = (first, *listed(self.cursor, self.term))
        span = self.cursor.since(start)
        ahead = 1 if self.cursor.text() == "not" else 0
        if self.cursor.text(ahead) != "in":
            hint = "compare them one by one"
            self.cursor.fail("a list of values cannot stand here", comma, hint)
        return ast.Apply(ast.Word(ast.ROW, span), values, span)

    def is_query(self) -> bool:
        """Is what stands in the coming parentheses a query, perhaps in more of them?"""
        cursor = self.cursor
        ahead = 1
        while cursor.text(ahead) == "(":
            ahead += 1
        if cursor.text(ahead) not in _QUERIES[:2]:
            return False
        depth = lowest = ahead
        while cursor.kind(ahead) and lowest > 1:
            depth += {"(": 1, ")": -1}.get(cursor.text(ahead), 0)
            ahead += 1
            if depth < lowest:
                lowest = depth
                if cursor.text(ahead) not in _AFTER_QUERIES:
                    return False
        return True

    def parenthesised(self) -> ast.Query:
        self.cursor.require("(")
        query = self.query()
        self.cursor.require(")")
        return query

    def column(self, start: Span) -> ast.Expression:
        cursor = self.cursor
        name = cursor.name("an expression")
        if not cursor.take("."):
            return ast.Reference(None, name, name.span)
        if cursor.text() == "*":
            cursor.fail("* stands in a select list or in COUNT(*)", name.span.to(cursor.span()))
        owner, name = name, cursor.word("a column")
        if cursor.text() == ".":
            cursor.fail("a column has at most one owner: owner.column")
        return ast.Reference(owner, name, cursor.since(start))

    # --- constants ---

    def number(self, token: Token) -> ast.Expression:
        cursor = self.cursor
        if cursor.kind() == "word" and cursor.span().start == token.span.end:
            cursor.fail("this number has letters in it", token.span.to(cursor.span()))
        if token.text.isdigit():
            return ast.Constant(int(token.text), INTEGER, token.span)
        return ast.Constant(float(token.text), NUMBER, token.span)

    def minus(self, start: Span) -> ast.Expression:
        """A number with a sign is one constant, so that the least integer can be written."""
        operand = self.term(_SIGN)
        span = self.cursor.since(start)
        match operand:
            case ast.Constant(int() | float() as value, type_) if type_ in (
                INTEGER,
                NUMBER,
                DURATION,
            ):
                return ast.Constant(-value, type_, span)
            case _:
                return self.apply("neg", start, operand)

    # --- what is written with words of its own ---

    def exists(self, start: Span) -> ast.Expression:
        query = self.parenthesised()
        return ast.Membership(None, query, self.cursor.since(start))

    def case(self, start: Span) -> ast.Expression:
        cursor = self.cursor
        subject = None if cursor.text() == "when" else self.term()
        choices: list[tuple[ast.Expression, ast.Expression]] = []
        while not choices or cursor.text() == "when":
            cursor.require("when", "WHEN")
            begin = cursor.span()
            condition = self.term()
            if subject is not None:
                condition = self.apply("==", begin, subject, condition)
            cursor.require("then", "THEN")
            choices.append((condition, self.term()))
            self.deeper()
        otherwise: ast.Expression = ast.Constant(None, None, start)
        if cursor.take("else"):
            otherwise = self.term()
        cursor.require("end", "WHEN, ELSE or END")
        for condition, value in reversed(choices):
            otherwise = self.apply("if", start, condition, value, otherwise)
        self.depth -= len(choices)
        return otherwise

    # --- calls ---

    def call(self, start: Span) -> ast.Expression:
        cursor = self.cursor
        word = cursor.word("a function")
        name = word.name.lower()
        cursor.require("(")
        if name in AGGREGATES:
            return self.totals.total(word, start)
        args = () if cursor.take(")") else listed(cursor, self.term)
        span = cursor.since(start)
        if name in OF_PLACES:
            return self.overs.placed(word, args, start)
        if self.overs.comes():
            hint = f"such as {USAGE}"
            cursor.fail(f"{word.name} cannot stand before OVER", word.span, hint)
        if cursor.text() == "filter" and cursor.text(1) == "(":
            cursor.fail("FILTER stands after an aggregate")
        if name.startswith("regexp_") and len(args) > 1:
            check_pattern(cursor, args[1])
        if name in ("local_time", "zoned_time") and len(args) > 1:
            check_zone(cursor, args[1])
        if name in SHORTHANDS:
            return SHORTHANDS[name].read(cursor, word, args, span)
        return ast.Apply(ast.Word(FUNCTIONS.get(name, word.name), word.span), tuple(args), span)
