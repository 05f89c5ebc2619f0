"""The compiled loop of an aggregate: one pass over changes in order of time."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from millstream.kernels.accumulators import (
    COUNT_ROWS,
    COUNT_VALUES,
    EXTREME,
    INTEGER_SUM,
    IS_PRESENT,
    IS_TOUCHED,
    MEAN_INTEGERS,
    MEAN_NUMBERS,
    NUMBER_SUM,
    ROWS,
    SUM_INTEGERS,
    Groups,
    Values,
)
from millstream.kernels.loops import FREE, TOP
from millstream.kernels.loops_heap import IS_TOUCHED as NODE_IS_TOUCHED
from millstream.kernels.loops_heap import ROWS as NODE_ROWS
from millstream.kernels.loops_heap import Heaps, settle
from millstream.kernels.loops_sums import (
    COUNT,
    HI,
    LO,
    LOW,
    WIDE,
    add_integer,
    add_number,
    fits_integer,
    integer_sum_as_float,
    number_sum,
)
from millstream.kernels.numba_setup import compiled, inlined
from millstream.plan.batch import Array

_NAN_BITS = np.int64(0x7FF8000000000000)

#: Wide sums, a stack of free ones, and counters.
Wide = tuple[Array, Array, Array]


class Changes(NamedTuple):
    """Changes in order of time; `nodes` has, of each, its node in every heap or -1."""

    time: Array
    groups: Array
    weight: Array
    nodes: Array


class Recipe(NamedTuple):
    """How columns are summed and outputs made, see `accumulators.Layout`."""

    sums: Array
    outputs: Array
    keeps_empty: bool


class Told(NamedTuple):
    """The changes of the output; floats are seen twice."""

    groups: Array
    time: Array
    weight: Array
    words: Array
    floats: Array
    valid: Array
    faults: Array


@compiled
def _roomier(wide: Wide) -> Wide:
    wides, free, counters = wide
    size = max(8, 2 * wides.shape[0])
    more, more_free = np.zeros((size, wides.shape[1]), np.int64), np.zeros(size, np.int64)
    more[: wides.shape[0]] = wides
    more_free[: free.size] = free
    return more, more_free, counters


@inlined
def _clear_sum(cell: Array, wide: Wide) -> None:
    """Of no values the sum is zero already, but perhaps a wide one."""
    if cell[WIDE] != 0:
        _, free, counters = wide
        free[counters[FREE]] = cell[WIDE] - 1
        counters[FREE] += 1
    cell[HI] = cell[LO] = cell[WIDE] = 0


@inlined
def _put_float(told: Told, row: Any, output: Any, value: Any) -> None:
    told.floats[row, output] = value
    if value != value:
        told.words[row, output] = _NAN_BITS


@inlined
def _tell(
    told: Told, row: Any, group: Any, recipe: Recipe, groups: Groups, heaps: Heaps, wide: Wide
) -> None:  # noqa: PLR0913, PLR0917
    """Write the outputs of a group as they are now."""
    for output in range(recipe.outputs.shape[0]):
        how, which = recipe.outputs[output, 0], recipe.outputs[output, 1]
        told.valid[row, output] = True
        told.words[row, output] = 0
        if how == COUNT_ROWS:
            told.words[row, output] = groups.header[group, ROWS]
            continue
        if how == EXTREME:
            root = heaps.roots[group * heaps.signs.size + which]
            told.valid[row, output] = root != 0
            if root != 0:
                told.words[row, output] = heaps.keys[root - 1, 1]
            continue
        cell, floats = groups.cells[group, which], groups.floats[group, which]
        if how == COUNT_VALUES:
            told.words[row, output] = cell[COUNT]
        elif cell[COUNT] == 0:
            told.valid[row, output] = False
            _clear_sum(cell, wide)
        elif how == SUM_INTEGERS:
            told.valid[row, output] = fits_integer(cell)
            if fits_integer(cell):
                told.words[row, output] = cell[LOW]
        elif how == MEAN_INTEGERS:
            _put_float(told, row, output, integer_sum_as_float(cell) / cell[COUNT])
        else:
            total = number_sum(cell, floats, wide)
            if how == MEAN_NUMBERS:
                total = total / cell[COUNT] + 0.0
            _put_float(told, row, output, total)


@inlined
def _copy_told(told: Told, row: Any, group: Any, groups: Groups) -> None:
    for output in range(told.words.shape[1]):
        told.words[row, output] = groups.told[group, output]
        told.valid[row, output] = groups.told_valid[group, output]


@inlined
def _keep_told(told: Told, row: Any, group: Any, groups: Groups) -> Any:
    """Remember what is said of a group; is it something new?"""
    is_new = False
    for output in range(told.words.shape[1]):
        word, valid = told.words[row, output], told.valid[row, output]
        if word != groups.told[group, output] or valid != groups.told_valid[group, output]:
            is_new = True
            groups.told[group, output] = word
            groups.told_valid[group, output] = valid
    return is_new


@inlined
def _count_faults(told: Told, row: Any, group: Any, recipe: Recipe, groups: Groups) -> None:
    for output in range(recipe.outputs.shape[0]):
        if recipe.outputs[output, 0] == SUM_INTEGERS and not told.valid[row, output]:
            if groups.cells[group, recipe.outputs[output, 1], COUNT] > 0:
                told.faults[output] += 1


@inlined
def _conclude(
    told: Told, size: Any, group: Any, recipe: Recipe, groups: Groups, heaps: Heaps, wide: Wide
) -> Any:  # noqa: PLR0913, PLR0917
    """Say what an instant has done to a group: the old row goes, the new one comes."""
    header = groups.header
    header[group, IS_TOUCHED] = 0
    was_present = header[group, IS_PRESENT] == 1
    is_present = header[group, ROWS] > 0 or recipe.keeps_empty
    header[group, IS_PRESENT] = 1 if is_present else 0
    if was_present:
        _copy_told(told, size, group, groups)
        told.groups[size], told.weight[size] = group, -1
        size += 1
    # Also a group that goes is computed, which gives back its wide sums.
    _tell(told, size, group, recipe, groups, heaps, wide)
    if not is_present:
        return size
    is_new = _keep_told(told, size, group, groups)
    if was_present and not is_new:
        return size - 1
    _count_faults(told, size, group, recipe, groups)
    told.groups[size], told.weight[size] = group, 1
    return size + 1


@compiled
def aggregate_changes(
    changes: Changes,
    values: Values,
    recipe: Recipe,
    groups: Groups,
    heaps: Heaps,
    wide: Wide,
    told: Told,
) -> tuple[Any, Wide]:  # noqa: PLR0913, PLR0917
    """Take in changes; how many changes of the output are told, and the wide sums."""
    touched = np.empty(changes.time.size, np.int64)
    touched_nodes = np.empty(changes.nodes.size, np.int64)
    columns, kinds = recipe.sums.size, heaps.signs.size
    size, start = 0, 0
    while start < changes.time.size:
        now = changes.time[start]
        count, node_count, i = 0, 0, start
        while i < changes.time.size and changes.time[i] == now:
            group, weight = changes.groups[i], changes.weight[i]
            if groups.header[group, IS_TOUCHED] == 0:
                groups.header[group, IS_TOUCHED] = 1
                touched[count] = group
                count += 1
            groups.header[group, ROWS] += weight
            _, free, counters = wide
            if free.size - counters[TOP] + counters[FREE] < columns:
                wide = _roomier(wide)
            for c in range(columns):
                if values.valid[i, c]:
                    groups.cells[group, c, COUNT] += weight
                    if recipe.sums[c] == NUMBER_SUM:
                        add_number(
                            groups.cells[group, c], groups.floats[group, c],
                            values.floats[i, c], values.words[i, c], weight, wide,
                        )  # fmt: skip
                    elif recipe.sums[c] == INTEGER_SUM:
                        add_integer(groups.cells[group, c], values.words[i, c], weight)
            for kind in range(kinds):
                node = changes.nodes[i, kind]
                if node >= 0:
                    heaps.nodes[node, NODE_ROWS] += weight
                    if heaps.nodes[node, NODE_IS_TOUCHED] == 0:
                        heaps.nodes[node, NODE_IS_TOUCHED] = 1
                        touched_nodes[node_count] = node
                        node_count += 1
            i += 1
        for k in range(node_count):
            settle(touched_nodes[k], heaps)
        before = size
        for k in range(count):
            size = _conclude(told, size, touched[k], recipe, groups, heaps, wide)
        for k in range(before, size):
            told.time[k] = now
        start = i
    return size, wide
