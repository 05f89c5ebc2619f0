"""Parts of formulas that a loop calls out for: those that have no compiled form.

A part is called with the values that it is made of, and what it gives is kept by them (`calls`):
most tuples only look it up. One with windows is called whenever it is wanted, and looks into
them. Which parts these are is found while the kinds of cells are: whatever
cannot be compiled is called, as a whole, so that of nested ones only the outermost is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from millstream.calculus.sheet_kinds import formula_kinds
from millstream.calculus.sheets import HIDDEN_SHEET, Address, Computed
from millstream.kernels.sheets.operands import Operand, held_as, refuse_if
from millstream.kernels.sheets.scalar_parts import ALIKE, OF_PLACES, gives_one_value, is_scalar
from millstream.values.excel.kinds import Kind, Kinds
from millstream.values.excel.syntax import (
    Binary,
    Call,
    Cell,
    Group,
    Literal,
    Node,
    Range,
    Unary,
    WindowOf,
    children,
    rebuilt,
)
from millstream.values.excel.values import Scalar

#: What is made of more values is not called: it would hardly ever be found again.
_MOST = 24
#: The rows of cells that stand for parts of formulas; hidden cells of a sheet come before.
_FIRST_ROW = 500_000


@dataclass(frozen=True)
class Site:
    """A part of the formula of a cell, and what it is made of."""

    number: int
    #: The cell in whose formula it stands.
    place: Address
    rule: Computed
    #: Is it all of the formula? Then what is empty is zero.
    is_whole: bool
    #: The parts of it that the loop computes, where they stand in `rule`, and what they hold.
    leaves: tuple[Node, ...]
    addresses: tuple[Address, ...]
    kinds: tuple[Kind, ...]
    #: What it gives.
    kind: Kind
    may_be_empty: bool
    reason: str
    #: The windows whose content it looks at.
    windows: tuple[Address, ...] = ()
    #: Is it called only for values for which its compiled form has none?
    is_seldom: bool = False

    @property
    def shows_zero(self) -> bool:
        """May it be the number zero, as which a cell of texts or booleans shows what is empty?"""
        is_other = self.kind in (Kind.TEXT, Kind.BOOLEAN)
        return self.is_whole and self.may_be_empty and is_other


@dataclass
class Sites:
    """Mutable: the parts that are called, as they are found."""

    kinds: Mapping[Address, Kinds]
    constant: Callable[[Address], Scalar]
    #: The cells of which something may be called.
    open: frozenset[Address]
    found: dict[tuple[Address, Node], Site] = field(default_factory=dict)
    #: What parts that are compiled hold.
    compiled: dict[tuple[Address, Node], Operand] = field(default_factory=dict)

    def at(self, place: Address | None, node: Node) -> Site | None:
        return None if place is None else self.found.get((place, node))

    def otherwise(self, place: Address | None, node: Node) -> Site | None:
        return self.at(place, _otherwise(node))

    def add(
        self, place: Address, rule: Computed, reason: str, *, is_whole: bool,
        is_otherwise: bool = False, is_seldom: bool = False,
    ) -> Site:  # fmt: skip
        """A part that is called from now on; what cannot be called is not compiled at all.

        One that is called `otherwise` has a compiled form, too, which is not for all values.
        """
        refuse_if(place not in self.open and not is_otherwise, reason)
        node = rule.formula
        refuse_if(not is_whole and not gives_one_value(node), reason)
        leaves: dict[Node, Address] = {}
        if rule.is_array:
            for cell in self._cells(node):
                leaves[cell] = (cell.sheet, cell.row, cell.column)
        else:
            node = self._with_leaves(node, place, node, leaves)
        refuse_if(len(leaves) > _MOST, reason)
        kinds = formula_kinds(rule.formula, self.kinds, self.constant)
        site = Site(
            len(self.found), place, Computed(node, rule.is_array, rule.element), is_whole,
            tuple(leaves), tuple(leaves.values()),
            tuple(self._kind(place, leaf) for leaf in leaves),
            held_as(kinds), Kind.EMPTY in kinds, reason, tuple(dict.fromkeys(_windows(node))),
            is_seldom,
        )  # fmt: skip
        self.found[place, _otherwise(rule.formula) if is_otherwise else rule.formula] = site
        return site

    def number_in(self, place: Address | None, kind: Kind) -> Site:
        """What a text is where a number is wanted."""
        refuse_if(place not in self.open, "a text where a number is wanted")
        leaf = Cell(HIDDEN_SHEET, _FIRST_ROW, 1)
        address, rule = (HIDDEN_SHEET, _FIRST_ROW, 1), Computed(Binary("+", leaf, Literal(0.0)))
        key = (address, Group(Literal(kind.value)))
        site = self.found.get(key)
        if site is None:
            site = self.found[key] = Site(
                len(self.found), address, rule, False, (), (address,), (kind,), Kind.NUMBER, False,
                "a text where a number is wanted",
            )  # fmt: skip
        return site

    def _kind(self, place: Address, leaf: Node) -> Kind:
        if isinstance(leaf, Cell):
            return held_as(self.kinds[leaf.sheet, leaf.row, leaf.column])
        return self.compiled[place, leaf].kind

    def _with_leaves(
        self, node: Node, place: Address, parent: Node, leaves: dict[Node, Address]
    ) -> Node:
        """The part with cells instead of what the loop computes for it."""
        if isinstance(node, (Cell, Range)):
            for cell in self._cells(node):
                leaves[cell] = (cell.sheet, cell.row, cell.column)
            return node
        if node is not parent and self._is_leaf(node, place, parent):
            address = leaves.setdefault(node, (HIDDEN_SHEET, _FIRST_ROW + len(leaves), 1))
            return Cell(*address)
        if isinstance(node, Call) and node.function in OF_PLACES:
            for cell in self._cells(node):
                leaves[cell] = (cell.sheet, cell.row, cell.column)
            return node
        return rebuilt(node, lambda child: self._with_leaves(child, place, node, leaves))

    def _is_leaf(self, node: Node, place: Address, parent: Node) -> bool:
        """Is it computed by the loop, and the same to the rest if it stands in a cell?"""
        operand = self.compiled.get((place, node))
        if operand is None or not isinstance(node, (Call, Binary)) or not is_scalar(node):
            return False
        if operand.may_be_empty or operand.shows_zero:
            return False
        if not (any(_windows(node)) or any(self._cells(node))):
            return False
        is_same = not isinstance(parent, Call) or parent.function in ALIKE
        return operand.kind is Kind.NUMBER or (operand.kind is not Kind.MIXED and is_same)

    def _cells(self, node: Node) -> Iterator[Cell]:
        """The cells that change and that a part names."""
        match node:
            case Cell(sheet, row, column):
                if (sheet, row, column) in self.kinds:
                    yield Cell(sheet, row, column)
            case Range(first, last):
                for sheet, row, column in self.kinds:
                    if (sheet == first.sheet and first.row <= row <= last.row
                            and first.column <= column <= last.column):  # fmt: skip
                        yield Cell(sheet, row, column)
        for child in children(node):
            yield from self._cells(child)


def _otherwise(node: Node) -> Node:
    """Under what a part is found that is called for some values only: nothing that is written."""
    return Unary("otherwise", node)


def _windows(node: Node) -> Iterator[Address]:
    if isinstance(node, WindowOf):
        yield (node.cell.sheet, node.cell.row, node.cell.column)
    for child in children(node):
        yield from _windows(child)
