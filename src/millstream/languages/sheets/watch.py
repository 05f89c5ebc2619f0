"""`millstream run --watch`: a worksheet in the terminal, with the live values of one key.

The rows of that key run through the sheet in order of time; cells that have just changed are
highlighted, and a window is shown as its size and a small curve. The labels beside them, which
the program does not need, are read from the workbook again.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from millstream import api
from millstream.calculus.functions import Duplicate, Map
from millstream.calculus.graph import Operator, Program
from millstream.calculus.sheets import HIDDEN_SHEET, Address, Fed, Sheet
from millstream.calculus.types import Value
from millstream.errors import UsageError
from millstream.kernels.sheets.machine import SheetMachine, SheetState
from millstream.languages.sheets.read import read_workbook
from millstream.meaning.sheet_values import to_cell
from millstream.values.excel.constant_cells import ConstantCells
from millstream.values.excel.syntax import column_name
from millstream.values.excel.values import Scalar, general
from millstream.values.excel.workbook import place_of
from millstream.values.instants import render_time

_BARS = "▁▂▃▄▅▆▇█"
_CURVE = 12
_FRAMES_PER_SECOND = 10
#: How far from the cells of a sheet labels are looked for.
_LABELS_ABOVE, _LABELS_LEFT = 3, 2


def view(
    arguments: argparse.Namespace, inputs: Mapping[str, str], compiled: Callable[[], api.Compiled]
) -> None:
    replay(compiled(), inputs, arguments.key)


def replay(compiled: api.Compiled, inputs: Mapping[str, api.InputGiven], key: str | None) -> None:
    """Show the inputs of one key running through the first sheet that reads streams directly."""
    op, names = _sheet(compiled.program)
    assert isinstance(op.function, Sheet)
    view = _View(op.function, names, labels=_labels(op))
    events = list(_events(compiled, view, inputs, key))
    if not events:
        of_key = f' of the key "{key}"' if key else ""
        raise UsageError(f"there are no rows{of_key} to watch")
    console = Console()
    if not console.is_terminal:
        for when, given in events:
            view.fire(when, given)
        console.print(view.drawn(key))
        return
    with Live(console=console, refresh_per_second=_FRAMES_PER_SECOND) as live:
        shown = 0.0
        for when, given in events:
            view.fire(when, given)
            if time.monotonic() - shown > 1 / _FRAMES_PER_SECOND:
                shown = time.monotonic()
                live.update(view.drawn(key))
        live.update(view.drawn(key))


def _sheet(program: Program) -> tuple[Operator, tuple[str, ...]]:
    """The first sheet whose inputs are inputs of the program, and their names."""
    for op in program.operators:
        if isinstance(op.function, Sheet):
            sources = [_source(program, queue) for queue in op.inputs]
            if all(s is not None for s in sources):
                return op, tuple(s for s in sources if s is not None)
    raise UsageError("there is no sheet to watch", hint="--watch shows a sheet that reads streams")


def _labels(op: Operator) -> dict[Address, str]:
    """The texts in the workbook that a sheet was made of, if it is still there."""
    if op.origin is None or not Path(op.origin.source.name).is_file():
        return {}
    workbook = read_workbook(Path(op.origin.source.name))
    return {
        (name, *place_of(key)): value
        for name, sheet in workbook.sheets.items()
        for key, value in sheet.constants.items()
        if type(value) is str
    }


def _source(program: Program, queue: str) -> str | None:
    producers = program.producers()
    while queue in producers:
        op = producers[queue]
        if not isinstance(op.function, (Duplicate, Map)):
            return None
        queue = op.inputs[0]
    return queue


def _events(
    compiled: api.Compiled, view: _View, inputs: Mapping[str, api.InputGiven], key: str | None
) -> Iterator[tuple[int, dict[Address, Scalar]]]:
    """What arrives in the cells of one key, in order."""
    read = compiled.read_inputs(inputs)
    schemas = {one.name: one.type.schema for one in compiled.program.inputs}
    merged = sorted(
        ((event.time, index, event.row) for index, name in enumerate(view.inputs)
         for event in read[name]),
        key=lambda arrival: arrival[:2],
    )  # fmt: skip
    wanted: Value | str | None = key
    for when, index, row in merged:
        schema = schemas[view.inputs[index]]
        values = dict(zip(schema.names, row, strict=True))
        if view.sheet.keys:
            row_key = values[view.sheet.keys[index]]
            if wanted is None:
                wanted = str(row_key)
            if str(row_key) != wanted:
                continue
        yield (
            when,
            {
                address: to_cell(values[column], schema[column], uses_1904=view.sheet.uses_1904)
                for address, column in view.sheet.fed(index)
            },
        )


@dataclass
class _View:
    """Mutable: one instance of the sheet, and which cells have just ticked."""

    sheet: Sheet
    inputs: tuple[str, ...]
    labels: Mapping[Address, str] = field(default_factory=dict)
    state: SheetState = field(default_factory=SheetState)
    ticked: set[Address] = field(default_factory=set)
    rows: int = 0
    now: int = 0

    def __post_init__(self) -> None:
        self.constants = dict(self.sheet.constants)
        cells = ConstantCells(self.constants, [c.address for c in self.sheet.cells])
        self.machine = SheetMachine(self.sheet.cells, cells, cells, uses_1904=self.sheet.uses_1904)

    def fire(self, when: int, given: dict[Address, Scalar]) -> None:
        self.ticked = self.machine.compute(self.state, when, given)
        self.rows += 1
        self.now = when

    def drawn(self, key: str | None) -> Table:
        places = [c.address for c in self.sheet.cells if c.address[0] != HIDDEN_SHEET]
        sheet = places[0][0]
        shown = {a for a in (*places, *self.constants) if a[0] == sheet}
        shown |= self._labels_near(shown)
        fed = {c.address for c in self.sheet.cells if isinstance(c.rule, Fed)}
        columns = range(min(a[2] for a in shown), max(a[2] for a in shown) + 1)
        title = (
            f"{sheet}{f', {key}' if key else ''}: {self.rows:,} rows, at {render_time(self.now)}"
        )
        table = Table(title=title, show_lines=False)
        table.add_column("", style="dim")
        for column in columns:
            table.add_column(column_name(column), justify="right")
        for row in sorted({a[1] for a in shown}):
            cells = (self._cell((sheet, row, column), fed) for column in columns)
            table.add_row(str(row), *cells)
        return table

    def _labels_near(self, shown: set[Address]) -> set[Address]:
        """Labels above, left of and between the cells that are drawn."""
        rows, columns = [a[1] for a in shown], [a[2] for a in shown]
        sheet = next(iter(shown))[0]
        return {
            (name, row, column)
            for name, row, column in self.labels
            if name == sheet
            and min(rows) - _LABELS_ABOVE <= row <= max(rows)
            and min(columns) - _LABELS_LEFT <= column <= max(columns) + 1
        }

    def _cell(self, address: Address, fed: set[Address]) -> Text:
        style = "cyan" if address in fed else ""
        if address in self.ticked:
            style = f"bold reverse {style}"
        if address in self.state.windows:
            return Text(_curve(list(self.state.windows[address].contents().values())), style)
        if address in self.state.values:
            return Text(_shown(self.state.values[address]), style)
        if address in fed:
            return Text("")
        return Text(_shown(self.constants.get(address, self.labels.get(address))), "dim")


def _shown(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return general(round(value, 6))
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    return str(value)


def _curve(values: list[Scalar]) -> str:
    """The size of a window and its newest numbers as bars."""
    numbers = [v for v in values[-_CURVE:] if isinstance(v, float)]
    if not numbers:
        return f"#{len(values)}"
    low, high = min(numbers), max(numbers)
    scale = (len(_BARS) - 1) / (high - low) if high > low else 0.0
    return f"#{len(values)} " + "".join(_BARS[round((v - low) * scale)] for v in numbers)
