"""The translation of figure 4: one operator runs the program on every record, others reduce.

Each table has a reducer of its own, which engines run in as many parts as they have places, by a
hash of the indexes: these are the R reducers of the paper, whose results are in their variables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from millstream.calculus.functions import Assign, Istream, Map, Merge
from millstream.calculus.graph import Input
from millstream.calculus.library.columns import kept
from millstream.calculus.scripts import Get, Intrinsic, Script, Table, nodes_in
from millstream.calculus.tables import (
    FILE,
    LINE,
    PLACE,
    RunScript,
    Tally,
    queued_type,
    tables_told,
)
from millstream.calculus.terms import Call, Column, Term
from millstream.calculus.types import INTEGER, NUMBER, TEXT, Field, QueueType, Schema
from millstream.calculus.wiring import Queue, Wiring
from millstream.errors import CheckError, Fault, UsageError, listing, suggest
from millstream.languages.language import Translation, read_source
from millstream.languages.sawzall.read import read
from millstream.languages.sawzall.scope import an
from millstream.source import Source, Span
from millstream.values.records.types import BASICS, RecordType, resolved
from millstream.values.records.zones import zone
from millstream.values.tables.table import TABLES
from millstream.values.undefined import Undefined

INPUT, PRINTED = "input", "printed"
STANDARD_ERROR = "stderr"


@dataclass(frozen=True, slots=True)
class ProgramSettings:
    """What is said of a program outside of it."""

    timezone: str = "UTC"
    ignores_undefined: bool = False
    prints_emits: bool = False
    every: int | None = None
    window: int | None = None


def settings_of(names: Mapping[str, str], base: ProgramSettings) -> ProgramSettings:
    """Settings with those that are given as texts."""
    known = {"timezone": "timezone", "ignore-undefs": "ignores_undefined", "emits": "prints_emits"}
    strange = [n for n in names if n not in known]
    if strange:
        hint = suggest(strange[0], known) or f"there are: {listing(known)}"
        raise UsageError(f'a Sawzall program has no "{strange[0]}" to set', hint=hint)
    given = {
        known[name]: text if name == "timezone" else text not in ("false", "0", "no")
        for name, text in names.items()
    }
    settings = replace(base, **given)  # type: ignore[arg-type]
    try:
        zone(settings.timezone)
    except Undefined as undefined:
        raise UsageError(f"unknown time zone: {undefined.reason}") from None
    return settings


def script_of(source: Source, folder: Path, settings: ProgramSettings) -> Script:
    """The script of a text; files it includes lie beside it."""

    def include(name: str, span: Span) -> Source:
        root = folder.resolve()
        path = (root / name).resolve()
        if not path.is_relative_to(root):
            raise CheckError(
                f'"{name}" lies outside of the project\'s folder', span=span,
                hint="put it beside the program",
            )  # fmt: skip
        if not path.is_file():
            near = suggest(name, [p.name for p in root.glob("*.szl")])
            raise CheckError(f'there is no file "{name}"', span=span, hint=near)
        return read_source(path, str(Path(source.name).parent / name))

    script = read(source, include)
    return replace(
        script, timezone=settings.timezone, passes_over=settings.ignores_undefined,
        folder=str(folder.resolve()),
    )  # fmt: skip


def translated(
    source: Source, folder: Path, settings: ProgramSettings, columns: Mapping[str, Schema]
) -> Translation:
    """A text as a program of the calculus."""
    script = script_of(source, folder, settings)
    return _Made(script, settings, source, columns).translation()


class _Made:
    """Mutable: the operators of a program."""

    def __init__(
        self,
        script: Script,
        settings: ProgramSettings,
        source: Source,
        columns: Mapping[str, Schema],
    ) -> None:
        self.script = script
        self.settings = settings
        self.span = Span(source, 0, 0)
        self.wiring = Wiring(self.span, reserved=(PRINTED, STANDARD_ERROR))
        self.given = columns.get(INPUT)
        self.outputs: dict[str, Queue] = {}
        self.sinks: dict[str, str] = {}
        self.lines: list[Queue] = []
        self.errors: list[Queue] = []

    def translation(self) -> Translation:
        # A program that emits nothing can still assert something of every record.
        told = tables_told(self.script) or (self.script.table_named("stdout") or 0,)
        record = self.record()
        # Of what comes from others nobody says whether it was a text: one column is its lines.
        has_columns = bool(self.columns()) or record.schema.names != (LINE,)
        function = RunScript(self.script, has_columns, told, INPUT, self.settings.prints_emits)
        names = [f"{t.name}_emits" for t in function.sent]
        queues = self.wiring.add_several(function, record, names)
        for table, queue in zip(function.sent, queues, strict=True):
            self.table(table, queue)
        self.printed()
        program = self.wiring.program(self.outputs)
        aside = tuple(n for n in self.outputs if n not in self.sinks)
        return Translation(program, sinks=self.sinks, notes=self.notes(function), aside=aside)

    def record(self) -> Queue:
        """What the program reads: lines, or rows with the columns that it names."""
        wanted = self.columns()
        if self.given is not None:
            return self.fitted(self.given, wanted)
        if wanted:
            fields = tuple(Field(n, queued_type(t)) for n, (t, _) in wanted.items())
            return self.wiring.input(_input(Schema(fields)))
        lines = Schema((Field(LINE, TEXT),))
        return self.wiring.input(replace(_input(lines), values=(("",),), reads_lines=True))

    def fitted(self, given: Schema, wanted: Mapping[str, tuple[RecordType, Span | None]]) -> Queue:
        """Rows of others: all of them if the record is read as bytes, else what is named."""
        faults: list[Fault] = []
        columns: dict[str, Term] = {}
        for name, (type_, span) in wanted.items():
            column = given.like(name)
            if column is None:
                hint = suggest(name, given.names) or f"there are: {listing(given.names)}"
                faults.append(Fault(f'the record has no column "{name}"', span, hint))
                continue
            term: Term = Column(column, given[column])
            if (given[column], queued_type(type_)) == (INTEGER, NUMBER):
                term = Call("number", (term,), NUMBER)
            if term.type != queued_type(type_):
                message = f'the record has "{column}" as {given[column]}, not as {an(type_)}'
                faults.append(Fault(message, span, "take it as what it is, and convert that"))
            columns[name] = term
        if faults:
            raise CheckError(faults)
        rows = self.wiring.input(_input(given))
        if self.reads_bytes or not columns:
            columns = {a.name: a.term for a in kept(given)} | columns
        assigned = tuple(Assign(name, term) for name, term in columns.items())
        if assigned == kept(given):
            return rows
        return self.wiring.add(Map(assigned), rows, name=f"{INPUT}_columns")

    @property
    def reads_bytes(self) -> bool:
        record = self.script.record
        return any(isinstance(n, Get) and n.var == record for n in nodes_in(self.script.body))

    def columns(self) -> dict[str, tuple[RecordType, Span | None]]:
        """The columns that the record is taken by, with their types and a place of each."""
        wanted: dict[str, tuple[RecordType, Span | None]] = {}
        for node in nodes_in((self.script.statics, self.script.body)):
            if not isinstance(node, Intrinsic) or node.name != "row":
                continue
            for field in resolved(node.type).fields:  # type: ignore[union-attr]
                type_ = resolved(field.type)
                if type_ not in BASICS.values():
                    message = f'column "{field.name}" cannot be {an(field.type)}'
                    raise CheckError(Fault(message, node.span, "a column holds a plain value"))
                elsewhere, _ = wanted.setdefault(field.name or "", (type_, node.span))
                if elsewhere != type_:
                    message = f'column "{field.name}" is {an(elsewhere)} elsewhere'
                    raise CheckError(Fault(message, node.span))
        return wanted

    def table(self, table: Table, queue: Queue) -> None:
        if table.file in ("stdout", "stderr"):
            renamed = self.wiring.columns(
                queue, {LINE: queue.schema.names[0]}, f"{table.name}_text"
            )
            (self.lines if table.file == "stdout" else self.errors).append(renamed)
            return
        if table.file is not None:
            name = self.named(table.name)
            self.outputs[name] = queue
            self.sinks[name] = f"raw:?by={FILE}" if table.names_files else f"raw:{table.file}"
            return
        function = Tally(table, self.settings.every, self.settings.window, lines=True,
                         timezone=self.settings.timezone)  # fmt: skip
        kept = self.wiring.add(function, queue, name=f"{table.name}_rows", origin=table.span)
        shown = {n: n for n in kept.schema.names if n not in (LINE, PLACE)}
        self.outputs[self.named(table.name)] = self.wiring.columns(
            kept, shown, f"{table.name}_kept"
        )
        news = self.wiring.add(Istream(), kept, name=f"{table.name}_news")
        line = (Assign(LINE, news.column(LINE)),)
        self.lines.append(self.wiring.add(Map(line), news, name=f"{table.name}_lines"))

    def named(self, name: str) -> str:
        taken = (INPUT, PRINTED, STANDARD_ERROR, "rejected", "late")
        return f"{name}_" if name in taken else name

    def printed(self) -> None:
        for name, queues, sink in (
            (PRINTED, self.lines, "raw:-"), (STANDARD_ERROR, self.errors, "raw:/dev/stderr"),
        ):  # fmt: skip
            if queues:
                both = len(queues) > 1
                self.outputs[name] = (
                    self.wiring.add(Merge(), *queues, name=f"{name}_all") if both else queues[0]
                )
                self.sinks[name] = sink

    def notes(self, function: RunScript) -> tuple[str, ...]:
        """What became of the text, for `explain`."""
        tables = [t for t in function.sent if t.file is None]
        return (
            f"the record is {'read as bytes' if self.reads_bytes else 'taken by its columns'}",
            *(f"table {t.name}: {t.kind}, {TABLES[t.kind].bound}" for t in tables),
        )


def _input(schema: Schema) -> Input:
    return Input(INPUT, QueueType(schema), is_numbered=True, closes=True)
