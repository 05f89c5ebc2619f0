"""Formulas printed so that they parse back to the same tree."""

from __future__ import annotations

import re

from millstream.values.excel import syntax
from millstream.values.excel.values import ErrorValue, Scalar

_PLAIN_SHEET = re.compile(r"[^\W\d][\w.]*")


def render_formula(node: syntax.Node) -> str:
    match node:
        case syntax.Literal(value):
            return render_scalar(value)
        case syntax.Constants(rows):
            return "{" + ";".join(",".join(map(render_scalar, r)) for r in rows) + "}"
        case syntax.Cell():
            return render_sheet(node.sheet) + _cell(node)
        case syntax.Range(first, last):
            return render_sheet(node.sheet) + _range(first, last)
        case syntax.WindowOf(cell):
            return render_sheet(cell.sheet) + _cell(cell)
        case syntax.Name(name, _):
            return name
        case syntax.Call(function, arguments):
            return f"{function}({','.join(map(render_formula, arguments))})"
        case syntax.Unary("%", operand):
            return f"{render_formula(operand)}%"
        case syntax.Unary(operator, operand):
            return f"{operator}{render_formula(operand)}"
        case syntax.Binary(operator, left, right):
            return f"{render_formula(left)}{operator}{render_formula(right)}"
        case syntax.Group(inner):
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


def _cell(cell: syntax.Cell) -> str:
    column = f"{'$' if cell.column_fixed else ''}{syntax.column_name(cell.column)}"
    return f"{column}{'$' if cell.row_fixed else ''}{cell.row}"


def _range(first: syntax.Cell, last: syntax.Cell) -> str:
    if first.row == 1 and last.row == syntax.MAX_ROW and first.row_fixed and last.row_fixed:
        marks = ["$" if c.column_fixed else "" for c in (first, last)]
        left, right = (syntax.column_name(c.column) for c in (first, last))
        return f"{marks[0]}{left}:{marks[1]}{right}"
    if first.column == 1 and last.column == syntax.MAX_COLUMN and first.column_fixed:
        marks = ["$" if c.row_fixed else "" for c in (first, last)]
        return f"{marks[0]}{first.row}:{marks[1]}{last.row}"
    return f"{_cell(first)}:{_cell(last)}"
