"""From the lines of a rule file to its tree; all syntax errors at once.

A line is read on its own: an error in one leaves the others to be read. What a faulty
line would have defined is remembered, so that its uses are not called unknown.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType
from typing import NoReturn

from millstream.errors import Fault, suggest
from millstream.languages.rules.ast import (
    Apply,
    Expression,
    Field,
    Location,
    Named,
    Number,
    Require,
    Rules,
    Statement,
    Text,
    Truth,
    When,
    Word,
    parts,
)
from millstream.languages.rules.over_time import CALLS, LASTING
from millstream.languages.rules.tokens import (
    FOREIGN,
    KEYWORDS,
    LOOKING_BACK,
    WORDS,
    Line,
    Token,
    split_lines,
)
from millstream.languages.rules.units import is_unit
from millstream.source import Source, Span

_Part = Callable[[], Expression]
#: What people write for our operators, in small letters.
_MEANT = {"and": "and", "or": "or", "not": "not", "is": "==", "equals": "=="}
#: What else people begin a line with, and what to write instead.
_BEGINNINGS = {
    "else": "write the opposite: when not CONDITION:",
    "elif": "write another block: when CONDITION:",
    "if": "write when CONDITION:",
    **dict.fromkeys(("and", "or"), "a line goes on after an operator: end the line above with it"),
}
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
_NO_NAMES = KEYWORDS | LOOKING_BACK | {"and", "or", "not"}
_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")


class _Stop(Exception):
    """The line cannot be read further; its fault has been noted."""


@dataclass(frozen=True, slots=True)
class Read:
    """A tree, what it defines, and the names whose definitions could not be read."""

    rules: Rules
    lost: frozenset[str]
    definitions: tuple[Named, ...] = ()


def read_rules(
    source: Source,
    faults: list[Fault],
    names: Mapping[str, Named],
    taken: Mapping[str, str] = MappingProxyType({}),
) -> Read:
    """The tree of a text; `names` are those that the domain defines, `taken` its others."""
    reader = _Reader(split_lines(source, faults), faults, dict(names), taken)
    statements = reader.block(-1, top=True)
    rules = Rules(tuple(statements), reader.domain)
    return Read(rules, frozenset(reader.lost), tuple(reader.definitions))


def domain_named(source: Source) -> tuple[str, Span | None]:
    """The domain that a file says it is written for, before anything else is read."""
    for line in split_lines(source, []):
        match [t.value for t in line.tokens]:
            case ["domain", text] if line.tokens[1].kind == "text":
                return text[1:-1], line.tokens[1].span
    return Rules(()).domain, None


def read_expression(
    source: Source, faults: list[Fault], names: Mapping[str, Named]
) -> Expression | None:
    """A single expression, such as one in a domain file."""
    lines = split_lines(source, faults)
    if len(lines) != 1:
        faults.append(Fault("expected one expression", Span(source, 0, len(source.text))))
        return None
    try:
        words = _Words(lines[0], faults, names)
        return words.whole()
    except _Stop:
        return None


@dataclass
class _Reader:
    """Mutable: where we are among the lines, and what has been defined."""

    lines: list[Line]
    faults: list[Fault]
    names: dict[str, Named]
    #: What other names of the domain are.
    taken: Mapping[str, str]
    lost: set[str] = field(default_factory=set)
    definitions: list[Named] = field(default_factory=list)
    domain: str = Rules(()).domain
    at: int = 0

    def block(self, above: int, *, top: bool = False) -> list[Statement]:
        """The statements that are indented further than what is above them."""
        statements: list[Statement] = []
        if self.at >= len(self.lines):
            return statements
        indent = self.lines[self.at].indent
        if top and indent > 0:
            self.fail("this line is indented, but nothing above opens a block", self.lines[self.at])
        before = dict(self.names)
        while self.at < len(self.lines):
            line = self.lines[self.at]
            if line.indent <= above:
                break
            if line.indent != indent and not (top and indent > 0):
                self.misplaced(line, indent)
            self.at += 1
            statement = self.statement(line)
            statements += [statement] if statement is not None else []
        if not top:
            self.names = before  # what a block defines is known inside it only
        return statements

    def misplaced(self, line: Line, indent: int) -> None:
        if line.indent > indent:
            message = "this line is indented, but nothing above opens a block"
            self.fail(message, line, "a block follows a line that ends with a colon")
        else:
            self.fail("this indentation matches no block above", line)

    def fail(self, message: str, line: Line, hint: str | None = None) -> None:
        self.faults.append(Fault(message, line.span, hint))

    def statement(self, line: Line) -> Statement | None:
        words = _Words(line, self.faults, self.names)
        first = line.tokens[0]
        try:
            match first.value:
                case "require":
                    words.advance()
                    return self.requirement(line, words)
                case "domain":
                    words.advance()
                    self.domain = words.text("the name of a domain, in quotes")
                    words.end()
                    return None
                case "when" | "location":
                    return self.compound(line, words)
                case _:
                    self.definition(words)
                    return None
        except _Stop:
            if len(line.tokens) > 1 and line.tokens[1].value == "=":
                self.lost.add(first.value)
            if first.value in ("when", "location", *_BEGINNINGS):
                self.block(line.indent)  # its errors count too
            return None

    def requirement(self, line: Line, words: _Words) -> Statement:
        condition = words.expression()
        message = ""
        if words.accept("else"):
            message = words.text("what to say, in quotes")
        words.end()
        return Require(condition, message, line.span)

    def compound(self, line: Line, words: _Words) -> Statement:
        word = words.advance()
        head: Expression | tuple[Text, ...]
        head = words.places() if word.value == "location" else words.expression()
        if not words.accept(":"):
            words.fail("expected a colon", words.here, f'write "{word.value} ...:"')
        span = word.span.to(words.previous)
        if words.token is not None:
            body = [s for s in (self.statement(words.rest()),) if s is not None]
        else:
            has_body = self.at < len(self.lines) and self.lines[self.at].indent > line.indent
            if not has_body:
                words.fail("expected an indented block after this line", span)
            body = self.block(line.indent)
        if isinstance(head, tuple):
            return Location(head, tuple(body), span)
        return When(head, tuple(body), span)

    def definition(self, words: _Words) -> None:
        first = words.advance()
        is_name = first.kind == "name" and first.value not in WORDS
        if not is_name or words.token is None or words.token.value != "=":
            known = suggest(first.value, KEYWORDS) if is_name else None
            usual = "a line begins with require, when, location, or a name and ="
            hint = _BEGINNINGS.get(first.value) or known or usual
            words.fail(f"expected a statement, got {first}", first.span, hint)
        words.advance()
        value = words.whole()
        if first.value in self.taken:
            words.fail(f'"{first.value}" is {self.taken[first.value]}', first.span,
                       "choose another name")  # fmt: skip
        if first.value in self.names:
            words.fail(f'"{first.value}" is already defined', first.span)
        if Word(first.value) in parts(value):
            words.fail(f'the definition of "{first.value}" reads itself', first.span,
                       "give what it is made of another name")  # fmt: skip
        self.names[first.value] = Named(first.value, value, first.span)
        self.definitions.append(self.names[first.value])


@dataclass
class _Words:
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
        raise _Stop

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
        if token.kind == "name" and token.value not in KEYWORDS | LOOKING_BACK | {
            "and",
            "or",
            "not",
        }:
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
            hint = suggest(token.value, ("abs", *CALLS)) or "there are: abs, before, rate"
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
