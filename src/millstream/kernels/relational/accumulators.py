"""What an aggregate keeps of each group, and how its outputs come from it.

Aggregations over one column share what is kept of it: `sum(x)`, `avg(x)` and `count(x)`
are three looks at one cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from millstream.calculus.aggregation import SKETCHES
from millstream.calculus.functions import Aggregation
from millstream.calculus.terms import Column
from millstream.calculus.types import Kind, Schema, Type
from millstream.errors import PlanError
from millstream.kernels.runtime.hashing import FREE, TOP, dead_ids, grown, padded
from millstream.kernels.runtime.interning import Interner
from millstream.kernels.runtime.kernel import State
from millstream.kernels.windows.sums import CELL, LIMBS, Wides
from millstream.plan.batch import Array, Batch

#: How an output comes about, in the order the loop asks.
COUNT_ROWS, COUNT_VALUES, SUM_NUMBERS, SUM_INTEGERS, MEAN_NUMBERS, MEAN_INTEGERS, EXTREME = range(7)
VARIANCE_OF_SAMPLE, VARIANCE_OF_ALL = 7, 8
#: An output that is made of something else, elsewhere.
ELSEWHERE = 9
#: Variances of sums that were made elsewhere, by parts.
SAMPLE_OF_SUMS, ALL_OF_SUMS = 10, 11
#: What is counted by hidden keys and given with each row: a count, or a value if there are any.
GIVEN_COUNT, GIVEN_VALUE = 12, 13

#: What of a column is summed; what is given is only kept.
NO_SUM, NUMBER_SUM, INTEGER_SUM, SQUARE_SUM, REST_SUM, GIVEN = range(6)


_VARIANCES = {"variance": VARIANCE_OF_SAMPLE, "var_pop": VARIANCE_OF_ALL}
_OF_SUMS = {"variance": SAMPLE_OF_SUMS, "var_pop": ALL_OF_SUMS}


@dataclass(frozen=True)
class Accumulated:
    """Which columns have cells, which extremes there are, and how outputs are made.

    `outputs` has, for each aggregation, how it comes about, the number of the cell or of
    the extreme it looks at, and for variances that of the cell of the squares; the cell
    after it has what is left when squares are rounded, and of sums the one after that the count.
    """

    cells: tuple[str, ...]
    sums: tuple[int, ...]
    extremes: tuple[tuple[str, str, Type], ...]
    outputs: tuple[tuple[int, int, int], ...]


def lay_out(aggregations: Sequence[Aggregation], *, has_given: bool = False) -> Accumulated:
    """What is kept; with `has_given` what is counted by hidden keys has cells too."""
    cells: dict[tuple[str, int], int] = {}
    extremes: list[tuple[str, str, Type]] = []
    outputs: list[tuple[int, int, int]] = []

    def cell(name: str, sum_: int) -> int:
        """The number of a cell; the squares of a column have cells of their own."""
        key = name, sum_ if sum_ in (SQUARE_SUM, REST_SUM) else NO_SUM
        cells[key] = max(cells.get(key, NO_SUM), sum_)
        return list(cells).index(key)

    def apart(name: str, sum_: int, number: int) -> int:
        """The number of a cell that is shared with no other aggregation."""
        cells[(name, -1 - number)] = sum_
        return len(cells) - 1

    for number, one in enumerate(aggregations):
        column = _column(one)
        if column is None:
            outputs.append((COUNT_ROWS, 0, 0))
        elif one.function in SKETCHES and has_given:
            how = GIVEN_VALUE if one.function == "quantile" else GIVEN_COUNT
            outputs.append((how, apart(column.name, GIVEN, number), 0))
        elif one.function in SKETCHES:
            outputs.append((ELSEWHERE, 0, 0))
        elif one.beside:
            total = apart(column.name, NUMBER_SUM, number)
            squares, rests, counts = (t.name for t in one.beside if isinstance(t, Column))
            for name, sum_ in ((squares, NUMBER_SUM), (rests, NUMBER_SUM), (counts, INTEGER_SUM)):
                apart(name, sum_, number)
            outputs.append((_OF_SUMS[one.function], total, total + 1))
        elif one.function in ("min", "max"):
            wanted = (one.function, column.name, column.type)
            if wanted not in extremes:
                extremes.append(wanted)
            outputs.append((EXTREME, extremes.index(wanted), 0))
        elif one.function in _VARIANCES:
            parts = [cell(column.name, s) for s in (NUMBER_SUM, SQUARE_SUM, REST_SUM)]
            outputs.append((_VARIANCES[one.function], parts[0], parts[1]))
        else:
            how, sum_ = _how(one.function, column.type.kind)
            outputs.append((how, cell(column.name, sum_), 0))
    names = tuple(name for name, _ in cells)
    return Accumulated(names, tuple(cells.values()), tuple(extremes), tuple(outputs))


def _column(one: Aggregation) -> Column | None:
    if one.term is None or isinstance(one.term, Column):
        return one.term
    raise PlanError(
        f'the aggregate "{one.name}" is over a computed term',
        span=one.term.span,
        hint="the kernel aggregates columns only; the plan must compute the term before",
    )


def _how(function: str, kind: Kind) -> tuple[int, int]:
    if function == "count":
        return COUNT_VALUES, NO_SUM
    if kind is Kind.NUMBER:
        return (SUM_NUMBERS if function == "sum" else MEAN_NUMBERS), NUMBER_SUM
    return (SUM_INTEGERS if function == "sum" else MEAN_INTEGERS), INTEGER_SUM


class CellValues(NamedTuple):
    """The values of the columns with cells, row by row; floats are seen twice."""

    words: Array
    floats: Array
    valid: Array


def values_of(batch: Batch, schema: Schema, layout: Accumulated) -> CellValues:
    shape = (len(batch), len(layout.cells))
    words, valid = np.zeros(shape, np.int64), np.ones(shape, np.bool_)
    for number, (name, sum_) in enumerate(zip(layout.cells, layout.sums, strict=True)):
        vector = batch.columns[schema.index(name)]
        if vector.is_text or vector.valid is not None:
            valid[:, number] = vector.mask()
        if sum_ not in (NO_SUM, GIVEN):
            words[:, number] = np.asarray(vector.values).view(np.int64)
    return CellValues(words, words.view(np.float64), valid)


class Groups(NamedTuple):
    """What is kept of each group, and what was last said of it."""

    header: Array
    cells: Array
    floats: Array
    told: Array
    told_valid: Array


#: The words of a header: rows in the group, has it a row in the output, has it changed.
ROWS, IS_PRESENT, IS_TOUCHED = range(3)
HEADER = 3


class Accumulators:
    """Mutable. The cells of all groups, and the wide sums that some of them need."""

    def __init__(self, layout: Accumulated, keys: Interner) -> None:
        self.layout = layout
        self.keys = keys
        self.header = np.zeros((0, HEADER), np.int64)
        self.cells = np.zeros((0, len(layout.cells), CELL), np.int64)
        self.told = np.zeros((0, len(layout.outputs)), np.int64)
        self.told_valid = np.zeros((0, len(layout.outputs)), np.bool_)
        self.wides = Wides(
            np.zeros((1, LIMBS), np.int64), np.zeros(1, np.int64), np.array([1, 0, 0], np.int64)
        )

    def groups(self) -> Groups:
        """The arrays for the loops, with room for all groups that have keys."""
        count = self.keys.bound
        self.header, self.cells = grown(self.header, count), grown(self.cells, count)
        self.told, self.told_valid = grown(self.told, count), grown(self.told_valid, count)
        floats = self.cells.view(np.float64)
        return Groups(self.header, self.cells, floats, self.told, self.told_valid)

    def make_room(self) -> None:
        """Make place for more wide sums."""
        limbs, free, counters = self.wides
        size = 2 * len(free) + len(self.layout.cells)
        self.wides = Wides(padded(limbs, size), padded(free, size), counters)

    def release(self, used: Array) -> Array:
        """Those of the groups used in a round that are gone; their memory is cleared."""
        gone = dead_ids(used, self.header, ROWS)
        for array in (self.header, self.cells, self.told, self.told_valid):
            array[gone] = 0
        return gone

    def snapshot(self) -> State:
        limbs, free, counters = self.wides
        bound = self.keys.bound
        return {
            "header": self.header[:bound].copy(),
            "cells": self.cells[:bound].copy(),
            "told": self.told[:bound].copy(),
            "told_valid": self.told_valid[:bound].copy(),
            "wides": limbs[1 : counters[TOP]].copy(),
            "free": free[: counters[FREE]].copy(),
        }

    def restore(self, state: State) -> None:
        self.header = np.array(state["header"], np.int64).reshape(-1, HEADER)
        count, cells, outputs = len(self.header), *self.cells.shape[1:2], *self.told.shape[1:]
        self.cells = np.array(state["cells"], np.int64).reshape(count, cells, CELL)
        self.told = np.array(state["told"], np.int64).reshape(count, outputs)
        self.told_valid = np.array(state["told_valid"], np.bool_).reshape(count, outputs)
        limbs = np.array(state["wides"], np.int64).reshape(-1, LIMBS)
        limbs = np.concatenate([np.zeros((1, LIMBS), np.int64), limbs])
        free = np.array(state["free"], np.int64)
        counters = np.array([len(limbs), len(free), 0], np.int64)
        self.wides = Wides(limbs, padded(free, len(limbs)), counters)
