"""Searching texts for patterns, and sawing them into pieces."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from millstream.values.records.intrinsic import Intrinsic, fixed, plain
from millstream.values.records.patterns import Pattern, searched
from millstream.values.records.types import (
    BOOL,
    BYTES,
    FINGERPRINT,
    FLOAT,
    INT,
    STRING,
    TIME,
    UINT,
    ArrayOf,
    RecordType,
)


def match(pattern: str, text: str) -> bool:
    return searched(pattern).matches(text)


def matchposns(pattern: str, text: str) -> tuple[int, ...]:
    """Begin and end of the match and of every group; nothing if there is no match."""
    spans = searched(pattern).spans(text)
    return () if spans is None else tuple(place for span in spans for place in span)


def matchstrs(pattern: str, text: str) -> tuple[str, ...]:
    spans = searched(pattern).spans(text)
    return () if spans is None else tuple(_piece(text, span) for span in spans)


def _piece(text: str, span: tuple[int, int]) -> str:
    return text[span[0] : span[1]] if span[0] >= 0 else ""


@dataclass(frozen=True, slots=True)
class Take:
    """A pattern to saw with.

    `kept` says what becomes of a match: it is a piece, or `skip` drops it, or `submatch` makes a
    piece of each group.
    """

    pattern: str
    kept: str = "match"


@dataclass(frozen=True, slots=True)
class Rest:
    """Here the rest of the text is asked for."""


Step = Take | Rest


class _Stop(Exception):
    """A pattern does not match any more."""


@dataclass(slots=True)
class _Sawing:
    """How far a text is sawn; each search sees only what is left of it."""

    text: str
    at: int
    pieces: list[str]
    rests: list[str]
    last_end: int = -1

    def rest(self) -> str:
        return self.text[self.at :]

    def take(self, pattern: Pattern, kept: str, *, alone: bool) -> None:
        while True:
            left = self.rest()
            spans = pattern.spans(left)
            if spans is None:
                raise _Stop
            end = self.at + spans[0][1]
            if not (alone and end == self.last_end):
                break
            # One pattern alone must get on: no second empty match at the same place.
            if not left:
                raise _Stop
            self.at += 1
        if kept == "match" or (kept == "submatch" and len(spans) == 1):
            self.pieces.append(_piece(left, spans[0]))
        elif kept == "submatch":
            self.pieces.extend(_piece(left, span) for span in spans[1:])
        self.at = self.last_end = end


def sawn(
    times: int, text: str, steps: Sequence[Step]
) -> tuple[tuple[str, ...], tuple[str | None, ...]]:
    """The pieces, and what was left at each `Rest` (None where sawing ended before).

    The steps are taken so many times, each searching on from the end of the last match, until one
    does not match.
    """
    ready = [(step, searched(step.pattern) if isinstance(step, Take) else None) for step in steps]
    count = sum(pattern is not None for _, pattern in ready)
    sawing = _Sawing(text, 0, [], [])
    rests: dict[int, str] = {}
    try:
        for _ in range(times):
            start, known = sawing.at, len(sawing.pieces)
            for place, (step, pattern) in enumerate(ready):
                if pattern is None:
                    rests[place] = sawing.rest()
                else:
                    assert isinstance(step, Take)
                    sawing.take(pattern, step.kept, alone=count == 1)
            if count != 1 and sawing.at == start:
                del sawing.pieces[known if count > 1 else 0 :]
                break
    except _Stop:
        pass
    places = [place for place, (_, pattern) in enumerate(ready) if pattern is None]
    return tuple(sawing.pieces), tuple(rests.get(place) for place in places)


#: How often `sawzall` takes its steps: until they do not match.
WITHOUT_END = sys.maxsize


def pattern_of(type_: RecordType, base: int | None = None) -> str | None:
    """A pattern of the texts that convert to a type, or None for types that have none."""
    if type_ in (INT, UINT, FINGERPRINT):
        sign = "[+-]?" if type_ == INT else "\\+?"
        return sign + _digits(base)
    patterns: dict[RecordType, str] = {
        FLOAT: r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?",
        BOOL: "(?:true|false)",
        STRING: r"\S+",
        BYTES: r"\S+",
        TIME: r"(?:[A-Z][a-z]{2} [A-Z][a-z]{2} [ 0-9][0-9] [0-9]{2}:[0-9]{2}:[0-9]{2}"
              r"(?: [A-Z]{1,5})? [0-9]{4})",
    }  # fmt: skip
    return patterns.get(type_)


def _digits(base: int | None) -> str:
    if base is None or base == 0:
        return "(?:0[xX][0-9a-fA-F]+|[0-9]+)"
    if base <= 10:
        return f"[0-{base - 1}]+"
    last = chr(ord("a") + base - 11)
    prefix = "(?:0[xX])?" if base == 16 else ""
    return f"{prefix}[0-9a-{last}A-{last.upper()}]+"


MATCHING: tuple[Intrinsic, ...] = (
    plain("match", "match(pattern, text)", fixed(STRING, STRING, result=BOOL), match),
    plain("matchposns", "matchposns(pattern, text)",
          fixed(STRING, STRING, result=ArrayOf(INT)), matchposns),
    plain("matchstrs", "matchstrs(pattern, text)",
          fixed(STRING, STRING, result=ArrayOf(STRING)), matchstrs),
)  # fmt: skip
