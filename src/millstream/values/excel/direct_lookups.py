"""Lookups in areas that never change, as functions of what is looked for.

`MATCH(A3, Items!A2:A1001, 0)` asks an index where a value stands, and `XLOOKUP` and `INDEX` take a
value from a list: nothing is decided anew. What is not plain goes the general way.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from millstream.values.excel.arrays import MAX_ARRAY, FixedArea, fixed
from millstream.values.excel.functions_lookup import exact_place
from millstream.values.excel.gather import has_wildcards
from millstream.values.excel.values import NA, Scalar, fail, folded

Part = Callable[[Sequence[Scalar]], Any]
#: The place of a value in a row or column, from zero on; -1 if it is not there, None if the general
#: way must tell.
Find = Callable[[Scalar], int | None]
#: Stands for an argument that is not known beforehand.
OPEN = object()


def _match(known: Sequence[Any], parts: Sequence[Part], general: Part) -> Part | None:
    mode = known[2] if len(known) > 2 else 1.0
    find = _finder(known[1], mode, wildcards=True)
    if find is None:
        return None
    wanted, place_of = parts[0], find

    def place(values: Sequence[Scalar]) -> Any:
        there = place_of(wanted(values))
        if there is None:
            return general(values)
        return float(there + 1) if there >= 0 else fail(NA)

    return place


def _xlookup(known: Sequence[Any], parts: Sequence[Part], general: Part) -> Part | None:
    mode = known[4] if len(known) > 4 else 0.0
    direction = known[5] if len(known) > 5 else 1.0
    line = _line(known[2])
    find = _finder(known[1], mode, wildcards=False) if direction == 1.0 and mode == 0.0 else None
    if find is None or line is None or not _are_alike(known[1], known[2]):
        return None
    missing = parts[3] if len(parts) > 3 else None
    return _taken(parts[0], find, line, general, missing)


def _lookup_in_table(known: Sequence[Any], parts: Sequence[Part], general: Part) -> Part | None:
    """VLOOKUP."""
    area, column = known[1], known[2]
    near = known[3] if len(known) > 3 else True
    if not _is_kept(area) or type(column) is not float or type(near) not in (bool, float):
        return None
    place = int(column) - 1
    if not 0 <= place < area.width:
        return None
    find = _finder(_column(area, 0), 1.0 if near else 0.0, wildcards=True)
    line = _line(_column(area, place))
    return None if find is None or line is None else _taken(parts[0], find, line, general)


def _index(known: Sequence[Any], parts: Sequence[Part], general: Part) -> Part | None:
    area = known[0]
    if not _is_kept(area) or not 2 <= len(parts) <= 3:
        return None
    rows = area.to_array().rows
    if len(parts) == 2:
        line = _line(area)
        if line is None:
            return None
        number = parts[1]

        def element(values: Sequence[Scalar]) -> Any:
            n = int(number(values))
            return line[n - 1] if 1 <= n <= len(line) else general(values)

        return element
    down, across, height, width = parts[1], parts[2], len(rows), area.to_array().width

    def cell(values: Sequence[Scalar]) -> Any:
        i, j = int(down(values)), int(across(values))
        return rows[i - 1][j - 1] if 1 <= i <= height and 1 <= j <= width else general(values)

    return cell


#: From the arguments that are known beforehand, all of them as functions, and the general way.
LOOKUPS: dict[str, Callable[[Sequence[Any], Sequence[Part], Part], Part | None]] = {
    "INDEX": _index, "MATCH": _match, "VLOOKUP": _lookup_in_table, "XLOOKUP": _xlookup,
}  # fmt: skip


# --- where a value stands ---------------------------------------------------------------


def _taken(
    wanted: Part, find: Find, line: Sequence[Scalar], general: Part, missing: Part | None = None
) -> Part:
    """The value of a line at the place where something else is found; else what is `missing`."""
    size = len(line)

    def taken(values: Sequence[Scalar]) -> Any:
        place = find(wanted(values))
        if place is None or place >= size:
            return general(values)
        if place >= 0:
            return line[place]
        if missing is None:
            fail(NA)
        instead = missing(values)
        return instead if type(instead) in (float, str, bool) else general(values)

    return taken


def _finder(area: Any, mode: Any, *, wildcards: bool) -> Find | None:
    """How a line is searched: for what is equal, or for the last that is not greater."""
    if not _is_kept(area) or (area.height > 1 and area.width > 1):
        return None
    if mode == 1.0:
        return _nearest(area)
    index = area.index() if mode == 0.0 else None
    if index is None:
        return None
    first = index.first

    def place(wanted: Scalar) -> int | None:
        if wanted is None:
            return None
        if wildcards and type(wanted) is str and has_wildcards(wanted):
            there = exact_place(wanted, area, wildcards=True)
        else:
            there = first(wanted)
        return -1 if there is None else there

    return place


def _nearest(area: FixedArea) -> Find | None:
    """Of a line of numbers, or of texts, that stand in order."""
    line: list[Any] = _line(area) or [None]
    kind = type(line[0])
    if kind not in (float, str) or any(type(value) is not kind for value in line):
        return None
    keys = list(map(folded, line)) if kind is str else line
    if any(later < earlier for earlier, later in pairwise(keys)):
        return None

    def place(wanted: Any) -> int | None:
        if type(wanted) is not kind:
            return None
        return bisect_right(keys, folded(wanted) if kind is str else wanted) - 1

    return place


def _column(area: FixedArea, number: int) -> FixedArea:
    return fixed(area.part(0, number, area.height, 1))


def _line(area: Any) -> list[Scalar] | None:
    """The values of a row or a column, as far as the worksheet reaches."""
    if not _is_kept(area) or (area.height > 1 and area.width > 1):
        return None
    index = area.index()
    return list(area.to_array().values()) if index is None else index.line


def _are_alike(first: Any, second: Any) -> bool:
    return (first.height, first.width) == (second.height, second.width)


def _is_kept(area: Any) -> bool:
    """Is it an area that never changes, of which all values can be kept?"""
    if not isinstance(area, FixedArea):
        return False
    inside = area.clipped()
    return inside.height * inside.width <= MAX_ARRAY
