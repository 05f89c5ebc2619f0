"""Reading `millstream.toml`: what it says, checked, with all faults at their lines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from millstream.calculus.expressions import parse_expression, type_hint
from millstream.calculus.syntax import Constant
from millstream.calculus.types import DURATION, TYPES_BY_NAME, Field, Schema
from millstream.connectors.dialect import Dialect, dialect_of
from millstream.connectors.time_style import PLAIN, TimeStyle, check_style
from millstream.connectors.values import TIME_UNITS
from millstream.errors import CheckError, ParseError, UsageError, listing, suggest
from millstream.languages import DEFAULT, languages
from millstream.languages.language import Language, function_named
from millstream.source import Source, Span
from millstream.tables import Tables, parse_toml


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
    #: How times are written.
    times: TimeStyle = PLAIN
    #: How its CSV files depart from the standard, if that is said.
    dialect: Dialect | None = None


@dataclass(frozen=True, slots=True)
class NodeTable:
    """`[node.NAME]`: a program, and by which names its queues are known outside."""

    name: str
    language: str
    path: str
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]
    span: Span | None = field(default=None, compare=False)
    #: What the language has read of the table beyond names.
    settings: object = None


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
    #: What the project brings for Spark: `jars` and `packages`.
    spark: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def parse_project(source: Source) -> ProjectFile:
    """The project a text describes, or an error with every fault in it."""
    reader = _Reader(source)
    project = reader.project(parse_toml(source))
    if reader.faults:
        raise CheckError(reader.faults)
    return project


@dataclass
class _Reader(Tables):
    """Mutable: collects faults while the document is read."""

    def project(self, document: dict[str, Any]) -> ProjectFile:
        own = {lang.section[0]: lang for lang in languages().values() if lang.section}
        known = ("stream", "relation", "node", *own, "sink", "spark")
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
        for section, language in own.items():
            tables = self.tables(document, section)
            nodes += [self.own_node(language, name, table) for name, table in tables]
        sinks = [self.sink(name, table) for name, table in self.tables(document, "sink")]
        if not nodes and not self.faults:
            self.fail("this project has no node", None, "add [node.NAME] with a program")
        return ProjectFile(tuple(streams), tuple(nodes), tuple(sinks), self.spark(document))

    def spark(self, document: dict[str, Any]) -> dict[str, tuple[str, ...]]:
        """`[spark]` with `jars` and `packages`."""
        given = document.get("spark", {})
        known = ("jars", "packages")
        if not isinstance(given, dict):
            self.fail("expected a table", self.place("spark"), 'such as jars = ["mine.jar"]')
            return {}
        self.keys(given, "spark", known)
        settings: dict[str, tuple[str, ...]] = {}
        for key in known:
            texts = given.get(key, [])
            if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
                self.fail(f'expected "{key}" to be a list of texts', self.place("spark", key))
            elif texts:
                settings[key] = tuple(texts)
        return settings

    def stream(self, section: str, name: str, table: dict[str, Any]) -> StreamTable:
        here = f"{section}.{name}"
        plain: tuple[str, ...] = (
            "source", "columns", "time", "slack", "idle", "options", "csv",
        )  # fmt: skip
        if section == "relation":
            plain = (*plain, "once")
        options = ("rows", "seed", "start", "interval", "rate", "generate")
        self.keys(table, here, plain + options)
        time, times = self.time(table, here)
        slack = self.duration(here, table, "slack") if "slack" in table else 0
        idle = self.duration(here, table, "idle") if "idle" in table else None
        given = {k: v for k, v in table.items() if k in options}
        if "generate" in given:
            given["columns"] = given.pop("generate")
        return StreamTable(
            name, section == "relation", self.text(table, here, "source"),
            self.columns(here, table), time, slack, given, self.texts(table, here, "options"),
            idle, self.place(here), self.once(here, table), times, self.dialect(table, here),
        )  # fmt: skip

    def dialect(self, table: dict[str, Any], here: str) -> Dialect | None:
        """`csv = { separator = ";", decimal = "," }`."""
        given = table.get("csv")
        if given is None:
            return None
        try:
            if not isinstance(given, dict):
                raise UsageError('expected "csv" to be a table', hint='csv = { separator = ";" }')
            return dialect_of(given, "")
        except UsageError as error:
            fault = error.faults[0]
            self.fail(fault.message, self.place(here, "csv"), fault.hint)
            return None

    def time(self, table: dict[str, Any], here: str) -> tuple[str | None, TimeStyle]:
        """The column of the event time, and how it is written: `"at"`, or a table."""
        given = table.get("time")
        if not isinstance(given, dict):
            return (self.text(table, here, "time") if "time" in table else None), PLAIN
        known = ("column", "unit", "zone", "format")
        for key in given:
            if key not in known:
                hint = f"it can have: {listing(known)}. {suggest(key, known) or ''}".strip()
                self.fail(f'unknown key "{key}" in "time"', self.place(here, "time"), hint)
        unit = given.get("unit")
        if "unit" in given and unit not in TIME_UNITS:
            hint = f"units are: {listing(TIME_UNITS)}"
            self.fail(f"unknown unit of times {unit!r}", self.place(here, "time"), hint)
        texts = [self.text(given, here, k) if k in given else None for k in ("zone", "format")]
        style = TimeStyle(unit, *texts)
        try:
            check_style(style)
        except UsageError as error:
            fault = error.faults[0]
            self.fail(fault.message, self.place(here, "time"), fault.hint)
        return (self.text(given, here, "column") if "column" in given else None), style

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
        by_word = {language.word: language for language in languages().values()}
        chosen = [language for word, language in by_word.items() if word in table]
        more = [key for language in chosen for key in language.node_keys]
        self.keys(table, here, (*by_word, "inputs", "outputs", *more))
        if len(chosen) != 1:
            hint = f"a node has one of: {listing(by_word)}"
            self.fail(f"[{here}] needs one program", self.place(here), hint)
            return NodeTable(name, DEFAULT, "", {}, {}, self.place(here))
        (language,) = chosen
        path = self.text(table, here, language.word)
        settings = None
        if language.settings is not None:
            settings = function_named(language.settings)(self, here, table)
            if language.names_itself:
                return NodeTable(name, language.name, path, {}, {}, self.place(here), settings)
        return NodeTable(
            name, language.name, path, self.names(table, here, "inputs"),
            self.names(table, here, "outputs"), self.place(here), settings,
        )  # fmt: skip

    def own_node(self, language: Language, name: str, table: dict[str, Any]) -> NodeTable:
        """A node in a section that has nodes of one language only."""
        assert language.section is not None and language.settings is not None
        section, key = language.section
        here = f"{section}.{name}"
        self.keys(table, here, (key, *language.node_keys))
        settings = function_named(language.settings)(self, here, table)
        path = self.text(table, here, key)
        return NodeTable(name, language.name, path, {}, {}, self.place(here), settings)

    def sink(self, name: str, table: dict[str, Any]) -> SinkTable:
        here = f"sink.{name}"
        self.keys(table, here, ("to", "times", "state"))
        times = self.text(table, here, "times", "micros")
        if times not in ("micros", "iso"):
            self.fail(f'unknown "times": {times!r}', self.place(here, "times"), "micros or iso")
        to = self.text(table, here, "to")
        is_state = table.get("state", False)
        if not isinstance(is_state, bool):
            self.fail('expected "state" to be true or false', self.place(here, "state"))
        return SinkTable(name, f"{to}?state" if is_state is True else to, times, self.place(here))
