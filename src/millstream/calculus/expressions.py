"""The parser of expressions and types: the scalar language as it is written everywhere.

Brook, domain files, projects and lambdas share it. A syntax error is noted as a fault and
stops the clause it stands in; whoever reads clauses goes on after it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal

from millstream.calculus.cursor import Cursor, Stop
from millstream.calculus.lexer import tokens_of
from millstream.calculus.syntax import Apply, Constant, Expression, Name, VariableName, Word
from millstream.calculus.types import (
    BOOLEAN,
    DURATION,
    INTEGER,
    NUMBER,
    TEXT,
    TYPES_BY_NAME,
    Dimension,
    Field,
    Kind,
    Type,
)
from millstream.errors import Fault, ParseError, listing, suggest
from millstream.source import Source, Span
from millstream.values.core.table import PRECEDENCE

#: Deep enough for generated programs, shallow enough for every recursive walk.
MAX_DEPTH = 1000

UNITS: dict[str, int] = {
    "us": 1, "microsecond": 1, "microseconds": 1,
    "ms": 1_000, "millisecond": 1_000, "milliseconds": 1_000,
    "s": 1_000_000, "sec": 1_000_000, "second": 1_000_000, "seconds": 1_000_000,
    "min": 60_000_000, "minute": 60_000_000, "minutes": 60_000_000,
    "h": 3_600_000_000, "hour": 3_600_000_000, "hours": 3_600_000_000,
    "d": 86_400_000_000, "day": 86_400_000_000, "days": 86_400_000_000,
}  # fmt: skip

#: Clauses that are said by their word alone.
FLAG_WORDS = frozenset({"unbounded", "nulls", "alone"})
CLAUSE_WORDS = FLAG_WORDS | {
    "by", "when", "set", "emit", "on", "where", "slide", "within", "every", "descending",
    "unless",
}  # fmt: skip
#: A word that is a clause only before a number.
COUNT_WORD = "first"
#: Names that must be quoted to be columns.
RESERVED_WORDS = CLAUSE_WORDS | {"and", "or", "not", "true", "false", "null", "inf", "nan"}

#: What people call our types elsewhere.
SYNONYMS: dict[str, str] = {
    "string": "text", "str": "text", "varchar": "text", "char": "text",
    "float": "number", "double": "number", "real": "number", "decimal": "number",
    "int": "integer", "bigint": "integer", "long": "integer",
    "bool": "boolean", "timestamp": "time", "datetime": "time", "date": "time",
    "interval": "duration",
}  # fmt: skip


def parse_expression(source: Source) -> Expression:
    """One expression that is the whole text."""
    faults: list[Fault] = []
    parser = ExpressionParser(tokens_of(source, faults), faults)
    try:
        expression = parser.expression()
        parser.expect_end()
    except Stop:
        raise ParseError(faults) from None
    if faults:
        raise ParseError(faults)
    return expression


@dataclass
class ExpressionParser(Cursor):
    """Mutable: a cursor over tokens, and how deep it stands in parentheses."""

    depth: int = field(default=0, init=False)

    def field(self) -> tuple[Word, Field]:
        word = self.expect_name("a column")
        return word, Field(word.name, self.type_())

    def type_(self) -> Type:
        word = self.expect_name("a type")
        type_ = TYPES_BY_NAME.get(word.name)
        if type_ is None:
            self.fail(f'unknown type "{word.name}"', word.span, type_hint(word.name))
        if type_ == NUMBER and self.accept("<"):
            powers = []
            while not self.at(">"):
                powers.append(self.power())
            self.expect(">", "after the dimension")
            return Type(Kind.NUMBER, Dimension().times(Dimension(tuple(powers))))
        return type_

    def power(self) -> tuple[str, int]:
        base = self.expect_name("a base dimension such as `length`").name
        if not self.accept("^"):
            return base, 1
        sign = -1 if self.accept("-") else 1
        return base, sign * self.whole("an exponent")

    def whole(self, what: str) -> int:
        if self.token.kind != "number" or not self.token.value.isdigit():
            self.fail(f"expected {what}, got {self.token}")
        return int(self.advance().value)

    def duration(self, what: str) -> Constant:
        value = self.expression()
        if not isinstance(value, Constant) or value.type != DURATION:
            self.fail(f"expected {what}", value.span)
        return value

    def expression(self, floor: int = 0) -> Expression:
        before = self.depth
        self.descend()
        left = self.unary()
        while self.at(*PRECEDENCE) and PRECEDENCE[self.token.value] > floor:
            self.descend()  # a chain a + b + c is a tree as deep as it is long
            operator = self.advance()
            right = self.expression(PRECEDENCE[operator.value])
            left = _apply(operator.value, (left, right), left, right, operator.span)
        self.depth = before
        return left

    def descend(self) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.fail(f"this expression is nested deeper than {MAX_DEPTH} levels")

    def unary(self) -> Expression:
        token = self.token
        if self.accept("not"):
            # `not` binds looser than comparisons and tighter than `and`.
            argument = self.expression(PRECEDENCE["and"])
            return _apply("not", (argument,), token.span, argument, token.span)
        if self.accept("-"):
            if self.token.kind == "number":
                return self.number(token.span, sign=-1)
            self.descend()
            argument = self.unary()
            self.depth -= 1
            return _apply("neg", (argument,), token.span, argument, token.span)
        return self.atom()

    def atom(self) -> Expression:
        token = self.token
        if token.kind == "number":
            return self.number(token.span)
        if token.kind == "text":
            self.advance()
            return Constant(token.value, TEXT, token.span)
        if self.accept("("):
            inner = self.expression()
            self.expect(")", "to close the parenthesis")
            return inner
        if self.accept("$"):
            variable = self.expect_name("the name of a variable")
            self.expect(".", "and a field of the variable")
            name = self.expect_name("a field of the variable")
            return VariableName(variable.name, name.name, token.span.to(name.span))
        if token.kind == "name" and (token.is_quoted or token.value not in CLAUSE_WORDS):
            return self.named()
        self.fail(f"expected an expression, got {token}")

    def named(self) -> Expression:
        token = self.advance()
        if not token.is_quoted:
            if token.value in ("true", "false"):
                return Constant(token.value == "true", BOOLEAN, token.span)
            if token.value in ("inf", "nan"):
                return Constant(float(token.value), NUMBER, token.span)
            if token.value == "null":
                return self.null(token.span)
            if token.value == "quantity" and self.at("("):
                return self.quantity(token.span)
            if self.accept("("):
                args = tuple(self.separated(self.expression, ")"))
                end = self.expect(")", "to close the arguments").span
                return Apply(token.value, args, token.span.to(end), token.span)
        return Name(token.value, token.span)

    def null(self, start: Span) -> Expression:
        if not self.accept("("):
            return Constant(None, None, start)
        type_ = self.type_()
        return Constant(None, type_, start.to(self.expect(")", "after the type").span))

    def quantity(self, start: Span) -> Expression:
        """`quantity(1.5, number<length>)`: a number with a dimension."""
        self.expect("(", "after `quantity`")
        value = self.expression()
        self.expect(",", "and the type of the quantity")
        type_ = self.type_()
        end = self.expect(")", "after the type").span
        if not isinstance(value, Constant) or not isinstance(value.value, (int, float)):
            self.fail("expected a plain number", value.span)
        return Constant(float(value.value), type_, start.to(end))

    def number(self, start: Span, sign: int = 1) -> Expression:
        token = self.advance()
        unit = self.token
        if unit.kind == "name" and not unit.is_quoted and unit.value in UNITS:
            self.advance()
            micros = sign * Decimal(token.value) * UNITS[unit.value]
            span = start.to(unit.span)
            if micros != int(micros):
                self.fail("a duration must be whole microseconds", span)
            return Constant(int(micros), DURATION, span)
        is_word = unit.kind == "name" and not unit.is_quoted
        if is_word and unit.value not in RESERVED_WORDS:
            self.fail(
                f'unknown unit "{unit.value}"', unit.span,
                f"units are: us, ms, s, min, h, d. {suggest(unit.value, UNITS) or ''}".strip(),
            )  # fmt: skip
        span = start.to(token.span)
        if token.value.isdigit():
            return Constant(sign * int(token.value), INTEGER, span)
        return Constant(sign * float(token.value), NUMBER, span)


def type_hint(name: str) -> str:
    """What to write instead of an unknown type."""
    meant = SYNONYMS.get(name.lower())
    near = f'Did you mean "{meant}"?' if meant else suggest(name, TYPES_BY_NAME)
    return f"types are: {listing(TYPES_BY_NAME)}. {near or ''}".strip()


def _apply(
    function: str,
    args: tuple[Expression, ...],
    first: Expression | Span,
    last: Expression,
    function_span: Span,
) -> Apply:
    start = first if isinstance(first, Span) else first.span
    assert start is not None and last.span is not None
    return Apply(function, args, start.to(last.span), function_span)
