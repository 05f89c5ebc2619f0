"""Spreadsheets inside other programs.

>>> sheet = millstream.sheets.load("vwap.xlsx")  # doctest: +SKIP
>>> sheet.set("B3", 196.73)  # doctest: +SKIP
>>> sheet.set("C3", 736)  # doctest: +SKIP
>>> sheet.compute(1_000_000)  # doctest: +SKIP
>>> sheet.get("G12")  # doctest: +SKIP
(196.73, True)
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Iterable
from pathlib import Path

from millstream.calculus.sheets import Address, Fed, Windows
from millstream.errors import CheckError, RunError, UsageError, listing, suggest
from millstream.kernels.sheets.machine import SheetMachine, SheetState
from millstream.languages.sheets.flatten import Flattened, flatten
from millstream.languages.sheets.read import read_workbook
from millstream.languages.sheets.streams import first_sheet, input_cells
from millstream.values.excel.recalculate import Recalculation
from millstream.values.excel.syntax import MAX_COLUMN, MAX_ROW, Cell, column_number
from millstream.values.excel.values import ErrorValue, Scalar
from millstream.values.excel.workbook import Workbook, key_of, place_of

_ADDRESS = re.compile(r"\$?([A-Za-z]{1,3})\$?([1-9]\d{0,6})")

#: What a cell can be given: None empties it.
Given = float | int | str | bool | dt.datetime | None

__all__ = ["ErrorValue", "Sheet", "load"]


def load(path: str | Path, inputs: Iterable[str] = ()) -> Sheet:
    """A workbook ready to be computed.

    `inputs` are cells that streams will fill. They have no value until they are given one,
    whatever sample stands in the workbook. A cell that is `set` becomes an input too, as do
    those that a worksheet named `streams` binds.
    """
    workbook = read_workbook(Path(path), str(path))
    return Sheet(workbook, inputs)


class Sheet:
    """Mutable: one instance of a spreadsheet, to which values are given as time passes.

    Before a cell is given a value the sheet is static: every cell can be read at once.
    """

    def __init__(self, workbook: Workbook, inputs: Iterable[str] = ()) -> None:
        self._workbook = workbook
        self._static = Recalculation(workbook)
        self._inputs: dict[Address, Fed] = {}
        self._given: dict[Address, Scalar] = {}
        self._fresh: set[Address] = set()
        self._state = SheetState()
        self._time: int | None = None
        self._flattened: Flattened | None = None
        self._machine: SheetMachine | None = None
        for cell in (*input_cells(workbook), *inputs):
            self._add_input(self._address(cell))

    @property
    def sheet_names(self) -> tuple[str, ...]:
        return tuple(self._workbook.sheets)

    def set(self, cell: str, value: Given) -> None:
        """Give a cell a value; it takes effect with the next `compute`."""
        address = self._address(cell)
        if address not in self._inputs:
            self._add_input(address)
        self._given[address] = _scalar(value)

    def compute(self, time: float | dt.datetime) -> None:
        """Let all values given since the last call arrive at a time.

        A time is whole microseconds, or a float in seconds, or a `datetime`.
        """
        now = _micros(time)
        if self._time is not None and now < self._time:
            raise RunError(
                f"time has gone back, from {self._time} to {now} microseconds",
                place=self._workbook.file,
            )
        machine = self._prepared()
        self._time = now
        given, self._given = self._given, {}
        self._fresh |= machine.compute(self._state, now, given)

    def get(self, cell: str) -> tuple[Scalar | list[Scalar], bool]:
        """The value of a cell, and whether it has ticked since it was last asked for.

        A number is a float, an error an `ErrorValue` that reads like Excel's `#DIV/0!`. A
        cell that has no value yet, or is empty, is None; a window is the list of its values.
        """
        address = self._address(cell)
        has_ticked = address in self._fresh
        self._fresh.discard(address)
        if not self._inputs:
            return self._static.read(*address), False
        machine = self._prepared()
        assert self._flattened is not None
        fault = self._flattened.broken.get(address)
        if fault is not None:
            raise CheckError(fault)
        if address not in machine.live.changing:
            return self._static.read(*address), False
        if address in self._windows:
            buffer = self._state.windows.get(address)
            return (list(buffer.contents().values()) if buffer else None), has_ticked
        return self._state.values.get(address), has_ticked

    def is_absent(self, cell: str) -> bool:
        """Has the cell never ticked? An empty cell is something else."""
        address = self._address(cell)
        machine = self._prepared()
        if address in machine.live.changing:
            return address not in self._state.values and address not in self._state.windows
        return False

    # --- inside ---

    def _address(self, cell: str) -> Address:
        sheet_name, mark, rest = cell.rpartition("!")
        if not mark:
            sheet = first_sheet(self._workbook)
        else:
            wanted = sheet_name.strip("'").replace("''", "'")
            known = self._workbook.sheet_name(wanted)
            if known is None:
                names = listing(self._workbook.sheets)
                near = suggest(wanted, self._workbook.sheets)
                raise UsageError(
                    f'{self._workbook.file} has no worksheet "{wanted}"',
                    hint=f"it has: {names}. {near or ''}".strip(),
                )
            sheet = known
        match = _ADDRESS.fullmatch(rest.strip())
        if match is None:
            named = self._workbook.defined(rest.strip(), sheet)
            if isinstance(named, Cell):
                return named.sheet, named.row, named.column
            raise UsageError(
                f'"{cell}" is no address of a cell, nor the name of one',
                hint='write "B3" or "Sheet2!B3"',
            )
        row, column = int(match[2]), column_number(match[1])
        if row > MAX_ROW or column > MAX_COLUMN:
            raise UsageError(f'"{cell}" lies outside a worksheet')
        return sheet, row, column

    def _add_input(self, address: Address) -> None:
        sheet, row, column = address
        worksheet = self._workbook.sheets[sheet]
        key = key_of(row, column)
        if worksheet.is_formula(key):
            raise UsageError(
                "a cell with a formula cannot be given a value",
                place=self._workbook.place(sheet, key),
            )
        # A place for it, so that ranges see a cell that was empty in the file.
        worksheet.fill(key)
        self._inputs[address] = Fed(len(self._inputs), "")
        self._flattened = self._machine = None

    def _prepared(self) -> SheetMachine:
        """The machine for the inputs known so far."""
        if self._machine is None:
            roots = [
                (name, *place_of(key))
                for name, sheet in self._workbook.sheets.items()
                for key in (*sheet.formulas, *sheet.spilled)
            ]
            self._flattened = flatten(self._workbook, self._inputs, [*self._inputs, *roots])
            cells = self._flattened.cells
            self._windows = {c.address for c in cells if isinstance(c.rule, Windows)}
            self._machine = SheetMachine(
                cells, self._static, self._workbook, uses_1904=self._workbook.uses_1904
            )
        return self._machine


def _scalar(value: Given) -> Scalar:
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, dt.datetime):
        return _serial(value)
    number = float(value)
    if not math.isfinite(number):
        raise UsageError(f"{value!r} is no number that a cell can hold")
    return number + 0.0  # there is no minus zero


def _serial(value: dt.datetime) -> float:
    since = value.replace(tzinfo=None) - dt.datetime(1899, 12, 30)  # noqa: DTZ001 - as Excel counts
    return since.total_seconds() / 86400


def _micros(time: float | dt.datetime) -> int:
    if isinstance(time, dt.datetime):
        aware = time if time.tzinfo else time.replace(tzinfo=dt.UTC)
        return round((aware - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)).total_seconds() * 1_000_000)
    if isinstance(time, bool) or not isinstance(time, (int, float)):
        raise UsageError(f"{time!r} is no time", hint="give microseconds, or seconds as a float")
    return time if isinstance(time, int) else round(time * 1_000_000)
