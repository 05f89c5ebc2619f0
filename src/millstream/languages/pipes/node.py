"""A file of pipes in a project: its streams are those of the project."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from millstream.calculus.types import QueueType
from millstream.errors import CheckError, Fault, listing, suggest
from millstream.languages.language import Translation, Want, beside, read_source
from millstream.languages.pipes.read import PipeReader
from millstream.queries import ast
from millstream.queries.outside import declared_outside
from millstream.queries.translate import Read, translate
from millstream.source import Source
from millstream.tables import Tables

_HOW_TO_ASK = "what has a name stays inside: write the name alone, as in total;"


@dataclass(frozen=True, slots=True)
class WrittenPipes:
    """A text whose statements are read, and the streams whose columns it needs."""

    source: Source
    reader: PipeReader

    @property
    def wants(self) -> tuple[Want, ...]:
        return tuple(Want(name, is_needed=False) for name in self.reader.inputs)

    @property
    def promises(self) -> tuple[str, ...]:
        outputs = (ast.Output, ast.Cube)
        return tuple(s.name.name for s in self.reader.statements if isinstance(s, outputs))

    def translate(self, types: Mapping[str, QueueType]) -> Translation:
        reader = self.reader
        unknown = [self._unknown(name, types) for name in reader.inputs if name not in types]
        if unknown:
            raise CheckError([*reader.faults, *unknown])
        declared = [
            declared_outside(
                word, types[name].schema, is_relation=is_relation, is_read_once=is_relation
            )
            for name, (word, is_relation) in reader.inputs.items()
        ]
        statements = (*declared, *reader.statements)
        read = Read(statements, reader.faults, reader.has_lost_names, _HOW_TO_ASK)
        try:
            made = translate(read, beside(self.source))
        except CheckError as error:
            raise CheckError([_perhaps_not_set(fault) for fault in error.faults]) from None
        unused = tuple(
            Fault(f'nothing is made of "{name}"', word.span, f"write {name}; if it is to leave")
            for name, word in reader.unused.items()
        )
        warnings = (*made.warnings, *unused)
        return Translation(made.program, made.sources, made.sinks, warnings=warnings)

    def _unknown(self, name: str, types: Mapping[str, QueueType]) -> Fault:
        word, is_relation = self.reader.inputs[name]
        section = "relation" if is_relation else "stream"
        near = suggest(name, types) or ""
        hint = (
            f"give it columns in [{section}.{name}] of a project; known are: "
            f"{listing(types)}. {near}".strip()
        )
        return Fault(f'the columns of "{name}" are not known', word.span, hint)


def _perhaps_not_set(fault: Fault) -> Fault:
    """A name that stands alone, not after `$.`, may have been meant to get its value outside."""
    span = fault.span
    if span is None or not fault.message.startswith("unknown column"):
        return fault
    if span.source.text[: span.start].rstrip().endswith("."):
        return fault
    name = span.text
    hint = (
        f"a name gets its value with --set {name}=10000; a column is $.{name}. {fault.hint or ''}"
    )
    return replace(fault, message=f'"{name}" is no column, and not set', hint=hint.strip())


def settings(tables: Tables, here: str, table: dict[str, Any]) -> dict[str, str]:
    """The values that a project gives names: `set = { n = 10000 }`."""
    return tables.texts(table, here, "set")


def read(path: Path, shown: str, values: object, names: Mapping[str, str]) -> WrittenPipes:
    """The statements of a file; names are set by a project, or else by who runs it."""
    source = read_source(path, shown)
    reader = PipeReader(source, {**(values if isinstance(values, dict) else {}), **names})
    reader.read()
    return WrittenPipes(source, reader)
