"""Rows counted on columns, or a number added up for each: what tables do before all else.

As long as few combinations of values can come up, each has a cell of one array, found by
arithmetic: integers by how far they are from the least, texts by their codes. Otherwise rows are
told apart by their hashes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from millstream.calculus.types import Kind, Type
from millstream.compiled import tight
from millstream.kernels.runtime.hashing import frozen, padded
from millstream.kernels.runtime.interning import Interner
from millstream.kernels.runtime.interning_text import TextPool
from millstream.plan.batch import DTYPES, Array, Vector
from millstream.values.records.types import wrapped

#: There are at most so many cells.
_MOST_CELLS = 1 << 20
_IN_CELLS = (Kind.INTEGER, Kind.TIME, Kind.DURATION, Kind.BOOLEAN, Kind.TEXT)


class _Scattered(Exception):
    """The values of a column lie too far from each other to have cells."""


class _Axis:
    """Mutable: which numbers the values of one column have, from 0 up to `size`."""

    def __init__(self, type_: Type) -> None:
        self.type = type_
        self.low, self.size = 0, 0
        self.pool = TextPool() if type_.kind is Kind.TEXT else None

    def codes(self, vector: Vector) -> Array:
        """The values as integers, of which `place` makes numbers of cells."""
        if self.pool is not None:
            return self.pool.codes(vector.values)
        if vector.valid is not None:
            raise _Scattered
        return np.asarray(vector.values).astype(np.int64, copy=False)

    def widened(self, codes: Array) -> tuple[int, int]:
        """Where the numbers must begin, and how many there must be, for these values too."""
        low, high = int(codes.min()), int(codes.max()) + 1
        if self.pool is not None:
            if low < 0:
                raise _Scattered  # a text that is missing has no code
            high = self.pool.top
        if self.size and self.low <= low and high <= self.low + self.size:
            return self.low, self.size
        if not self.size:
            return low, high - low
        # With room to spare on the side that was too short, so that this is seldom done.
        first, last = min(low, self.low), max(high, self.low + self.size)
        spare = (last - first) // 2
        first = first if low >= self.low else max(first - spare, -(2**63))
        last = last if high <= self.low + self.size else last + spare
        return first, last - first

    def vector(self, numbers: Array) -> Vector:
        if self.pool is not None:
            return Vector(self.type, self.pool.array(numbers))
        return Vector(self.type, (numbers + self.low).astype(DTYPES[self.type.kind]))


class _Cells:
    """Mutable: one amount for each combination of values, and whether it came up."""

    def __init__(self, types: Sequence[Type]) -> None:
        if any(type_.kind not in _IN_CELLS for type_ in types):
            raise _Scattered
        self.axes = [_Axis(type_) for type_ in types]
        self.amounts = np.zeros(0, np.int64)
        self.seen = np.zeros(0, np.bool_)

    def add(self, columns: Sequence[Vector], values: Array | None) -> None:
        codes = [axis.codes(c) for axis, c in zip(self.axes, columns, strict=True)]
        cells = self._located(codes)
        if cells is None:
            self._widen([axis.widened(c) for axis, c in zip(self.axes, codes, strict=True)])
            cells = self._located(codes)
            assert cells is not None
        constant = 1 if values is None else _constant(values)
        if constant is not None:
            _count(cells, constant, self.amounts, self.seen)
        else:
            assert values is not None
            _add(cells, frozen(values), self.amounts, self.seen)

    def _located(self, codes: Sequence[Array]) -> Array | None:
        """The cell of each row; None if some have none yet."""
        cells = np.zeros(len(codes[0]), np.int64)
        for axis, numbers in zip(self.axes, codes, strict=True):
            if not _locate(frozen(numbers), wrapped(axis.low), axis.size, cells):
                return None
        return cells

    def _widen(self, wanted: list[tuple[int, int]]) -> None:
        if wanted == [(axis.low, axis.size) for axis in self.axes]:
            return
        size = math.prod(size for _, size in wanted)
        if size > _MOST_CELLS:
            raise _Scattered
        numbers, amounts = self.numbers()
        cells = np.zeros(len(amounts), np.int64)
        for axis, part, (low, length) in zip(self.axes, numbers, wanted, strict=True):
            cells = cells * length + (part + wrapped(axis.low - low))
            axis.low, axis.size = low, length
        self.amounts, self.seen = np.zeros(size, np.int64), np.zeros(size, np.bool_)
        self.amounts[cells] = amounts
        self.seen[cells] = True

    def numbers(self) -> tuple[list[Array], Array]:
        """The numbers of the values of each column, and the amounts, of what came up."""
        cells = np.flatnonzero(self.seen)
        amounts = self.amounts[cells]
        numbers: list[Array] = []
        for axis in reversed(self.axes):
            cells, part = np.divmod(cells, max(axis.size, 1))
            numbers.insert(0, part)
        return numbers, amounts

    def rows(self) -> tuple[tuple[Vector, ...], Array]:
        numbers, amounts = self.numbers()
        vectors = (axis.vector(n) for axis, n in zip(self.axes, numbers, strict=True))
        return tuple(vectors), amounts


@tight
def _locate(codes: Array, low: int, size: int, cells: Array) -> Any:
    """One column more that tells cells apart; whether all its values are among those known."""
    is_inside: Any = True
    for n in range(len(codes)):
        # It wraps where the values are large: what is between them is small.
        place = codes[n] - low
        is_inside &= np.uint64(place) < np.uint64(size)
        cells[n] = cells[n] * size + place
    return is_inside


@tight
def _count(cells: Array, amount: int, amounts: Array, seen: Array) -> None:
    for n in range(len(cells)):
        amounts[cells[n]] += amount
        seen[cells[n]] = True


@tight
def _add(cells: Array, values: Array, amounts: Array, seen: Array) -> None:
    """Integers wrap, so they can be added in any order."""
    for n in range(len(cells)):
        amounts[cells[n]] += values[n]
        seen[cells[n]] = True


def _constant(values: Array) -> int | None:
    """What all values are, if they are one."""
    first = int(values[0])
    return first if first == int(values[-1]) and bool((values == first).all()) else None


class CountedRows:
    """Mutable: how often rows came up, or what was added for each of them."""

    def __init__(self, types: Sequence[Type]) -> None:
        self.types = tuple(types)
        self.clear()

    def clear(self) -> None:
        self.total = 0
        self.amounts = np.zeros(1, np.int64)
        self.interner: Interner | None = None
        try:
            self.cells: _Cells | None = _Cells(self.types)
        except _Scattered:
            self._scatter(None)

    @property
    def size(self) -> int:
        """How many rows are held one by one."""
        return 0 if self.interner is None else self.interner.bound

    def add(self, columns: Sequence[Vector], count: int, values: Array | None) -> None:
        """`count` rows more; the `values` are added up, or the rows are counted."""
        if not count:
            return
        if not self.types:
            self.total += count if values is None else int(values.sum())
            return
        if self.cells is not None:
            try:
                self.cells.add(columns, values)
            except _Scattered:
                self._scatter(self.cells)
            else:
                return
        assert self.interner is not None
        self._put(self.interner.ids(columns, count), values)

    def _put(self, ids: Array, values: Array | None) -> None:
        assert self.interner is not None
        if len(self.amounts) < self.interner.bound:
            self.amounts = padded(self.amounts, 2 * self.interner.bound)
        if values is None:
            counts = np.bincount(ids)
            self.amounts[: len(counts)] += counts
        else:
            np.add.at(self.amounts, ids, values)

    def _scatter(self, cells: _Cells | None) -> None:
        """From now on rows are told apart by hashes."""
        self.cells, self.interner = None, Interner(self.types)
        if cells is not None:
            vectors, amounts = cells.rows()
            if len(amounts):
                self._put(self.interner.ids(vectors, len(amounts)), amounts)

    def sums(self) -> tuple[tuple[Vector, ...], Array]:
        """Each row once, as columns, and what was counted or added for it."""
        if not self.types:
            return (), np.array([self.total & _MASK], np.uint64).view(np.int64)
        if self.cells is not None:
            return self.cells.rows()
        assert self.interner is not None
        ids = np.arange(self.interner.bound)
        return self.interner.vectors(ids), self.amounts[: len(ids)]

    def rows(self) -> Iterator[tuple[tuple[Any, ...], int]]:
        vectors, amounts = self.sums()
        if not vectors:
            return iter([((), int(amounts[0]))])
        columns = [vector.to_list() for vector in vectors]
        return zip(zip(*columns, strict=True), amounts.tolist(), strict=True)


_MASK = 2**64 - 1
