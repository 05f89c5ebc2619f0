"""References into tables: `Sales[Price]`, `Sales[[#This Row],[Price]]`, `Sales[#Headers]`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from millstream.values.excel.syntax import Cell, Node, Range


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


_ITEM = re.compile(r"\[((?:'.|[^\[\]'])*)\]")


def resolve_table(text: str, tables: Mapping[str, Table], row: int) -> Node | None:
    """The cells a structured reference names; None if there is no such table or column."""
    name, _, inner = text.partition("[")
    table = tables.get(name.casefold())
    if table is None:
        return None
    body = inner[:-1].strip()
    items = [_unescaped(i) for i in _ITEM.findall(body)] if "[" in body else [_unescaped(body)]
    if body.startswith("@"):
        items = ["#This Row", *(i for i in ([_unescaped(body[1:])] if "[" not in body else items))]
    specials = [i.casefold() for i in items if i.startswith("#")]
    columns = [i for i in items if i and not i.startswith("#")]
    rows = _rows(table, specials, row)
    places = _columns(table, columns)
    if rows is None or places is None:
        return None
    # The row of the formula itself moves along when a formula is shared.
    is_fixed = "#this row" not in specials
    first = Cell(table.sheet, rows[0], places[0], is_fixed, True)
    last = Cell(table.sheet, rows[1], places[1], is_fixed, True)
    return Range(first, last)


def _unescaped(text: str) -> str:
    return re.sub(r"'(.)", r"\1", text.strip())


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
    wanted = [c.casefold() for c in columns]
    if any(c not in folded for c in wanted):
        return None
    places = [table.left + folded.index(c) for c in wanted]
    return min(places), max(places)
