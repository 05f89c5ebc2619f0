"""Tables of TOML, read with all faults at their lines: of projects, and of what stands in them."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from typing import Any

from millstream.errors import Fault, ParseError, listing, suggest
from millstream.source import Source, Span

_PLAIN = (str, int, float, bool)


def parse_toml(source: Source) -> dict[str, Any]:
    """The document a text is, or an error at its first fault."""
    try:
        return tomllib.loads(source.text)
    except tomllib.TOMLDecodeError as error:
        raise _syntax_error(source, str(error)) from None


def _syntax_error(source: Source, message: str) -> ParseError:
    match = re.search(r"\(at line (\d+), column (\d+)\)", message)
    text = message.split(" (at ", maxsplit=1)[0]
    if match is None:
        end = len(source.text)
        return ParseError(text, span=Span(source, end, end))
    lines = source.text.split("\n")
    offset = sum(len(one) + 1 for one in lines[: int(match[1]) - 1]) + int(match[2]) - 1
    return ParseError(text, span=Span(source, offset, offset + 1))


@dataclass
class Tables:
    """Mutable: a document that is being read, and what is wrong with it so far."""

    source: Source
    faults: list[Fault] = field(default_factory=list)

    def place(self, table: str, key: str | None = None) -> Span | None:
        """Where a table, or a key in it, stands; tomllib does not tell."""
        header = re.search(
            rf"^\s*\[{re.escape(table)}(\.[^\]]*)?\]", self.source.text, re.MULTILINE
        )
        if header is None:
            return None
        if key is not None:
            line = re.compile(rf"^\s*(\"?{re.escape(key)}\"?)\s*(\.|=)", re.MULTILINE)
            match = line.search(self.source.text, header.end())
            if match:
                return Span(self.source, match.start(1), match.end(1))
        start = header.start() + len(header[0]) - len(header[0].lstrip())
        return Span(self.source, start, header.end())

    def fail(self, message: str, span: Span | None, hint: str | None = None) -> None:
        place = None if span else self.source.name
        self.faults.append(Fault(message, span, hint, place))

    def tables(self, document: dict[str, Any], section: str) -> list[tuple[str, dict[str, Any]]]:
        tables = document.get(section, {})
        if not isinstance(tables, dict) or not all(isinstance(t, dict) for t in tables.values()):
            self.fail(f"expected tables such as [{section}.NAME]", self.place(section))
            return []
        return list(tables.items())

    def keys(self, table: dict[str, Any], name: str, known: tuple[str, ...]) -> None:
        for key in table:
            if key not in known:
                hint = f"it can have: {listing(known)}. {suggest(key, known) or ''}".strip()
                self.fail(f'unknown key "{key}" in [{name}]', self.place(name, key), hint)

    def text(self, table: dict[str, Any], name: str, key: str, default: str | None = None) -> str:
        value = table.get(key, default)
        if value is None:
            self.fail(f'[{name}] needs "{key}"', self.place(name))
        elif not isinstance(value, str):
            self.fail(f'expected "{key}" to be a text', self.place(name, key))
        return value if isinstance(value, str) else ""

    def names(self, table: dict[str, Any], name: str, key: str) -> dict[str, str]:
        value = table.get(key, {})
        if isinstance(value, dict) and all(isinstance(v, str) for v in value.values()):
            return value
        self.fail(f'expected "{key}" to be a table of names', self.place(name, key))
        return {}

    def texts(self, table: dict[str, Any], name: str, key: str) -> dict[str, str]:
        """A table of plain values, as texts."""
        value = table.get(key, {})
        if isinstance(value, dict) and all(isinstance(v, _PLAIN) for v in value.values()):
            return {k: _text(v) for k, v in value.items()}
        self.fail(f'expected "{key}" to be a table of plain values', self.place(name, key))
        return {}


def _text(value: object) -> str:
    """As Spark spells it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
