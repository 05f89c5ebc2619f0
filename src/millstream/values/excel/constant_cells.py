"""Cells that never change, for formulas of which the rest is kept elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from millstream.values.excel.arrays import Area, Array, Cells
from millstream.values.excel.indexes import AreaIndex, Indexes
from millstream.values.excel.syntax import Node
from millstream.values.excel.values import Scalar
from millstream.values.excel.workbook import Worksheet, key_of


class ConstantCells(Cells):
    """The `Cells` and `Names` of a sheet in which names have been replaced.

    `places` are further cells that ranges must see, because they will hold something.
    """

    def __init__(
        self,
        constants: Mapping[tuple[str, int, int], Scalar],
        places: Iterable[tuple[str, int, int]],
    ) -> None:
        self.sheets: dict[str, Worksheet] = {}
        # Formulas of a sheet are computed again and again.
        self.indexes = Indexes(searched=1)
        for (sheet, row, column), value in constants.items():
            self._sheet(sheet).constants[key_of(row, column)] = value
        for sheet, row, column in places:
            self._sheet(sheet).fill(key_of(row, column))

    def _sheet(self, name: str) -> Worksheet:
        return self.sheets.setdefault(name, Worksheet(name))

    def value(self, sheet: str, row: int, column: int) -> Scalar:
        worksheet = self.sheets.get(sheet)
        return None if worksheet is None else worksheet.constants.get(key_of(row, column))

    def window(self, sheet: str, row: int, column: int) -> Array:
        return Array(())

    def filled(self, area: Area) -> Iterator[tuple[int, int]]:
        worksheet = self.sheets.get(area.sheet)
        if worksheet is None:
            return iter(())
        return worksheet.filled(area.top, area.left, area.bottom, area.right)

    def extent(self, sheet: str) -> tuple[int, int]:
        worksheet = self.sheets.get(sheet)
        return (1, 1) if worksheet is None else worksheet.extent()

    def index(self, area: Area, *, is_to_last: bool = True) -> AreaIndex | None:
        """For areas in which all cells are constant; whoever keeps the others knows which."""
        return self.indexes.index(area, is_to_last=is_to_last)

    def sheet_names(self) -> list[str]:
        return list(self.sheets)

    def defined(self, name: str, sheet: str) -> Node | None:
        return None

    def reference(self, text: str, sheet: str, row: int) -> Node | None:
        return None  # computed references have been replaced, too
