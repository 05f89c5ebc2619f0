"""INDIRECT and OFFSET: references that are computed.

A workbook without streams computes them as it computes anything. Where streams fill cells,
what refers to what must be known beforehand: there `resolved` replaces them by the references
they give, once, and their arguments must not change.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from millstream.values.excel.arrays import Area, Operand
from millstream.values.excel.evaluate import Context, Special, evaluate
from millstream.values.excel.lifting import one_value
from millstream.values.excel.syntax import (
    MAX_COLUMN,
    MAX_ROW,
    Call,
    Cell,
    Literal,
    Node,
    Range,
    rebuilt,
)
from millstream.values.excel.values import REF, VALUE, Raised, fail, fail_if, to_boolean, to_number
from millstream.values.excel.values import to_text as text_of

_ROWS_AND_COLUMNS = re.compile(
    r"(?:(.+)!)?R(\[-?\d+\]|\d*)C(\[-?\d+\]|\d*)(?::R(\[-?\d+\]|\d*)C(\[-?\d+\]|\d*))?",
    re.IGNORECASE,
)


def _indirect(context: Context, arguments: tuple[Node, ...]) -> Operand:
    text = text_of(one_value(evaluate(arguments[0], context), context)).strip()
    is_a1 = True
    if len(arguments) == 2:
        is_a1 = to_boolean(one_value(evaluate(arguments[1], context), context))
    node = context.names.reference(text, context.sheet, context.row) if is_a1 else (
        _by_numbers(text, context))  # fmt: skip
    operand = fail(REF) if node is None else evaluate(node, context)
    return operand if isinstance(operand, Area) else fail(REF)


def _by_numbers(text: str, context: Context) -> Node | None:
    """`R1C2` or, from here, `R[-1]C`; with a worksheet before it, or a second corner after it."""
    match = _ROWS_AND_COLUMNS.fullmatch(text)
    if match is None:
        return None
    sheet, top, left, bottom, right = match.groups()
    corners = [_corner(top, left, context)]
    if bottom is not None:
        corners.append(_corner(bottom, right, context))
    if any(not (1 <= r <= MAX_ROW and 1 <= c <= MAX_COLUMN) for r, c in corners):
        fail(REF)
    where = context.names.reference(f"{sheet}!A1" if sheet else "A1", context.sheet, context.row)
    if not isinstance(where, Cell):
        return None
    first, last = (Cell(where.sheet, *corner) for corner in (corners[0], corners[-1]))
    return first if bottom is None else Range(first, last)


def _corner(row: str, column: str, context: Context) -> tuple[int, int]:
    return _number(row, context.row), _number(column, context.column)


def _number(written: str, here: int) -> int:
    if written.startswith("["):
        return here + int(written[1:-1])
    return int(written) if written else here


def _offset(context: Context, arguments: tuple[Node, ...]) -> Operand:
    base = evaluate(arguments[0], context)
    if not isinstance(base, Area):
        return fail(VALUE)
    numbers = [_whole(a, context) for a in arguments[1:]]
    rows, columns, height, width = (*numbers, None, None, None, None)[:4]
    top, bottom = _span(base.top + (rows or 0), height, base.height)
    left, right = _span(base.left + (columns or 0), width, base.width)
    fail_if(top < 1 or left < 1 or bottom > MAX_ROW or right > MAX_COLUMN, REF)
    return Area(base.cells, base.sheet, top, left, bottom, right)


def _whole(node: Node, context: Context) -> int | None:
    if isinstance(node, Literal) and node.value is None:
        return None
    return int(to_number(one_value(evaluate(node, context), context)))


def _span(start: int, size: int | None, otherwise: int) -> tuple[int, int]:
    """The first and the last row or column; a negative size reaches back."""
    size = otherwise if size is None else size
    fail_if(size == 0, REF)
    return (start, start + size - 1) if size > 0 else (start + size + 1, start)


COMPUTED_REFERENCES: dict[str, Special] = {"INDIRECT": _indirect, "OFFSET": _offset}


def _taken(_argument: Node, _function: str) -> None:
    """Nothing changes in a workbook without streams."""


def resolved(
    node: Node, context: Context, constant: Callable[[Node, str], object] = _taken
) -> Node:
    """The formula with what INDIRECT and OFFSET refer to in their place, or the error they give.

    `constant` is asked whether an argument, of which function, may be taken as it is now.
    """
    node = rebuilt(node, lambda n: resolved(n, context, constant))
    if not (isinstance(node, Call) and node.function in COMPUTED_REFERENCES):
        return node
    for argument in node.arguments[1 if node.function == "OFFSET" else 0 :]:
        constant(argument, node.function)
    try:
        area = evaluate(node, context)
    except Raised as raised:
        return Literal(raised.error)
    assert isinstance(area, Area)
    first = Cell(area.sheet, area.top, area.left, True, True)
    if (area.top, area.left) == (area.bottom, area.right):
        return first
    return Range(first, Cell(area.sheet, area.bottom, area.right, True, True))
