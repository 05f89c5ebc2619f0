"""A sheet for people: formulas as they were written, what is kept, tables as areas.

Parts of formulas that flattening has made cells of their own stand where they were taken from.
What can be read in again is `sheet_text`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from millstream.calculus.sheet_text import rule_text
from millstream.calculus.sheets import (
    HIDDEN_SHEET,
    Address,
    Computed,
    CountWindow,
    Fed,
    Sheet,
    SheetCell,
    TimeWindow,
    address_text,
)
from millstream.values.excel.syntax import column_name

#: A part of a formula, as formulas name it.
_PART = re.compile(r"':'!A(\d+)\b")
#: Behind cells whose last value is kept; windows say themselves that they keep.
_KEPT = "   [kept]"


def sheet_shown(sheet: Sheet) -> list[str]:
    """A line for each cell, for tables of constants, the keys and what is sent."""
    rules = {c.address: _rule(c) for c in sheet.cells}
    uses = Counter(int(number) for text in rules.values() for number in _PART.findall(text))
    inside = {c.address[1]: c for c in sheet.cells if _is_inside(c, uses)}

    def shown(text: str) -> str:
        return _PART.sub(lambda match: part(int(match[1])), text)

    def part(number: int) -> str:
        if number not in inside:
            return address_text((HIDDEN_SHEET, number, 1))
        cell = inside[number]
        text = shown(rules[cell.address])
        return f"({text})" if isinstance(cell.rule, Computed) else text

    kept = dict.fromkeys(sheet.last_values(), _KEPT)
    lines = [
        f"{address_text(c.address)} {_mark(c)} {shown(rules[c.address])}{kept.get(c.address, '')}"
        for c in sheet.cells
        if c.address[1] not in inside or c.address[0] != HIDDEN_SHEET
    ]
    lines += [f"constants {area}" for area in _areas(address for address, _ in sheet.constants)]
    lines += [f"by {', '.join(sheet.keys)}"] if sheet.keys else []
    for columns in sheet.outputs:
        texts = (f"{c.name} {c.type} = {address_text(c.address)}" for c in columns)
        lines.append(f"sends {', '.join(texts)}")
    return [*lines, "once for each instant"] if sheet.fires_per_instant else lines


def _is_inside(cell: SheetCell, uses: Counter[int]) -> bool:
    """Whether a cell is nothing but a part of one formula."""
    return cell.address[0] == HIDDEN_SHEET and uses[cell.address[1]] == 1


def _mark(cell: SheetCell) -> str:
    return "<-" if isinstance(cell.rule, Fed) else "="


def _rule(cell: SheetCell) -> str:
    """The rule of a cell; a window that ticks with what it holds need not say so."""
    text = rule_text(cell.rule)
    match cell.rule:
        case TimeWindow(source, _, trigger) | CountWindow(source, _, trigger) if source == trigger:
            return f"{text[: text.rindex(',')]})"
        case _:
            return text


def _areas(addresses: Iterable[Address]) -> Iterator[str]:
    """Cells that lie together, as few areas: runs in a row, and rows that are alike."""
    rows: dict[tuple[str, int], list[int]] = {}
    for sheet, row, column in sorted(addresses):
        rows.setdefault((sheet, row), []).append(column)
    # A run of columns, and the last row in which it stands, with the first.
    open_: dict[tuple[str, int, int], tuple[int, int]] = {}
    areas: list[tuple[str, int, int, int, int]] = []
    for (sheet, row), columns in rows.items():
        for left, right in _runs(columns):
            first, last = open_.get((sheet, left, right), (row, row - 1))
            if last != row - 1:
                areas.append((sheet, first, left, last, right))
                first = row
            open_[sheet, left, right] = first, row
    areas += [(s, first, left, last, right) for (s, left, right), (first, last) in open_.items()]
    for sheet, top, left, bottom, right in sorted(areas):
        last_cell = f":{column_name(right)}{bottom}" if (top, left) != (bottom, right) else ""
        yield f"{address_text((sheet, top, left))}{last_cell}"


def _runs(columns: list[int]) -> Iterator[tuple[int, int]]:
    first = last = columns[0]
    for column in columns[1:]:
        if column != last + 1:
            yield first, last
            first = column
        last = column
    yield first, last
