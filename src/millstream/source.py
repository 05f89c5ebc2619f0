"""Text with places in it: a `Source` is a named text, a `Span` a stretch of it.

Every language keeps spans on its trees, so that any later stage can point at what the
user wrote. Spans never take part in equality: two programs that mean the same are equal
wherever they were written.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

#: What stands between a user and a host in an address is a password.
_PASSWORD = re.compile(r"(?<=://)([^/\s:@]*:)([^\s\"']+)(?=@)")


@dataclass(frozen=True, slots=True)
class Source:
    """A named text: a file's name as the user gave it, and what is in it."""

    name: str
    text: str = field(repr=False)

    def line_and_column(self, offset: int) -> tuple[int, int]:
        """One-based line and column of an offset."""
        before = self.text[:offset]
        return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1

    def line_text(self, line: int) -> str:
        """The text of a one-based line, without its line break."""
        return self.text.split("\n")[line - 1].rstrip("\r")


@dataclass(frozen=True, slots=True)
class Span:
    """The half-open stretch [start, end) of a source."""

    source: Source = field(repr=False)
    start: int
    end: int

    @property
    def text(self) -> str:
        return self.source.text[self.start : self.end]

    @property
    def place(self) -> str:
        line, column = self.source.line_and_column(self.start)
        return f"{self.source.name}:{line}:{column}"

    def to(self, other: Span) -> Span:
        """The stretch from the start of this span to the end of the other."""
        return Span(self.source, min(self.start, other.start), max(self.end, other.end))

    def excerpt(self, width: int = 100) -> str:
        """The first line of the span with carets below it, cut to a readable width."""
        line, column = self.source.line_and_column(self.start)
        text = _PASSWORD.sub(lambda m: m[1] + "*" * len(m[2]), self.source.line_text(line))
        length = min(self.end - self.start, len(text) - column + 1)
        first = max(0, column - 1 - width // 2) if len(text) > width else 0
        shown = text[first : first + width].replace("\t", " ")
        carets = "^" * max(1, min(length, width - (column - 1 - first)))
        left = "... " if first else ""
        right = " ..." if first + width < len(text) else ""
        return f"    {left}{shown}{right}\n    {' ' * (column - 1 - first + len(left))}{carets}"
