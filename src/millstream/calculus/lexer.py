"""Tokens of the textual form, with their places. Other small languages may use it too."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from millstream.errors import Fault
from millstream.source import Source, Span

#: The tokens of the textual form. Another language has groups of the same names.
PATTERN = re.compile(
    r"""
    (?P<space>\s+|\#[^\n]*|//[^\n]*|/\*.*?\*/)
  | (?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)
  | (?P<text>"(?:[^"\\\n]|\\.)*")
  | (?P<quoted>`[^`\n]+`)
  | (?P<name>[^\W\d]\w*)
  | (?P<symbol>(?!/\*)(?:<-|==|!=|<=|>=|\|\||[-+*/%<>=()\[\],;.$^]))
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Token:
    """`kind` is number, text, name or symbol, or `end`; `value` is what it stands for."""

    kind: str
    value: str
    span: Span
    is_quoted: bool = False

    def __str__(self) -> str:
        if self.kind == "end":
            return "the end of the text"
        return f"`{self.span.text}`"


def tokens_of(
    source: Source, faults: list[Fault], pattern: re.Pattern[str] = PATTERN
) -> list[Token]:
    """All tokens; what is no token becomes a fault and is passed over."""
    tokens: list[Token] = []
    position, text = 0, source.text
    while position < len(text):
        lexeme = pattern.match(text, position)
        if lexeme is None:
            position = _skip_stray(source, position, faults)
            continue
        span = Span(source, position, lexeme.end())
        position = lexeme.end()
        token = _token(lexeme, span, faults)
        if token is not None:
            tokens.append(token)
    tokens.append(Token("end", "", Span(source, len(text), len(text))))
    return tokens


def _token(lexeme: re.Match[str], span: Span, faults: list[Fault]) -> Token | None:
    match lexeme.lastgroup:
        case "space":
            return None
        case "text":
            return Token("text", _unescaped(span, faults), span)
        case "quoted":
            return Token("name", span.text[1:-1], span, is_quoted=True)
        case kind:
            return Token(str(kind), span.text, span)


def _unescaped(span: Span, faults: list[Fault]) -> str:
    try:
        value = str(json.loads(span.text, strict=False))
        value.encode()
    except (ValueError, UnicodeEncodeError):
        hint = 'escapes are \\" \\\\ \\n \\t \\r and \\u with four hexadecimal digits'
        faults.append(Fault("this text has an escape that means nothing", span, hint))
        return ""
    return value


def _skip_stray(source: Source, position: int, faults: list[Fault]) -> int:
    stray = source.text[position]
    rest = source.text[position:]
    if stray == '"':
        end = position + len(rest.split("\n", 1)[0])
        faults.append(Fault("this text has no closing quote", Span(source, position, end)))
        return end
    if rest.startswith("/*"):
        place = Span(source, position, position + 2)
        faults.append(Fault("this comment has no end", place, "it ends with */"))
        return len(source.text)
    directive = re.match(r"#[ \t]*(include|define|undef|if|ifdef|ifndef|endif|pragma)\b.*", rest)
    if directive:
        span = Span(source, position, position + directive.end())
        faults.append(Fault("there is no preprocessor", span, "leave this line out"))
        return span.end
    closing = re.match(r"'[^'\n]*'", rest)
    if closing:
        end = position + closing.end()
        meant = f'write "{closing[0][1:-1]}"'
        span = Span(source, position, end)
        faults.append(Fault("texts are written with double quotes", span, meant))
        return end
    quotes = "'\u2018\u2019\u201c\u201d"
    hint = 'texts are written with double quotes: "..."' if stray in quotes else None
    faults.append(
        Fault(f"unexpected character {stray!r}", Span(source, position, position + 1), hint)
    )
    return position + 1
