"""SELECT of a formula, as the formula of what is selected: a message that an edge lets out.

    SELECT(f(a, b), c)  ->  f(SELECT(a, c), SELECT(b, c))

A formula is up to date with all that it names: it ticks when one of these does. As long as none of
them is there the formula is not, and SELECT does not tick. So a loop need not compute the formula
to select it: it selects what it is made of, and the rest is computed of what the loop has sent.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from millstream.calculus.sheets import (
    HIDDEN_SHEET,
    Address,
    Computed,
    Selected,
    SheetCell,
)
from millstream.values.excel.syntax import Cell, Node, Range, children, rebuilt

Cells = dict[Address, SheetCell]


def select_parts(cells: Cells, address: Address, outside: Collection[Address]) -> Cells:
    """The cells, in order, where one that selects is a formula, of what the loop selects.

    What is `outside` is no cell of the loop: its formula is taken in turn.
    """
    rule = cells[address].rule
    assert isinstance(rule, Selected)
    parts = _Parts(cells, rule.condition, outside)
    made = parts.formula(rule.source, address)
    changed: Cells = {}
    for one, cell in cells.items():
        if one == address:
            changed |= {c.address: c for c in parts.new}
        changed[one] = made if one == address else cell
    return changed


def can_select_parts(cell: SheetCell) -> bool:
    """Does the formula of a cell name each of its cells by itself?"""
    return (
        isinstance(cell.rule, Computed)
        and not cell.rule.is_array
        and bool(cell.refers_to)
        and not _has_range(cell.rule.formula)
    )


@dataclass
class _Parts:
    """Mutable: the cells that are made for one condition."""

    cells: Mapping[Address, SheetCell]
    condition: Address
    outside: Collection[Address]
    new: list[SheetCell] = field(default_factory=list)
    made: dict[Address, Address] = field(default_factory=dict)

    def formula(self, source: Address, address: Address) -> SheetCell:
        """A cell with the formula of another, over what is selected."""
        cell = self.cells[source]
        assert isinstance(cell.rule, Computed)
        refers = {a: self._selected(a) for a in cell.refers_to}

        def over(node: Node) -> Node:
            if isinstance(node, Cell):
                place = (node.sheet, node.row, node.column)
                return Cell(*refers.get(place, place))
            return rebuilt(node, over)

        return SheetCell(address, Computed(over(cell.rule.formula)), tuple(refers.values()))

    def _selected(self, address: Address) -> Address:
        if address not in self.made:
            if address in self.outside:
                self.new.append(self.formula(address, self._fresh(address)))
            else:
                rule = Selected(address, self.condition)
                self.new.append(SheetCell(self._fresh(address), rule))
        return self.made[address]

    def _fresh(self, address: Address) -> Address:
        rows = (row for sheet, row, _ in self.cells if sheet == HIDDEN_SHEET)
        place = (HIDDEN_SHEET, 1 + max(rows, default=0) + len(self.made), 1)
        self.made[address] = place
        return place


def _has_range(node: Node) -> bool:
    return isinstance(node, Range) or any(map(_has_range, children(node)))
