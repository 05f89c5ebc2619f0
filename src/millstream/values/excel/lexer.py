"""Formulas cut into tokens."""

from __future__ import annotations

import re
from dataclasses import dataclass

_SHEET = r"(?:'(?:[^']|'')+'|(?:\[[^\]]*\])?[^\W\d][\w.]*(?::[^\W\d][\w.]*)?|\[[^\]]*\])!"
_CELL = r"\$?[A-Za-z]{1,3}\$?[1-9]\d{0,6}"
_TOKEN = re.compile(
    rf"""
    (?P<space>[\s\u00a0]+)
  | (?P<text>"(?:[^"]|"")*")
  | (?P<error>\#(?:REF!|DIV/0!|N/A|NAME\?|NULL!|NUM!|VALUE!|SPILL!|CALC!|GETTING_DATA))
  | (?P<sheet>{_SHEET})
  | (?P<cell>{_CELL})(?![\w.(\[!])
  | (?P<columns>\$?[A-Za-z]{{1,3}}:\$?[A-Za-z]{{1,3}})(?![\w.(\[!])
  | (?P<rows>\$?[1-9]\d{{0,6}}:\$?[1-9]\d{{0,6}})(?![\w.(!])
  | (?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)
  | (?P<table>(?:[^\W\d]|\\)[\w.\\?]*\[)
  | (?P<name>(?:[^\W\d]|\\)[\w.\\?]*)
  | (?P<operator><>|<=|>=|[-+*/^&=<>%(),:;{{}}@\#])
    """,
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Token:
    """A token; `has_space` tells whether blanks stand before it, which may be an operator."""

    kind: str
    text: str
    start: int
    has_space: bool = False


class LexerFault(Exception):
    """A character that means nothing, and where it stands."""

    def __init__(self, message: str, start: int) -> None:
        super().__init__(message)
        self.start = start


def tokens_of(text: str) -> list[Token]:
    """The tokens of a formula without its `=`, ended by one of kind `end`."""
    tokens: list[Token] = []
    position = 0
    has_space = False
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            what = "an unfinished text" if text[position] == '"' else f'"{text[position]}"'
            raise LexerFault(f"{what} means nothing here", position)
        kind = match.lastgroup
        assert kind is not None
        end = match.end()
        if kind == "table":
            end = _end_of_brackets(text, end - 1)
        if kind == "space":
            has_space = True
        else:
            tokens.append(Token(kind, text[position:end], position, has_space))
            has_space = False
        position = end
    tokens.append(Token("end", "", len(text)))
    return tokens


def _end_of_brackets(text: str, start: int) -> int:
    """Where the bracket that opens at `start` is closed; `'` escapes the next character."""
    depth = 0
    position = start
    while position < len(text):
        character = text[position]
        if character == "'":
            position += 1
        elif character == "[":
            depth += 1
        elif character == "]":
            depth -= 1
            if depth == 0:
                return position + 1
        position += 1
    raise LexerFault("an unclosed bracket", start)
