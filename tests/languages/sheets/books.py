"""Workbooks in memory and as files, for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import openpyxl
from openpyxl.worksheet.formula import ArrayFormula

from millstream.values.excel.recalculate import Recalculation
from millstream.values.excel.syntax import column_number
from millstream.values.excel.values import Scalar
from millstream.values.excel.workbook import Formula, Workbook, Worksheet, key_of

Cells = dict[str, Any]


def address(text: str) -> tuple[int, int]:
    letters = text.rstrip("0123456789")
    return int(text[len(letters) :]), column_number(letters)


def workbook(cells: Cells, **names: str) -> Workbook:
    """A workbook of one worksheet, `S`, or of several: `Other!A1`."""
    sheets: dict[str, Worksheet] = {"S": Worksheet("S")}
    for place, value in cells.items():
        sheet, _, cell = place.rpartition("!")
        worksheet = sheets.setdefault(sheet or "S", Worksheet(sheet or "S"))
        key = key_of(*address(cell))
        if isinstance(value, str) and value.startswith("{="):
            spot = address(cell)
            worksheet.formulas[key] = Formula(value[2:-1], array=(*spot, *spot))
        elif isinstance(value, str) and value.startswith("="):
            worksheet.formulas[key] = Formula(value[1:])
        else:
            is_whole = isinstance(value, int) and not isinstance(value, bool)
            worksheet.constants[key] = float(value) if is_whole else value
    return Workbook("t.xlsx", sheets, {(n.casefold(), None): t for n, t in names.items()})


def value(formula: str, cells: Cells | None = None, **names: str) -> Scalar:
    """What a formula in Z1 gives."""
    book = workbook({**(cells or {}), "Z1": formula}, **names)
    return Recalculation(book).read("S", 1, 26)


def save(path: Path, cells: Cells) -> Path:
    """A real `.xlsx` file; `{=...}` is an array formula."""
    book = openpyxl.Workbook()
    book.remove(book.worksheets[0])
    sheets: dict[str, Any] = {"S": book.create_sheet("S")}
    for place, given in cells.items():
        name, _, cell = place.rpartition("!")
        if (name or "S") not in sheets:
            sheets[name] = book.create_sheet(name)
        is_array = isinstance(given, str) and given.startswith("{=")
        sheets[name or "S"][cell] = ArrayFormula(cell, given[1:-1]) if is_array else given
    book.save(path)
    return path
