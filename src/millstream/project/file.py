"""Reading `millstream.toml`: what it says, checked, with all faults at their lines."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from millstream.calculus.parser import parse_expression, type_hint
from millstream.calculus.syntax import Constant
from millstream.calculus.types import DURATION, TYPES_BY_NAME, Field, Schema
from millstream.connectors.values import TIME_UNITS
from millstream.errors import CheckError, Fault, ParseError, listing, suggest
from millstream.languages import LANGUAGES
from millstream.languages.sheets.bindings import (
    Binding,
    Bindings,
    InputBinding,
    OutputBinding,
)
from millstream.source import Source, Span

#: The word for a node that is a spreadsheet.
SHEET = "sheet"
_PLAIN = (str, int, float, bool)


def _text(value: object) -> str:
    """As Spark spells it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass(frozen=True, slots=True)
class StreamTable:
    """`[stream.NAME]` or `[relation.NAME]`: where items come from.

    `source` is a location as on the command line; `options` are the generator's.
    Without `columns` they are taken from the program that reads the stream.
    """

    name: str
    is_relation: bool
    source: str
    columns: Schema | None
    time: str | None
    slack: int
    options: Mapping[str, object]
    #: Options of a source that Spark reads.
    native: Mapping[str, str] = field(default_factory=dict)
    idle: int | None = None
    span: Span | None = field(default=None, compare=False)
    is_read_once: bool = False
    #: What numbers count in columns of times.
    unit: str | None = None


@dataclass(frozen=True, slots=True)
class NodeTable:
    """`[node.NAME]`: a program, and by which names its queues are known outside."""

    name: str
    language: str
    path: str
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]
    span: Span | None = field(default=None, compare=False)
    #: What a spreadsheet's cells are bound to; None if the workbook says it itself.
    bindings: Bindings | None = None


@dataclass(frozen=True, slots=True)
class SinkTable:
    """`[sink.NAME]`: where a stream or relation goes."""

    name: str
    to: str
    times: str
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class ProjectFile:
    streams: tuple[StreamTable, ...]
    nodes: tuple[NodeTable, ...]
    sinks: tuple[SinkTable, ...]


def parse_project(source: Source) -> ProjectFile:
    """The project a text describes, or an error with every fault in it."""
    try:
        document = tomllib.loads(source.text)
    except tomllib.TOMLDecodeError as error:
        raise _syntax_error(source, str(error)) from None
    reader = _Reader(source)
    project = reader.project(document)
    if reader.faults:
        raise CheckError(reader.faults)
    return project


def _syntax_error(source: Source, message: str) -> ParseError:
    found = re.search(r"\(at line (\d+), column (\d+)\)", message)
    text = message.split(" (at ", maxsplit=1)[0]
    if found is None:
        end = len(source.text)
        return ParseError(text, span=Span(source, end, end))
    lines = source.text.split("\n")
    offset = sum(len(one) + 1 for one in lines[: int(found[1]) - 1]) + int(found[2]) - 1
    return ParseError(text, span=Span(source, offset, offset + 1))


@dataclass
class _Reader:
    """Mutable: collects faults while the document is read."""

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
            found = line.search(self.source.text, header.end())
            if found:
                return Span(self.source, found.start(1), found.end(1))
        start = header.start() + len(header[0]) - len(header[0].lstrip())
        return Span(self.source, start, header.end())

    def fail(self, message: str, span: Span | None, hint: str | None = None) -> None:
        place = None if span else self.source.name
        self.faults.append(Fault(message, span, hint, place))

    def project(self, document: dict[str, Any]) -> ProjectFile:
        known = ("stream", "relation", "node", "sink")
        for section in document:
            if section not in known:
                hint = f"sections are: {listing(known)}. {suggest(section, known) or ''}".strip()
                self.fail(f'unknown section "{section}"', self.place(section), hint)
        streams = [
            self.stream(section, name, table)
            for section in ("stream", "relation")
            for name, table in self.tables(document, section)
        ]
        nodes = [self.node(name, table) for name, table in self.tables(document, "node")]
        sinks = [self.sink(name, table) for name, table in self.tables(document, "sink")]
        if not nodes and not self.faults:
            self.fail("this project has no node", None, "add [node.NAME] with a program")
        return ProjectFile(tuple(streams), tuple(nodes), tuple(sinks))

    def tables(self, document: dict[str, Any], section: str) -> list[tuple[str, dict[str, Any]]]:
        found = document.get(section, {})
        if not isinstance(found, dict) or not all(isinstance(t, dict) for t in found.values()):
            self.fail(f"expected tables such as [{section}.NAME]", self.place(section))
            return []
        return list(found.items())

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

    def stream(self, section: str, name: str, table: dict[str, Any]) -> StreamTable:
        here = f"{section}.{name}"
        plain: tuple[str, ...] = ("source", "columns", "time", "slack", "idle", "options")
        if section == "relation":
            plain = (*plain, "once")
        options = ("rows", "seed", "start", "interval", "rate", "generate")
        self.keys(table, here, plain + options)
        time, unit = self.time(table, here)
        slack = self.duration(here, table, "slack") if "slack" in table else 0
        idle = self.duration(here, table, "idle") if "idle" in table else None
        given = {k: v for k, v in table.items() if k in options}
        if "generate" in given:
            given["columns"] = given.pop("generate")
        return StreamTable(
            name, section == "relation", self.text(table, here, "source"),
            self.columns(here, table), time, slack, given, self.texts(table, here, "options"),
            idle, self.place(here), self.once(here, table), unit,
        )  # fmt: skip

    def time(self, table: dict[str, Any], here: str) -> tuple[str | None, str | None]:
        """The column of the event time, and what its numbers count: `"at"`, or a table."""
        given = table.get("time")
        if not isinstance(given, dict):
            return (self.text(table, here, "time") if "time" in table else None), None
        known = ("column", "unit")
        for key in given:
            if key not in known:
                hint = f"it can have: {listing(known)}. {suggest(key, known) or ''}".strip()
                self.fail(f'unknown key "{key}" in "time"', self.place(here, "time"), hint)
        unit = given.get("unit")
        if "unit" in given and unit not in TIME_UNITS:
            hint = f"units are: {listing(TIME_UNITS)}"
            self.fail(f"unknown unit of times {unit!r}", self.place(here, "time"), hint)
        return (self.text(given, here, "column") if "column" in given else None), unit

    def once(self, here: str, table: dict[str, Any]) -> bool:
        """Whether a relation is read once and has no times."""
        once = table.get("once", False)
        if not isinstance(once, bool):
            self.fail('expected "once" to be true or false', self.place(here, "once"))
        if once is True and "time" in table:
            self.fail("a relation that is read once has no times", self.place(here, "time"))
        return once is True

    def columns(self, here: str, table: dict[str, Any]) -> Schema | None:
        if "columns" not in table:
            return None
        fields = []
        for column, type_name in self.names(table, here, "columns").items():
            type_ = TYPES_BY_NAME.get(type_name)
            if type_ is None:
                span = self.place(here, "columns")
                message = f'unknown type "{type_name}" of column "{column}"'
                self.fail(message, span, type_hint(type_name))
            else:
                fields.append(Field(column, type_))
        return Schema(tuple(fields))

    def duration(self, here: str, table: dict[str, Any], key: str) -> int:
        value = table[key]
        try:
            parsed = parse_expression(Source(key, str(value)))
        except ParseError:
            parsed = Constant(None, None)
        if isinstance(parsed, Constant) and parsed.type == DURATION:
            assert isinstance(parsed.value, int)
            if parsed.value >= 0:
                return parsed.value
        what = {"slack": "a slack", "idle": "an idle limit"}[key]
        self.fail(f"{value!r} is not {what}", self.place(here, key), 'write "2 s"')
        return 0

    def node(self, name: str, table: dict[str, Any]) -> NodeTable:
        here = f"node.{name}"
        languages = (*LANGUAGES, SHEET)
        chosen = [key for key in languages if key in table]
        more = ("partition", "firing") if SHEET in chosen else ()
        self.keys(table, here, (*languages, "inputs", "outputs", *more))
        if chosen == [SHEET]:
            return self.sheet(name, here, table)
        if len(chosen) != 1:
            hint = f"a node has one of: {listing(languages)}"
            self.fail(f"[{here}] needs one program", self.place(here), hint)
        language = chosen[0] if chosen else ""
        path = self.text(table, here, language) if language else ""
        return NodeTable(
            name, language, path, self.names(table, here, "inputs"),
            self.names(table, here, "outputs"), self.place(here),
        )  # fmt: skip

    def sheet(self, name: str, here: str, table: dict[str, Any]) -> NodeTable:
        """A node that is a spreadsheet: what its cells are bound to."""
        path = self.text(table, here, SHEET)
        keys = self.partition(table, here)
        inputs = [
            InputBinding(stream, self.cells(here, cells, is_input=True), keys.get(stream))
            for stream, cells in self.tables_of_cells(table, here, "inputs")
        ]
        outputs = [
            OutputBinding(stream, self.cells(here, cells, is_input=False))
            for stream, cells in self.tables_of_cells(table, here, "outputs")
        ]
        for stream in keys:
            if stream not in [one.stream for one in inputs]:
                self.fail(f'"{stream}" is no input of this node', self.place(here, "partition"))
        firing = self.text(table, here, "firing", "tuple")
        if firing not in ("tuple", "instant", "punctuation"):
            self.fail(f"unknown firing {firing!r}", self.place(here, "firing"), "tuple or instant")
        bindings = Bindings(tuple(inputs), tuple(outputs), firing != "tuple")
        given = bindings if inputs or outputs else None
        return NodeTable(name, SHEET, path, {}, {}, self.place(here), given)

    def tables_of_cells(
        self, table: dict[str, Any], here: str, key: str
    ) -> list[tuple[str, dict[str, str]]]:
        found = table.get(key, {})
        if isinstance(found, dict) and all(
            isinstance(cells, dict) and all(isinstance(c, str) for c in cells.values())
            for cells in found.values()
        ):
            return list(found.items())
        what = 'Trades = { B3 = "price" }' if key == "inputs" else 'Totals = { sum = "G9" }'
        self.fail(f'expected tables of cells in "{key}"', self.place(here, key),
                  f"write {key}.{what}")  # fmt: skip
        return []

    def cells(self, here: str, cells: dict[str, str], *, is_input: bool) -> tuple[Binding, ...]:
        """Of an input `cell = "attribute"`, of an output `attribute = "cell"`."""
        span = self.place(here, "inputs" if is_input else "outputs")
        place = span.place if span else self.source.name
        if is_input:
            return tuple(Binding(attribute, cell, place) for cell, attribute in cells.items())
        return tuple(Binding(attribute, cell, place) for attribute, cell in cells.items())

    def partition(self, table: dict[str, Any], here: str) -> dict[str, str]:
        """The key of each input; one name is the key of all."""
        given = table.get("partition", {})
        if isinstance(given, str):
            inputs = table.get("inputs", {})
            return dict.fromkeys(inputs, given) if isinstance(inputs, dict) else {}
        return self.names(table, here, "partition")

    def sink(self, name: str, table: dict[str, Any]) -> SinkTable:
        here = f"sink.{name}"
        self.keys(table, here, ("to", "times"))
        times = self.text(table, here, "times", "micros")
        if times not in ("micros", "iso"):
            self.fail(f'unknown "times": {times!r}', self.place(here, "times"), "micros or iso")
        return SinkTable(name, self.text(table, here, "to"), times, self.place(here))
