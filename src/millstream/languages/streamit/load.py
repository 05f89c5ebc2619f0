"""From a StreamIt text to a program of the calculus."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from millstream.calculus.each import PerKey
from millstream.calculus.graph import Input
from millstream.calculus.types import QueueType, Schema
from millstream.calculus.wiring import Wiring
from millstream.errors import CheckError, Fault, listing, suggest
from millstream.languages.language import Translation, Want, read_source
from millstream.languages.streamit.translate import ENTRY, EXIT, translated
from millstream.source import Source, Span
from millstream.tables import Tables


@dataclass(frozen=True, slots=True)
class Partition:
    """The columns of the input whose values have an instance of the program each."""

    by: tuple[str, ...]
    span: Span | None


def settings(tables: Tables, here: str, table: dict[str, Any]) -> Partition | None:
    """What a node says beyond names: `partition = "sym"`, or several in a list."""
    if "partition" not in table:
        return None
    by, span = table["partition"], tables.place(here, "partition")
    columns = [by] if isinstance(by, str) else by
    if not isinstance(columns, list) or not columns or not all(isinstance(c, str) for c in columns):
        tables.fail(f"expected the name of a column, got {by!r}", span, 'write partition = "sym"')
        return None
    return Partition(tuple(columns), span)


@dataclass(frozen=True, slots=True)
class _File:
    """A program in a file, whose folder its own files are seen from."""

    source: Source
    folder: Path
    partition: Partition | None = None
    promises: tuple[str, ...] = ()

    @property
    def wants(self) -> tuple[Want, ...]:
        return () if self.partition is None else (Want(ENTRY, is_needed=True),)

    def translate(self, types: Mapping[str, QueueType]) -> Translation:
        translation = translated(self.source, self.folder)
        if self.partition is None:
            return translation
        return _per_key(translation, self.partition, types[ENTRY].schema)


def _per_key(translation: Translation, partition: Partition, columns: Schema) -> Translation:
    """An instance of a program for every key of its input."""
    inner = translation.program
    if inner.input_names != (ENTRY,) or inner.outputs != (EXIT,):
        raise CheckError(Fault(
            "a program with a partition takes items and gives items: it reads and "
            "writes no files, and prints nothing", partition.span,
        ))  # fmt: skip
    missing = [name for name in partition.by if name not in columns.names]
    if missing:
        hint = suggest(missing[0], columns.names) or f"there are: {listing(columns.names)}"
        raise CheckError(Fault(f'{ENTRY} has no column "{missing[0]}"', partition.span, hint))
    keys = tuple(field for field in columns if field.name in partition.by)
    wiring = Wiring(reserved=(EXIT,))
    items = inner.inputs[0].type.schema
    both = wiring.input(Input(ENTRY, QueueType(Schema((*keys, *items)))))
    given = wiring.add(PerKey(partition.by, inner), both, name="of_all_keys")
    return Translation(wiring.program({EXIT: given}), notes=translation.notes,
                       warnings=translation.warnings)  # fmt: skip


def read(path: Path, shown: str, settings: object) -> _File:
    partition = settings if isinstance(settings, Partition) else None
    return _File(read_source(path, shown), path.parent, partition)


def load(source: Source) -> Translation:
    """What a text means, or all that is wrong with it."""
    return translated(source, Path())
