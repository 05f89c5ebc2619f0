"""What formulas work on besides scalars: arrays, and areas of cells.

An area knows where it is and asks the workbook for its cells, sparsely: one stray cell at
XFD1048576 must not make a column a million cells long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from millstream.values.excel.values import NUM, Raised, Scalar

if TYPE_CHECKING:
    from millstream.values.excel.indexes import AreaIndex
    from millstream.values.excel.syntax import Node

#: No formula may build an array larger than this.
MAX_ARRAY = 5_000_000
_SMALL = 65_536


class Cells(Protocol):
    """Whoever knows the current values of cells; what need not be known is said below."""

    def value(self, sheet: str, row: int, column: int) -> Scalar: ...

    def filled(self, area: Area) -> Iterator[tuple[int, int]]:
        """Row and column of the cells of an area that are not empty, row by row."""
        ...

    def extent(self, sheet: str) -> tuple[int, int]:
        """The last row and the last column of a worksheet that hold something."""
        ...

    def window(self, sheet: str, row: int, column: int) -> Array:
        """The values in the window that a cell holds, oldest first, as a column."""
        ...

    def kept_aggregate(
        self, function: str, count: int, sheet: str, row: int, column: int
    ) -> Callable[..., tuple[Scalar] | None] | None:
        """An aggregate of a window, of so many other values, if it is kept up to date.

        It gives a tuple of one, or None where the window must be looked at after all.
        """
        return None

    def index(self, area: Area, *, is_to_last: bool = True) -> AreaIndex | None:
        """Where values stand in an area that does not change, if that is known.

        Whoever only wants to walk through it says that it need not last.
        """
        return None

    def formula(self, sheet: str, row: int, column: int) -> Node | None:
        """The formula in a cell of a workbook, where that is known."""
        return None

    def sheet_names(self) -> list[str]: ...

    def is_hidden(self, sheet: str, row: int, *, by_filter: bool) -> bool:
        """Was a row hidden when the workbook was saved, or was it hidden by a filter?"""
        return False

    def is_subtotal(self, sheet: str, row: int, column: int) -> bool:
        """Does a formula with SUBTOTAL stand there?"""
        return False


@dataclass(frozen=True, slots=True)
class Array:
    """A rectangle of scalars; may have no rows. A window is a column of its values."""

    rows: tuple[tuple[Scalar, ...], ...]
    is_window: bool = False

    @property
    def height(self) -> int:
        return len(self.rows)

    @property
    def width(self) -> int:
        return len(self.rows[0]) if self.rows else 1

    def at(self, row: int, column: int) -> Scalar:
        return self.rows[row][column]

    def values(self) -> Iterator[Scalar]:
        for row in self.rows:
            yield from row

    def given(self) -> Iterator[Scalar]:
        """The values that are not empty."""
        return (v for v in self.values() if v is not None)

    def to_array(self) -> Array:
        return self

    def part(self, top: int, left: int, height: int, width: int) -> Array:
        return Array(tuple(r[left : left + width] for r in self.rows[top : top + height]))


@dataclass(frozen=True, slots=True)
class Area:
    """A rectangle of cells of a worksheet, both ends included."""

    cells: Cells
    sheet: str
    top: int
    left: int
    bottom: int
    right: int

    @property
    def height(self) -> int:
        return self.bottom - self.top + 1

    @property
    def width(self) -> int:
        return self.right - self.left + 1

    def at(self, row: int, column: int) -> Scalar:
        return self.cells.value(self.sheet, self.top + row, self.left + column)

    def index(self, *, is_to_last: bool = True) -> AreaIndex | None:
        """Where values stand in it, if whoever knows the cells keeps that."""
        return self.cells.index(self, is_to_last=is_to_last)

    def given(self) -> Iterator[Scalar]:
        index = self.index(is_to_last=False)
        if index is not None:
            yield from index.values
            return
        for row, column in self.cells.filled(self):
            value = self.cells.value(self.sheet, row, column)
            if value is not None:
                yield value

    def values(self) -> Iterator[Scalar]:
        """All values, empty ones too, as far as the worksheet reaches."""
        return self.to_array().values()

    def clipped(self) -> Area:
        """The part that can hold anything, at least one cell; small areas stay as they are."""
        if self.height * self.width <= _SMALL:
            return self
        bottom, right = self.cells.extent(self.sheet)
        return Area(self.cells, self.sheet, self.top, self.left,
                    max(self.top, min(self.bottom, bottom)),
                    max(self.left, min(self.right, right)))  # fmt: skip

    def to_array(self) -> Array:
        area = self.clipped()
        if area.height * area.width > MAX_ARRAY:
            raise Raised(NUM)
        value, sheet = self.cells.value, self.sheet
        columns = range(area.left, area.right + 1)
        return Array(
            tuple(
                tuple(value(sheet, row, column) for column in columns)
                for row in range(area.top, area.bottom + 1)
            )
        )

    def part(self, top: int, left: int, height: int, width: int) -> Area:
        first_row, first_column = self.top + top, self.left + left
        return Area(self.cells, self.sheet, first_row, first_column,
                    first_row + height - 1, first_column + width - 1)  # fmt: skip

    @property
    def is_cell(self) -> bool:
        return self.top == self.bottom and self.left == self.right


class FixedArea(Area):
    """An area in which nothing changes: what functions make of it is made once."""

    @cached_property
    def _whole(self) -> Array:
        return Area.to_array(self)

    @cached_property
    def _given(self) -> tuple[Scalar, ...]:
        return tuple(Area.given(self))

    @cached_property
    def _parts(self) -> dict[tuple[int, int, int, int], Area]:
        return {}

    @cached_property
    def _index(self) -> AreaIndex | None:
        return Area.index(self)

    def index(self, *, is_to_last: bool = True) -> AreaIndex | None:
        return self._index

    def to_array(self) -> Array:
        return self._whole

    def given(self) -> Iterator[Scalar]:
        return iter(self._given)

    def part(self, top: int, left: int, height: int, width: int) -> Area:
        if height * width == 1:
            return Area.part(self, top, left, height, width)
        key = (top, left, height, width)
        known = self._parts.get(key)
        if known is None:
            known = self._parts[key] = fixed(Area.part(self, top, left, height, width))
        return known


def fixed(area: Area) -> FixedArea:
    return FixedArea(area.cells, area.sheet, area.top, area.left, area.bottom, area.right)


@dataclass(frozen=True, slots=True)
class Union:
    """Several areas, `(A1:A3,C1:C3)`."""

    areas: tuple[Area, ...]

    def given(self) -> Iterator[Scalar]:
        for area in self.areas:
            yield from area.given()

    def values(self) -> Iterator[Scalar]:
        for area in self.areas:
            yield from area.values()


Table = Array | Area
Operand = Scalar | Array | Area | Union


def column_of(values: list[Scalar] | tuple[Scalar, ...]) -> Array:
    return Array(tuple(zip(values)))


def window_of(values: list[Scalar] | tuple[Scalar, ...]) -> Array:
    return Array(tuple(zip(values)), is_window=True)
