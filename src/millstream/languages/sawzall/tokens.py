"""The tokens of a Sawzall text, with what their literals stand for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from millstream.errors import Fault
from millstream.source import Source, Span
from millstream.values.records.types import (
    BYTES,
    FINGERPRINT,
    FLOAT,
    INT,
    STRING,
    TIME,
    UINT,
    RecordType,
)

_PATTERN = re.compile(
    r"""
    (?P<space>\s+|\#[^\n]*)
  | (?P<literal>(?:[BTX](?=["`]))?(?:"(?:[^"\\\n]|\\.)*"|`[^`]*`))
  | (?P<char>'(?:[^'\\\n]|\\[^\n][0-9a-fA-F]*)')
  | (?P<float>(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)
  | (?P<integer>(?:0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)(?P<suffix>[uUpPtT]?))
  | (?P<name>[A-Za-z_]\w*)
  | (?P<symbol><-|←|(?:<<|>>|[-+*/%&|^])=|<<|>>|<=|>=|==|!=|&&|\|\||\+\+|--
              |[-+*/%&|^~!<>=()\[\]{},;:.$?@])
    """,
    re.VERBOSE | re.DOTALL,
)

_WORD = re.compile(r"\w+")

RESERVED = frozenset({
    "all", "and", "array", "break", "case", "continue", "default", "do", "each", "else", "emit",
    "for", "function", "if", "include", "map", "not", "of", "or", "parsedmessage", "proto",
    "return", "some", "static", "switch", "table", "type", "when", "while",
})  # fmt: skip

_SUFFIXES: dict[str, RecordType] = {"": INT, "u": UINT, "p": FINGERPRINT, "t": TIME}
_ESCAPE = re.compile(
    r"\\(?:([0-7]{1,3})|x([0-9a-fA-F]+)|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL
)
_LETTERS = {"a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}


@dataclass(frozen=True, slots=True)
class Token:
    """`kind` is name, symbol, literal or end; a literal has its value and its type.

    The text of a time is kept as it is, and is a literal of the type `time`.
    """

    kind: str
    text: str
    span: Span
    value: Any = None
    type: RecordType | None = None

    def __str__(self) -> str:
        return "the end of the text" if self.kind == "end" else f"`{self.span.text}`"


def tokens_of(source: Source, faults: list[Fault]) -> list[Token]:
    """All tokens; what is none becomes a fault and is passed over."""
    tokens: list[Token] = []
    position, text = 0, source.text
    while position < len(text):
        lexeme = _PATTERN.match(text, position)
        if lexeme is None:
            position = _stray(source, position, tokens, faults)
            continue
        span = Span(source, position, lexeme.end())
        position = lexeme.end()
        kind = lexeme.lastgroup if lexeme["integer"] is None else "integer"
        word = _WORD.match(text, position)
        if kind == "integer" and word is not None:
            position = word.end()
            faults.append(Fault("this is no number", Span(source, span.start, position)))
        if kind != "space":
            tokens.append(_token(str(kind), lexeme, span, faults))
    tokens.append(Token("end", "", Span(source, len(text), len(text))))
    return tokens


def _token(kind: str, lexeme: re.Match[str], span: Span, faults: list[Fault]) -> Token:
    text = lexeme[0]
    if kind == "integer":
        type_ = _SUFFIXES[lexeme["suffix"].lower()]
        return Token("literal", text, span, _integer(text.rstrip("uUpPtT"), span, faults), type_)
    if kind == "float":
        return Token("literal", text, span, float(text), FLOAT)
    if kind == "char":
        return Token("literal", text, span, ord(unescaped(text[1:-1], span, faults)[:1]), INT)
    if kind == "literal":
        return _quoted(text, span, faults)
    return Token(kind, "<-" if text == "←" else text, span)


def _integer(digits: str, span: Span, faults: list[Fault]) -> int:
    if digits[:2].lower() == "0x":
        value = int(digits, 16)
    elif digits[:2].lower() == "0b":
        value = int(digits, 2)
    elif len(digits) > 1 and digits[0] == "0":
        if set(digits) & {"8", "9"}:
            hint = f"a number that begins with 0 is octal; write {int(digits)}"
            faults.append(Fault("8 and 9 are no octal digits", span, hint))
            return 0
        value = int(digits, 8)
    else:
        value = int(digits)
    if value >= 2**64:
        faults.append(Fault("this number does not fit into 64 bits", span))
    return value


def _quoted(text: str, span: Span, faults: list[Fault]) -> Token:
    prefix = "" if text[0] in '"`' else text[0]
    body = text[len(prefix) + 1 : -1]
    raw = text[len(prefix)] == "`"
    value = body if raw else unescaped(body, span, faults)
    if prefix == "X":
        try:
            return Token("literal", text, span, bytes.fromhex(value), BYTES)
        except ValueError:
            faults.append(Fault("expected pairs of hexadecimal digits", span))
            return Token("literal", text, span, b"", BYTES)
    if prefix == "B":
        if any(ord(c) > 255 for c in value):
            faults.append(Fault("a character of bytes must be less than 256", span))
            value = ""
        return Token("literal", text, span, value.encode("latin-1"), BYTES)
    if prefix == "T":
        return Token("literal", text, span, value, TIME)
    if "\0" in value:
        faults.append(Fault("a string cannot hold a character 0", span, 'bytes can: B"\\000"'))
    return Token("literal", text, span, value, STRING)


def unescaped(text: str, span: Span, faults: list[Fault]) -> str:
    def character(escape: re.Match[str]) -> str:
        octal, hexadecimal, short, long, letter = escape.groups()
        if letter is not None:
            return chr(_LETTERS[letter]) if letter in _LETTERS else str(letter)
        number = int(octal, 8) if octal else int(hexadecimal or short or long, 16)
        if number > 0x10FFFF or 0xD800 <= number <= 0xDFFF:
            faults.append(Fault("this escape means no character", span))
            return "?"
        return chr(number)

    return _ESCAPE.sub(character, text)


def _stray(source: Source, position: int, tokens: list[Token], faults: list[Fault]) -> int:
    stray, line = source.text[position], source.text[position:].split("\n", 1)[0]
    if stray in "\"`'":
        size, message, hint = max(1, len(line.rstrip("; "))), "this has no closing quote", None
        if stray == "'" and line.find("'", 1) > 0:
            size, message = line.find("'", 1) + 1, "between ' stands one character"
            hint = 'a text is in ", as in "ab"'
        span = Span(source, position, position + size)
        faults.append(Fault(message, span, hint))
        # So that what follows is read on.
        tokens.append(Token("literal", stray, span, "", STRING))
        return position + size
    span = Span(source, position, position + 1)
    faults.append(Fault(f"unexpected character {stray!r}", span))
    return position + 1
