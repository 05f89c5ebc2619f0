"""The compiled loops of cubes: rows into cells, cells into cells, and what is told of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from millstream.compiled import inlined, tight
from millstream.kernels.relational.accumulators import (
    COUNT_ROWS,
    ELSEWHERE,
    EXTREME,
    INTEGER_SUM,
    NO_SUM,
    NUMBER_SUM,
    REST_SUM,
    SQUARE_SUM,
    SUM_INTEGERS,
    VARIANCE_OF_ALL,
    VARIANCE_OF_SAMPLE,
    CellValues,
    Groups,
)
from millstream.kernels.relational.aggregate_loop import (
    GroupChanges,
    Kept,
    tell_cell,
    tell_variance,
)
from millstream.kernels.windows.heap import Heaps
from millstream.kernels.windows.sums import (
    COUNT,
    HI,
    HIGH,
    LIMBS,
    LO,
    LOW,
    MINUS_INF,
    NANS,
    PLUS_INF,
    WIDE,
    Wides,
    add_integer,
    add_number,
    add_rest,
    add_square,
    clear_sum,
    has_room,
    widen,
)
from millstream.plan.batch import Array

_MASK = np.int64(0xFFFFFFFF)


class Numbers(NamedTuple):
    """What is kept of cells: rows, exact sums (as words and as floats), extremes if known."""

    rows: Array
    sums: Array
    floats: Array
    extremes: Array
    known: Array


class Rows(NamedTuple):
    """Rows on their way into cells: what is summed of each, and what may be an extreme."""

    values: CellValues
    extremes: Array
    known: Array


@inlined
def meet(target: Numbers, cell: Any, extreme: Any, word: Any, sign: Any) -> None:
    """An extreme is the least of its words, or with the sign -1 the largest."""
    held = target.extremes[cell, extreme]
    # Not by their products: the least of all integers has no opposite.
    if not target.known[cell, extreme] or (word < held if sign > 0 else word > held):
        target.extremes[cell, extreme] = word
        target.known[cell, extreme] = True


@inlined
def _take_in(
    rows: Rows, i: Any, cell: Any, kinds: Array, signs: Array, target: Numbers, wides: Wides
) -> None:
    """A row into its cell."""
    values = rows.values
    sums, floats = target.sums, target.floats
    target.rows[cell] += 1
    for c in range(kinds.size):
        if values.valid[i, c]:
            sums[cell, c, COUNT] += 1
            if kinds[c] == NUMBER_SUM:
                add_number(sums[cell, c], floats[cell, c], values.floats[i, c], 1, wides)
            elif kinds[c] == SQUARE_SUM:
                add_square(sums[cell, c], floats[cell, c], values.floats[i, c], 1, wides)
            elif kinds[c] == REST_SUM:
                add_rest(sums[cell, c], floats[cell, c], values.floats[i, c], 1, wides)
            elif kinds[c] == INTEGER_SUM:
                add_integer(sums[cell, c], values.words[i, c], 1)
    for e in range(signs.size):
        if rows.known[i, e]:
            meet(target, cell, e, rows.extremes[i, e], signs[e])


@tight
def add_rows(
    rows: Rows, ids: Array, start: int, kinds: Array, signs: Array, target: Numbers, wides: Wides
) -> int:
    """Rows from `start` on into their cells; stops where wide sums have no room, and says where."""
    for i in range(start, ids.size):
        if not has_room(wides, kinds.size):
            return i
        _take_in(rows, i, ids[i], kinds, signs, target, wides)
    return ids.size


@inlined
def _merge_wide(cell: Array, slot: Any, sign: Any, wides: Wides) -> None:
    """Add another wide sum to a sum, which becomes wide."""
    if cell[WIDE] == 0:
        widen(cell, wides)
    mine = cell[WIDE]
    carry = np.int64(0)
    for k in range(LIMBS):
        total = wides.limbs[mine, k] + sign * wides.limbs[slot, k] + carry
        if k < LIMBS - 1:
            carry = total >> 32
            total &= _MASK
        wides.limbs[mine, k] = total


@inlined
def _merge_sum(
    cell: Array, mine: Array, other: Array, theirs: Array, kind: Any, sign: Any, wides: Wides
) -> None:
    """Add a sum to another, or take it away: exactly, so that nothing of it is left."""
    cell[COUNT] += sign * other[COUNT]
    if kind == INTEGER_SUM:
        low, before = np.uint64(other[LOW]), np.uint64(cell[LOW])
        if sign > 0:
            after = before + low
            cell[HIGH] += other[HIGH] + (1 if after < before else 0)
        else:
            after = before - low
            cell[HIGH] -= other[HIGH] + (1 if before < low else 0)
        cell[LOW] = np.int64(after)
    elif kind != NO_SUM:
        if other[PLUS_INF] | other[MINUS_INF] | other[NANS] != 0:
            cell[PLUS_INF] += sign * other[PLUS_INF]
            cell[MINUS_INF] += sign * other[MINUS_INF]
            cell[NANS] += sign * other[NANS]
        if other[WIDE] != 0:
            _merge_wide(cell, other[WIDE], sign, wides)
        else:
            add_number(cell, mine, theirs[HI], sign, wides)
            if theirs[LO] != 0.0:
                add_number(cell, mine, theirs[LO], sign, wides)
        if cell[COUNT] == 0:
            clear_sum(cell, wides)


@tight
def merge_cells(
    given: Numbers, ids: Array, start: int, sign: int, kinds: Array, signs: Array,
    target: Numbers, wides: Wides,
) -> int:  # fmt: skip
    """Cells from `start` on into others, or out of them; extremes only come in."""
    for i in range(start, ids.size):
        if not has_room(wides, kinds.size):
            return i
        cell = ids[i]
        target.rows[cell] += sign * given.rows[i]
        for c in range(kinds.size):
            _merge_sum(
                target.sums[cell, c], target.floats[cell, c], given.sums[i, c], given.floats[i, c],
                kinds[c], sign, wides,
            )  # fmt: skip
        if sign > 0:
            for e in range(signs.size):
                if given.known[i, e]:
                    meet(target, cell, e, given.extremes[i, e], signs[e])
    return ids.size


@tight
def merge_extremes(given: Numbers, ids: Array, signs: Array, target: Numbers) -> None:
    """Extremes of cells into those of others."""
    for i in range(ids.size):
        for e in range(signs.size):
            if given.known[i, e]:
                meet(target, ids[i], e, given.extremes[i, e], signs[e])


#: Whether sums have all their words, those up to LO, or of these not the count.
ALL_WORDS, SHORT, SHORTEST = range(3)


@tight
def pack_cells(codes: Array, numbers: Numbers, numbers_of_members: Array, short: Array) -> int:
    """Codes, and sums as short as can be; how short all of them can be.

    Sums are written as if they could be shortest: if not, what is written of them is of no use.
    """
    sums = numbers.sums
    form = SHORTEST
    for i in range(sums.shape[0]):
        for d in range(codes.shape[1]):
            numbers_of_members[i, d] = codes[i, d]
        for c in range(sums.shape[1]):
            if sums[i, c, COUNT] != numbers.rows[i]:
                form = min(form, SHORT)
            rest = np.int64(0)
            for k in range(LO + 1, sums.shape[2]):
                rest |= sums[i, c, k]
            if rest != 0:
                form = ALL_WORDS
            short[i, c, 0], short[i, c, 1] = sums[i, c, HI], sums[i, c, LO]
    return form


@tight
def clear_cells(numbers: Numbers, bound: int) -> None:
    """Empty the cells up to a number."""
    for i in range(bound):
        numbers.rows[i] = 0
        for c in range(numbers.sums.shape[1]):
            for k in range(numbers.sums.shape[2]):
                numbers.sums[i, c, k] = 0
        for e in range(numbers.extremes.shape[1]):
            numbers.extremes[i, e] = 0
            numbers.known[i, e] = False


@tight
def give_back_sums(numbers: Numbers, ids: Array, wides: Wides) -> None:
    """The wide sums of cells that are no more."""
    for i in range(ids.size):
        for c in range(numbers.sums.shape[1]):
            clear_sum(numbers.sums[ids[i], c], wides)


@inlined
def tell(
    numbers: Numbers, cell: Any, outputs: Array, kept: Kept, out: GroupChanges, row: Any
) -> None:
    """Write the measures of a cell as they are now."""
    for output in range(outputs.shape[0]):
        how, which = outputs[output, 0], outputs[output, 1]
        out.valid[row, output] = True
        out.words[row, output] = 0
        if how == COUNT_ROWS:
            out.words[row, output] = numbers.rows[cell]
        elif how == EXTREME:
            out.valid[row, output] = numbers.known[cell, which]
            if numbers.known[cell, which]:
                out.words[row, output] = numbers.extremes[cell, which]
        elif how == ELSEWHERE:
            out.valid[row, output] = False
        elif how >= VARIANCE_OF_SAMPLE:
            less = VARIANCE_OF_ALL - how
            of = (cell, which, outputs[output, 2], kept.groups.cells[cell, which, COUNT])
            tell_variance(out, (row, output), less, of, kept)
        else:
            tell_cell(out, (row, output), how, (cell, which), kept)


@inlined
def looked_at(numbers: Numbers, wides: Wides, heaps: Heaps) -> Kept:
    """Cells as what tells of groups looks at them; of a cube it needs the sums alone."""
    sums = numbers.sums
    groups = Groups(sums[0], sums, numbers.floats, sums[0], numbers.known)
    return Kept(groups, heaps, wides)


@tight
def tell_cells(
    numbers: Numbers, ids: Array, outputs: Array, wides: Wides, heaps: Heaps, out: GroupChanges
) -> None:
    """The measures of some cells as they are now."""
    kept = looked_at(numbers, wides, heaps)
    for row in range(ids.size):
        tell(numbers, ids[row], outputs, kept, out, row)


#: Where the loop over the instants of rows stands: at which row, and how many changes are told.
AT, SIZE = range(2)


class Instants(NamedTuple):
    """The rows of instants one after the other, and what was told of their cells before each."""

    time: Array
    ids: Array
    cursor: Array
    touched: Array
    last: Array
    old: GroupChanges


@inlined
def _touch(instants: Instants, stop: Any, numbers: Numbers, outputs: Array, kept: Kept) -> Any:
    """The cells of an instant, each once, as they were before it; how many they are."""
    start = instants.cursor[AT]
    count = 0
    for i in range(start, stop):
        cell = instants.ids[i]
        if instants.last[cell] <= start:
            instants.last[cell] = start + 1
            instants.touched[count] = cell
            instants.old.weight[count] = numbers.rows[cell]
            tell(numbers, cell, outputs, kept, instants.old, count)
            count += 1
    return count


@inlined
def _copy(given: GroupChanges, row: Any, out: GroupChanges, to: Any) -> None:
    for output in range(out.words.shape[1]):
        out.words[to, output] = given.words[row, output]
        out.valid[to, output] = given.valid[row, output]


@inlined
def _is_same(given: GroupChanges, row: Any, out: GroupChanges, to: Any) -> Any:
    is_same = True
    for output in range(out.words.shape[1]):
        is_same &= out.words[to, output] == given.words[row, output]
        is_same &= out.valid[to, output] == given.valid[row, output]
    return is_same


@inlined
def _conclude(
    instants: Instants, k: Any, at: Any, numbers: Numbers, outputs: Array, kept: Kept,
    out: GroupChanges,
) -> None:  # fmt: skip
    """Say what an instant has done to a cell: its old row goes, the new one comes."""
    cell, size = instants.touched[k], instants.cursor[SIZE]
    was_there = instants.old.weight[k] > 0
    coming = size + 1 if was_there else size
    tell(numbers, cell, outputs, kept, out, coming)
    if was_there and _is_same(instants.old, k, out, coming):
        return
    if was_there:
        _copy(instants.old, k, out, size)
        out.groups[size], out.time[size], out.weight[size] = cell, at, -1
    out.groups[coming], out.time[coming], out.weight[coming] = cell, at, 1
    for output in range(outputs.shape[0]):
        if outputs[output, 0] == SUM_INTEGERS and not out.valid[coming, output]:
            if numbers.sums[cell, outputs[output, 1], COUNT] > 0:
                out.faults[output] += 1
    instants.cursor[SIZE] = coming + 1


@tight
def tell_instants(
    rows: Rows, instants: Instants, kinds: Array, signs: Array, target: Numbers,
    outputs: Array, wides: Wides, heaps: Heaps, out: GroupChanges,
) -> bool:  # fmt: skip
    """Rows into their cells, and after each instant what has become of these.

    False if there may be no room for wide sums: call again when there is more.
    """
    kept = looked_at(target, wides, heaps)
    time, cursor = instants.time, instants.cursor
    while cursor[AT] < time.size:
        stop = cursor[AT] + 1
        while stop < time.size and time[stop] == time[cursor[AT]]:
            stop += 1
        if not has_room(wides, kinds.size * (stop - cursor[AT])):
            return False
        count = _touch(instants, stop, target, outputs, kept)
        for i in range(cursor[AT], stop):
            _take_in(rows, i, instants.ids[i], kinds, signs, target, wides)
        for k in range(count):
            _conclude(instants, k, time[cursor[AT]], target, outputs, kept, out)
        cursor[AT] = stop
    return True
