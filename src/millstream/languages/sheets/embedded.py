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
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from millstream.calculus.sheets import Address, Fed, Windows, address_text
from millstream.calculus.types import NUMBER, Type
from millstream.errors import CheckError, RunError, UsageError, listing, suggest
from millstream.kernels.sheets.machine import SheetMachine, SheetState
from millstream.languages.sheets.bulk import Bulk, Column, columns_of, type_of
from millstream.languages.sheets.flatten import Flattened, flatten
from millstream.languages.sheets.given import Given, all_micros, micros_of, scalar_of
from millstream.languages.sheets.read import read_workbook
from millstream.languages.sheets.streams import first_sheet, input_cells
from millstream.values.excel.recalculate import Recalculation
from millstream.values.excel.syntax import MAX_COLUMN, MAX_ROW, Cell, column_number
from millstream.values.excel.values import ErrorValue, Scalar
from millstream.values.excel.workbook import Workbook, key_of, place_of

_ADDRESS = re.compile(r"\$?([A-Za-z]{1,3})\$?([1-9]\d{0,6})")

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
        #: The compiled sheet, once rows have come in bulk.
        self._bulk: Bulk | None = None
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
        self._given[address] = scalar_of(value, uses_1904=self._workbook.uses_1904)

    def compute(self, time: float | dt.datetime) -> None:
        """Let all values given since the last call arrive at a time.

        A time is whole microseconds, or a float in seconds, or a `datetime`.
        """
        now = micros_of(time)
        self._check_time(now)
        given, self._given = self._given, {}
        if self._bulk is not None:
            columns = {address: [value] for address, value in given.items()}
            self._fresh |= self._bulk.fire(np.array([now]), columns).keys() if given else set()
        else:
            self._fresh |= self._prepared().compute(self._state, now, given)
        self._time = now

    def set_rows(
        self,
        cells: Sequence[str],
        rows: Sequence[Sequence[Given]] | Mapping[str, Column],
        times: Iterable[float | dt.datetime] | Any,
        get: Sequence[str],
    ) -> dict[str, list[Scalar]]:
        """Let many rows of values for some cells arrive, each at its time, and be computed.

        `rows` may also be columns, by cell. Answers what the cells to `get` hold after each row;
        errors are None. The sheet is compiled for this: it must not have computed anything before,
        and what it does not get at the first call it cannot get later.
        """
        inputs = [self._address(cell) for cell in cells]
        given = dict(zip(inputs, columns_of(cells, rows), strict=True))
        moments = all_micros(times)
        if any(len(column) != len(moments) for column in given.values()):
            raise UsageError(f"there are {len(moments):,} times, and another number of rows")
        for address in inputs:
            if address not in self._inputs:
                self._add_input(address)
        read = {cell: self._address(cell) for cell in get}
        bulk = self._in_bulk(given, list(read.values()))
        if len(moments) and given:
            self._check_time(int(moments[0]))
            if (np.diff(moments) < 0).any():
                raise RunError("the times of rows must not go back", place=self._workbook.file)
            answers = bulk.fire(moments, given)
            self._fresh |= answers.keys()
            self._time = int(moments[-1])
        else:
            answers = {}
        return {
            cell: answers[address] if address in answers else [self._last(address)] * len(moments)
            for cell, address in read.items()
        }

    def _check_time(self, now: int) -> None:
        if self._time is not None and now < self._time:
            raise RunError(
                f"time has gone back, from {self._time} to {now} microseconds",
                place=self._workbook.file,
            )

    def _in_bulk(self, given: Mapping[Address, Column], read: list[Address]) -> Bulk:
        """The compiled sheet; made for the first rows, of which it learns what cells hold."""
        if self._bulk is None:
            if self._time is not None:
                raise UsageError(
                    "this sheet has computed already, tuple by tuple",
                    hint="give rows in bulk from the start: load the workbook anew",
                )
            changing = self._prepared().live.changing
            types = {a: self._input_type(a, given.get(a)) for a in self._inputs}
            outputs = dict.fromkeys(a for a in read if a in changing and a not in self._inputs)
            if not outputs:
                raise UsageError("none of the cells to get is computed of what is given")
            self._bulk = Bulk(self._workbook, types, list(outputs))
        for address in read:
            self._check_read(address, self._bulk)
        return self._bulk

    def _check_read(self, address: Address, bulk: Bulk) -> None:
        is_live = address in self._prepared().live.changing and address not in self._inputs
        if is_live and address not in bulk.read:
            raise UsageError(
                f"{address_text(address)} was not among the cells to get when rows first came",
                hint="name all cells that will be read in the first call of set_rows",
            )
        if address in self._inputs:
            raise UsageError(f"{address_text(address)} is given, and need not be got")

    def _input_type(self, address: Address, column: Column | None) -> Type:
        """What a cell is given, or else what stands in it as a sample."""
        type_given = None if column is None else type_of(column)
        if type_given is not None:
            return type_given
        sheet, row, column_number_ = address
        sample = self._workbook.sheets[sheet].constants.get(key_of(row, column_number_))
        return (None if sample is None else type_of([sample])) or NUMBER

    def _last(self, address: Address) -> Scalar:
        assert self._bulk is not None
        if address in self._bulk.read:
            return self._bulk.values.get(address)
        return self._static.read(*address)

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
        if self._bulk is not None:
            self._check_read(address, self._bulk)
            return self._last(address), has_ticked
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
        if self._bulk is not None:
            raise UsageError(
                f"{address_text(address)} was no input when rows first came",
                hint="name it in the inputs of load",
            )
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
