"""Static kinds of the cells of a sheet, from the types of the columns that feed it.

What is empty stays a kind of its own, although a formula shows it as zero.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from millstream.calculus.sheets import (
    Address,
    Computed,
    CountWindow,
    Fed,
    Previous,
    Selected,
    SheetCell,
    TimeWindow,
)
from millstream.calculus.types import BOOLEAN, NUMBER, TEXT, Type
from millstream.calculus.types import Kind as ColumnKind
from millstream.values.excel.kinds import ANY, Kind, Kinds, Reference, kind_of, kinds_of
from millstream.values.excel.syntax import Cell, Name, Node, Range, WindowOf
from millstream.values.excel.values import Scalar

_OF_COLUMNS: dict[ColumnKind, Kinds] = {
    ColumnKind.TEXT: frozenset((Kind.TEXT, Kind.EMPTY)),
    ColumnKind.BOOLEAN: frozenset((Kind.BOOLEAN, Kind.EMPTY)),
    ColumnKind.NUMBER: frozenset((Kind.NUMBER, Kind.EMPTY, Kind.ERROR)),
}
_NUMBER = frozenset((Kind.NUMBER, Kind.EMPTY))


def cell_kinds(
    cells: Sequence[SheetCell],
    constants: Callable[[Address], Scalar],
    column_type: Callable[[Fed], Type],
) -> dict[Address, Kinds]:
    """What each cell that changes can hold; a fixed point, because of PRE."""
    changing = {c.address for c in cells}
    kinds: dict[Address, Kinds] = {a: frozenset() for a in changing}
    for _ in range(8):
        before = dict(kinds)
        for cell in cells:
            kinds[cell.address] |= _kinds(cell, kinds, constants, column_type)
        if kinds == before:
            return kinds
    return dict.fromkeys(kinds, ANY)


def _kinds(
    cell: SheetCell,
    kinds: Mapping[Address, Kinds],
    constants: Callable[[Address], Scalar],
    column_type: Callable[[Fed], Type],
) -> Kinds:
    def of(address: Address) -> Kinds:
        return _of_cell(address, kinds, constants)

    match cell.rule:
        case Fed():
            return _OF_COLUMNS.get(column_type(cell.rule).kind, _NUMBER)
        case Computed(formula, _, _):
            return formula_kinds(formula, kinds, constants)
        case TimeWindow(source, _, _) | CountWindow(source, _, _) | Selected(source, _):
            return of(source)
        case Previous(source, _, initial):
            return of(source) | {kind_of(initial)}


def _of_cell(
    address: Address, kinds: Mapping[Address, Kinds], constants: Callable[[Address], Scalar]
) -> Kinds:
    # A cell that has not ticked yet is seen as empty.
    if address in kinds:
        return kinds[address] | {Kind.EMPTY}
    return frozenset((kind_of(constants(address)),))


def formula_kinds(
    formula: Node, kinds: Mapping[Address, Kinds], constants: Callable[[Address], Scalar]
) -> Kinds:
    """What a formula can give, from what cells can hold."""

    def lookup(node: Reference) -> Kinds:
        if isinstance(node, Name):
            return ANY | {Kind.EMPTY}
        if isinstance(node, WindowOf):
            node = node.cell
        if isinstance(node, Cell):
            return _of_cell((node.sheet, node.row, node.column), kinds, constants)
        area = _addresses(node)
        if area is None:
            return ANY | {Kind.EMPTY}
        return frozenset().union(*(_of_cell(a, kinds, constants) for a in area))

    return kinds_of(formula, lookup)


def _addresses(node: Range) -> list[Address] | None:
    height = node.last.row - node.first.row + 1
    width = node.last.column - node.first.column + 1
    if height * width > 10_000:
        return None
    return [
        (node.sheet, row, column)
        for row in range(node.first.row, node.last.row + 1)
        for column in range(node.first.column, node.last.column + 1)
    ]


def column_type_of(kinds: Kinds) -> Type:
    """The type of an output column: what else a cell holds is text; errors are null."""
    plain = kinds - {Kind.ERROR, Kind.EMPTY}
    if plain <= {Kind.NUMBER}:
        return NUMBER
    return BOOLEAN if plain == {Kind.BOOLEAN} else TEXT
