"""The cells a formula refers to, as rectangles."""

from __future__ import annotations

from collections.abc import Iterator

from millstream.values.excel.evaluate import Names
from millstream.values.excel.syntax import Cell, Name, Node, Range, children, shifted

#: Worksheet, top, left, bottom, right.
Rectangle = tuple[str, int, int, int, int]


def areas_of(node: Node, names: Names, row: int = 1, column: int = 1) -> Iterator[Rectangle]:
    """Every reference of a formula in a cell, also behind defined names."""
    waiting: list[tuple[Node, tuple[str, ...]]] = [(node, ())]
    while waiting:
        one, opened = waiting.pop()
        match one:
            case Cell(sheet, at_row, at_column):
                yield sheet, at_row, at_column, at_row, at_column
            case Range(first, last):
                yield (first.sheet, min(first.row, last.row), min(first.column, last.column),
                       max(first.row, last.row), max(first.column, last.column))  # fmt: skip
            case Name(name, sheet):
                folded = name.casefold()
                meaning = names.defined(name, sheet)
                if meaning is not None and folded not in opened:
                    waiting.append((shifted(meaning, row - 1, column - 1), (*opened, folded)))
            case _:
                waiting.extend((child, opened) for child in children(one))
