"""What a cube counts by hidden keys: distinct values, exactly and nearly, and quantiles.

A tally is a layer of cells of its own, whose codes have the hidden key after those of the members:
it is put together, kept and expired as the cells of measures are, and only looked at where a
measure is told.
"""

from __future__ import annotations

import numpy as np

from millstream.calculus.types import Schema, Type
from millstream.kernels.cube.cells import Cells, Measures
from millstream.kernels.cube.grouping import Block, find_cells
from millstream.kernels.relational.hidden_keys import CountedKeys, HiddenKeys
from millstream.kernels.runtime.hashing import frozen
from millstream.plan.batch import Array


class CellTally(HiddenKeys):
    """Mutable: hidden keys, and how their cells are counted."""

    def __init__(self, function: str, column: str, type_: Type) -> None:
        super().__init__(function, column, type_)
        self.measures = Measures((), Schema(()))
        self.parts = {"measures": self.measures, **self.parts}

    def tell_cells(
        self, cells: tuple[Array, Array], given: Block, words: Array, valid: Array
    ) -> None:
        """The measures of cells, by codes and edges, from those of a layer at the same codes."""
        codes, edges = cells
        codes_there = given.cells.codes
        ids = find_cells(frozen(codes), frozen(edges), frozen(codes_there[:, :-1]), given.edges)
        self.tell(CountedKeys(ids, codes_there[:, -1], given.cells.numbers.rows), words, valid)


def as_one(codes: Array, given: Block) -> Block:
    """Cells of several partitions as if they were of one, by other codes."""
    return Block(Cells(codes, given.cells.numbers), np.array([0, len(codes)]))
