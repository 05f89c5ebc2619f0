"""References into tables: `Sales[Price]`, `Sales[[#This Row],[Price]]`, `Sales[#Headers]`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from millstream.formulas.syntax import Cell, Node, Range


@dataclass(frozen=True, slots=True)
class Table:
    """A named rectangle with headers above and perhaps totals below."""

    sheet: str
    top: int
    left: int
    bottom: int
    right: int
    columns: tuple[str, ...]
    headers: int = 1
    totals: int = 0


_ITEM = re.compile(r"\[((?:'.|[^\[\]'])*+)\]", re.DOTALL)
_ESCAPED = re.compile(r"'(.)", re.DOTALL)


def resolve_table(text: str, tables: Mapping[str, Table], row: int) -> Node | None:
    """The cells a structured reference names; None if there is no such table or column."""
    name, _, inner = text.partition("[")
    table = tables.get(name.casefold())
    if table is None:
        return None
    body = inner[:-1]
    is_this_row = body.lstrip().startswith("@")
    body = body.lstrip().removeprefix("@") if is_this_row else body
    # Brackets in the name of a column are written with an apostrophe before them.
    items = _ITEM.findall(body) if "[" in _ESCAPED.sub("", body) else [body]
    specials = [i.strip().casefold() for i in items if i.lstrip().startswith("#")]
    specials += ["#this row"] * is_this_row
    columns = [i for i in items if i.strip() and not i.lstrip().startswith("#")]
    rows = _rows(table, specials, row)
    places = _columns(table, [_ESCAPED.sub(r"\1", c) for c in columns])
    if rows is None or places is None:
        return None
    # The row of the formula itself moves along when a formula is shared.
    is_fixed = "#this row" not in specials
    first = Cell(table.sheet, rows[0], places[0], is_fixed, True)
    last = Cell(table.sheet, rows[1], places[1], is_fixed, True)
    return Range(first, last)


def _rows(table: Table, specials: list[str], row: int) -> tuple[int, int] | None:
    first, last = table.top + table.headers, table.bottom - table.totals
    if not specials or specials == ["#data"]:
        return first, last
    if "#this row" in specials:
        return row, row
    if "#all" in specials:
        return table.top, table.bottom
    if "#headers" in specials:
        return table.top, (last if "#data" in specials else table.top)
    if "#totals" in specials:
        return (first if "#data" in specials else table.bottom), table.bottom
    return None


def _columns(table: Table, columns: list[str]) -> tuple[int, int] | None:
    if not columns:
        return table.left, table.right
    folded = [c.casefold() for c in table.columns]
    places: list[int] = []
    for wanted in (c.casefold() for c in columns):
        # Blanks around a name may belong to it, or to how the formula is written.
        name = wanted if wanted in folded else wanted.strip()
        if name not in folded:
            return None
        places.append(table.left + folded.index(name))
    return min(places), max(places)
