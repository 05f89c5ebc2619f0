"""A cursor over tokens: what the parsers of several languages are made of.

A syntax error is noted as a fault and stops the clause it stands in; whoever reads clauses
goes on after it, so that all errors are told together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, NoReturn, Protocol, TypeVar

from millstream.calculus.lexer import Token
from millstream.calculus.syntax import Word
from millstream.errors import Fault
from millstream.source import Span

T = TypeVar("T")


class Placed(Protocol):
    """A token of any language: what it is, and where it stands."""

    @property
    def kind(self) -> str: ...

    @property
    def span(self) -> Span: ...


P = TypeVar("P", bound=Placed)


class Stop(Exception):
    """The current clause cannot be parsed further; its fault has been noted."""


class Reader(Generic[P]):
    """Mutable: a place in tokens of any kind, and the faults so far."""

    tokens: list[P]
    faults: list[Fault]
    position: int

    def word(self, token: P) -> str | None:
        """What a symbol or a name is called by; None if it only looks like one."""
        raise NotImplementedError

    @property
    def token(self) -> P:
        return self.tokens[self.position]

    @property
    def previous(self) -> P:
        return self.tokens[max(0, self.position - 1)]

    def at(self, *words: str) -> bool:
        return self.token.kind in ("symbol", "name") and self.word(self.token) in words

    def advance(self) -> P:
        token = self.token
        if token.kind != "end":
            self.position += 1
        return token

    def accept(self, word: str) -> bool:
        if self.at(word):
            self.advance()
            return True
        return False

    def note(self, message: str, span: Span | None = None, hint: str | None = None) -> None:
        self.faults.append(Fault(message, span or self.token.span, hint))

    def fail(self, message: str, span: Span | None = None, hint: str | None = None) -> NoReturn:
        self.note(message, span, hint)
        raise Stop

    def separated(self, read: Callable[[], T], closing: str) -> list[T]:
        """`one, one, ...` up to, not including, a closing symbol; a last comma may stand."""
        items: list[T] = []
        while not self.at(closing):
            items.append(read())
            if not self.accept(","):
                break
        return items


@dataclass
class Cursor(Reader[Token]):
    """Mutable: a place in the tokens of the lexer, and the faults so far."""

    tokens: list[Token]
    faults: list[Fault]
    position: int = 0

    def word(self, token: Token) -> str | None:
        return None if token.is_quoted else token.value

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
