"""The tokens of a CQL text, as sqlglot cuts them, and a cursor to read them with."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, NoReturn

from sqlglot import Dialect, TokenType
from sqlglot.errors import SqlglotError

from millstream.calculus.types import INT64_MAX
from millstream.errors import Fault, ParseError, listing, suggest
from millstream.languages.cql.ast import Word
from millstream.source import Source, Span

Token = Any
"""A token of sqlglot, which has no types: `token_type`, `text`, `start`, inclusive `end`."""

#: Microseconds in each unit of time, by every name it goes by.
UNITS: dict[str, int] = {
    **dict.fromkeys(("microsecond", "microseconds", "usec", "us"), 1),
    **dict.fromkeys(("millisecond", "milliseconds", "msec", "ms"), 1_000),
    **dict.fromkeys(("second", "seconds", "sec", "secs", "s"), 1_000_000),
    **dict.fromkeys(("minute", "minutes", "min", "mins"), 60_000_000),
    **dict.fromkeys(("hour", "hours", "hr", "hrs", "h"), 3_600_000_000),
    **dict.fromkeys(("day", "days", "d"), 86_400_000_000),
}
_SHOWN_UNITS = ("microseconds", "milliseconds", "seconds", "minutes", "hours", "days")


def tokens_of(source: Source) -> list[Token]:
    """All tokens of a text, or a `ParseError` where it cannot be cut into tokens."""
    try:
        return list(Dialect.get_or_raise(None).tokenize(source.text))
    except SqlglotError:
        raise ParseError(_why_not_tokens(source)) from None


_OPENING = re.compile(
    r"--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|(/\*|'|\")", re.DOTALL
)


def _why_not_tokens(source: Source) -> Fault:
    """The first quote or comment that is never closed: nothing else cannot be cut."""
    found = next((m for m in _OPENING.finditer(source.text) if m[1]), None)
    if found is None:
        return Fault("this text cannot be read", place=source.name)
    what = "comment" if found[1] == "/*" else "quote"
    return Fault(f"this {what} is never closed", Span(source, found.start(), found.end()))


def span_of_token(source: Source, token: Token) -> Span:
    return Span(source, token.start, token.end + 1)


class Stop(Exception):
    """A part of a text cannot be read any further; what is wrong is among the faults."""


class Cursor:
    """Mutable: reads some tokens from left to right and collects faults."""

    def __init__(self, source: Source, tokens: Sequence[Token], faults: list[Fault]) -> None:
        self.source = source
        self.tokens = tokens
        self.faults = faults
        self.at = 0

    @property
    def is_done(self) -> bool:
        return self.at >= len(self.tokens)

    def text(self, ahead: int = 0) -> str:
        """The coming token in lower case, empty at the end and for quoted things."""
        if self.at + ahead >= len(self.tokens):
            return ""
        token = self.tokens[self.at + ahead]
        quoted = (TokenType.STRING, TokenType.IDENTIFIER)
        return "" if token.token_type in quoted else str(token.text).lower()

    def span(self) -> Span:
        """The place of the coming token, or just after the last one."""
        if not self.is_done:
            return span_of_token(self.source, self.tokens[self.at])
        end = self.tokens[-1].end + 1 if self.tokens else 0
        return Span(self.source, end, end)

    def fail(self, message: str, span: Span | None = None, hint: str | None = None) -> NoReturn:
        self.faults.append(Fault(message, span or self.span(), hint))
        raise Stop

    def expected(self, what: str, hint: str | None = None) -> NoReturn:
        found = "the end" if self.is_done else f'"{self.tokens[self.at].text}"'
        self.fail(f"expected {what}, found {found}", hint=hint)

    def take(self, *words: str) -> bool:
        """Pass over words if they come next."""
        if all(self.text(n) == word for n, word in enumerate(words)):
            self.at += len(words)
            return True
        return False

    def require(self, word: str, what: str | None = None) -> None:
        if not self.take(word):
            self.expected(what or f'"{word}"')

    def word(self, what: str) -> Word:
        """A name; keywords may be names too, as in the languages of databases."""
        if self.is_done:
            self.expected(what)
        token = self.tokens[self.at]
        is_quoted = token.token_type is TokenType.IDENTIFIER
        if not is_quoted and not re.fullmatch(r"[^\W\d]\w*", str(token.text)):
            self.expected(what)
        self.at += 1
        return Word(token.text, span_of_token(self.source, token), is_quoted)

    def words(self, what: str) -> tuple[Word, ...]:
        """Names between commas."""
        found = [self.word(what)]
        while self.take(","):
            found.append(self.word(what))
        return tuple(found)

    def string(self, what: str) -> str:
        if self.is_done or self.tokens[self.at].token_type is not TokenType.STRING:
            self.expected(what)
        self.at += 1
        return str(self.tokens[self.at - 1].text)

    def number(self, what: str) -> Decimal:
        """A number that is not negative."""
        span = self.span()
        if self.take("-"):
            self.at += 1
            self.fail(f"{what} cannot be negative", span.to(self.span_before()))
        if self.is_done or self.tokens[self.at].token_type is not TokenType.NUMBER:
            self.expected(what)
        self.at += 1
        return Decimal(self.tokens[self.at - 1].text)

    def span_before(self) -> Span:
        return span_of_token(self.source, self.tokens[min(self.at, len(self.tokens)) - 1])

    def duration(self, what: str) -> int:
        """A number and a unit of time, in microseconds."""
        span = self.span()
        number = self.number(what)
        unit = self.text()
        if unit not in UNITS:
            near = suggest(unit, UNITS) if unit else None
            hint = f"units are: {listing(_SHOWN_UNITS)}. {near or ''}".strip()
            self.expected("a unit of time", hint)
        self.at += 1
        micros = number * UNITS[unit]
        if micros != int(micros):
            self.fail(f"{what} must be a whole number of microseconds",
                      span.to(self.span_before()))  # fmt: skip
        if micros > INT64_MAX:
            self.fail(f"{what} is too long", span.to(self.span_before()))
        return int(micros)
