"""The words of a rule file, line by line.

A line goes on while a parenthesis is open or after an operator. Indentation makes blocks,
as in Python; a tab reaches to the next multiple of eight.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from millstream.errors import Fault
from millstream.source import Source, Span

_TOKEN = re.compile(
    r"""(?P<number>(?:\d+(?:_\d+)*(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+)?)
      | (?P<name>[^\W\d]\w*|°C|°F|°|%)
      | (?P<text>"[^"\n]*"|'[^'\n]*')
      | (?P<operator>===|=<|=>|<>|&&|\|\||≤|≥|≠|<=|>=|==|!=|\^|[-+*/²³·<>=!().,:])""",
    re.VERBOSE,
)

#: The first word after blank lines and comments.
_NEXT_WORD = re.compile(r"(?:\s|#[^\n]*(?:\n|$))*(\w+|[^\s#])")

KEYWORDS = frozenset({"require", "when", "location", "domain"})
#: Words that look back stand between two parts of a line, as operators do.
LOOKING_BACK = frozenset({"for", "within", "since", "until"})
#: Words that say which rows are totalled.
RELATING = frozenset({"by", "where"})
_LOGICAL = frozenset({"and", "or", "not", "abs", "true", "false", "else", "as"})
WORDS = _LOGICAL | LOOKING_BACK | RELATING | KEYWORDS

#: Operators of other languages, and ours.
FOREIGN = {"===": "==", "=<": "<=", "=>": ">=", "<>": "!=", "&&": "and", "||": "or", "!": "not",
           "≤": "<=", "≥": ">=", "≠": "!="}  # fmt: skip
_GOES_ON = frozenset({"+", "-", "*", "/", "<", "<=", ">", ">=", "==", "!=", "=", "(", ","}
                     | {"and", "or", "not"} | LOOKING_BACK | RELATING)  # fmt: skip


#: What word processors make of quotes.
_CURLY = "\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f\u00ab\u00bb\u00b4`"


@dataclass(frozen=True, slots=True)
class Token:
    kind: str
    value: str
    span: Span

    def __str__(self) -> str:
        return self.value if self.kind == "text" else f'"{self.value}"'


@dataclass(frozen=True, slots=True)
class Line:
    """The words of a line and of those that continue it."""

    indent: int
    tokens: tuple[Token, ...]

    @property
    def span(self) -> Span:
        return self.tokens[0].span.to(self.tokens[-1].span)

    @property
    def end(self) -> Span:
        last = self.tokens[-1].span
        return Span(last.source, last.end, last.end)


def split_lines(source: Source, faults: list[Fault]) -> list[Line]:
    """All lines that have words; a line with strange characters is a fault and left out."""
    lines: list[Line] = []
    words: list[Token] = []
    indent, depth, place = 0, 0, 0
    is_broken = False
    for text in source.text.split("\n"):
        more, is_sound = _words(source, text, place, faults)
        is_broken |= not is_sound
        if more and not words:
            indent = _indent(text)
        words += more
        depth += sum((t.value == "(") - (t.value == ")") for t in more if t.kind != "text")
        place += len(text) + 1
        following = _NEXT_WORD.match(source.text, place)
        goes_on = bool(words) and (depth > 0 or words[-1].value in _GOES_ON)
        # A line never runs on into a statement: one mistake must not hide others.
        if goes_on and following is not None and following[1] not in KEYWORDS:
            continue
        if words and not is_broken:
            lines.append(Line(indent, tuple(words)))
        words, depth, is_broken = [], 0, False
    return lines


def _words(source: Source, text: str, place: int, faults: list[Fault]) -> tuple[list[Token], bool]:
    tokens: list[Token] = []
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        if text[at] == "#":
            break
        match = _TOKEN.match(text, at)
        if match is None:
            span = Span(source, place + at, place + at + 1)
            is_open = text[at] in "\"'"
            message = "this text has no closing quote" if is_open else f'unexpected "{text[at]}"'
            if is_open:
                span = Span(source, place + at, place + len(text))
            hint = "write straight quotes" if text[at] in _CURLY else None
            faults.append(Fault(message, span, hint))
            return tokens, False
        kind = match.lastgroup or ""
        tokens.append(Token(kind, match[0], Span(source, place + at, place + match.end())))
        at = match.end()
    return tokens, True


def _indent(text: str) -> int:
    width = 0
    for character in text:
        if character == "\t":
            width += 8 - width % 8
        elif character == " ":
            width += 1
        else:
            break
    return width
