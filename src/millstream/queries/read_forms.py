"""What is written with words of its own: from tokens to our tree."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

from millstream.calculus.types import DURATION, INTEGER, TEXT, TIME, Type
from millstream.errors import listing, suggest
from millstream.queries import ast
from millstream.queries.names import (
    DECIMALS,
    SHOWN_TYPES,
    TIME_PARTS,
    TYPES,
)
from millstream.queries.shorthands import SHORTHANDS, Call, part_of_time
from millstream.queries.tokens import Cursor, Token
from millstream.source import Span
from millstream.values.instants import parse_time


class FormReader:
    """Mutable: reads what is written with words of its own, such as `EXTRACT(DAY FROM t)`.

    `term` reads an expression of operators that bind more tightly than it is told; `among` is how
    tightly IN does.
    """

    def __init__(self, cursor: Cursor, term: Callable[..., ast.Expression], *, among: int) -> None:
        self.cursor = cursor
        self.term = term
        self.among = among

    def apply(self, name: str, start: Span, *args: ast.Expression) -> ast.Expression:
        span = self.cursor.since(start)
        return ast.Apply(ast.Word(name, span), args, span)

    def moment(self, start: Span) -> ast.Expression:
        text = self.cursor.string("a time in quotes")
        span = self.cursor.since(start)
        moment = parse_time(text)
        if moment is None:
            self.cursor.fail(f"{text!r} is not a time", span,
                             "write an ISO 8601 time, such as 2026-01-31T12:00:00Z")  # fmt: skip
        return ast.Constant(moment, TIME, span)

    def interval(self, start: Span) -> ast.Expression:
        """`INTERVAL '5' MINUTES`, `INTERVAL 5 MINUTES` or `INTERVAL '5 minutes'`."""
        cursor = self.cursor
        sign = -1 if cursor.take("-") else 1
        amount, _, unit = cursor.next().text.strip().partition(" ")
        if not re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)", amount):
            cursor.fail("expected an interval such as INTERVAL '5' MINUTES", cursor.since(start))
        number = sign * Decimal(amount)
        if unit:
            word = Token("word", unit.strip(), cursor.since(start))
            cursor = Cursor(cursor.source, [word], cursor.faults)
        micros = cursor.micros(number, "an interval", start)
        return ast.Constant(micros, DURATION, self.cursor.since(start))

    def cast(self, start: Span) -> ast.Expression:
        self.cursor.require("(")
        operand = self.term()
        self.cursor.require("as", "AS and a type")
        converted = self.converted(operand, start)
        self.cursor.require(")")
        return replace(converted, span=self.cursor.since(start))

    def converted(self, operand: ast.Expression, start: Span) -> ast.Expression:
        is_text = isinstance(operand, ast.Constant) and operand.type == TEXT
        # A day that is written down is its first instant.
        if is_text and self.cursor.take("date"):
            return self.apply(TIME.kind.value, start, operand)
        name, at = self.cursor.text(), self.cursor.span()
        type_, sizes = read_sized_type(self.cursor)
        converted = self.apply(type_.kind.value, start, operand)
        if not sizes:
            return converted
        # A text ends where its type does, a number is rounded to the digits of its type.
        if type_ != TEXT and name not in DECIMALS:
            self.cursor.fail(f"{name.upper()} has no size here", self.cursor.since(at))
        size = sizes[0] if type_ == TEXT else (*sizes, 0)[1]
        given = (converted, ast.Constant(size, INTEGER, self.cursor.since(at)))
        short = SHORTHANDS["left" if type_ == TEXT else "round"]
        return short.meaning(Call(self.cursor, given, self.cursor.since(start)))

    def extract(self, start: Span) -> ast.Expression:
        self.cursor.require("(")
        word = self.cursor.word("a part of a time")
        part = word.name.lower()
        if part not in TIME_PARTS:
            near = suggest(part, TIME_PARTS)
            hint = f"parts of a time are: {listing(TIME_PARTS)}. {near or ''}".strip()
            self.cursor.fail(f'unknown part of a time "{part}"', word.span, hint)
        self.cursor.require("from", "FROM and a time")
        time = self.term()
        self.cursor.require(")")
        return part_of_time(part, Call(self.cursor, (time,), self.cursor.since(start)))

    def position(self, start: Span) -> ast.Expression:
        """`POSITION(part IN text)`."""
        self.cursor.require("(")
        part = self.term(self.among)
        self.cursor.require("in", "IN and a text")
        text = self.term()
        self.cursor.require(")")
        return self.apply("position", start, text, part)

    def substring(self, start: Span) -> ast.Expression:
        """`SUBSTRING(text, 2, 3)` or `SUBSTRING(text FROM 2 FOR 3)`."""
        cursor = self.cursor
        cursor.require("(")
        args = [self.term()]
        if cursor.take(","):
            args += listed(cursor, self.term)
            return self.apply("substring", start, *args)
        if cursor.take("from"):
            args.append(self.term())
        if cursor.take("for"):
            first = ast.Constant(1, INTEGER, cursor.since(start))
            args = [*args, first, self.term()] if len(args) == 1 else [*args, self.term()]
        cursor.require(")")
        return self.apply("substring", start, *args)

    def trim(self, start: Span) -> ast.Expression:
        self.cursor.require("(")
        if self.cursor.text() in ("both", "leading", "trailing"):
            self.cursor.fail("TRIM takes one text")
        text = self.term()
        if not self.cursor.take(")"):
            self.cursor.fail("TRIM takes one text")
        return self.apply("trim", start, text)


def listed(cursor: Cursor, term: Callable[[], ast.Expression]) -> tuple[ast.Expression, ...]:
    """Values between commas, up to the closing parenthesis."""
    values = cursor.separated(term)
    cursor.require(")", 'a comma or ")"')
    return values


def read_type(cursor: Cursor) -> Type:
    """The type of a column that is given; how long its texts are is not ours to limit."""
    return read_sized_type(cursor)[0]


def read_sized_type(cursor: Cursor) -> tuple[Type, list[int]]:
    """The name of a type, and the sizes in parentheses behind it."""
    word = cursor.word("a type")
    name = word.name.lower()
    if name not in TYPES:
        hint = f"types are: {listing(SHOWN_TYPES)}. {suggest(name, TYPES) or ''}".strip()
        cursor.fail(f'unknown type "{name}"', word.span, hint)
    if name == "double":
        cursor.take("precision")
    sizes: list[int] = []
    while len(sizes) < 2 and cursor.take("," if sizes else "("):
        sizes.append(int(cursor.number("a length")))
    if sizes:
        cursor.require(")")
    return TYPES[name], sizes
