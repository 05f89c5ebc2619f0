"""A sheet as `--watch` draws it: its worksheets as tables that fit the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from millstream.calculus.sheets import HIDDEN_SHEET, Address, Fed, Sheet
from millstream.kernels.sheets.machine import SheetMachine, SheetState
from millstream.values.excel.constant_cells import ConstantCells
from millstream.values.excel.formats import formatted
from millstream.values.excel.syntax import column_name
from millstream.values.excel.values import Scalar, general
from millstream.values.instants import render_time

_BARS = "▁▂▃▄▅▆▇█"
_CURVE = 12
#: How far from the cells of a sheet what stands in the workbook is drawn with them.
_NEAR_ABOVE, _NEAR_LEFT = 3, 2
#: What a cell takes besides its text, and the lines of a table besides its rows.
_BORDER, _HEAD = 3, 5
_WIDEST = 32


@dataclass
class View:
    """Mutable: one instance of the sheet, and which cells have just ticked.

    `written` is what stands in the workbook; `dates` are the cells that hold dates.
    """

    sheet: Sheet
    inputs: tuple[str, ...]
    written: Mapping[Address, Scalar] = field(default_factory=dict)
    dates: frozenset[Address] = frozenset()
    state: SheetState = field(default_factory=SheetState)
    ticked: set[Address] = field(default_factory=set)
    rows: int = 0
    now: int = 0

    def __post_init__(self) -> None:
        self.constants = dict(self.written) | dict(self.sheet.constants)
        cells = ConstantCells(dict(self.sheet.constants), [c.address for c in self.sheet.cells])
        self.machine = SheetMachine(self.sheet.cells, cells, cells, uses_1904=self.sheet.uses_1904)
        self.fed = {c.address for c in self.sheet.cells if isinstance(c.rule, Fed)}
        self.live = [c.address for c in self.sheet.cells if c.address[0] != HIDDEN_SHEET]

    def fire(self, when: int, given: dict[Address, Scalar]) -> None:
        self.ticked = self.machine.compute(self.state, when, given)
        self.rows += 1
        self.now = when

    def drawn(self, key: str | None, width: int, height: int) -> RenderableType:
        """All worksheets that change, one below the other."""
        names = list(dict.fromkeys(a[0] for a in self.live))
        room = max(1, height // len(names) - _HEAD)
        title = (
            f"{names[0]}{f', {key}' if key else ''}: {self.rows:,} rows, at {render_time(self.now)}"
        )
        titles = [title, *names[1:]]
        tables = (self._table(name, width, room) for name in names)
        return Group(*(part for pair in zip(titles, tables, strict=True) for part in pair))

    def _table(self, sheet: str, width: int, room: int) -> Table:
        live = {a for a in self.live if a[0] == sheet}
        shown = live | self._near(sheet, live)
        rows, left_rows = self._rows(shown, live, room)
        columns, left_columns = self._columns(sheet, rows, shown, width)
        table = Table(caption=_left_out(left_rows, left_columns), show_lines=False)
        table.add_column("", style="dim", no_wrap=True)
        for column in columns:
            table.add_column(column_name(column), justify="right", no_wrap=True)
        for row in rows:
            cells = (self._cell((sheet, row, column)) for column in columns)
            table.add_row(str(row), *cells)
        return table

    def _near(self, sheet: str, live: set[Address]) -> set[Address]:
        """What stands above, left of and between the cells that change."""
        rows, columns = [a[1] for a in live], [a[2] for a in live]
        return {
            (name, row, column)
            for name, row, column in self.constants
            if name == sheet
            and min(rows) - _NEAR_ABOVE <= row <= max(rows)
            and min(columns) - _NEAR_LEFT <= column <= max(columns) + 1
        }

    def _rows(self, shown: set[Address], live: set[Address], room: int) -> tuple[list[int], int]:
        """The rows that fit, first those in which something changes; and how many do not."""
        rows = {a[1] for a in shown}
        changing = {a[1] for a in live}
        first = sorted(rows, key=lambda row: (row not in changing, row))
        return sorted(first[:room]), max(0, len(rows) - room)

    def _columns(
        self, sheet: str, rows: list[int], shown: set[Address], width: int
    ) -> tuple[list[int], int]:
        """The columns that fit, from the left; and how many do not."""
        low, high = min(a[2] for a in shown), max(a[2] for a in shown)
        left = width - len(str(rows[-1])) - _BORDER - 1
        fitting: list[int] = []
        for column in range(low, high + 1):
            texts = (self._cell((sheet, row, column)) for row in rows)
            left -= max(len(column_name(column)), *(t.cell_len for t in texts)) + _BORDER
            if left < 0 and fitting:
                break
            fitting.append(column)
        return fitting, high - low + 1 - len(fitting)

    def _cell(self, address: Address) -> Text:
        style = "cyan" if address in self.fed else ""
        if address in self.ticked:
            style = f"bold reverse {style}"
        if address in self.state.windows:
            return Text(_curve(list(self.state.windows[address].contents().values())), style)
        if address in self.state.values:
            return Text(self._shown(address, self.state.values[address]), style)
        if address in self.fed:
            return Text("")
        return Text(self._shown(address, self.constants.get(address)), "dim")

    def _shown(self, address: Address, value: Any) -> str:
        if value is None:
            return ""
        if isinstance(value, float):
            if address in self.dates and value >= 1:
                pattern = "yyyy-mm-dd" if value.is_integer() else "yyyy-mm-dd hh:mm:ss"
                return formatted(value, pattern, uses_1904=self.sheet.uses_1904)
            return general(round(value, 6))
        if isinstance(value, bool):
            return "TRUE" if value else "FALSE"
        text = str(value)
        return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 1]}…"


def _left_out(rows: int, columns: int) -> str | None:
    parts = [f"{n} more {what}{'' if n == 1 else 's'}" for n, what in ((rows, "row"),
             (columns, "column")) if n]  # fmt: skip
    return f"{' and '.join(parts)} in a larger terminal" if parts else None


def _curve(values: list[Scalar]) -> str:
    """The size of a window and its newest numbers as bars."""
    numbers = [v for v in values[-_CURVE:] if isinstance(v, float)]
    if not numbers:
        return f"#{len(values)}"
    low, high = min(numbers), max(numbers)
    scale = (len(_BARS) - 1) / (high - low) if high > low else 0.0
    return f"#{len(values)} " + "".join(_BARS[round((v - low) * scale)] for v in numbers)
