"""A cube over a stream of a project, by the configuration that stands in a file of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from millstream.calculus.graph import Input
from millstream.calculus.library.cube import add_cube, sources_of, written_cube
from millstream.calculus.types import QueueType
from millstream.calculus.wiring import Wiring
from millstream.errors import CheckError, Fault, UsageError
from millstream.languages.language import Translation, Want, read_source
from millstream.source import Source, Span
from millstream.tables import Tables

_HOW_TO_STREAM = "make it a stream of what comes: SELECT ISTREAM(*) FROM ..., or -> istream"


@dataclass(frozen=True, slots=True)
class Over:
    """What a cube is called and what it is made of."""

    name: str
    stream: str
    span: Span | None = field(default=None, compare=False)


def settings(tables: Tables, here: str, table: dict[str, Any]) -> Over:
    """What the table of a node says of its cube."""
    for key in ("inputs", "outputs"):
        if key in table:
            hint = "its stream is `over`, and its outputs have its name"
            tables.fail(f'a cube has no "{key}"', tables.place(here, key), hint)
    stream = tables.text(table, here, "over")
    return Over(here.split(".", 1)[1], stream, tables.place(here, "over"))


@dataclass(frozen=True, slots=True)
class WrittenCube:
    """A configuration, and the stream whose columns it needs."""

    source: Source
    over: Over
    promises: tuple[str, ...]

    @property
    def wants(self) -> tuple[Want, ...]:
        names = (self.over.stream, *sources_of(self.source))
        return tuple(Want(name, is_needed=True) for name in dict.fromkeys(names))

    def translate(self, types: Mapping[str, QueueType]) -> Translation:
        faults: list[Fault] = []
        over = types[self.over.stream]
        if over.is_relation:
            message = f'a cube is made of a stream, but "{self.over.stream}" is a relation'
            raise CheckError(Fault(message, self.over.span, _HOW_TO_STREAM))
        schema = over.schema
        sources = {n: types[n].schema for n in sources_of(self.source) if n in types}
        cube = written_cube(self.source, schema, sources, faults)
        if cube is None:
            raise CheckError(faults)
        wiring = Wiring(Span(self.source, 0, 0))
        given = wiring.input(Input(self.over.stream, QueueType(schema)))
        versions = {n: wiring.input(Input(n, QueueType(s))) for n, s in sources.items()}
        made = add_cube(wiring, given, cube, self.over.name, None, versions)
        return Translation(wiring.program(made))


def read(path: Path, shown: str, over: object) -> WrittenCube:
    """The configuration of a file."""
    if not isinstance(over, Over):
        hint = 'write [cube.NAME] with over = "STREAM" and config = "FILE" in millstream.toml'
        raise UsageError("a configuration is of a cube over a stream", place=shown, hint=hint)
    return WrittenCube(read_source(path, shown), over, (over.name,))
