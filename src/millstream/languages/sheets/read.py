"""From the parts of an `.xlsx` file to a `Workbook`.

Only what formulas need is read: values, formulas, names and tables; no styles, so that a
date stays the number it is.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree.ElementTree import Element

from millstream.errors import ProgramError
from millstream.languages.sheets.package import Package, opened_package
from millstream.values.excel.dates import OFFSET_1904
from millstream.values.excel.numerals import moment_in_text
from millstream.values.excel.structured import Table
from millstream.values.excel.syntax import MAX_COLUMN, MAX_ROW, column_number
from millstream.values.excel.values import ERRORS_BY_NAME, ErrorValue, Scalar
from millstream.values.excel.workbook import (
    Formula,
    Workbook,
    Worksheet,
    address_of,
    key_of,
    place_of,
)

#: A workbook with more cells is refused; it would take some gigabytes.
MAX_CELLS = 3_000_000

#: A cell with a value takes at least so much of a worksheet.
_SHORTEST = "<c><v>1</v></c>"
_REFERENCE = re.compile(r"\$?([A-Za-z]{1,3})\$?(\d{1,7})")
_ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")


def read_workbook(path: Path, shown: str | None = None) -> Workbook:
    """The workbook in a file, or one clear error."""
    name = shown or str(path)
    with opened_package(path, name) as package:
        return _Reader(package, name).workbook()


class _Reader:
    """Mutable: what is known of the package so far."""

    def __init__(self, package: Package, shown: str) -> None:
        self.package = package
        self.shown = shown
        self.cells = 0
        self.uses_1904 = False

    def workbook(self) -> Workbook:
        main = self._main_part()
        relations = self.package.relations(main)
        listed, names = self._contents(main)
        texts = self._shared_texts(relations)
        sheets: dict[str, Worksheet] = {}
        tables: dict[str, Table] = {}
        self._count([relations.get(relation, ("", ""))[1] for _, relation in listed])
        for name, relation in listed:
            kind, part = relations.get(relation, ("", ""))
            sheets[name] = Worksheet(name)
            if kind == "worksheet":
                self._worksheet(sheets[name], part, texts)
                tables |= self._tables(sheets[name], part)
        if not sheets:
            raise self.package.refused("it has no worksheet")
        order = list(sheets)
        scoped = {
            (folded, None if sheet is None else order[sheet]): text
            for (folded, sheet), text in names.items()
            if sheet is None or sheet < len(order)
        }
        has_macros = self.package.has("xl/vbaProject.bin")
        return Workbook(self.shown, sheets, scoped, tables, self.uses_1904, has_macros)

    def _count(self, parts: list[str]) -> None:
        """Refuse what holds too many values before they are taken apart, which takes long."""
        if sum(map(self.package.size, parts)) < MAX_CELLS * len(_SHORTEST):
            return
        held = (self.package.count(p, b"<v>", b"<v/", b"<v ") for p in parts if self.package.has(p))
        if sum(held) > MAX_CELLS:
            raise self._too_many(self.shown)

    def _too_many(self, place: str) -> ProgramError:
        return ProgramError(
            f"this workbook has more than {MAX_CELLS:,} cells",
            place=place,
            hint="keep data in files that a stream reads, and formulas in the workbook",
        )

    def _whole(self, element: Element, name: str, default: int) -> int:
        """A number in a tag."""
        text = element.get(name, str(default))
        if not (text.isascii() and text.isdigit() and len(text) < 10):
            raise self.package.refused(f'{name}="{text}" is no number')
        return int(text)

    def _main_part(self) -> str:
        for kind, part in self.package.relations("").values():
            if kind == "officeDocument":
                return part
        return "xl/workbook.xml"

    def _contents(
        self, main: str
    ) -> tuple[list[tuple[str, str]], dict[tuple[str, int | None], str]]:
        """The worksheets in order with their relations, and the defined names."""
        listed: list[tuple[str, str]] = []
        names: dict[tuple[str, int | None], str] = {}
        for tag, element in self.package.elements(main, "sheet", "definedName", "workbookPr"):
            if tag == "workbookPr":
                self.uses_1904 = element.get("date1904", "0").lower() in ("1", "true", "on")
            elif tag == "sheet":
                relation = next((v for k, v in element.items() if k.endswith("}id")), "")
                listed.append((element.get("name", ""), relation))
            else:
                scope = element.get("localSheetId")
                place = None if scope is None else self._whole(element, "localSheetId", 0)
                key = (element.get("name", "").casefold(), place)
                names[key] = element.text or ""
        return listed, names

    def _shared_texts(self, relations: dict[str, tuple[str, str]]) -> list[str]:
        part = next((p for kind, p in relations.values() if kind == "sharedStrings"), None)
        if part is None or not self.package.has(part):
            return []
        return [_text_of(element) for _, element in self.package.elements(part, "si")]

    # --- worksheets ---

    def _worksheet(self, sheet: Worksheet, part: str, texts: list[str]) -> None:
        shared: dict[str, int] = {}
        row, column = 0, 0
        for tag, element in self.package.elements(part, "c", "autoFilter", begun="row"):
            if tag == "autoFilter":
                self._filter(sheet, element)
                continue
            if tag == "row":
                row, column = self._whole(element, "r", row + 1), 0
                if element.get("hidden", "0").lower() in ("1", "true", "on"):
                    sheet.hidden.add(row)
                continue
            address = element.get("r")
            if address is None:
                column += 1
            else:
                row, column = self._place(address, sheet.name)
            if not (1 <= row <= MAX_ROW and column <= MAX_COLUMN):
                raise self.package.refused(f"{sheet.name} has a cell outside a worksheet")
            self._cell(sheet, key_of(row, column), element, texts, shared)

    def _filter(self, sheet: Worksheet, element: Element) -> None:
        """Where a filter hides rows: one that has no criteria hides none."""
        if any(child.tag.rpartition("}")[2] == "filterColumn" for child in element):
            top, _, bottom, _ = self._rectangle(element.get("ref", ""), sheet.name)
            sheet.filters.append((top, bottom))

    def _place(self, address: str, sheet: str) -> tuple[int, int]:
        match = _REFERENCE.fullmatch(address)
        if match is None:
            raise self.package.refused(f'"{address}" on {sheet} is no address of a cell')
        row, column = int(match[2]), column_number(match[1])
        if not 1 <= row <= MAX_ROW or column > MAX_COLUMN:
            raise self.package.refused(f'"{address}" on {sheet} is no address of a cell')
        return row, column

    def _cell(
        self, sheet: Worksheet, key: int, element: Element, texts: list[str], shared: dict[str, int]
    ) -> None:
        formula = value = inline = None
        for child in element:
            tag = child.tag.rpartition("}")[2]
            if tag == "f":
                formula = child
            elif tag == "v":
                value = child.text
            elif tag == "is":
                inline = child
        if formula is not None and (formula.text or formula.get("t", "normal") != "normal"):
            self._formula(sheet, key, formula, shared)
        elif key in sheet.spilled:
            return  # a value that an array formula has put there
        else:
            kind = element.get("t", "n")
            try:
                constant = _value(kind, value, inline, texts, uses_1904=self.uses_1904)
            except ValueError:
                where = f"{sheet.name}!{address_of(*place_of(key))}"
                raise self.package.refused(f'{where} holds "{value}", which is no number') from None
            if constant is None:
                return
            sheet.constants[key] = constant
        self.cells += 1
        if self.cells > MAX_CELLS:
            raise self._too_many(f"{self.shown} {sheet.name}")

    def _formula(
        self, sheet: Worksheet, key: int, element: Element, shared: dict[str, int]
    ) -> None:
        kind = element.get("t", "normal")
        text = _unescaped(element.text or "")
        if kind == "shared":
            number = element.get("si", "")
            if text:
                shared[number] = key
            sheet.formulas[key] = Formula(text, shared.get(number, key))
        elif kind == "array":
            array = self._rectangle(element.get("ref", ""), sheet.name)
            sheet.formulas[key] = Formula(text, array=array)
            self._spill(sheet, key, array)
        elif kind == "dataTable":
            refused = "what-if data tables are not supported"
            sheet.formulas[key] = Formula("0", array=(0, 0, 0, 0), refused=refused)
        else:
            sheet.formulas[key] = Formula(text)

    def _rectangle(self, text: str, sheet: str) -> tuple[int, int, int, int]:
        first, _, last = text.partition(":")
        return (*self._place(first, sheet), *self._place(last or first, sheet))

    def _spill(self, sheet: Worksheet, key: int, array: tuple[int, int, int, int]) -> None:
        top, left, bottom, right = array
        self.cells += (bottom - top + 1) * (right - left + 1) - 1
        if self.cells > MAX_CELLS:
            raise self.package.refused(f"an array formula on {sheet.name} fills too many cells")
        for row in range(top, bottom + 1):
            for column in range(left, right + 1):
                if key_of(row, column) != key:
                    sheet.spilled[key_of(row, column)] = key

    def _tables(self, sheet: Worksheet, part: str) -> dict[str, Table]:
        tables: dict[str, Table] = {}
        for kind, target in self.package.relations(part).values():
            if kind == "table" and self.package.has(target):
                tables |= self._table(sheet, target)
        return tables

    def _table(self, sheet: Worksheet, part: str) -> dict[str, Table]:
        columns: list[str] = []
        for tag, element in self.package.elements(part, "tableColumn", "table", "autoFilter"):
            if tag == "autoFilter":
                self._filter(sheet, element)
                continue
            if tag == "tableColumn":
                columns.append(_unescaped(element.get("name", "")))
                continue
            if element.get("ref") is None:
                continue  # an extension inside the table, which bears the same name
            area = self._rectangle(element.get("ref", ""), sheet.name)
            headers = self._whole(element, "headerRowCount", 1)
            totals = self._whole(element, "totalsRowCount", 0)
            table = Table(sheet.name, *area, tuple(columns), headers, totals)
            name = element.get("displayName", element.get("name", ""))
            return {name.casefold(): table}
        return {}


def _value(
    kind: str, value: str | None, inline: Element | None, texts: list[str], *, uses_1904: bool
) -> Scalar:
    if kind == "inlineStr":
        return _text_of(inline) if inline is not None else None
    if value is None:
        return None
    match kind:
        case "s":
            number = int(value)
            return texts[number] if 0 <= number < len(texts) else None
        case "str":
            return _unescaped(value)
        case "b":
            return value.strip() in ("1", "true")
        case "e":
            return ERRORS_BY_NAME.get(value, ErrorValue(value))
        case "d":
            serial = moment_in_text(value.rstrip("Z"))
            return value if serial is None else serial - (OFFSET_1904 if uses_1904 else 0)
        case _:
            return _finite(float(value)) if value.strip() else None


def _finite(number: float) -> float:
    if not math.isfinite(number):
        raise ValueError
    return number + 0.0  # there is no minus zero


def _text_of(element: Element) -> str:
    """The text of a string item: its runs, without the readings of Japanese words."""
    return _unescaped("".join(_runs(element)))


def _runs(element: Element) -> Iterator[str]:
    for child in element:
        tag = child.tag.rpartition("}")[2]
        if tag == "t":
            yield child.text or ""
        elif tag == "r":
            yield from _runs(child)


def _unescaped(text: str) -> str:
    if "_x" not in text:
        return text
    return _ESCAPED.sub(lambda escape: chr(int(escape[1], 16)), text)
