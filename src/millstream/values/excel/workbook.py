"""A workbook as read from a file: constants and the texts of formulas, by worksheet.

Cells are kept sparsely, under one integer each; formulas are parsed when they are asked for.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from millstream.errors import MillstreamError
from millstream.values.excel import syntax
from millstream.values.excel.parser import Origin, parse_formula
from millstream.values.excel.structured import Table, resolve_table
from millstream.values.excel.values import REF, Scalar

_STRIDE = syntax.MAX_COLUMN + 1
_KEPT_TREES = 200_000
_ANCHOR = "ANCHORARRAY"


def key_of(row: int, column: int) -> int:
    return row * _STRIDE + column


def place_of(key: int) -> tuple[int, int]:
    return divmod(key, _STRIDE)


def address_of(row: int, column: int) -> str:
    return f"{syntax.column_name(column)}{row}"


@dataclass(frozen=True, slots=True)
class Formula:
    """The text of a formula without `=`; `shared_with` is the cell that has the text.

    `array` is the rectangle (top, left, bottom, right) an array formula was entered into.
    `refused` says why a formula of this kind is not supported.
    """

    text: str
    shared_with: int | None = None
    array: tuple[int, int, int, int] | None = None
    refused: str | None = None


@dataclass
class Worksheet:
    """Mutable while it is read: what stands in the cells."""

    name: str
    constants: dict[int, Scalar] = field(default_factory=dict)
    formulas: dict[int, Formula] = field(default_factory=dict)
    #: Cells that an array formula fills, with the cell it was entered in.
    spilled: dict[int, int] = field(default_factory=dict)
    #: Rows that are not shown, and first and last row of the areas in which a filter hides rows.
    hidden: set[int] = field(default_factory=set)
    filters: list[tuple[int, int]] = field(default_factory=list)
    _columns: dict[int, list[int]] | None = None

    def __len__(self) -> int:
        return len(self.constants) + len(self.formulas) + len(self.spilled)

    def fill(self, key: int) -> None:
        """Make room for a cell that will be given values."""
        if key not in self.constants:
            self.constants[key] = None
            self._columns = None

    def is_filtered(self, row: int) -> bool:
        return any(first <= row <= last for first, last in self.filters)

    def has(self, key: int) -> bool:
        return key in self.constants or self.is_formula(key)

    def is_formula(self, key: int) -> bool:
        """Is a cell filled by a formula, its own or an array formula elsewhere?"""
        return key in self.formulas or key in self.spilled

    def keys(self) -> Iterator[int]:
        yield from self.constants
        yield from self.formulas
        yield from self.spilled

    def columns(self) -> dict[int, list[int]]:
        """For every column that holds something, its rows in order."""
        if self._columns is None:
            by_column: dict[int, set[int]] = {}
            for key in self.keys():
                row, column = divmod(key, _STRIDE)
                by_column.setdefault(column, set()).add(row)
            self._columns = {c: sorted(rows) for c, rows in sorted(by_column.items())}
        return self._columns

    def extent(self) -> tuple[int, int]:
        columns = self.columns()
        if not columns:
            return 1, 1
        return max(rows[-1] for rows in columns.values()), max(columns)

    def filled(self, top: int, left: int, bottom: int, right: int) -> Iterator[tuple[int, int]]:
        """The cells of a rectangle that hold something, row by row."""
        if (bottom - top + 1) * (right - left + 1) <= 64:
            for row in range(top, bottom + 1):
                for column in range(left, right + 1):
                    if self.has(row * _STRIDE + column):
                        yield row, column
            return
        columns = self.columns()
        if right - left < len(columns):
            chosen = [c for c in range(left, right + 1) if c in columns]
        else:
            chosen = [c for c in columns if left <= c <= right]
        runs = [(c, _between(columns[c], top, bottom)) for c in chosen]
        if len(runs) == 1:
            column, rows = runs[0]
            yield from ((row, column) for row in rows)
            return
        yield from sorted((row, column) for column, rows in runs for row in rows)


def _between(rows: list[int], top: int, bottom: int) -> list[int]:
    return rows[bisect_left(rows, top) : bisect_right(rows, bottom)]


@dataclass
class Workbook:
    """Mutable only in what it remembers: a file's worksheets, names and tables."""

    file: str
    sheets: dict[str, Worksheet]
    names: dict[tuple[str, str | None], str] = field(default_factory=dict)
    tables: dict[str, Table] = field(default_factory=dict)
    uses_1904: bool = False
    has_macros: bool = False
    _trees: dict[tuple[str, int], syntax.Node] = field(default_factory=dict)
    _names: dict[tuple[str, str], syntax.Node | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._by_folded = {name.casefold(): name for name in self.sheets}

    # --- what the parser asks ---

    def sheet_name(self, name: str) -> str | None:
        return self._by_folded.get(name.casefold())

    def sheets_between(self, first: str, last: str) -> Sequence[str]:
        names = list(self.sheets)
        ends = [self.sheet_name(first), self.sheet_name(last)]
        if None in ends:
            return []
        low, high = sorted(names.index(e) for e in ends if e is not None)
        return names[low : high + 1]

    def table(self, text: str, sheet: str, row: int) -> syntax.Node | None:
        return resolve_table(text, self.tables, row)

    # --- formulas ---

    def place(self, sheet: str, key: int) -> str:
        return f"{self.file} {sheet}!{address_of(*place_of(key))}"

    def tree(self, sheet: str, key: int) -> syntax.Node:
        """The tree of the formula in a cell; a `ParseError` with its place if there is none."""
        tree = self._trees.get((sheet, key))
        if tree is None:
            tree = self._parsed(sheet, key)
            if len(self._trees) < _KEPT_TREES:
                self._trees[sheet, key] = tree
        return tree

    def _parsed(self, sheet: str, key: int) -> syntax.Node:
        formula = self.sheets[sheet].formulas[key]
        row, column = place_of(key)
        if formula.shared_with is not None and formula.shared_with != key:
            first_row, first_column = place_of(formula.shared_with)
            shared = self.tree(sheet, formula.shared_with)
            return syntax.shifted(shared, row - first_row, column - first_column)
        tree = parse_formula(
            formula.text, Origin(self.file, sheet, address_of(row, column), row), self
        )
        return self._with_spills(tree) if "#" in formula.text or _ANCHOR in formula.text else tree

    def _with_spills(self, node: syntax.Node) -> syntax.Node:
        """`A1#`, which files call ANCHORARRAY: the cells that the formula in A1 fills."""
        if isinstance(node, syntax.Call) and node.function == _ANCHOR and len(node.arguments) == 1:
            cell = node.arguments[0]
            if isinstance(cell, syntax.Cell):
                formula = self.sheets[cell.sheet].formulas.get(key_of(cell.row, cell.column))
                if formula is None or formula.array is None:
                    return syntax.Literal(REF)
                top, left, bottom, right = formula.array
                return syntax.Range(
                    syntax.Cell(cell.sheet, top, left), syntax.Cell(cell.sheet, bottom, right)
                )
        return syntax.rebuilt(node, self._with_spills)

    def defined(self, name: str, sheet: str) -> syntax.Node | None:
        """What a defined name stands for on a worksheet, or None."""
        folded = name.casefold()
        if (folded, sheet) not in self._names:
            self._names[folded, sheet] = self._defined(folded, sheet)
        return self._names[folded, sheet]

    def reference(self, text: str, sheet: str, row: int) -> syntax.Node | None:
        """A reference that is written in a text, as INDIRECT takes it; None if it is none."""
        try:
            node = parse_formula(text, Origin(self.file, sheet, f"reference {text}", row), self)
        except MillstreamError:
            return None  # what cannot be read refers to nothing: `#REF!`
        if isinstance(node, syntax.Name):
            return self.defined(node.name, node.sheet)
        return node if isinstance(node, (syntax.Cell, syntax.Range)) else None

    def known_names(self, sheet: str) -> list[str]:
        """The names a worksheet can use, whatever they stand for."""
        return [name for name, scope in self.names if scope in (None, sheet)] + list(self.tables)

    def _defined(self, folded: str, sheet: str) -> syntax.Node | None:
        text = self.names.get((folded, sheet))
        if text is None:
            text = self.names.get((folded, None))
        if text is None:
            # The name of a table alone means its data.
            return resolve_table(f"{folded}[#Data]", self.tables, 1)
        try:
            return parse_formula(text, Origin(self.file, sheet, f"name {folded}"), self)
        except MillstreamError:
            # A name that is broken, or links elsewhere, is no name; who uses it is told so.
            return None
