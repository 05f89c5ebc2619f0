"""The tokens of a CQL text, and a cursor to read them with.

Whatever is written is a token, and a statement is only read when the cursor has passed over
all of its tokens: nothing can be left out in silence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import NoReturn, TypeVar

from millstream.calculus.types import INT64_MAX
from millstream.errors import Fault, ParseError, listing, suggest
from millstream.queries.ast import Word
from millstream.queries.names import ABSENT, RESERVED
from millstream.source import Source, Span

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

_PATTERN = r"""
    (?P<space>\s+|--[^\n]*|\#[^\n]*|/\*.*?\*/)
  | (?P<string>'(?:[^']|'')*')
  | (?P<quoted>"(?:[^"]|"")*")
  | (?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)
  | (?P<word>[^\W\d]\w*)
  | (?P<open>/\*|['"])
  | (?P<symbol><=>|->>|!~~|<>|!=|<=|>=|==|\|\||::|<<|>>|->|=>|:=|\*\*|//|~~|!~|@>|<@|&&|.)
    """
_TOKEN = re.compile(_PATTERN, re.VERBOSE | re.DOTALL)
#: Where `#bid` is a name, and no comment.
_HASHED = re.compile(
    _PATTERN.replace(r"|\#[^\n]*", "").replace(r"[^\W\d]\w*", r"\#?[^\W\d]\w*"),
    re.VERBOSE | re.DOTALL,
)
#: Where `//` begins a comment too, and does not divide.
_SLASHED = re.compile(_PATTERN.replace(r"--[^\n]*", r"--[^\n]*|//[^\n]*"), re.VERBOSE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Token:
    """`kind` is string, quoted, number, word or symbol; `text` is what stands in quotes."""

    kind: str
    text: str
    span: Span


def tokens_of(source: Source, *, hashed: bool = False, slashed: bool = False) -> list[Token]:
    """All tokens of a text, or a `ParseError` where a quote or comment is never closed.

    Names may be `hashed`, as in `#bid`; else a hash begins a comment. Comments may be `slashed`.
    """
    tokens: list[Token] = []
    pattern = _HASHED if hashed else _SLASHED if slashed else _TOKEN
    for match in pattern.finditer(source.text):
        kind, text = str(match.lastgroup), match[0]
        span = Span(source, match.start(), match.end())
        if kind == "open":
            what = "comment" if text == "/*" else "quote"
            raise ParseError(Fault(f"this {what} is never closed", span))
        if kind in ("string", "quoted"):
            text = text[1:-1].replace(text[0] * 2, text[0])
        if kind != "space":
            tokens.append(Token(kind, text, span))
    return tokens


T = TypeVar("T")


class Stop(Exception):
    """A part of a text cannot be read any further; what is wrong is among the faults."""


def stop(faults: list[Fault], message: str, span: Span | None, hint: str | None = None) -> NoReturn:
    faults.append(Fault(message, span, hint))
    raise Stop from None


class Cursor:
    """Mutable: reads some tokens from left to right and collects faults."""

    def __init__(self, source: Source, tokens: Sequence[Token], faults: list[Fault]) -> None:
        self.source = source
        self.tokens = tokens
        self.faults = faults
        self.at = 0

    # --- what comes ---

    @property
    def is_done(self) -> bool:
        return self.at >= len(self.tokens)

    def kind(self, ahead: int = 0) -> str:
        """The kind of a coming token, empty at the end."""
        at = self.at + ahead
        return self.tokens[at].kind if at < len(self.tokens) else ""

    def text(self, ahead: int = 0) -> str:
        """A coming token in lower case, empty at the end and for quoted things."""
        is_quoted = self.kind(ahead) in ("", "string", "quoted")
        return "" if is_quoted else self.tokens[self.at + ahead].text.lower()

    def span(self) -> Span:
        """The place of the coming token, or just after the last one."""
        if not self.is_done:
            return self.tokens[self.at].span
        end = self.tokens[-1].span.end if self.tokens else 0
        return Span(self.source, end, end)

    def since(self, start: Span) -> Span:
        """From a place to the last token that has been read."""
        return start.to(self.tokens[max(self.at, 1) - 1].span)

    # --- faults ---

    def fail(self, message: str, span: Span | None = None, hint: str | None = None) -> NoReturn:
        stop(self.faults, message, span or self.span(), hint)

    def expected(self, what: str, hint: str | None = None) -> NoReturn:
        word = self.text()
        if word in ABSENT:
            self.fail(f"{word.upper()} is not part of CQL", hint=ABSENT[word])
        got = "the end" if self.is_done else f'"{self.tokens[self.at].text}"'
        self.fail(f"expected {what}, found {got}", hint=hint)

    # --- reading ---

    def take(self, *words: str) -> bool:
        """Pass over words if they come next."""
        if all(self.text(n) == word for n, word in enumerate(words)):
            self.at += len(words)
            return True
        return False

    def require(self, word: str, what: str | None = None) -> None:
        if not self.take(word):
            self.expected(what or f'"{word}"')

    def next(self) -> Token:
        self.at += 1
        return self.tokens[self.at - 1]

    def word(self, what: str) -> Word:
        """A name; keywords may be names too, as in the languages of databases."""
        kind = self.kind()
        if kind not in ("word", "quoted") or not self.tokens[self.at].text:
            self.expected(what)
        token = self.next()
        return Word(token.text, token.span, kind == "quoted")

    def name(self, what: str) -> Word:
        """A name where a keyword means that something else begins."""
        if self.text() in RESERVED:
            self.expected(what)
        return self.word(what)

    def words(self, what: str) -> tuple[Word, ...]:
        """Names between commas."""
        return self.separated(lambda: self.word(what))

    def separated(self, read: Callable[[], T]) -> tuple[T, ...]:
        """One or more of something, between commas."""
        parts = [read()]
        while self.take(","):
            parts.append(read())
        return tuple(parts)

    def string(self, what: str) -> str:
        if self.kind() != "string":
            self.expected(what)
        return self.next().text

    def number(self, what: str) -> Decimal:
        """A number that is not negative."""
        span = self.span()
        if self.take("-"):
            self.at += 1
            self.fail(f"{what} cannot be negative", self.since(span))
        if self.kind() != "number":
            self.expected(what)
        return Decimal(self.next().text)

    def duration(self, what: str) -> int:
        """A number and a unit of time, in microseconds."""
        span = self.span()
        return self.micros(self.number(what), what, span)

    def micros(self, number: Decimal, what: str, span: Span) -> int:
        """So many of the unit of time that comes next, in microseconds."""
        unit = self.text()
        if unit not in UNITS:
            near = suggest(unit, UNITS) if unit else None
            hint = f"units are: {listing(_SHOWN_UNITS)}. {near or ''}".strip()
            self.expected("a unit of time", hint)
        self.at += 1
        micros = number * UNITS[unit]
        if micros != int(micros):
            self.fail(f"{what} must be a whole number of microseconds", self.since(span))
        if abs(micros) > INT64_MAX:
            self.fail(f"{what} is too long", self.since(span))
        return int(micros)
