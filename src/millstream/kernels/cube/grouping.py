"""Many partitions of time put into cells at once: one loop for all of them, one small table.

Cells of a partition lie together, in the order in which they are first met. What lies in a slot
of the table is the number of a cell; one that is below the first cell of its partition is of an
earlier one, and the slot is free. So the table is never emptied, and stays in the caches.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from millstream.compiled import inlined, tight
from millstream.kernels.cube.cells import Cells, Measures
from millstream.kernels.cube.loops import Numbers, Rows
from millstream.kernels.runtime.hashing import frozen, hash_row
from millstream.plan.batch import Array


@dataclass(frozen=True, slots=True)
class Block:
    """Cells of several partitions, one after the other; where each begins, and the end."""

    cells: Cells
    edges: Array

    def __len__(self) -> int:
        return len(self.cells)


@inlined
def _are_same(codes: Array, one: int, other: int) -> bool:
    for j in range(codes.shape[1]):  # noqa: SIM110  numba does not compile all()
        if codes[one, j] != codes[other, j]:
            return False
    return True


@tight
def group_codes(
    codes: Array, edges: Array, slots: Array, ids: Array, firsts: Array, starts: Array
) -> int:
    """The cell of each row of codes, and the first row of each cell; how many cells there are."""
    mask = slots.size - 1
    width = codes.shape[1]
    count = 0
    for part in range(edges.size - 1):
        base = count
        starts[part] = base
        for i in range(edges[part], edges[part + 1]):
            # A single number is as good a place as any that could be made of it.
            place = (hash_row(codes, i, width) if width != 1 else codes[i, 0]) & mask
            while True:
                number = slots[place] - 1
                if number < base:
                    number = count
                    slots[place] = number + 1
                    firsts[number] = i
                    count += 1
                    break
                if _are_same(codes, i, firsts[number]):
                    break
                place = (place + 1) & mask
            ids[i] = number
    starts[edges.size - 1] = count
    return count


@inlined
def _is_found(codes: Array, one: int, others: Array, other: int) -> bool:
    for j in range(codes.shape[1]):  # noqa: SIM110  numba does not compile all()
        if codes[one, j] != others[other, j]:
            return False
    return True


@tight
def look_up_codes(
    codes: Array, edges: Array, asked: Array, asked_edges: Array, slots: Array, ids: Array
) -> None:
    """Which of the cells, no two of them alike in a partition, each of the codes asked is."""
    mask = slots.size - 1
    width = codes.shape[1]
    for part in range(edges.size - 1):
        for i in range(edges[part], edges[part + 1]):
            place = hash_row(codes, i, width) & mask
            while slots[place] > edges[part]:
                place = (place + 1) & mask
            slots[place] = i + 1
        for i in range(asked_edges[part], asked_edges[part + 1]):
            place = hash_row(asked, i, width) & mask
            ids[i] = -1
            while slots[place] > edges[part]:
                if _is_found(codes, slots[place] - 1, asked, i):
                    ids[i] = slots[place] - 1
                    break
                place = (place + 1) & mask


def find_cells(codes: Array, edges: Array, asked: Array, asked_edges: Array) -> Array:
    """The numbers of cells with the codes asked for, partition by partition; -1 for none."""
    slots, ids = _slots(edges), np.empty(len(asked), np.int64)
    look_up_codes(codes, edges, asked, frozen(asked_edges), slots, ids)
    return ids


def _slots(edges: Array) -> Array:
    """A table with room for twice the largest partition."""
    most = int(np.diff(edges).max(initial=0))
    return np.zeros(1 << max(6, (2 * most - 1).bit_length()), np.int64)


class Grouping:
    """How rows, and cells of finer vertices, become cells."""

    def __init__(self, measures: Measures) -> None:
        self.measures = measures

    def of_rows(self, codes: Array, edges: Array, rows: Rows) -> Block:
        ids, block = self._empty(codes, edges)
        self.measures.add_rows(rows, ids, block.cells.numbers)
        return block

    def of_cells(self, codes: Array, given: Block) -> Block:
        """Cells by other codes; those of a partition stay apart from those of others."""
        ids, block = self._empty(codes, given.edges)
        self.measures.merge(given.cells.numbers, ids, block.cells.numbers)
        return block

    def _empty(self, codes: Array, edges: Array) -> tuple[Array, Block]:
        """The cells that some codes have, with nothing in them yet."""
        codes = frozen(codes)
        slots = _slots(edges)
        ids, firsts = np.empty(len(codes), np.int64), np.empty(len(codes), np.int64)
        starts = np.empty(len(edges), np.int64)
        count = group_codes(codes, frozen(edges), slots, ids, firsts, starts)
        numbers: Numbers = self.measures.numbers(count)
        return ids, Block(Cells(codes.take(firsts[:count], axis=0), numbers), starts)
