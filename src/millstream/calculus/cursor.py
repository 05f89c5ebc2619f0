"""A cursor over tokens: what the parsers of several languages are made of.

A syntax error is noted as a fault and stops the clause it stands in; whoever reads clauses
goes on after it, so that all errors are told together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn, TypeVar

from millstream.calculus.lexer import Token
from millstream.calculus.syntax import Word
from millstream.errors import Fault
from millstream.source import Span

T = TypeVar("T")


class Stop(Exception):
    """The current clause cannot be parsed further; its fault has been noted."""


@dataclass
class Cursor:
    """Mutable: a place in some tokens, and the faults so far."""

    tokens: list[Token]
    faults: list[Fault]
    position: int = 0

    @property
    def token(self) -> Token:
        return self.tokens[self.position]

    @property
    def previous(self) -> Token:
        return self.tokens[max(0, self.position - 1)]

    def at(self, *values: str) -> bool:
        token = self.token
        return token.kind in ("symbol", "name") and token.value in values and not token.is_quoted

    def advance(self) -> Token:
        token = self.token
        if token.kind != "end":
            self.position += 1
        return token

    def accept(self, value: str) -> bool:
        if self.at(value):
            self.advance()
            return True
        return False

    def fail(self, message: str, span: Span | None = None, hint: str | None = None) -> NoReturn:
        self.faults.append(Fault(message, span or self.token.span, hint))
        raise Stop

    def expect(self, value: str, where: str) -> Token:
        if self.at(value):
            return self.advance()
        if value == ";":
            end = self.previous.span.end
            place = Span(self.token.span.source, end, end + 1)
            self.fail(f"expected `;` {where}, got {self.token}", place)
        self.fail(f"expected `{value}` {where}, got {self.token}")

    def expect_end(self) -> None:
        if self.token.kind != "end":
            self.fail(f"expected the end of the expression, got {self.token}")

    def expect_name(self, what: str) -> Word:
        if self.token.kind == "name":
            token = self.advance()
            return Word(token.value, token.span)
        self.fail(f"expected {what}, got {self.token}")

    def separated(self, parse_one: Callable[[], T], closing: str) -> list[T]:
        """`one, one, ...` up to, not including, a closing symbol."""
        items: list[T] = []
        while not self.at(closing):
            items.append(parse_one())
            if not self.accept(","):
                break
        return items
