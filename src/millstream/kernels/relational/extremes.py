"""The state of min and max: which values each group has, and how many rows have them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from millstream.calculus.types import Kind, Type
from millstream.kernels.runtime.hashing import dead_ids, grown, numbers_of, words_of_numbers
from millstream.kernels.runtime.interning import IdTable
from millstream.kernels.runtime.interning_text import TextPool
from millstream.kernels.runtime.kernel import Composed, State
from millstream.kernels.windows.heap import HEAP, KEY, NODE, ROWS, VALUE, Heaps
from millstream.plan.batch import DTYPES, Array, Vector


class Extremes(Composed):
    """Mutable. Several extremes of the same groups; `kinds` are (min or max, type)."""

    def __init__(self, kinds: Sequence[tuple[str, Type]]) -> None:
        self.kinds = tuple(kinds)
        self.signs = np.array([1 if f == "min" else -1 for f, _ in kinds], np.int64)
        self.is_text = np.array([t.kind is Kind.TEXT for _, t in kinds], np.bool_)
        self.pool = TextPool()
        self.table = IdTable(KEY, NODE - KEY)
        self.parts = {"table": self.table, "pool": self.pool}
        self.roots = np.zeros(0, np.int64)

    def heaps(self, groups: int) -> Heaps:
        """The arrays for the loops, with room for so many groups."""
        self.roots = grown(self.roots, groups * len(self.kinds))
        return Heaps(self.table.records, self.roots, self.signs, self.is_text, self.pool.texts)

    def node_ids(self, groups: Array, vectors: Sequence[Vector]) -> Array:
        """The node of each row and kind, -1 for null; nodes yet unknown are made."""
        ids = np.full((len(groups), len(self.kinds)), -1, np.int64)
        for number, vector in enumerate(vectors):
            values = self._words(vector)
            valid = np.flatnonzero(vector.mask())
            words = np.empty((len(valid), 2), np.int64)
            words[:, 0] = groups[valid] * len(self.kinds) + number
            words[:, 1] = values[valid]
            ids[valid, number] = self.table.ids(words)
        return ids

    def _words(self, vector: Vector) -> Array:
        if vector.is_text:
            return self.pool.codes(vector.values)
        if vector.type.kind is Kind.NUMBER:
            return words_of_numbers(vector.values)
        return np.asarray(vector.values, np.int64)

    def vector(self, number: int, words: Array, valid: Array) -> Vector:
        """Words of a kind, as the heaps have them, as values."""
        type_ = self.kinds[number][1]
        if type_.kind is Kind.TEXT:
            return Vector(type_, self.pool.array(np.where(valid, words, -1)))
        known = None if valid.all() else valid
        if type_.kind is Kind.NUMBER:
            return Vector(type_, numbers_of(words), known)
        return Vector(type_, words.astype(DTYPES[type_.kind]), known)

    def release(self, used: Array) -> None:
        """Forget those of the nodes used in a round that have no rows left."""
        self.table.release(dead_ids(used.ravel(), self.table.records, ROWS))
        if self.is_text.any() and self.pool.wants_sweep():
            nodes = self.table.records[: self.table.bound]
            marks = self.pool.marks()
            marks[nodes[self.is_text[nodes[:, HEAP] % len(self.kinds)], VALUE]] = True
            self.pool.sweep(marks)

    def snapshot(self) -> State:
        return super().snapshot() | {"roots": np.trim_zeros(self.roots, "b")}

    def restore(self, state: State) -> None:
        super().restore(state)
        self.roots = np.array(state["roots"], np.int64)
