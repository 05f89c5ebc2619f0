"""The words of one line of a rule file: expressions, loosest first."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import NoReturn

from millstream.errors import Fault, listing, suggest
from millstream.languages.rules.ast import (
    Apply,
    Expression,
    Field,
    Named,
    Number,
    Text,
    Total,
    Truth,
    Word,
)
from millstream.languages.rules.over_time import CALLS, LASTING
from millstream.languages.rules.placed import PLACED
from millstream.languages.rules.tokens import (
    FOREIGN,
    KEYWORDS,
    LOOKING_BACK,
    RELATING,
    WORDS,
    Line,
    Token,
)
from millstream.languages.rules.totals import FUNCTIONS
from millstream.languages.rules.units import is_unit
from millstream.source import Span

_Part = Callable[[], Expression]
#: What people write for our operators, in small letters.
_MEANT = {"and": "and", "or": "or", "not": "not", "is": "==", "equals": "=="}
#: What else people write, and what to write instead.
_ELSEWHERE = {
    "if": "a condition comes first: when CONDITION: require ...",
    "when": "a condition comes first: when CONDITION: require ...",
    "unless": "a condition comes first: when not CONDITION: require ...",
    "in": "write x == a or x == b",
    **dict.fromkeys(("during", "after", "throughout"), "how long it has been so: x for 10 min"),
    "last": "whether it was so lately: x within 10 min",
    "else": 'only a requirement has it: require CONDITION else "what to say"',
    "require": "begin another line for it",
    "location": "begin another line for it",
    "=": "write == to compare",
    ":": "only when and location open a block",
}
_NO_NAMES = KEYWORDS | LOOKING_BACK | RELATING | {"and", "or", "not"}
_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")


class Stop(Exception):
    """The line cannot be read further; its fault has been noted."""


@dataclass
class Words:
    """Mutable: where we are among the words of one line."""

    line: Line
    faults: list[Fault]
    names: Mapping[str, Named]
    at: int = 0

    @property
    def token(self) -> Token | None:
        return self.line.tokens[self.at] if self.at < len(self.line.tokens) else None

    @property
    def here(self) -> Span:
        return self.token.span if self.token is not None else self.line.end

    @property
    def previous(self) -> Span:
        return self.line.tokens[max(self.at - 1, 0)].span

    def fail(self, message: str, span: Span, hint: str | None = None) -> NoReturn:
        self.faults.append(Fault(message, span, hint))
        raise Stop

    def advance(self) -> Token:
        token = self.token
        assert token is not None
        self.at += 1
        return token

    def accept(self, *values: str) -> Token | None:
        token = self.token
        if token is not None and token.kind != "text" and token.value in values:
            return self.advance()
        return None

    def rest(self) -> Line:
        """What follows a colon on its line."""
        rest = Line(self.line.indent, self.line.tokens[self.at :])
        if rest.tokens[0].value in ("when", "location"):
            self.fail("a block begins on a line of its own", rest.tokens[0].span)
        return rest

    def end(self) -> None:
        token = self.token
        if token is None:
            return
        if token.value in FOREIGN:
            self.fail(f"unexpected {token}", token.span, f'write "{FOREIGN[token.value]}"')
        self.fail(f"unexpected {token}", token.span, self.meant(token))

    def meant(self, token: Token) -> str | None:
        """What a word that cannot stand here may have been meant for."""
        operator = _MEANT.get(token.value.lower())
        if token.kind == "name" and operator is not None:
            return f'write "{operator}"'
        if token.kind == "name" and token.value in _ELSEWHERE:
            return _ELSEWHERE[token.value]
        if token.kind == "name" and self.at + 1 < len(self.line.tokens) and self.is_word(self.at):
            return 'write "and" or "or" between conditions'
        if token.kind == "name" and self.at > 1 and self.is_after_unit():
            return "a unit is one word, such as nmi, degC or delta_degC, or a quotient such as m/s"
        if token.value in (",", ".") and self.at and self.line.tokens[self.at - 1].kind == "number":
            return "a number is written 1.5"
        return _ELSEWHERE.get(token.value)

    def is_after_unit(self) -> bool:
        number, word = self.line.tokens[self.at - 2 : self.at]
        return number.kind == "number" and word.kind == "name"

    def whole(self) -> Expression:
        expression = self.expression()
        self.end()
        return expression

    def text(self, what: str) -> str:
        token = self.token
        if token is None or token.kind != "text":
            self.fail(f"expected {what}", self.here)
        return self.advance().value[1:-1]

    def word(self, what: str) -> str:
        token = self.token
        if token is None or token.kind != "name" or token.value in WORDS:
            self.fail(f"expected {what}", self.here)
        return self.advance().value

    def places(self) -> tuple[Text, ...]:
        names: list[Text] = []
        while True:
            token = self.token
            is_plain = token is not None and token.kind == "name" and token.value not in WORDS
            if token is None or not (token.kind == "text" or is_plain):
                self.fail("expected the name of a location", self.here,
                          'write it in quotes: location "Wilhelminakade":')  # fmt: skip
            self.advance()
            value = token.value[1:-1] if token.kind == "text" else token.value
            names.append(Text(value, token.span))
            if not self.accept(","):
                return tuple(names)

    # --- expressions, loosest first ---

    def expression(self) -> Expression:
        return self.chain(("or",), lambda: self.chain(("and",), self.negation))

    def chain(self, operators: tuple[str, ...], part: _Part) -> Expression:
        left = part()
        while token := self.accept(*operators):
            right = part()
            left = Apply(token.value, (left, right), _joined(left, right))
        return left

    def negation(self) -> Expression:
        if token := self.accept("not"):
            value = self.negation()
            return Apply("not", (value,), token.span.to(value.span or token.span))
        return self.looking_back()

    def looking_back(self) -> Expression:
        left = self.comparison()
        while token := self.accept(*LOOKING_BACK):
            right = self.sum() if token.value in LASTING else self.comparison()
            left = Apply(token.value, (left, right), _joined(left, right))
        return left

    def comparison(self) -> Expression:
        left = self.sum()
        token = self.accept(*_COMPARISONS)
        if token is None:
            return left
        right = self.sum()
        if again := self.accept(*_COMPARISONS):
            self.fail("a comparison has two sides", again.span, "write a < b and b < c")
        return Apply(token.value, (left, right), _joined(left, right))

    def sum(self) -> Expression:
        return self.chain(("+", "-"), lambda: self.chain(("*", "/"), self.unary))

    def unary(self) -> Expression:
        if token := self.accept("-"):
            value = self.unary()
            span = token.span.to(value.span or token.span)
            if isinstance(value, Number) and value.value >= 0:
                return Number(-value.value, value.unit, span)
            return Apply("neg", (value,), span)
        return self.primary()

    def primary(self) -> Expression:
        token = self.token
        if token is None:
            self.fail("expected an expression", self.here)
        if token.kind == "number":
            return self.number()
        if token.kind == "text":
            self.advance()
            return Text(token.value[1:-1], token.span)
        if token.value == "(":
            return self.parenthesis()
        if token.kind == "name" and token.value not in _NO_NAMES:
            return self.name()
        if token.value in FOREIGN:
            self.fail(f"unexpected {token}", token.span, f'write "{FOREIGN[token.value]}"')
        self.fail(f"expected an expression, got {token}", token.span)

    def parenthesis(self) -> Expression:
        opened = self.advance()
        value = self.expression()
        if self.accept(")") is None:
            if self.token is None:
                self.fail("this parenthesis is not closed", opened.span)
            self.end()
        return value

    def name(self) -> Expression:
        token = self.advance()
        if token.value in ("true", "false"):
            return Truth(token.value == "true", token.span)
        if token.value == "abs":
            if self.token is None or self.token.value != "(":
                self.fail("expected a parenthesis", self.here, "write abs(x)")
            value = self.parenthesis()
            return Apply("abs", (value,), token.span.to(self.previous))
        if self.accept("."):
            field_ = self.token
            if field_ is None or field_.kind != "name":
                self.fail("expected the name of a field", self.here)
            self.advance()
            return Field(token.value, field_.value, token.span.to(field_.span))
        if self.token is not None and self.token.value == "(":
            if token.value in CALLS:
                return self.call(token)
            if token.value in PLACED:
                return self.placed(token)
            if token.value in FUNCTIONS:
                return self.total(token)
            known = ("abs", *CALLS, *PLACED, *FUNCTIONS)
            hint = suggest(token.value, known) or f"there are: {listing(known, 20)}"
            self.fail(f'unknown function "{token.value}"', token.span, hint)
        if token.value in self.names:
            return Named(token.value, self.names[token.value].value, token.span)
        return Word(token.value, token.span)

    def call(self, function: Token) -> Expression:
        """A value and how far to look back."""
        self.advance()
        value = self.expression()
        if self.accept(",") is None:
            self.fail("expected a comma and a length of time", self.here,
                      f"write {function.value}(x, 10 min)")  # fmt: skip
        length = self.sum()
        if self.accept(")") is None:
            self.fail("expected a closing parenthesis", self.here,
                      f"write {function.value}(x, 10 min)")  # fmt: skip
        return Apply(function.value, (value, length), function.span.to(self.previous))

    def placed(self, function: Token) -> Expression:
        """Two names of what has a place."""
        self.advance()
        usage = f"write {function.value}(vessel, {PLACED[function.value]})"
        names: list[Expression] = []
        for following in (",", ")"):
            token = self.token
            if token is None or token.kind != "name" or token.value in WORDS:
                self.fail("expected the name of what has a place", self.here, usage)
            names.append(Word(self.advance().value, token.span))
            if self.accept(following) is None:
                self.fail(f'expected "{following}"', self.here, usage)
        return Apply(function.value, tuple(names), function.span.to(self.previous))

    def total(self, function: Token) -> Expression:
        """`sum(value by columns where condition)`; rows are counted by the name of an entity."""
        self.advance()
        entity, value = "", None
        if function.value == "count":
            token = self.token
            if token is None or token.kind != "name" or token.value in WORDS:
                self.fail("expected what to count", self.here, "write count(vessel by berth.basin)")
            entity = self.advance().value
        else:
            value = self.sum()
        by: list[Field] = []
        while self.accept("by" if not by else ","):
            column = self.primary()
            if not isinstance(column, Field):
                self.fail("expected a column such as berth.basin", column.span or self.here)
            by.append(column)
        where = self.expression() if self.accept("where") else None
        if self.accept(")") is None:
            what = entity or f"{function.value} of this"
            hint = f"{what} may be followed by: by COLUMN, where CONDITION, a closing parenthesis"
            if self.token is not None and self.token.value == ".":
                hint = f"rows are counted: write count({entity} where ...)"
            self.fail("this total is not closed", self.here, hint)
        return Total(function.value, value, entity, tuple(by), where,
                     function.span.to(self.previous))  # fmt: skip

    def number(self) -> Expression:
        """A number with its unit, which goes on over / and * as long as units follow."""
        first = self.advance()
        if not _is_usual(first.value):
            self.fail("this number is too large or too small to be computed with", first.span)
        value = Fraction(first.value)
        unit = ""
        last = first.span
        # No name can follow a number, so a word that does is a unit, whatever else it is.
        if self.token is not None and self.token.kind == "name" and self.token.value not in WORDS:
            unit, last = self.factor()
            while self.is_factor():
                operator = self.advance().value
                more, last = self.factor()
                unit += operator + more
        return Number(value, unit, first.span.to(last))

    def is_word(self, at: int) -> bool:
        """Whether the word at a place is one of the language rather than a unit."""
        token = self.line.tokens[at]
        after = self.line.tokens[at + 1] if at + 1 < len(self.line.tokens) else None
        is_field = after is not None and after.value == "."
        return token.value in WORDS or token.value in self.names or is_field

    def is_factor(self) -> bool:
        token = self.token
        if token is None or token.value not in ("/", "*", "·"):
            return False
        if self.at + 1 >= len(self.line.tokens):
            return False
        after = self.line.tokens[self.at + 1]
        return after.kind == "name" and not self.is_word(self.at + 1) and is_unit(after.value)

    def factor(self) -> tuple[str, Span]:
        token = self.advance()
        text, last = token.value, token.span
        if power := self.accept("²", "³"):
            return text + power.value, power.span
        if raised := self.accept("^"):
            sign = self.accept("-")
            digits = self.token
            if digits is None or digits.kind != "number" or not digits.value.isdigit():
                self.fail("expected a whole power", raised.span)
            self.advance()
            text += f"^{'-' if sign else ''}{digits.value}"
            last = digits.span
        return text, last


def _is_usual(number: str) -> bool:
    """Whether a float can hold it; the fraction of 1e999999999 would never be there."""
    rounded = float(number)
    is_zero = not number.lower().partition("e")[0].strip("0._")
    return math.isfinite(rounded) and (rounded != 0 or is_zero)


def _joined(left: Expression, right: Expression) -> Span | None:
    return left.span.to(right.span) if left.span and right.span else None
