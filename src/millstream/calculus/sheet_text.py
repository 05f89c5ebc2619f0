"""The textual form of a sheet: one quoted line per cell, constant, key and output.

Sheet["S!B3 <- 1.price", "S!G3 = S!B3*S!C3", "S!C6 = WINDOW(S!C3,300,S!C3)",
      "constant S!A1 = 5", "by sym, sym", "output sym text = S!E12, vwap number = S!G12"]
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from millstream.calculus import sheets
from millstream.calculus.base import PicturePart
from millstream.calculus.types import TYPES_BY_NAME
from millstream.values.excel import syntax
from millstream.values.excel.parser import Origin, parse_formula
from millstream.values.excel.precedents import areas_of
from millstream.values.excel.render import render_formula, render_scalar, render_sheet
from millstream.values.excel.values import Scalar


class SheetTextFault(Exception):
    """A line of a sheet that means nothing."""


# --- printing ---------------------------------------------------------------------------


def sheet_lines(sheet: sheets.Sheet) -> list[str]:
    lines = [_cell_line(cell) for cell in sheet.cells]
    lines += [f"constant {_address(a)} = {render_scalar(v)}" for a, v in sheet.constants]
    if sheet.keys:
        lines.append(f"by {', '.join(sheet.keys)}")
    for columns in sheet.outputs:
        texts = (f"{c.name} {c.type} = {_address(c.address)}" for c in columns)
        lines.append(f"output {', '.join(texts)}")
    if sheet.fires_per_instant:
        lines.append("per instant")
    if sheet.uses_1904:
        lines.append("dates from 1904")
    return lines


def rule_text(rule: sheets.Rule) -> str:
    """A rule as a formula, for people."""
    match rule:
        case sheets.Fed(number, column):
            return f"{number + 1}.{column}"
        case sheets.Computed(formula, is_array, element):
            text = render_formula(formula)
            return f"{{{text}}}[{element[0]},{element[1]}]" if is_array else text
        case sheets.TimeWindow(source, length, trigger):
            seconds = render_scalar(length / 1_000_000)
            return f"WINDOW({_address(source)},{seconds},{_address(trigger)})"
        case sheets.CountWindow(source, count, trigger):
            return f"WINDOWROWS({_address(source)},{count},{_address(trigger)})"
        case sheets.Previous(source, trigger, initial):
            return f"PRE({_address(source)},{_address(trigger)},{render_scalar(initial)})"
        case sheets.Selected(source, condition):
            return f"SELECT({_address(source)},{_address(condition)})"


def sheet_parts(
    sheet: sheets.Sheet, inputs: tuple[str, ...], outputs: tuple[str, ...]
) -> tuple[PicturePart, ...]:
    """The cells of a sheet and what it sends; a PRE stands beside what it remembers."""
    changing = {c.address for c in sheet.cells}
    parts = []
    for cell in sheet.cells:
        rule = cell.rule
        after = tuple(sheets.address_text(a) for a in dict.fromkeys(cell.needs) if a in changing)
        beside: tuple[str, ...] = ()
        if isinstance(rule, sheets.Fed):
            after = (inputs[rule.input],)
        elif isinstance(rule, sheets.Previous) and rule.source in changing:
            beside = (sheets.address_text(rule.source),)
        name = sheets.address_text(cell.address)
        parts.append(PicturePart(name, name, rule_text(rule), after, beside))
    for queue, columns in zip(outputs, sheet.outputs, strict=True):
        needed = tuple(sheets.address_text(c.address) for c in columns if c.address in changing)
        detail = ", ".join(c.name for c in columns)
        parts.append(PicturePart(f"sends {queue}", queue, detail, needed, output=queue))
    return tuple(parts)


def _cell_line(cell: sheets.SheetCell) -> str:
    mark = "<-" if isinstance(cell.rule, sheets.Fed) else "="
    return f"{_address(cell.address)} {mark} {rule_text(cell.rule)}"


def _address(address: sheets.Address) -> str:
    sheet, row, column = address
    return f"{render_sheet(sheet)}{syntax.column_name(column)}{row}"


# --- reading ----------------------------------------------------------------------------

_LINE = re.compile(r"(constant )?('(?:[^']|'')+'!\w+|[^!'\s]+!\w+) (<-|=) ?(.*)", re.DOTALL)
_ARRAY = re.compile(r"\{(.*)\}\[(\d+),(\d+)\]", re.DOTALL)
_COLUMN = re.compile(r"(\S+) (\w+) = (.*)")


class _AnySheet:
    """In the textual form every worksheet is known by the name it bears."""

    def sheet_name(self, name: str) -> str | None:
        return name

    def sheets_between(self, first: str, last: str) -> Sequence[str]:
        return ()

    def table(self, text: str, sheet: str, row: int) -> syntax.Node | None:
        return None

    def defined(self, name: str, sheet: str) -> syntax.Node | None:
        return None

    def reference(self, text: str, sheet: str, row: int) -> syntax.Node | None:
        return None


_ANY = _AnySheet()


def sheet_of_lines(lines: Iterable[str]) -> sheets.Sheet:
    """The sheet that some lines describe; `SheetTextFault` if one means nothing."""
    rules: list[tuple[sheets.Address, sheets.Rule]] = []
    constants: list[tuple[sheets.Address, Scalar]] = []
    outputs: list[tuple[sheets.OutputColumn, ...]] = []
    keys: tuple[str, ...] = ()
    flags = {"per instant": False, "dates from 1904": False}
    for line in lines:
        match = _LINE.fullmatch(line)
        if line in flags:
            flags[line] = True
        elif line.startswith("by "):
            keys = tuple(line[3:].split(", "))
        elif line.startswith("output "):
            outputs.append(tuple(_column(text) for text in _columns(line[7:])))
        elif match is None:
            raise SheetTextFault(f'this line of a sheet means nothing: "{line}"')
        elif match[1]:
            constants.append((_parsed_address(match[2]), _scalar(_parsed(match[4] or '""'))))
        else:
            rules.append((_parsed_address(match[2]), _rule(match[4], is_fed=match[3] == "<-")))
    return sheets.Sheet(
        _cells(rules), tuple(constants), keys, tuple(outputs),
        flags["per instant"], flags["dates from 1904"],
    )  # fmt: skip


def _columns(text: str) -> list[str]:
    return re.split(r", (?=\S+ \w+ = )", text)


def _column(text: str) -> sheets.OutputColumn:
    match = _COLUMN.fullmatch(text)
    if match is None or match[2] not in TYPES_BY_NAME:
        raise SheetTextFault(f'this output column means nothing: "{text}"')
    return sheets.OutputColumn(match[1], _parsed_address(match[3]), TYPES_BY_NAME[match[2]])


def _parsed(text: str) -> syntax.Node:
    return parse_formula(text, Origin("sheet", "", ""), _ANY)


def _parsed_address(text: str) -> sheets.Address:
    node = _parsed(text)
    if not isinstance(node, syntax.Cell):
        raise SheetTextFault(f'"{text}" is no cell')
    return node.sheet, node.row, node.column


def _scalar(node: syntax.Node) -> Scalar:
    if isinstance(node, syntax.Unary) and isinstance(node.operand, syntax.Literal):
        value = node.operand.value
        return -value if isinstance(value, float) else value
    if not isinstance(node, syntax.Literal):
        raise SheetTextFault("expected a constant")
    return node.value


def _rule(text: str, *, is_fed: bool) -> sheets.Rule:
    if is_fed:
        number, _, column = text.partition(".")
        if not number.isdigit():
            raise SheetTextFault(f'"{text}" is no input and column')
        return sheets.Fed(int(number) - 1, column)
    array = _ARRAY.fullmatch(text)
    if array is not None:
        return sheets.Computed(_parsed(array[1]), True, (int(array[2]), int(array[3])))
    node = _parsed(text)
    if isinstance(node, syntax.Call):
        match node.function, node.arguments:
            case "WINDOW", (source, length, trigger):
                micros = round(float(_scalar(length) or 0) * 1_000_000)
                return sheets.TimeWindow(_cell(source), micros, _cell(trigger))
            case "WINDOWROWS", (source, count, trigger):
                return sheets.CountWindow(_cell(source), int(_scalar(count) or 0), _cell(trigger))
            case "PRE", (source, trigger, initial):
                return sheets.Previous(_cell(source), _cell(trigger), _scalar(initial))
            case "SELECT", (source, condition):
                return sheets.Selected(_cell(source), _cell(condition))
    return sheets.Computed(node)


def _cell(node: syntax.Node) -> sheets.Address:
    if not isinstance(node, syntax.Cell):
        raise SheetTextFault("expected a cell")
    return node.sheet, node.row, node.column


def _cells(rules: list[tuple[sheets.Address, sheets.Rule]]) -> tuple[sheets.SheetCell, ...]:
    """With windows marked, and what each formula refers to found again."""
    changing = {a for a, _ in rules}
    windows = {a for a, r in rules if isinstance(r, sheets.Windows)}
    cells = []
    for address, rule in rules:
        if not isinstance(rule, sheets.Computed):
            cells.append(sheets.SheetCell(address, rule))
            continue
        refers = references(rule.formula, changing)
        marked = sheets.Computed(_marked(rule.formula, windows), rule.is_array, rule.element)
        cells.append(sheets.SheetCell(address, marked, refers))
    return tuple(cells)


def references(formula: syntax.Node, changing: set[sheets.Address]) -> tuple[sheets.Address, ...]:
    """The changing cells that a formula mentions, in order of their addresses."""
    mentioned: set[sheets.Address] = set()
    for sheet, top, left, bottom, right in areas_of(formula, _ANY):
        if (bottom - top + 1) * (right - left + 1) <= 16:
            area = {(sheet, r, c) for r in range(top, bottom + 1) for c in range(left, right + 1)}
            mentioned |= area & changing
        else:
            mentioned |= {
                a for a in changing
                if a[0] == sheet and top <= a[1] <= bottom and left <= a[2] <= right
            }  # fmt: skip
    return tuple(sorted(mentioned))


def _marked(node: syntax.Node, windows: set[sheets.Address]) -> syntax.Node:
    match node:
        case syntax.Cell(sheet, row, column) if (sheet, row, column) in windows:
            return syntax.WindowOf(node)
        case syntax.Call(function, arguments):
            return syntax.Call(function, tuple(_marked(a, windows) for a in arguments))
        case syntax.Unary(operator, operand):
            return syntax.Unary(operator, _marked(operand, windows))
        case syntax.Group(inner):
            return syntax.Group(_marked(inner, windows))
        case _:
            return node
