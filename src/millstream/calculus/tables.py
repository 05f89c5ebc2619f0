"""Scripts and tables: one operator runs a script on every record, others gather what it emits.

`RunScript` has an output for every table that its script emits to: a stream of rows with the
indexes, the value, and the weight if there is one. `Tally` keeps one table: from such a stream to
the relation of what the table holds, which moves when time comes to a multiple of `every`, or
only at the end of time.

A queue holds plain values as they are. Unsigned integers are held by their bits, bytes as
characters below 256, and what has parts as the packed bytes of it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from millstream.calculus.base import Facts, Function, FunctionFault, require_kind
from millstream.calculus.scripts import (
    UNDEFINED_COUNT,
    UNDEFINED_REASONS,
    Emit,
    Get,
    Intrinsic,
    Script,
    Table,
    nodes_in,
)
from millstream.calculus.types import (
    BOOLEAN,
    INTEGER,
    NUMBER,
    TEXT,
    TIME,
    Field,
    QueueType,
    Schema,
    Type,
)
from millstream.values.records import types as records
from millstream.values.records.keys import hash64, keys_of
from millstream.values.records.packing import packed, unpacked
from millstream.values.records.printing import printer, shown, source_text
from millstream.values.records.running import Emitted
from millstream.values.records.types import RecordType, resolved, unsigned, wrapped
from millstream.values.tables.kind import Declared, Result, TableKind
from millstream.values.tables.table import TABLES

#: When what is told at the end of a finite run is told: the end of the year 9999.
END_OF_TIME = 253_402_300_799_000_000
#: How often tables are told while inputs are followed: every minute of event time.
TOLD_EVERY = 60_000_000
VALUE, WEIGHT, ERROR, CHANCE = "value", "weight", "error", "chance"
LINE, PLACE, WINDOW = "line", "place", "window"
#: The file that a value goes to, of a table whose emits name their files.
FILE = "file"

_QUEUED: dict[RecordType, Type] = {
    records.INT: INTEGER, records.UINT: INTEGER, records.FINGERPRINT: INTEGER,
    records.FLOAT: NUMBER, records.STRING: TEXT, records.BYTES: TEXT, records.BOOL: BOOLEAN,
    records.TIME: TIME,
}  # fmt: skip


def queued_type(type_: RecordType) -> Type:
    """How values of a type travel."""
    return _QUEUED.get(resolved(type_), TEXT)


def _same(value: Any) -> Any:
    return value


def _encoded(text: str) -> bytes:
    return text.encode("latin-1")


def _decoded(raw: bytes) -> str:
    return raw.decode("latin-1")


def to_queue(type_: RecordType) -> Callable[[Any], Any]:
    """What makes a value of a type travel."""
    kind = resolved(type_)
    if kind in (records.UINT, records.FINGERPRINT):
        return wrapped
    if kind == records.BYTES:
        return _decoded
    if kind in _QUEUED and kind != records.FLOAT:
        return _same
    key = keys_of(type_).key
    if kind == records.FLOAT:
        return key  # every zero, and whatever is no number, is one index
    return lambda value: packed(key(value)).decode("latin-1")


def to_file(type_: RecordType) -> Callable[[Any], Any]:
    """What makes a value the text of a file."""
    if resolved(type_) == records.BYTES:
        return lambda raw: raw.decode("utf-8", "replace")
    return to_queue(type_)


def from_queue(type_: RecordType) -> Callable[[Any], Any]:
    kind = resolved(type_)
    if kind in (records.UINT, records.FINGERPRINT):
        return unsigned
    if kind == records.BYTES:
        return _encoded
    if kind in _QUEUED:
        return _same
    value = keys_of(type_).value
    return lambda text: value(unpacked(text.encode("latin-1")))


# --- the columns of tables -------------------------------------------------------------


def index_names(table: Table) -> tuple[str, ...]:
    """The columns of the indexes: their names, or numbers."""
    taken = {VALUE, WEIGHT, ERROR, CHANCE, LINE, PLACE, WINDOW, "_time", "_weight"}
    names: list[str] = []
    for number, (name, _) in enumerate(table.indexes, 1):
        wanted = name or f"index{number}"
        while wanted in taken:
            wanted += "_"
        taken.add(wanted)
        names.append(wanted)
    return tuple(names)


def kind_of(table: Table) -> TableKind:
    return TABLES[table.kind]


def declared(table: Table) -> Declared:
    return Declared(table.parameter, table.value, table.weight)


def emitted_schema(table: Table) -> Schema:
    """The columns of what is emitted to a table; a file has values and nothing else."""
    if table.file is not None:
        name = (Field(FILE, TEXT),) if table.names_files else ()
        return Schema((*name, Field(VALUE, queued_type(table.value))))
    types = [type_ for _, type_ in table.indexes]
    fields = [Field(n, queued_type(t)) for n, t in zip(index_names(table), types, strict=True)]
    fields.append(Field(VALUE, queued_type(table.value)))
    if table.weight is not None:
        fields.append(Field(WEIGHT, queued_type(table.weight)))
    if kind_of(table).uses_keys:
        fields.append(Field(CHANCE, INTEGER))
    return Schema(tuple(fields))


#: What tables may be written to that is no file of theirs.
STANDARD_FILES = ("stdout", "stderr")
#: Where emits go that are told as they are.
SOURCE = Table("emits", "collection", None, (), records.STRING, file="stdout")


@dataclass(frozen=True, slots=True)
class RunScript(Function):
    """Run a script on every record; the number of each output is that of a table in `told`."""

    script: Script
    #: Whether rows are records by the names of their columns, or the one column is the record.
    has_columns: bool
    told: tuple[int, ...]
    input_name: str = "input"
    #: Whether every emit is sent as a line of source text instead, on one output.
    as_source: bool = False
    output_count: ClassVar[int | None] = None
    acts_at_once: ClassVar[bool] = True

    @property
    def tables(self) -> tuple[Table, ...]:
        return tuple(self.script.tables[n] for n in self.told)

    @property
    def sent(self) -> tuple[Table, ...]:
        """The tables that have an output each; those that are printed share one."""
        if self.as_source:
            return (SOURCE,)
        files = [table.file for table in self.tables]
        return tuple(
            table
            for place, table in enumerate(self.tables)
            if table.file not in STANDARD_FILES or files.index(table.file) == place
        )

    def output_types(self, inputs: tuple[QueueType, ...], outputs: int) -> tuple[QueueType, ...]:
        require_kind(inputs, "RunScript", is_relation=False)
        if outputs != len(self.sent):
            raise FunctionFault(f"RunScript tells {len(self.sent)} tables to {outputs} queues")
        return tuple(QueueType(emitted_schema(table)) for table in self.sent)

    def facts(self, inputs: tuple[QueueType, ...], index: int) -> Facts:
        written = {n for table in self.sent for n in emitted_schema(table).names}
        reads = frozenset(inputs[index].schema.names)
        return Facts(reads, frozenset(), frozenset(written), is_stateless=True)


def tables_told(script: Script) -> tuple[int, ...]:
    """The tables that a script emits to, in the order of their declarations."""
    used = {n.table for n in nodes_in((script.statics, script.body)) if isinstance(n, Emit)}
    if script.passes_over:
        counts = (script.table_named(UNDEFINED_COUNT), script.table_named(UNDEFINED_REASONS))
        used |= {n for n in counts if n is not None}
    return tuple(sorted(used))


@dataclass(frozen=True, slots=True)
class Tally(Function):
    """What a table holds, as a relation: the indexes, values, weights and bounds of error.

    With a `window` the table begins anew with each, and is told when it is over. `lines` adds
    two columns: the place of a row among those of its indexes, and the row as a line of text.
    """

    table: Table
    every: int | None = None
    window: int | None = None
    lines: bool = False
    timezone: str = "UTC"
    waits_for_end: ClassVar[bool] = True

    @property
    def by(self) -> tuple[str, ...]:
        return index_names(self.table)

    def result_types(self) -> tuple[tuple[str, RecordType], ...]:
        """The columns after the indexes, with the types of their values."""
        kind, how = kind_of(self.table), declared(self.table)
        columns = [(VALUE, kind.value(how))]
        weight = kind.weight(how)
        if weight is not None:
            columns.append((WEIGHT, weight))
        if kind.has_error:
            columns.append((ERROR, weight or records.INT))
        return tuple(columns)

    def schema(self) -> Schema:
        types = [type_ for _, type_ in self.table.indexes]
        fields = [Field(WINDOW, TIME)] if self.window is not None else []
        fields += [Field(n, shown_type(t)) for n, t in zip(self.by, types, strict=True)]
        fields += [Field(PLACE, INTEGER)] if self.lines else []
        fields += [Field(n, shown_type(t)) for n, t in self.result_types()]
        return Schema((*fields, *([Field(LINE, TEXT)] if self.lines else [])))

    def output_types(self, inputs: tuple[QueueType, ...], outputs: int) -> tuple[QueueType, ...]:
        require_kind(inputs, "Tally", is_relation=False)
        if inputs[0].schema != emitted_schema(self.table):
            raise FunctionFault(f"Tally takes {emitted_schema(self.table)}, got {inputs[0].schema}")
        return (QueueType(self.schema(), is_relation=True),)

    def facts(self, inputs: tuple[QueueType, ...], index: int) -> Facts:
        names = frozenset(self.schema().names)
        return Facts(
            frozenset(inputs[index].schema.names), frozenset(self.by), names - set(self.by),
            is_stateless=False, key=self.by, is_commutative=True,
        )  # fmt: skip

    def told_at(self, time: int) -> int:
        """When what came at a time is told."""
        if self.window is not None:
            return (time // self.window + 1) * self.window
        if self.every is not None:
            return -(-time // self.every) * self.every
        return END_OF_TIME

    def following(self) -> Tally:
        """As it is when its input has no end."""
        never = self.every is None and self.window is None
        return replace(self, every=TOLD_EVERY) if never else self


def shown_type(type_: RecordType) -> Type:
    """How values are held in the relation of a table: what has parts is text."""
    return queued_type(type_)


def to_shown(type_: RecordType) -> Callable[[Any], Any]:
    """What makes a value one of the relation of a table."""
    kind = resolved(type_)
    return to_queue(type_) if kind in _QUEUED else lambda value: shown(value, type_)


class Contents:
    """The rows of a table: what its accumulators come to, as rows of its relation."""

    def __init__(self, function: Tally) -> None:
        self.function = function
        self.table = kind_of(function.table).table(declared(function.table))
        self.types = [type_ for _, type_ in function.table.indexes]
        self.keys = [from_queue(t) for t in self.types]
        self.shown_keys = [to_shown(t) for t in self.types]
        self.results = [to_shown(t) for _, t in function.result_types()]
        weight = function.table.weight
        schema = emitted_schema(function.table).names
        self.value = from_queue(function.table.value)
        self.weight = None if weight is None else from_queue(weight)
        self.at = len(self.types)
        zone = function.timezone
        self.key_texts = [printer(t, zone) for t in self.types]
        self.result_texts = [printer(t, zone) for _, t in function.result_types()]
        self.chance = schema.index(CHANCE) if CHANCE in schema else None

    def add(self, acc: Any, row: tuple[Any, ...]) -> Any:
        """An accumulator with one emitted row more."""
        weight = None if self.weight is None else self.weight(row[self.at + 1])
        chance = 0 if self.chance is None else row[self.chance]
        return self.table.add(acc, self.value(row[self.at]), weight, chance)

    def add_times(self, acc: Any, row: tuple[Any, ...], times: int) -> Any:
        """An accumulator with the same emitted row so many times more."""
        weight = None if self.weight is None else self.weight(row[self.at + 1])
        chance = 0 if self.chance is None else row[self.chance]
        return self.table.add_times(acc, self.value(row[self.at]), weight, chance, times)

    def add_all(self, acc: Any, columns: list[list[Any]], times: list[int]) -> Any:
        """An accumulator with many different rows more, each so many times; given as columns."""
        values, at = columns[self.at], self.at
        values = values if self.value is _same else list(map(self.value, values))
        weights = None
        if self.weight is not None:
            heavy = columns[at + 1]
            weights = heavy if self.weight is _same else list(map(self.weight, heavy))
        chances = [0] * len(values) if self.chance is None else columns[self.chance]
        return self.table.add_all(acc, values, weights, chances, times)

    def is_plain(self) -> bool:
        """Whether indexes and results are held in the relation as they travel."""
        types = (*self.types, *(t for _, t in self.function.result_types()))
        return all(resolved(t) in _QUEUED for t in types)

    def lines(self, keys: list[list[Any]], values: list[Any], window: int | None) -> list[str]:
        """The lines of many indexes with one plain value each; keys are as they were emitted."""
        columns = [
            list(map(text, map(of, column)))
            for text, of, column in zip(self.key_texts, self.keys, keys, strict=True)
        ]
        start, end = self._start(window), "] = "
        texts = map(self.result_texts[0], values)
        if not columns:
            return [f"{start}[{end}{text}\n" for text in texts]
        where = map("][".join, zip(*columns, strict=True))
        return [f"{start}[{w}{end}{text}\n" for w, text in zip(where, texts, strict=True)]

    def _start(self, window: int | None) -> str:
        when = ""
        if window is not None:
            when = f"{shown(window, records.TIME, self.function.timezone)}: "
        return f"{when}{self.function.table.name}"

    def rows(self, key: tuple[Any, ...], acc: Any, window: int | None) -> list[tuple[Any, ...]]:
        """What a table holds under indexes, in order; `key` is as it was emitted."""
        return self.told(key, self.table.results(acc), window)

    def told(
        self, key: tuple[Any, ...], results: list[Result], window: int | None
    ) -> list[tuple[Any, ...]]:
        indexes = [of(k) for of, k in zip(self.keys, key, strict=True)]
        start = () if window is None else (window,)
        first = (*start, *(to(i) for to, i in zip(self.shown_keys, indexes, strict=True)))
        rows = []
        for place, result in enumerate(results, 1):
            parts = result[: len(self.results)]
            values = tuple(to(v) for to, v in zip(self.results, parts, strict=True))
            if self.function.lines:
                line = self.line(indexes, parts, window)
                rows.append((*first, place, *values, line))
            else:
                rows.append((*first, *values))
        return rows

    def line(self, indexes: list[Any], parts: Any, window: int | None) -> str:
        """As people see it: `t[i][j] = value, weight`."""
        texts = zip(self.key_texts, indexes, strict=True)
        where = "".join([f"[{text(index)}]" for text, index in texts]) or "[]"
        results = zip(self.result_texts, parts, strict=True)
        what = ", ".join([text(part) for text, part in results])
        return f"{self._start(window)}{where} = {what}\n"


def chances(function: RunScript) -> bool:
    """Whether chance has a say in what a script does."""
    names = {n.name for n in nodes_in(function.script.body) if isinstance(n, Intrinsic)}
    plain = (t for t in function.tables if t.file is None)
    return bool(names & {"rand", "nrand"}) or any(kind_of(t).uses_keys for t in plain)


class Emits:
    """From records to what is emitted: rows of the input in, rows for each output out."""

    def __init__(self, function: RunScript, names: tuple[str, ...]) -> None:
        self.has_columns = function.has_columns
        self.names = names
        self.has_chance = chances(function)
        record = function.script.record
        nodes = nodes_in((function.script.statics, function.script.body))
        #: Whether anything looks at the record as bytes.
        self.reads_bytes = any(isinstance(n, Get) and n.var == record for n in nodes)
        made = self._source if function.as_source else self._maker
        self.outputs = dict.fromkeys(function.told, 0)
        if not function.as_source:
            files = [table.file for table in function.sent]
            self.outputs = {
                number: files.index(table.file)
                if table.file in STANDARD_FILES
                else function.sent.index(table)
                for number, table in zip(function.told, function.tables, strict=True)
            }
        self.makers = {n: made(function.script.tables[n]) for n in function.told}

    @staticmethod
    def _maker(table: Table) -> Callable[[Any, Any, Any, int], tuple[Any, ...]]:
        keys = [to_queue(t) for _, t in table.indexes]
        value = to_queue(table.value) if table.file is None else to_file(table.value)
        weight = None if table.weight is None else to_queue(table.weight)
        uses_keys = CHANCE in emitted_schema(table).names
        if table.names_files:
            return lambda indexes, emitted, _heavy, _chance: (indexes[-1], value(emitted))
        if table.file is not None:
            return lambda _indexes, emitted, _heavy, _chance: (value(emitted),)

        def made(indexes: Any, emitted: Any, heavy: Any, chance: int) -> tuple[Any, ...]:
            row = (*(to(i) for to, i in zip(keys, indexes, strict=True)), value(emitted))
            row = row if weight is None else (*row, weight(heavy))
            return (*row, chance) if uses_keys else row

        return made

    @staticmethod
    def _source(table: Table) -> Callable[[Any, Any, Any, int], tuple[Any, ...]]:
        """An emit as a program writes it."""

        def made(indexes: Any, emitted: Any, heavy: Any, chance: int) -> tuple[Any, ...]:
            pairs = zip(indexes, table.indexes, strict=not table.names_files)
            where = "".join(f"[{source_text(i, t)}]" for i, (_, t) in pairs)
            weight = "" if table.weight is None else f" weight {source_text(heavy, table.weight)}"
            value = source_text(emitted, table.value)
            return (f"emit {table.name}{where} <- {value}{weight};\n",)

        return made

    def record(self, row: tuple[Any, ...]) -> tuple[bytes, dict[str, Any]]:
        """A row as bytes, and by the names of its columns."""
        if not self.has_columns:
            return ((row[0] or "").encode("latin-1") if row else b""), {}
        named = dict(zip(self.names, row, strict=True))
        return json.dumps(named, ensure_ascii=False).encode(), named

    def seed(self, time: int, row: tuple[Any, ...]) -> int:
        return hash64((time, row)) if self.has_chance else 0

    @staticmethod
    def chance(seed: int, number: int) -> int:
        """What tells an emit of a record from all others."""
        return wrapped(hash64((seed, number)))

    def rows(self, emits: list[Emitted], seed: int) -> list[tuple[int, tuple[Any, ...]]]:
        """The number of an output and a row for it, for everything that was emitted."""
        sent = []
        for number, (table, indexes, value, weight) in enumerate(emits):
            chance = self.chance(seed, number) if self.has_chance else 0
            sent.append((self.outputs[table], self.makers[table](indexes, value, weight, chance)))
        return sent
