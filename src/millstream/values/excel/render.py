"""Formulas printed so that they parse back to the same tree."""

from __future__ import annotations

import re

from millstream.values.excel.syntax import (
    MAX_COLUMN,
    MAX_ROW,
    Binary,
    Call,
    Cell,
    Constants,
    Group,
    Literal,
    Name,
    Node,
    Range,
    Unary,
    WindowOf,
    column_name,
)
from millstream.values.excel.values import ErrorValue, Scalar

_PLAIN_SHEET = re.compile(r"[^\W\d][\w.]*")


def render_formula(node: Node) -> str:
    match node:
        case Literal(value):
            return render_scalar(value)
        case Constants(rows):
            return "{" + ";".join(",".join(map(render_scalar, r)) for r in rows) + "}"
        case Cell():
            return render_sheet(node.sheet) + _cell(node)
        case Range(first, last):
            return render_sheet(node.sheet) + _range(first, last)
        case WindowOf(cell):
            return render_sheet(cell.sheet) + _cell(cell)
        case Name(name, _):
            return name
        case Call(function, arguments):
            return f"{function}({','.join(map(render_formula, arguments))})"
        case Unary("%", operand):
            return f"{render_formula(operand)}%"
        case Unary(operator, operand):
            return f"{operator}{render_formula(operand)}"
        case Binary(operator, left, right):
            return f"{render_formula(left)}{operator}{render_formula(right)}"
        case Group(inner):
            return f"({render_formula(inner)})"


def render_scalar(value: Scalar) -> str:
    if value is None:
        return ""
    if type(value) is float:
        whole = value == int(value) and abs(value) < 1e15
        return str(int(value)) if whole else repr(value).upper()
    if type(value) is bool:
        return "TRUE" if value else "FALSE"
    if type(value) is ErrorValue:
        return str(value)
    return '"' + str(value).replace('"', '""') + '"'


def render_sheet(name: str) -> str:
    """A worksheet and `!`; the hidden one is written as a plain colon."""
    if _PLAIN_SHEET.fullmatch(name):
        return f"{name}!"
    return "'" + name.replace("'", "''") + "'!"


def _cell(cell: Cell) -> str:
    column = f"{'$' if cell.column_fixed else ''}{column_name(cell.column)}"
    return f"{column}{'$' if cell.row_fixed else ''}{cell.row}"


def _range(first: Cell, last: Cell) -> str:
    if first.row == 1 and last.row == MAX_ROW and first.row_fixed and last.row_fixed:
        marks = ["$" if c.column_fixed else "" for c in (first, last)]
        return f"{marks[0]}{column_name(first.column)}:{marks[1]}{column_name(last.column)}"
    if first.column == 1 and last.column == MAX_COLUMN and first.column_fixed:
        marks = ["$" if c.row_fixed else "" for c in (first, last)]
        return f"{marks[0]}{first.row}:{marks[1]}{last.row}"
    return f"{_cell(first)}:{_cell(last)}"
