"""Cells of a vertex: their members as numbers, and what is kept of each."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from millstream.calculus.functions import Aggregation
from millstream.calculus.types import Kind, Schema
from millstream.kernels.cube.loops import (
    SHORT,
    SHORTEST,
    SIZE,
    Instants,
    Numbers,
    Rows,
    add_rows,
    give_back_sums,
    merge_cells,
    merge_extremes,
    pack_cells,
    tell_cells,
    tell_instants,
)
from millstream.kernels.cube.reading import Given, merge_given
from millstream.kernels.cube.telling import Side, told_alone
from millstream.kernels.relational.accumulators import (
    EXTREME,
    SUM_INTEGERS,
    lay_out,
    values_of,
)
from millstream.kernels.relational.aggregate_loop import GroupChanges
from millstream.kernels.relational.extremes import Extremes
from millstream.kernels.runtime.hashing import FREE, TOP, frozen, padded, words_of_numbers
from millstream.kernels.runtime.kernel import State
from millstream.kernels.windows.sums import CELL, COUNT, LIMBS, LO, WIDE, Wides
from millstream.plan.batch import DTYPES, Array, Batch, Vector


@dataclass(frozen=True, slots=True)
class Cells:
    """Cells of one vertex: a number of a member for every dimension that it has."""

    codes: Array
    numbers: Numbers

    @property
    def has_wide_sums(self) -> bool:
        return bool(self.numbers.sums[:, :, WIDE].any())

    def __len__(self) -> int:
        return len(self.codes)


@dataclass(frozen=True, slots=True)
class Packed:
    """Cells that nothing is added to any more, in little memory.

    Sums have all their words only if some of them are wide, or of infinities.
    """

    codes: Array
    rows: Array
    sums: Array
    extremes: Array
    known: Array

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def has_wide_sums(self) -> bool:
        return self.sums.shape[2] == CELL and bool(self.sums[:, :, WIDE].any())

    def slice(self, start: int, stop: int) -> Packed:
        """Some of the cells, in the memory of all."""
        return Packed(
            self.codes[start:stop], self.rows[start:stop], self.sums[start:stop],
            self.extremes[start:stop], self.known[start:stop],
        )  # fmt: skip

    @property
    def bytes(self) -> int:
        arrays = (self.codes, self.rows, self.sums, self.extremes, self.known)
        return sum(array.nbytes for array in arrays)


def joined(parts: Sequence[Packed], least: int = 0) -> Packed:
    """Cells of several partitions one after the other; sums have at least so many words."""
    most = max(least, *(packed.sums.shape[2] for packed in parts))
    if len(parts) == 1 and most == parts[0].sums.shape[2]:
        return parts[0]
    return Packed(
        np.concatenate([packed.codes for packed in parts]),
        np.concatenate([packed.rows for packed in parts]),
        np.concatenate([_sums(packed, most) for packed in parts]),
        np.concatenate([packed.extremes for packed in parts]),
        np.concatenate([packed.known for packed in parts]),
    )


#: Of sums that are of all rows of their cells the counts are left out.
_SHORTEST = LO - COUNT


def _sums(packed: Packed, width: int) -> Array:
    """Sums with so many of their words."""
    sums = packed.sums
    if sums.shape[2] == width:
        return sums
    made = np.zeros((*sums.shape[:2], width), np.int64)
    if sums.shape[2] == _SHORTEST:
        made[:, :, COUNT] = packed.rows[:, None]
        made[:, :, COUNT + 1 : LO + 1] = sums
    else:
        made[:, :, : sums.shape[2]] = sums
    return made


_NONE: Array = np.zeros(0, np.int64)


class Measures:
    """Mutable: how measures are kept and told, and the wide sums that some cells need."""

    def __init__(self, aggregations: Sequence[Aggregation], schema: Schema) -> None:
        self.aggregations = tuple(aggregations)
        self.schema = schema
        self.layout = lay_out(self.aggregations)
        self.kinds = frozen(np.array(self.layout.sums, np.int64))
        self.outputs = frozen(np.array(self.layout.outputs, np.int64).reshape(-1, 3))
        # Only for how its words are read and shown: a cube keeps no heaps.
        self.looks = Extremes([(f, t) for f, _, t in self.layout.extremes])
        self.signs = frozen(self.looks.signs)
        self.overflows = np.zeros(len(self.aggregations), np.int64)
        self.wides = _wides(np.zeros((0, LIMBS), np.int64), np.zeros(0, np.int64))

    def numbers(self, size: int) -> Numbers:
        """What is kept of so many empty cells."""
        cells, extremes = len(self.layout.cells), len(self.layout.extremes)
        sums = np.zeros((size, cells, CELL), np.int64)
        return Numbers(
            np.zeros(size, np.int64), sums, sums.view(np.float64),
            np.zeros((size, extremes), np.int64), np.zeros((size, extremes), np.bool_),
        )  # fmt: skip

    def rows(self, batch: Batch) -> Rows:
        """What cells take in of rows."""
        shape = (len(batch), len(self.layout.extremes))
        extremes, known = np.zeros(shape, np.int64), np.ones(shape, np.bool_)
        for number, (_, name, type_) in enumerate(self.layout.extremes):
            vector = batch.column(name)
            is_number = type_.kind is Kind.NUMBER
            values = np.asarray(vector.values)
            extremes[:, number] = words_of_numbers(values) if is_number else values
            known[:, number] = vector.mask()
        return Rows(values_of(batch, self.schema, self.layout), extremes, known)

    # --- changing cells ---

    def add_rows(self, rows: Rows, ids: Array, target: Numbers) -> None:
        start = 0
        while (
            start := add_rows(rows, ids, start, self.kinds, self.signs, target, self.wides)
        ) < len(ids):
            self._make_room()

    def merge(self, given: Numbers, ids: Array, target: Numbers, *, sign: int = 1) -> None:
        """Cells into others, or with the sign -1 out of them."""
        start = 0
        while (
            start := merge_cells(
                given, ids, start, sign, self.kinds, self.signs, target, self.wides
            )
        ) < len(ids):
            self._make_room()

    def merge_given(self, given: Given, ids: Array, target: Numbers) -> None:
        """Cells into groups; those of group -1 are passed over."""
        start = 0
        while (
            start := merge_given(given, ids, start, self.kinds, self.signs, target, self.wides)
        ) < len(ids):
            self._make_room()

    def apart(self, wides: Wides | None) -> Measures:
        """The same measures with wide sums of their own, which begin as others are."""
        made = copy.copy(self)
        limbs, free, counters = wides or _wides(np.zeros((0, LIMBS), np.int64), _NONE)
        made.wides = Wides(limbs.copy(), free.copy(), counters.copy())
        made.overflows = np.zeros_like(self.overflows)
        return made

    def copied_wides(self) -> Wides:
        """The wide sums as they are now."""
        limbs, free, counters = self.wides
        return _wides(limbs[1 : counters[TOP]], free[: counters[FREE]])

    def merge_extremes(self, given: Numbers, ids: Array, target: Numbers) -> None:
        merge_extremes(given, ids, self.signs, target)

    def forget(self, numbers: Numbers, ids: Array) -> None:
        """Give back what cells that are no more have of the wide sums."""
        give_back_sums(numbers, ids, self.wides)

    def _make_room(self) -> None:
        limbs, free, counters = self.wides
        size = 2 * len(free) + len(self.layout.cells)
        self.wides = Wides(padded(limbs, size), padded(free, size), counters)

    # --- telling ---

    def told(self, numbers: Numbers, ids: Array) -> tuple[Array, Array]:
        """The measures of cells, as words, and which of them are there."""
        out = self._changes(len(ids))
        if len(ids):
            tell_cells(numbers, ids, self.outputs, self.wides, self.looks.heaps(0), out)
        return out.words, out.valid

    def told_in_order(
        self, sides: Sequence[Side], size: int, wanted: Sequence[int]
    ) -> tuple[Array, Array]:
        """Some measures of so many groups, and which are there; each column lies together."""
        words, valid, left = told_alone(sides, size, self.layout.outputs, wanted, self.signs)
        if len(left):
            places = np.full(size + 1, -1, np.int64)
            places[left] = np.arange(len(left))
            numbers = self.numbers(len(left))
            for given, ids in sides:
                self.merge_given(given, places[ids], numbers)
            words[left], valid[left] = self.told(numbers, np.arange(len(left)))
        return words, valid

    def tell_instants(self, rows: Rows, time: Array, ids: Array, target: Numbers) -> GroupChanges:
        """Rows into their cells, and what becomes of these at every instant."""
        size = len(ids)
        instants = Instants(
            time, ids, np.zeros(2, np.int64), np.empty(size, np.int64),
            np.zeros(len(target.rows), np.int64), self._changes(size),
        )  # fmt: skip
        out = self._changes(2 * size + 1)
        while not tell_instants(
            rows, instants, self.kinds, self.signs, target, self.outputs, self.wides,
            self.looks.heaps(0), out,
        ):  # fmt: skip
            self._make_room()
        told_size = int(instants.cursor[SIZE])
        return out._replace(
            groups=out.groups[:told_size], time=out.time[:told_size], weight=out.weight[:told_size],
            words=out.words[:told_size], valid=out.valid[:told_size],
        )  # fmt: skip

    def _changes(self, size: int) -> GroupChanges:
        """Room for so many changes."""
        words = np.empty((size, len(self.aggregations)), np.int64)
        groups, time, weight = (np.empty(size, np.int64) for _ in range(3))
        valid = np.empty(words.shape, np.bool_)
        floats = words.view(np.float64)
        return GroupChanges(groups, time, weight, words, floats, valid, self.overflows)

    def count_faults(self, numbers: Numbers, ids: Array, valid: Array) -> None:
        """Sums that are too large for an integer, of cells that are told."""
        for number, (how, which, _) in enumerate(self.layout.outputs):
            if how == SUM_INTEGERS:
                missing = ~valid[:, number] & (numbers.sums[ids, which, COUNT] > 0)
                self.overflows[number] += int(missing.sum())

    def vectors(self, words: Array, valid: Array) -> tuple[Vector, ...]:
        """What is told, as columns."""
        return tuple(
            self._vector(number, words[:, number], valid[:, number])
            for number in range(len(self.aggregations))
        )

    def _vector(self, number: int, words: Array, valid: Array) -> Vector:
        how, which, _ = self.layout.outputs[number]
        words, valid = np.ascontiguousarray(words), np.ascontiguousarray(valid)
        if how == EXTREME:
            return self.looks.vector(which, words, valid)
        type_ = self.aggregations[number].result_type()
        return Vector(type_, words.view(DTYPES[type_.kind]), None if valid.all() else valid)

    def faults(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for one, count in zip(self.aggregations, self.overflows.tolist(), strict=True):
            if count and one.term is not None:
                name = f"{one.term.type} overflow in {one.name}"
                counts[name] = counts.get(name, 0) + count
        return counts

    # --- packing ---

    def nothing(self, width: int) -> Packed:
        """No cells, of so many dimensions."""
        return self.packed(Cells(np.zeros((0, width), np.int64), self.numbers(0)))

    def packed(self, cells: Cells) -> Packed:
        """Cells that are given up to be kept so."""
        size, numbers = len(cells), cells.numbers
        codes = np.empty(cells.codes.shape, np.int32)
        sums = np.empty((size, len(self.layout.cells), LO - COUNT), np.int64)
        form = pack_cells(frozen(cells.codes), numbers, codes, sums)
        if form != SHORTEST:
            words = LO + 1 if form == SHORT else CELL
            sums = numbers.sums[:, :, :words].copy()
        return Packed(codes, numbers.rows, sums, numbers.extremes, numbers.known)

    def unpacked(self, packed: Packed) -> Cells:
        sums = _sums(packed, CELL)
        filled = Numbers(packed.rows, sums, sums.view(np.float64), packed.extremes, packed.known)
        return Cells(packed.codes.astype(np.int64), filled)

    def snapshot(self) -> State:
        limbs, free, counters = self.wides
        return {
            "wides": limbs[1 : counters[TOP]].copy(),
            "free": free[: counters[FREE]].copy(),
            "overflows": self.overflows.copy(),
        }

    def restore(self, state: State) -> None:
        limbs = np.array(state["wides"], np.int64).reshape(-1, LIMBS)
        self.wides = _wides(limbs, np.array(state["free"], np.int64))
        self.overflows = np.array(state["overflows"], np.int64)


def _wides(limbs: Array, free: Array) -> Wides:
    """Wide sums after the first one, which is for scratch."""
    limbs = np.concatenate([np.zeros((1, LIMBS), np.int64), limbs])
    counters = np.array([len(limbs), len(free), 0], np.int64)
    return Wides(limbs, padded(free, len(limbs)), counters)
