"""Large sheets: cells lie in memory, formulas that were filled down a column become a loop.

A small sheet is one piece of code in which every cell is a variable; its size is what it takes
to compile. In a large sheet each worksheet column is a stretch of memory, so that a formula and
its copy in the next row differ by one place; and what is left is cut into several functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from millstream.calculus.sheets import Address, Computed, SheetCell, Windows
from millstream.kernels.sheets.operands import EMPTY, refuse_if
from millstream.plan.batch import Array
from millstream.values.excel.syntax import (
    Cell,
    Node,
    Range,
    WindowOf,
    children,
    rebuilt,
    shifted,
)

#: Appended to the name of a worksheet where a reference moves with the row of a loop.
MOVING = "\0"
_MAX_MEMORY = 1_000_000
_LEAST_RUN = 4
#: How many statements go into one function.
_PIECE = 120


@dataclass
class CellMemory:
    """Where cells lie: every column from the first row that is used to the last."""

    starts: dict[tuple[str, int], int] = field(default_factory=dict)
    size: int = 1

    def place(self, address: Address) -> int:
        sheet, row, column = address
        return self.starts[sheet, column] + row

    @classmethod
    def of(cls, addresses: Iterable[Address]) -> CellMemory:
        spans: dict[tuple[str, int], tuple[int, int]] = {}
        for sheet, row, column in addresses:
            low, high = spans.get((sheet, column), (row, row))
            spans[sheet, column] = (min(low, row), max(high, row))
        memory = cls()
        for key, (low, high) in spans.items():
            memory.starts[key] = memory.size - low
            memory.size += high - low + 1
        refuse_if(memory.size > _MAX_MEMORY, "its cells lie too far apart")
        return memory

    def arrays(self) -> tuple[Array, Array]:
        """Values and statuses; nothing is there yet."""
        return np.zeros(self.size), np.full(self.size, EMPTY, np.int64)


@dataclass(frozen=True)
class Bundle:
    """Cells of several columns, each a formula filled down the same rows: a loop over rows.

    `first` are the cells of the first row, in the order in which a row computes them.
    """

    first: tuple[SheetCell, ...]
    cells: tuple[SheetCell, ...]
    count: int


Step = SheetCell | Bundle


def steps_of(cells: Sequence[SheetCell], levels: dict[Address, int]) -> list[Step]:
    """All cells in order, with loops where there can be any."""
    steps: list[Step] = []
    segment: list[SheetCell] = []
    level = -1
    for cell in cells:
        is_window = isinstance(cell.rule, Windows)
        if is_window or levels[cell.address] != level:
            steps += _ordered(segment)
            segment = []
            level = levels[cell.address]
        if is_window:
            steps.append(cell)
        else:
            segment.append(cell)
    return steps + _ordered(segment)


def _ordered(segment: list[SheetCell]) -> list[Step]:
    """The cells of one level, bundles being one step where that leaves no circle."""
    bundles = _bundles(segment)
    while True:
        steps = _sorted(segment, bundles)
        if steps is not None:
            return steps
        bundles.pop()


def _bundles(segment: list[SheetCell]) -> list[Bundle]:
    by_address = {c.address: c for c in segment if _can_repeat(c)}
    columns: dict[tuple[str, int, int], list[list[SheetCell]]] = {}
    for cell in by_address.values():
        above = _moved(cell.address, -1)
        if above in by_address and _is_copy(by_address[above], cell):
            continue
        run = [cell]
        while (following := by_address.get(_moved(run[-1].address, 1))) is not None and (
            _is_copy(run[-1], following)
        ):
            run.append(following)
        if len(run) >= _LEAST_RUN:
            sheet, row, _ = cell.address
            columns.setdefault((sheet, row, len(run)), []).append(run)
    bundles = (_bundle(runs) for runs in columns.values())
    return [b for b in bundles if b is not None]


def _can_repeat(cell: SheetCell) -> bool:
    rule = cell.rule
    return isinstance(rule, Computed) and not rule.is_array and _is_plain(rule.formula)


def _is_plain(node: Node) -> bool:
    """No window, and no range of which one corner moves and the other does not."""
    if isinstance(node, WindowOf):
        return False
    if isinstance(node, Range):
        return node.first.row_fixed == node.last.row_fixed
    return all(_is_plain(n) for n in children(node))


def _moved(address: Address, rows: int) -> Address:
    return (address[0], address[1] + rows, address[2])


def _is_copy(above: SheetCell, below: SheetCell) -> bool:
    assert isinstance(above.rule, Computed)
    assert isinstance(below.rule, Computed)
    return shifted(above.rule.formula, 1, 0) == below.rule.formula


def _bundle(runs: list[list[SheetCell]]) -> Bundle | None:
    """Columns of the same rows as one loop: a row needs itself or earlier ones only."""
    mine = {c.address for run in runs for c in run}
    first = {run[0].address: run[0] for run in runs}
    needs: dict[Address, set[Address]] = {}
    for run in runs:
        row = run[0].address[1]
        needs[run[0].address] = set()
        for address in run[-1].refers_to:
            offset = address[1] - run[-1].address[1]
            if address not in mine:
                continue
            if offset > 0:
                return None
            if offset == 0:
                needs[run[0].address].add((address[0], row, address[2]))
        # What does not move may not lie in the loop: it is not there yet in early rows.
        if set(run[0].refers_to) & set(run[-1].refers_to) & mine:
            return None
    order: list[SheetCell] = []
    while needs:
        free = [a for a, some in needs.items() if not some]
        if not free:
            return None
        for address in free:
            del needs[address]
            order.append(first[address])
        for some in needs.values():
            some.difference_update(free)
    return Bundle(tuple(order), tuple(c for run in runs for c in run), len(runs[0]))


def _sorted(segment: list[SheetCell], bundles: list[Bundle]) -> list[Step] | None:
    """An order of steps in which everything comes after what it needs; None if there is none."""
    owner: dict[Address, int] = {}
    steps: list[Step] = []
    bundled = {c.address: b for b in bundles for c in b.cells}
    for cell in segment:
        if cell.address in owner:
            continue
        bundle = bundled.get(cell.address)
        for address in [cell.address] if bundle is None else [c.address for c in bundle.cells]:
            owner[address] = len(steps)
        steps.append(bundle or cell)
    needs: list[set[int]] = []
    for number, step in enumerate(steps):
        cells = step.cells if isinstance(step, Bundle) else (step,)
        needed = {owner[a] for c in cells for a in c.needs if a in owner}
        needs.append(needed - {number})
    return _by_need(steps, needs)


def _by_need(steps: list[Step], needs: list[set[int]]) -> list[Step] | None:
    users: dict[int, list[int]] = {}
    for number, some in enumerate(needs):
        for other in some:
            users.setdefault(other, []).append(number)
    left = [len(some) for some in needs]
    ready = [n for n, count in enumerate(left) if count == 0]
    order: list[Step] = []
    for number in ready:  # grows while it is read
        order.append(steps[number])
        for user in users.get(number, ()):
            left[user] -= 1
            if left[user] == 0:
                ready.append(user)
    return order if len(order) == len(steps) else None


def moving(node: Node) -> Node:
    """A formula in which references that move with the row are marked."""
    match node:
        case Cell(sheet, _, _, False, _):
            return replace(node, sheet=sheet + MOVING)
        case Range(first, last):
            start, end = moving(first), moving(last)
            assert isinstance(start, Cell)
            assert isinstance(end, Cell)
            return Range(start, end)
        case _:
            return rebuilt(node, moving)


def offsets(cell: SheetCell) -> list[tuple[Address, int]]:
    """The references of a formula that move with its row, and how many rows lie between."""
    assert isinstance(cell.rule, Computed)
    movable: list[tuple[Address, int]] = []

    def look(node: Node) -> None:
        match node:
            case Cell(sheet, row, column, False, _):
                movable.append(((sheet, row, column), row - cell.address[1]))
            case Range(first, last):
                rows = range(first.row, last.row + 1)
                columns = range(first.column, last.column + 1)
                if not first.row_fixed:
                    movable.extend(
                        ((first.sheet, r, c), r - cell.address[1]) for r in rows for c in columns
                    )
            case _:
                for child in children(node):
                    look(child)

    look(cell.rule.formula)
    return movable


def pieces(blocks: list[list[str]]) -> list[list[str]]:
    """Blocks of statements put together to functions of a fair size."""
    functions: list[list[str]] = []
    for block in blocks:
        if not functions or len(functions[-1]) + len(block) > _PIECE:
            functions.append([])
        functions[-1].extend(block)
    return functions
