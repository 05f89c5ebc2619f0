"""The compiled loop of an aggregate: one pass over changes in order of time."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from millstream.compiled import inlined, tight
from millstream.kernels.relational.accumulators import (
    ALL_OF_SUMS,
    COUNT_ROWS,
    COUNT_VALUES,
    EXTREME,
    GIVEN,
    GIVEN_COUNT,
    INTEGER_SUM,
    IS_PRESENT,
    IS_TOUCHED,
    MEAN_INTEGERS,
    MEAN_NUMBERS,
    NUMBER_SUM,
    REST_SUM,
    ROWS,
    SAMPLE_OF_SUMS,
    SQUARE_SUM,
    SUM_INTEGERS,
    VARIANCE_OF_ALL,
    VARIANCE_OF_SAMPLE,
    CellValues,
    Groups,
)
from millstream.kernels.runtime.hashing import FAR, NEAR, prefetch
from millstream.kernels.windows.heap import IS_TOUCHED as NODE_IS_TOUCHED
from millstream.kernels.windows.heap import NEXT, PREVIOUS, VALUE, Heaps, settle
from millstream.kernels.windows.heap import ROWS as NODE_ROWS
from millstream.kernels.windows.sums import (
    COUNT,
    LOW,
    Wides,
    add_integer,
    add_number,
    add_rest,
    add_square,
    clear_sum,
    fits_integer,
    has_room,
    integer_sum_as_float,
    is_finite,
    number_sum,
    sum_in_two,
    variance_of,
)
from millstream.plan.batch import Array

_NAN_BITS = np.int64(0x7FF8000000000000)


class Changes(NamedTuple):
    """Changes in order of time; `nodes` has, of each, its node in every heap or -1."""

    time: Array
    groups: Array
    weight: Array
    values: CellValues
    nodes: Array


class Recipe(NamedTuple):
    """How columns are summed and outputs made, see `accumulators.Accumulated`.

    `keeps_empty` says whether a group without rows has a row in the output, `tells_old`
    whether rows that go are told or only those that come.
    """

    sums: Array
    outputs: Array
    keeps_empty: bool
    tells_old: bool


class Kept(NamedTuple):
    """All state."""

    groups: Groups
    heaps: Heaps
    wides: Wides


class GroupChanges(NamedTuple):
    """The changes of the output; floats are seen twice."""

    groups: Array
    time: Array
    weight: Array
    words: Array
    floats: Array
    valid: Array
    faults: Array


#: Where the loop stands: at which change, how many groups and nodes the instant has
#: touched so far, and how many changes have been told.
AT, TOUCHED, TOUCHED_NODES, SIZE = range(4)


class Work(NamedTuple):
    cursor: Array
    touched: Array
    touched_nodes: Array


@inlined
def _put_float(out: GroupChanges, row: Any, output: Any, value: Any) -> None:
    out.floats[row, output] = value
    if value != value:
        out.words[row, output] = _NAN_BITS


@inlined
def tell_cell(out: GroupChanges, at: Any, how: Any, of: Any, kept: Kept) -> None:
    row, output = at
    group, which = of
    cell = kept.groups.cells[group, which]
    if how == COUNT_VALUES:
        out.words[row, output] = cell[COUNT]
    elif cell[COUNT] == 0:
        out.valid[row, output] = False
        clear_sum(cell, kept.wides)
    elif how == SUM_INTEGERS:
        out.valid[row, output] = fits_integer(cell)
        if fits_integer(cell):
            out.words[row, output] = cell[LOW]
    elif how == MEAN_INTEGERS:
        _put_float(out, row, output, integer_sum_as_float(cell) / cell[COUNT])
    else:
        total = number_sum(cell, kept.groups.floats[group, which], kept.wides)
        if how == MEAN_NUMBERS:
            total = total / cell[COUNT] + 0.0
        _put_float(out, row, output, total)


@inlined
def tell_variance(out: GroupChanges, at: Any, less: Any, of: Any, kept: Kept) -> None:
    row, output = at
    group, which, squares, count = of
    groups = kept.groups
    one, other = groups.cells[group, which], groups.cells[group, squares]
    third = groups.cells[group, squares + 1]
    out.valid[row, output] = count > less
    if count == 0:
        clear_sum(one, kept.wides)
        clear_sum(other, kept.wides)
        clear_sum(third, kept.wides)
    elif count > less:
        value = np.nan
        if is_finite(one) and is_finite(other):
            total = sum_in_two(one, groups.floats[group, which], kept.wides)
            total_square = sum_in_two(other, groups.floats[group, squares], kept.wides)
            rests = sum_in_two(third, groups.floats[group, squares + 1], kept.wides)
            value = variance_of(total, total_square, rests, count, less)
        _put_float(out, row, output, value)


@inlined
def _tell(out: GroupChanges, row: Any, group: Any, recipe: Recipe, kept: Kept) -> None:
    """Write the outputs of a group as they are now."""
    for output in range(recipe.outputs.shape[0]):
        how, which = recipe.outputs[output, 0], recipe.outputs[output, 1]
        out.valid[row, output] = True
        out.words[row, output] = 0
        if how == COUNT_ROWS:
            out.words[row, output] = kept.groups.header[group, ROWS]
        elif how == EXTREME:
            root = kept.heaps.roots[group * kept.heaps.signs.size + which]
            out.valid[row, output] = root != 0
            if root != 0:
                out.words[row, output] = kept.heaps.nodes[root - 1, VALUE]
        elif how >= GIVEN_COUNT:
            cell = kept.groups.cells[group, which]
            out.valid[row, output] = how == GIVEN_COUNT or cell[COUNT] > 0
            if out.valid[row, output]:
                out.words[row, output] = cell[LOW]
        elif how >= SAMPLE_OF_SUMS:
            squares = recipe.outputs[output, 2]
            count = kept.groups.cells[group, squares + 2, LOW]
            of = (group, which, squares, count)
            tell_variance(out, (row, output), ALL_OF_SUMS - how, of, kept)
        elif how >= VARIANCE_OF_SAMPLE:
            count = kept.groups.cells[group, which, COUNT]
            of = (group, which, recipe.outputs[output, 2], count)
            tell_variance(out, (row, output), VARIANCE_OF_ALL - how, of, kept)
        else:
            tell_cell(out, (row, output), how, (group, which), kept)


@inlined
def _copy_told(out: GroupChanges, row: Any, group: Any, groups: Groups) -> None:
    for output in range(out.words.shape[1]):
        out.words[row, output] = groups.told[group, output]
        out.valid[row, output] = groups.told_valid[group, output]


@inlined
def _keep_told(out: GroupChanges, row: Any, group: Any, groups: Groups) -> Any:
    """Remember what is said of a group; is it something new?"""
    is_new = False
    for output in range(out.words.shape[1]):
        word, valid = out.words[row, output], out.valid[row, output]
        if word != groups.told[group, output] or valid != groups.told_valid[group, output]:
            is_new = True
            groups.told[group, output] = word
            groups.told_valid[group, output] = valid
    return is_new


@inlined
def _count_faults(out: GroupChanges, row: Any, group: Any, recipe: Recipe, groups: Groups) -> None:
    for output in range(recipe.outputs.shape[0]):
        if recipe.outputs[output, 0] == SUM_INTEGERS and not out.valid[row, output]:
            if groups.cells[group, recipe.outputs[output, 1], COUNT] > 0:
                out.faults[output] += 1


@inlined
def _conclude(out: GroupChanges, size: Any, group: Any, recipe: Recipe, kept: Kept) -> Any:
    """Say what an instant has done to a group: the old row goes, the new one comes."""
    groups = kept.groups
    header = groups.header
    header[group, IS_TOUCHED] = 0
    was_present = header[group, IS_PRESENT] == 1
    is_present = header[group, ROWS] > 0 or recipe.keeps_empty
    header[group, IS_PRESENT] = 1 if is_present else 0
    start = size
    if was_present and recipe.tells_old:
        _copy_told(out, size, group, groups)
        out.groups[size], out.weight[size] = group, -1
        size += 1
    # Also a group that goes is computed, which gives back its wide sums.
    _tell(out, size, group, recipe, kept)
    if not is_present:
        return size
    is_new = _keep_told(out, size, group, groups)
    if was_present and not is_new:
        return start
    _count_faults(out, size, group, recipe, groups)
    out.groups[size], out.weight[size] = group, 1
    return size + 1


@inlined
def _take_in(changes: Changes, i: Any, sums: Array, kept: Kept) -> None:
    group, weight, values = changes.groups[i], changes.weight[i], changes.values
    cells, floats = kept.groups.cells, kept.groups.floats
    kept.groups.header[group, ROWS] += weight
    for c in range(sums.size):
        if values.valid[i, c]:
            cells[group, c, COUNT] += weight
            if sums[c] == NUMBER_SUM:
                value = values.floats[i, c]
                add_number(cells[group, c], floats[group, c], value, weight, kept.wides)
            elif sums[c] == SQUARE_SUM:
                value = values.floats[i, c]
                add_square(cells[group, c], floats[group, c], value, weight, kept.wides)
            elif sums[c] == REST_SUM:
                value = values.floats[i, c]
                add_rest(cells[group, c], floats[group, c], value, weight, kept.wides)
            elif sums[c] == INTEGER_SUM:
                add_integer(cells[group, c], values.words[i, c], weight)
            elif sums[c] == GIVEN:
                cells[group, c, LOW] = values.words[i, c]


@inlined
def _prefetch(changes: Changes, i: Any, kept: Kept) -> None:
    """Ask for what later changes will need."""
    nodes = kept.heaps.nodes
    if i + FAR < changes.time.size:
        prefetch(kept.groups.header, changes.groups[i + FAR])
        prefetch(kept.groups.cells, changes.groups[i + FAR])
        prefetch(kept.groups.told, changes.groups[i + FAR])
        for kind in range(changes.nodes.shape[1]):
            prefetch(nodes, changes.nodes[i + FAR, kind])
            near = changes.nodes[i + NEAR, kind]
            if near >= 0:
                prefetch(nodes, nodes[near, NEXT] - 1)
                prefetch(nodes, nodes[near, PREVIOUS] - 1)


@tight
def aggregate_changes(
    changes: Changes, recipe: Recipe, kept: Kept, out: GroupChanges, work: Work
) -> bool:
    """Take in changes in order of time, and tell at the end of each instant.

    False if room for wide sums has run out: call again when there is more.
    """
    cursor, touched, touched_nodes = work
    header, nodes = kept.groups.header, kept.heaps.nodes
    time = changes.time
    while cursor[AT] < time.size:
        i = cursor[AT]
        if not has_room(kept.wides, recipe.sums.size):
            return False
        _prefetch(changes, i, kept)
        group = changes.groups[i]
        if header[group, IS_TOUCHED] == 0:
            header[group, IS_TOUCHED] = 1
            touched[cursor[TOUCHED]] = group
            cursor[TOUCHED] += 1
        _take_in(changes, i, recipe.sums, kept)
        for kind in range(changes.nodes.shape[1]):
            node = changes.nodes[i, kind]
            if node >= 0:
                nodes[node, NODE_ROWS] += changes.weight[i]
                if nodes[node, NODE_IS_TOUCHED] == 0:
                    nodes[node, NODE_IS_TOUCHED] = 1
                    touched_nodes[cursor[TOUCHED_NODES]] = node
                    cursor[TOUCHED_NODES] += 1
        cursor[AT] += 1
        if i + 1 < time.size and time[i + 1] == time[i]:
            continue
        for k in range(cursor[TOUCHED_NODES]):
            settle(touched_nodes[k], kept.heaps)
        for k in range(cursor[TOUCHED]):
            before = cursor[SIZE]
            cursor[SIZE] = _conclude(out, before, touched[k], recipe, kept)
            for row in range(before, cursor[SIZE]):
                out.time[row] = time[i]
        cursor[TOUCHED] = cursor[TOUCHED_NODES] = 0
    return True
