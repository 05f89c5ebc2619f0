"""From a Sawzall text to a program of the calculus."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from millstream.calculus.tables import tables_told
from millstream.calculus.types import QueueType
from millstream.connectors.values import Unfit, duration_of
from millstream.languages.language import NO_NAMES, Translation, Want, read_source
from millstream.languages.sawzall.translate import (
    INPUT,
    ProgramSettings,
    script_of,
    settings_of,
    translated,
)
from millstream.source import Source
from millstream.tables import Tables


@dataclass(frozen=True, slots=True)
class _File:
    """A program in a file, beside which the files lie that it includes and loads."""

    source: Source
    folder: Path
    settings: ProgramSettings
    is_node: bool = False

    @property
    def wants(self) -> tuple[Want, ...]:
        return (Want(INPUT, is_needed=True),) if self.is_node else ()

    @property
    def promises(self) -> tuple[str, ...]:
        script = script_of(self.source, self.folder, self.settings)
        return tuple(script.tables[n].name for n in tables_told(script))

    def translate(self, types: Mapping[str, QueueType]) -> Translation:
        columns = {name: type_.schema for name, type_ in types.items()}
        return translated(self.source, self.folder, self.settings, columns)


def read(path: Path, shown: str, settings: object, names: Mapping[str, str] = NO_NAMES) -> _File:
    is_node = isinstance(settings, ProgramSettings)
    base = settings if isinstance(settings, ProgramSettings) else ProgramSettings()
    return _File(read_source(path, shown), path.parent, settings_of(names, base), is_node)


def load(source: Source) -> Translation:
    """What a text means, or all that is wrong with it."""
    return translated(source, Path(), ProgramSettings(), {})


def node_settings(tables: Tables, here: str, table: dict[str, Any]) -> ProgramSettings:
    """What the table of a node says: how often tables are told, and for how long they gather."""
    lengths: dict[str, int | None] = {}
    for key in ("every", "window"):
        lengths[key] = None
        if key in table:
            try:
                lengths[key] = duration_of(str(table[key]))
            except Unfit as unfit:
                tables.fail(str(unfit), tables.place(here, key), 'write "1 min"')
    zone = tables.text(table, here, "timezone", "UTC")
    return ProgramSettings(zone, every=lengths["every"], window=lengths["window"])
