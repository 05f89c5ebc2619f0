"""Patterns with wildcards: `%` and `_` of `like`, `*`, `?` and `~` of Excel.

As a regular expression a pattern with many marks for any text may take exponential time. But
each piece between two marks can be taken where it is first found: that leaves most for the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

#: Marks that no text of a pattern is taken for.
_ANY_TEXT, _ANY_CHARACTER = object(), object()


class Pattern:
    """The pieces of a pattern, each of fixed length."""

    def __init__(self, marks: Iterator[object], flags: re.RegexFlag) -> None:
        pieces: list[list[str]] = [[]]
        for mark in marks:
            if mark is _ANY_TEXT:
                pieces.append([])
            else:
                pieces[-1].append("." if mark is _ANY_CHARACTER else re.escape(str(mark)))
        compiled = [re.compile("".join(piece), re.DOTALL | flags) for piece in pieces]
        self._first, self._rest = compiled[0], compiled[1:]
        self._last_length = len(pieces[-1])

    def matches(self, text: str) -> bool:
        """Is it a pattern of the whole text?"""
        if not self._rest:
            return self._first.fullmatch(text) is not None
        match = self._first.match(text)
        for piece in self._rest[:-1]:
            match = match and piece.search(text, match.end())
        end = len(text) - self._last_length
        return match is not None and match.end() <= end and bool(self._rest[-1].match(text, end))

    def find(self, text: str, start: int = 0) -> int:
        """Where the first part of the text begins that it is a pattern of, or -1."""
        begin = match = self._first.search(text, start)
        for piece in self._rest:
            match = match and piece.search(text, match.end())
        return begin.start() if begin and match else -1


@lru_cache(maxsize=1024)
def like_pattern(text: str, escape: str = "") -> Pattern:
    """`%` stands for any text, `_` for any character; what follows an escape for itself."""
    marks = {"%": _ANY_TEXT, "_": _ANY_CHARACTER}
    if len(escape) != 1:
        return Pattern((marks.get(c, c) for c in text), re.NOFLAG)
    parts = re.findall(rf"{re.escape(escape)}?.|{re.escape(escape)}", text, re.DOTALL)
    taken = (p[1] if len(p) == 2 else "" if p == escape else marks.get(p, p) for p in parts)
    return Pattern((one for one in taken if one != ""), re.NOFLAG)


@lru_cache(maxsize=1024)
def excel_pattern(text: str) -> Pattern:
    """`*` any text, `?` any character, `~` takes the meaning from the next one; without case."""
    return Pattern(_excel_marks(text), re.IGNORECASE)


def _excel_marks(text: str) -> Iterator[object]:
    marks = {"*": _ANY_TEXT, "?": _ANY_CHARACTER}
    is_taken = False
    for place, character in enumerate(text):
        if is_taken:
            yield character
            is_taken = False
        elif character == "~" and text[place + 1 : place + 2] in marks.keys() | {"~"}:
            is_taken = True
        else:
            yield marks.get(character, character)
