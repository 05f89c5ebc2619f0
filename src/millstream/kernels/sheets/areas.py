"""Areas of cells, value by value: `SUMPRODUCT((A1:A9=B1)*C1:C9)`, `STDEV(A1:D1)`, `IRR(A1:E1)`.

Cells that never change stand in tables that a loop goes along; where one of the cells changes, the
statements are written once for each place. What looks at numbers more than once gets them gathered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from millstream.calculus.sheets import Address
from millstream.kernels.sheets.aggregates import Surroundings
from millstream.kernels.sheets.formulas_tables import addresses
from millstream.kernels.sheets.operands import EMPTY, Operand, as_mixed, refuse_if
from millstream.kernels.sheets.operands import constant as plain_constant
from millstream.kernels.sheets.scalar_parts import is_scalar
from millstream.kernels.sheets.scanned import FOLDED, SAMPLES, OfValues
from millstream.values.excel.elementwise import aggregates, is_elementwise
from millstream.values.excel.kinds import Kind
from millstream.values.excel.syntax import Call, Cell, Group, Literal, Node, Range, children

#: Longer tables are not gone along for each tuple: outside of the loop they have an index.
_LONGEST = 256
#: Statements are written for so many places at most.
_MOST_WRITTEN = 40


def names_areas(node: Node) -> bool:
    """Are there areas in it of which it takes value by value?"""
    if isinstance(node, Call):
        return any(names_areas(a) for n, a in enumerate(node.arguments) if not aggregates(node, n))
    return isinstance(node, Range) or any(map(names_areas, children(node)))


def is_of_areas(function: str, arguments: tuple[Node, ...], *, is_array: bool) -> bool:
    """Is it an aggregate of a formula over areas? Most take those in array formulas only."""
    formulas = [n for n in map(_bare, arguments) if not isinstance(n, Range) and names_areas(n)]
    if function == "SUMPRODUCT":
        return bool(formulas)
    is_one = len(arguments) == 1 or function in SAMPLES
    return is_array and is_one and bool(formulas) and function in (*FOLDED, *SAMPLES)


def _bare(node: Node) -> Node:
    while isinstance(node, Group):
        node = node.inner
    return node


@dataclass(frozen=True)
class Places:
    """Areas of one shape side by side, and what is the same at all places."""

    cells: dict[Range, list[Address]]
    known: dict[Node, Operand]

    @property
    def count(self) -> int:
        return len(next(iter(self.cells.values())))


class Areas:
    """Generates statements for all places of areas.

    `compute` gives the value of what is the same at all of them, `formulas` makes the compiler of
    formulas for one place, given what is known there.
    """

    def __init__(
        self, around: Surroundings, compute: Callable[[Node], Operand],
        formulas: Callable[[dict[Node, Operand]], OfValues],
    ) -> None:  # fmt: skip
        self.around = around
        self.lines = around.lines
        self.compute = compute
        self.formulas = formulas

    def elements(self, nodes: Sequence[Node]) -> Places:
        known: dict[Node, Operand] = {}
        areas = dict.fromkeys(a for node in nodes for a in self._areas(node, known))
        refuse_if(len({_shape(area) for area in areas}) != 1, "areas of other shapes")
        return Places({area: addresses(area) for area in areas}, known)

    def _areas(self, node: Node, known: dict[Node, Operand]) -> Iterator[Range]:
        if isinstance(node, Range):
            yield node
        elif not names_areas(node):
            refuse_if(not is_scalar(node), "several values in a formula over areas")
            if not isinstance(node, (Literal, Cell)):
                known[node] = self.compute(node)
        else:
            refuse_if(not is_elementwise(node), "a function of arrays of areas")
            for child in children(node):
                yield from self._areas(child, known)

    def each(self, places: Places) -> Iterator[OfValues]:
        """While one is given, statements are made for one place or for one after another."""
        if all(self._never_changes(cells) for cells in places.cells.values()):
            yield from self._along(places)
            return
        refuse_if(places.count > _MOST_WRITTEN, f"areas of more than {_MOST_WRITTEN} cells")
        for n in range(places.count):
            here: dict[Node, Operand] = {
                area: self.cell(cells[n]) for area, cells in places.cells.items()
            }
            yield self.formulas({**places.known, **here})

    def _never_changes(self, cells: list[Address]) -> bool:
        return all(self.around.cell(address) is None for address in cells)

    def _along(self, places: Places) -> Iterator[OfValues]:
        refuse_if(places.count > _LONGEST, f"tables of more than {_LONGEST} cells")
        place, _ = self.lines.fresh()
        self.lines.add(f"for {place} in range({places.count}):")
        self.lines.depth += 1
        here: dict[Node, Operand] = {
            a: self._read(self._table(cells), place) for a, cells in places.cells.items()
        }
        yield self.formulas({**places.known, **here})
        self.lines.depth -= 1

    def cell(self, address: Address) -> Operand:
        operand = self.around.cell(address)
        if operand is None:
            operand = plain_constant(self.around.fixed(address), self.around.texts)
        return replace(operand, is_reference=True, is_left_out=False)

    def kinds(self, cells: list[Address]) -> set[Kind]:
        """What cells hold, as far as they hold something."""
        operands = [self.cell(address) for address in cells]
        refuse_if(any(o.shows_zero for o in operands), "what may be an empty cell shown as zero")
        return {o.kind for o in operands if not o.status.isdigit() or o.is_sure}

    def _table(self, cells: list[Address]) -> list[Operand]:
        """Constants as values of one kind."""
        constants = [self.cell(address) for address in cells]
        kinds = self.kinds(cells)
        if len(kinds) > 1:
            return [as_mixed(c) for c in constants]
        kind = next(iter(kinds), Kind.NUMBER)
        return [replace(c, kind=kind) for c in constants]

    def _read(self, table: list[Operand], place: str) -> Operand:
        values = self.lines.array(tuple(float(c.value) for c in table))
        value, status = self.lines.fresh()
        self.lines.add(f"{value} = {values}[{place}]")
        kind = table[0].kind
        if all(c.is_sure for c in table):
            return Operand(kind, value, is_reference=True, may_be_empty=False)
        statuses = self.lines.array(tuple(float(c.status) for c in table))
        self.lines.add(f"{status} = np.int64({statuses}[{place}])")
        is_there = all(int(c.status) != EMPTY for c in table)
        return Operand(kind, value, status, is_reference=True, may_be_empty=not is_there)


def _shape(area: Range) -> tuple[int, int]:
    return area.last.row - area.first.row, area.last.column - area.first.column
