"""Where values stand in areas that do not change, so that a search need not look at all of them."""

from __future__ import annotations

from functools import cached_property

from millstream.values.excel.arrays import Area
from millstream.values.excel.gather import equality_key, value_keys
from millstream.values.excel.values import ErrorValue, Scalar, folded, order_of

#: Where formulas are computed once, small areas are searched: an index would take longer.
SEARCHED = 64
#: No more cells than this are kept in indexes of one workbook.
_MOST = 10_000_000

Place = tuple[int, int, Scalar]


class AreaIndex:
    """The values of an area, and where each stands; built as far as it is asked for."""

    def __init__(self, area: Area) -> None:
        self.area = area

    @cached_property
    def given(self) -> list[Place]:
        """Row and column in the area, and the value, of what is not empty; row by row."""
        area = self.area
        value, sheet = area.cells.value, area.sheet
        return [
            (row - area.top, column - area.left, value(sheet, row, column))
            for row, column in area.cells.filled(area)
        ]

    @cached_property
    def values(self) -> list[Scalar]:
        """The values that are not empty, row by row."""
        return [value for _, _, value in self.given if value is not None]

    @cached_property
    def line(self) -> list[Scalar]:
        """All values of a row or a column, empty ones too."""
        return list(self.area.to_array().values())

    @cached_property
    def ends_of_runs(self) -> list[int]:
        """For every place of the line, the last of the equal values from there on.

        What is of another kind than its neighbours, such as an empty cell, does not end a run.
        """
        line = self.line
        ends = list(range(len(line)))
        later: dict[type, int] = {}
        for place in range(len(line) - 1, -1, -1):
            value = line[place]
            following = later.get(type(value))
            if following is not None and type(value) is not ErrorValue:
                if order_of(value, line[following]) == 0:
                    ends[place] = ends[following]
            later[type(value)] = place
        return ends

    @cached_property
    def _first(self) -> dict[tuple[type, Scalar], int]:
        places: dict[tuple[type, Scalar], int] = {}
        for i, j, value in self.given:
            text = folded(value) if type(value) is str else value
            places.setdefault((type(value), text), max(i, j))
        return places

    def first(self, value: Scalar) -> int | None:
        """The first place of a value in a row or a column; capitals do not matter."""
        return self._first.get((type(value), folded(value) if type(value) is str else value))

    @cached_property
    def _by_key(self) -> dict[object, list[Place]]:
        by_key: dict[object, list[Place]] = {}
        for place in self.given:
            for key in value_keys(place[2]):
                by_key.setdefault(key, []).append(place)
        return by_key

    def candidates(self, wanted: Scalar) -> list[Place] | None:
        """All places that can meet a criterion; None if it is not one of equality."""
        key = equality_key(wanted)
        return None if key is None else self._by_key.get(key, [])


class Indexes:
    """Mutable: the indexes of areas that have been searched."""

    def __init__(self, *, searched: int = SEARCHED) -> None:
        #: Areas of up to so many cells are searched, not indexed.
        self.searched = searched
        self._found: dict[tuple[str, int, int, int, int], AreaIndex] = {}
        self._seen: set[tuple[str, int, int, int, int]] = set()
        self._cells = 0

    def index(self, area: Area, *, is_to_last: bool = True) -> AreaIndex | None:
        """The index of an area whose cells do not change; None for a small one.

        One that is not known `is_to_last` is made when the area is asked for again.
        """
        if area.height * area.width <= self.searched:
            return None
        key = (area.sheet, area.top, area.left, area.bottom, area.right)
        index = self._found.get(key)
        if index is None and not is_to_last and key not in self._seen:
            if len(self._seen) < _MOST // SEARCHED:
                self._seen.add(key)
            return None
        if index is None:
            inside = area.clipped()
            self._cells += inside.height * inside.width
            if self._cells > _MOST:
                self._found.clear()
                self._cells = inside.height * inside.width
            index = self._found[key] = AreaIndex(area)
        return index
