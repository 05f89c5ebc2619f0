"""Where cells are: in a table while they change, in partitions of time when they are done."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from millstream.kernels.cube.cells import Cells, Measures, Packed, joined
from millstream.kernels.cube.grouping import Block
from millstream.kernels.cube.loops import Numbers, Rows, clear_cells
from millstream.kernels.cube.runs import give_up
from millstream.kernels.runtime.hashing import grown
from millstream.kernels.runtime.interning import IdTable
from millstream.kernels.runtime.kernel import State
from millstream.plan.batch import Array


def keys_of(codes: Array) -> Array:
    """Codes as the key of a table, which needs at least one word."""
    return codes if codes.shape[1] else np.zeros((len(codes), 1), np.int64)


class CellTable:
    """Mutable: cells by their codes, of so many words."""

    def __init__(self, width: int, measures: Measures) -> None:
        self.width = width
        self.measures = measures
        self.table = IdTable(max(width, 1))
        self.numbers = measures.numbers(0)

    def __len__(self) -> int:
        return self.table.size

    def ids(self, codes: Array) -> Array:
        """The cells of some codes; new ones are empty."""
        ids = self.table.ids(keys_of(codes))
        bound = self.table.bound
        if len(self.numbers.rows) < bound:
            rows, sums, _, extremes, known = self.numbers
            sums = grown(sums, bound)
            self.numbers = Numbers(
                grown(rows, bound), sums, sums.view(np.float64),
                grown(extremes, bound), grown(known, bound),
            )  # fmt: skip
        return ids

    def codes(self, ids: Array) -> Array:
        return self.table.records[ids, : self.width]

    def add_rows(self, codes: Array, rows: Rows) -> None:
        ids = self.ids(codes)
        self.measures.add_rows(rows, ids, self.numbers)

    def merge(self, cells: Cells) -> None:
        ids = self.ids(cells.codes)
        self.measures.merge(cells.numbers, ids, self.numbers)

    def cells(self) -> Cells:
        """A copy of all cells; of a table from which none was ever taken away."""
        bound = self.table.bound
        rows, sums, _, extremes, known = (array[:bound].copy() for array in self.numbers)
        numbers = Numbers(rows, sums, sums.view(np.float64), extremes, known)
        return Cells(self.table.records[:bound, : self.width].copy(), numbers)

    def drop(self, ids: Array) -> None:
        """Forget those of some cells that have no rows."""
        gone = ids[self.numbers.rows[ids] == 0]
        if len(gone):
            self.measures.forget(self.numbers, gone)
            for array in self.numbers:
                array[gone] = 0
            self.table.release(gone)

    def clear(self) -> None:
        """Forget all cells, whose wide sums others have now."""
        clear_cells(self.numbers, self.table.bound)
        self.table.clear()

    def snapshot(self) -> State:
        bound = self.table.bound
        kept = {name: array[:bound].copy() for name, array in self.numbers._asdict().items()}
        del kept["floats"]
        return {**self.table.snapshot(), **kept}

    def restore(self, state: State) -> None:
        self.table.restore(state)
        empty = self.measures.numbers(self.table.bound)
        for name, array in empty._asdict().items():
            if name != "floats":
                array[...] = np.array(state[name], array.dtype).reshape(array.shape)
        self.numbers = empty


class Partitions:
    """Mutable: the cells of parts of time that are over and still in the window, oldest first."""

    def __init__(self, width: int, measures: Measures) -> None:
        self.width = width
        self.measures = measures
        self.parts: dict[int, Packed] = {}
        self.size = 0

    def __len__(self) -> int:
        return self.size

    @property
    def bytes(self) -> int:
        return sum(packed.bytes for packed in self.parts.values())

    def push(self, indexes: Sequence[int], block: Block) -> None:
        """The cells of partitions that are over."""
        packed = self.measures.packed(block.cells)
        self.size += len(packed)
        for index, (a, b) in zip(indexes, pairwise(block.edges.tolist()), strict=True):
            self.parts[index] = packed.slice(a, b)

    def span(self, indexes: Sequence[int]) -> Block:
        """The cells of several partitions that there are."""
        parts = [self.parts[index] for index in indexes]
        edges = np.cumsum([0, *map(len, parts)])
        if parts:
            return Block(self.measures.unpacked(joined(parts)), edges)
        return Block(Cells(np.zeros((0, self.width), np.int64), self.measures.numbers(0)), edges)

    def get(self, index: int) -> Cells | None:
        """The cells of a partition, if there are any."""
        packed = self.parts.get(index)
        return None if packed is None else self.measures.unpacked(packed)

    def drop_until(self, index: int) -> None:
        """Forget the partitions up to this one."""
        while self.parts and (oldest := next(iter(self.parts))) <= index:
            packed = self.parts.pop(oldest)
            self.size -= len(packed)
            give_up(packed, self.measures)

    def put_back(self, index: int, packed: Packed) -> None:
        """A partition that was written down, after all that are there."""
        self.parts[index] = packed
        self.size += len(packed)

    def snapshot(self) -> State:
        cells = [self.measures.unpacked(packed) for packed in self.parts.values()]
        empty = Cells(np.zeros((0, self.width), np.int64), self.measures.numbers(0))
        kept = {
            name: np.concatenate([getattr(c.numbers, name) for c in (empty, *cells)])
            for name in ("rows", "sums", "extremes", "known")
        }
        return {
            "index": np.array(list(self.parts), np.int64),
            "length": np.array([len(c) for c in cells], np.int64),
            "codes": np.concatenate([c.codes for c in (empty, *cells)]),
            **kept,
        }

    def restore(self, state: State) -> None:
        self.parts.clear()
        self.size = 0
        lengths = np.array(state["length"], np.int64).tolist()
        whole = self.measures.numbers(sum(lengths))
        codes = np.array(state["codes"], np.int64).reshape(sum(lengths), self.width)
        for name in ("rows", "sums", "extremes", "known"):
            array = getattr(whole, name)
            array[...] = np.array(state[name], array.dtype).reshape(array.shape)
        indexes = np.array(state["index"], np.int64).tolist()
        edges = np.cumsum([0, *lengths]).tolist()
        # Each for itself, so that none has more words than it needs.
        for index, (a, b) in zip(indexes, pairwise(edges), strict=True):
            part = Cells(codes[a:b], Numbers(*(array[a:b] for array in whole)))
            self.push([index], Block(part, np.array([0, b - a])))
