"""The values of a workbook without streams: each cell is computed when it is asked for.

A chain of a hundred thousand cells must not need as many Python frames, so what a cell
refers to is computed first, with an explicit stack. That looks at both branches of an IF;
therefore a cell that fails, or that is part of a circle, only matters to a cell whose value
really needs it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from millstream.errors import CheckError, MillstreamError
from millstream.values.excel.arrays import Area, Array, Cells
from millstream.values.excel.computed_references import COMPUTED_REFERENCES, resolved
from millstream.values.excel.evaluate import Context, Unsupported, array_of, value_of
from millstream.values.excel.indexes import AreaIndex, Indexes
from millstream.values.excel.precedents import Rectangle, areas_of
from millstream.values.excel.syntax import Call, Node, children
from millstream.values.excel.values import NA, Raised, Scalar
from millstream.values.excel.workbook import Workbook, key_of, place_of

_Key = tuple[str, int]


class Circular(MillstreamError):
    """A cell whose value depends on itself."""


class Recalculation(Cells):
    """Mutable: the values computed so far. It is the `Cells` and the `Names` of formulas."""

    def __init__(self, workbook: Workbook) -> None:
        self.workbook = workbook
        self.computed: dict[_Key, Scalar | MillstreamError] = {}
        self.arrays: dict[_Key, Array] = {}
        self.open: set[_Key] = set()
        self.indexes = Indexes()
        self.ready: set[Rectangle] = set()

    # --- what formulas ask ---

    def value(self, sheet: str, row: int, column: int) -> Scalar:
        key = key_of(row, column)
        worksheet = self.workbook.sheets[sheet]
        if key in worksheet.constants:
            return worksheet.constants[key]
        if key not in worksheet.formulas and key not in worksheet.spilled:
            return None
        computed = self.computed.get((sheet, key))
        if computed is None:
            if (sheet, key) in self.open:
                raise self._circular(sheet, key)
            self.open.add((sheet, key))
            computed = self._compute(sheet, key)
            self.open.discard((sheet, key))
        if isinstance(computed, MillstreamError):
            raise computed
        return computed

    def window(self, sheet: str, row: int, column: int) -> Array:
        raise Unsupported("a window needs a stream that feeds it")

    def filled(self, area: Area) -> Iterator[tuple[int, int]]:
        worksheet = self.workbook.sheets[area.sheet]
        return worksheet.filled(area.top, area.left, area.bottom, area.right)

    def extent(self, sheet: str) -> tuple[int, int]:
        return self.workbook.sheets[sheet].extent()

    def defined(self, name: str, sheet: str) -> Node | None:
        return self.workbook.defined(name, sheet)

    def index(self, area: Area, *, is_to_last: bool = True) -> AreaIndex | None:
        """Long columns that many formulas search are indexed once."""
        return self.indexes.index(area, is_to_last=is_to_last)

    def formula(self, sheet: str, row: int, column: int) -> Node | None:
        worksheet, key = self.workbook.sheets[sheet], key_of(row, column)
        home = worksheet.spilled.get(key, key)
        return self.workbook.tree(sheet, home) if home in worksheet.formulas else None

    def sheet_names(self) -> list[str]:
        return list(self.workbook.sheets)

    def is_hidden(self, sheet: str, row: int, *, by_filter: bool) -> bool:
        worksheet = self.workbook.sheets[sheet]
        return row in worksheet.hidden and (not by_filter or worksheet.is_filtered(row))

    def is_subtotal(self, sheet: str, row: int, column: int) -> bool:
        key = key_of(row, column)
        if key not in self.workbook.sheets[sheet].formulas:
            return False
        tree = self.workbook.tree(sheet, key)
        return calls(tree, "SUBTOTAL") or calls(tree, "AGGREGATE")

    # --- computing ---

    def read(self, sheet: str, row: int, column: int) -> Scalar:
        """The value of a cell; an error that names the cell if it cannot be computed."""
        root = (sheet, key_of(row, column))
        if not self.workbook.sheets[sheet].is_formula(root[1]) or root in self.computed:
            return self.value(sheet, row, column)
        self._prepare(root)
        return self.value(sheet, row, column)

    def _prepare(self, root: _Key) -> None:
        """Compute what a cell refers to, and what that refers to, innermost first."""
        started = {root}
        stack: list[tuple[_Key, Iterator[_Key]]] = [(root, self._uncomputed(root))]
        while stack:
            key, others = stack[-1]
            other = next(others, None)
            if other is None:
                stack.pop()
                self.open.discard(key)
                if key not in self.computed and stack:
                    try:
                        self.value(key[0], *place_of(key[1]))
                    except MillstreamError:
                        continue  # kept, or circular; whoever needs the cell will be told
            elif other not in started and other not in self.computed:
                started.add(other)
                stack.append((other, self._uncomputed(other)))

    def _uncomputed(self, key: _Key) -> Iterator[_Key]:
        sheet, place = key
        worksheet = self.workbook.sheets[sheet]
        place = worksheet.spilled.get(place, place)
        try:
            tree = self.workbook.tree(sheet, place)
        except MillstreamError:
            return
        row, column = place_of(place)
        yield from self._in_areas(areas_of(tree, self.workbook, row, column))
        if any(calls(tree, function) for function in COMPUTED_REFERENCES):
            # By now their arguments have been computed.
            yield from self._in_areas(self._referred(tree, self._context(sheet, place)))

    def _in_areas(self, areas: Iterable[Rectangle]) -> Iterator[_Key]:
        for area in areas:
            if area in self.ready:
                continue
            yield from self._formulas_in(area)
            if (area[1], area[2]) != (area[3], area[4]):
                self.ready.add(area)

    def _referred(self, tree: Node, context: Context) -> list[Rectangle]:
        """What a formula with INDIRECT or OFFSET refers to; nothing if that cannot be told."""
        try:
            return list(areas_of(resolved(tree, context), self.workbook))
        except (Raised, Unsupported, MillstreamError):
            return []  # whoever needs the cell will be told

    def _formulas_in(self, area: Rectangle) -> Iterator[_Key]:
        sheet, top, left, bottom, right = area
        worksheet = self.workbook.sheets[sheet]
        if not worksheet.formulas:
            return
        for row, column in worksheet.filled(top, left, bottom, right):
            key = key_of(row, column)
            if worksheet.is_formula(key):
                yield sheet, key

    def _compute(self, sheet: str, key: int) -> Scalar | MillstreamError:
        worksheet = self.workbook.sheets[sheet]
        home = worksheet.spilled.get(key, key)
        result: Any
        try:
            if worksheet.formulas[home].array is None:
                result = value_of(self.workbook.tree(sheet, home), self._context(sheet, home))
            else:
                result = self._element(sheet, home, key)
        except Circular as circle:
            # Another cell may be read for which the circle is not one: do not keep this.
            return circle
        except Unsupported as reason:
            result = CheckError(self._told(reason), place=self.workbook.place(sheet, home))
        except MillstreamError as error:
            result = error
        self.computed[sheet, key] = result
        return result  # type: ignore[no-any-return]

    def _told(self, reason: Unsupported) -> str:
        macros = "; the macros of a workbook are not run" if self.workbook.has_macros else ""
        return f"{reason}{macros}"

    def _element(self, sheet: str, home: int, key: int) -> Scalar:
        """What an array formula puts into one of its cells."""
        if (sheet, home) not in self.arrays:
            refused = self.workbook.sheets[sheet].formulas[home].refused
            if refused is not None:
                raise Unsupported(refused)
            tree = self.workbook.tree(sheet, home)
            self.arrays[sheet, home] = array_of(tree, self._context(sheet, home))
        array = self.arrays[sheet, home]
        (top, left), (row, column) = place_of(home), place_of(key)
        i = 0 if array.height == 1 else row - top
        j = 0 if array.width == 1 else column - left
        return array.at(i, j) if i < array.height and j < array.width else NA

    def _context(self, sheet: str, key: int) -> Context:
        row, column = place_of(key)
        uses_1904 = self.workbook.uses_1904
        return Context(self, self.workbook, sheet, row, column, uses_1904=uses_1904)

    def _circular(self, sheet: str, key: int) -> Circular:
        return Circular(
            "the value of this cell depends on itself",
            place=self.workbook.place(sheet, key),
            hint="only PRE may close a circle of references",
        )


def calls(node: Node, function: str) -> bool:
    """Is a function called anywhere in a formula?"""
    if isinstance(node, Call) and node.function == function:
        return True
    return any(calls(child, function) for child in children(node))
