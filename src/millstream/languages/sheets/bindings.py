"""How streams and cells are tied: attributes to cells, cells to attributes, keys and times."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from millstream.calculus.types import Field, Schema, Type


@dataclass(frozen=True, slots=True)
class Binding:
    """An attribute and the cell it is written to or read from; `place` is for messages.

    `type` is that of an attribute that is read from a cell, if it is said.
    """

    attribute: str
    cell: str
    place: str | None = None
    type: Type | None = None


@dataclass(frozen=True, slots=True)
class InputBinding:
    """One input: its cells, its partitioning key, its time, and its columns if known."""

    stream: str
    cells: tuple[Binding, ...] = ()
    key: str | None = None
    time: str | None = None
    columns: Schema = field(default_factory=Schema)
    slack: int = 0

    def with_cell(self, binding: Binding, type_: Type, role: str) -> InputBinding:
        cells = (*self.cells, binding) if binding.cell else self.cells
        columns = self.columns
        is_time = role == "time"
        if binding.attribute not in columns and not (is_time and not binding.cell):
            columns = Schema((*columns.fields, Field(binding.attribute, type_)))
        return replace(
            self,
            cells=cells,
            columns=columns,
            key=binding.attribute if role == "partition" else self.key,
            time=binding.attribute if is_time else self.time,
        )


@dataclass(frozen=True, slots=True)
class OutputBinding:
    """One output: the cells of its attributes."""

    stream: str
    cells: tuple[Binding, ...] = ()

    def with_cell(self, binding: Binding) -> OutputBinding:
        return replace(self, cells=(*self.cells, binding))


@dataclass(frozen=True, slots=True)
class Bindings:
    """All inputs and outputs of a sheet."""

    inputs: tuple[InputBinding, ...]
    outputs: tuple[OutputBinding, ...]
    fires_per_instant: bool = False
