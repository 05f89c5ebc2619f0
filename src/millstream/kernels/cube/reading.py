"""The compiled loops of questions: which group each cell belongs to, and cells into groups."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from millstream.compiled import inlined, tight
from millstream.kernels.cube.loops import Numbers, meet
from millstream.kernels.relational.accumulators import INTEGER_SUM, NO_SUM
from millstream.kernels.windows.sums import (
    COUNT,
    HIGH,
    LOW,
    Wides,
    add_number,
    has_room,
)
from millstream.plan.batch import Array


class CellKeys(NamedTuple):
    """How the codes of cells become keys: columns, and from where in `steps` they are looked up.

    `steps` has for each number what it adds to the key; `tests` for each number whether
    cells with it count.
    """

    columns: Array
    starts: Array
    steps: Array
    tested: Array
    test_starts: Array
    tests: Array


class Given(NamedTuple):
    """Cells that lie one after the other, each with all that is kept of it, without wide sums.

    `floats` is `words` seen as floats. First come the codes, two in a word, then from `rows` on how
    many rows a cell has, from `sums` on its sums, each of two words or of three with its count, and
    from `extremes` on its extremes and which of them are known.
    """

    words: Array
    floats: Array
    rows: int
    sums: int
    short: int
    extremes: int


@inlined
def code_of(words: Array, i: Any, column: Any) -> Any:
    """One of the codes of a cell."""
    return (words[i, column >> 1] >> ((column & 1) << 5)) & 0xFFFFFFFF


@inlined
def count_of(given: Given, i: Any, c: Any) -> Any:
    """How many values a sum is of; without a word for it, all rows of the cell have one."""
    return given.words[i, given.sums + 3 * c] if given.short == 3 else given.words[i, given.rows]


@tight
def find_keys(
    words: Array, index: Array, by_time: Array, first: int, how: CellKeys, out: Array
) -> int:
    """The key of each cell, or -1 if it does not count; answers how many count.

    `by_time` has for each partition from the first on what it adds to the key, or -1.
    """
    count = 0
    for i in range(words.shape[0]):
        key = by_time[index[i] - first]
        for k in range(how.tested.size):
            if not how.tests[how.test_starts[k] + code_of(words, i, how.tested[k])]:
                key = -1
        if key >= 0:
            for k in range(how.columns.size):
                key += how.steps[how.starts[k] + code_of(words, i, how.columns[k])]
            count += 1
        out[i] = key
    return count


@tight
def move_bits(keys: Array, shift: int, width: int, to: int, out: Array) -> None:
    """Some bits of keys at another place of other keys."""
    mask = (1 << width) - 1
    for i in range(keys.size):
        out[i] |= ((keys[i] >> shift) & mask) << to


#: Bits of a key that are looked at together when keys are sorted.
_DIGIT = 11


@tight
def order_keys(keys: Array, largest: int, order: Array, spare: Array, counts: Array) -> None:
    """The order of keys from zero to the largest, in `order`, which has all places at first."""
    shift = 0
    is_swapped = False
    while (largest >> shift) > 0:
        given, made = (spare, order) if is_swapped else (order, spare)
        for d in range(counts.size):
            counts[d] = 0
        for i in range(keys.size):
            counts[(keys[i] >> shift) & (counts.size - 1)] += 1
        total = 0
        for d in range(counts.size):
            total, counts[d] = total + counts[d], total
        for i in range(keys.size):
            place = given[i]
            digit = (keys[place] >> shift) & (counts.size - 1)
            made[counts[digit]] = place
            counts[digit] += 1
        shift += _DIGIT
        is_swapped = not is_swapped
    if is_swapped:
        for i in range(keys.size):
            order[i] = spare[i]


def ordered(keys: Array) -> Array:
    """The places of keys, none below zero, by their size."""
    order = np.arange(len(keys))
    largest = int(keys.max(initial=0))
    order_keys(keys, largest, order, np.empty_like(order), np.empty(1 << _DIGIT, np.int64))
    return order


@inlined
def _add_short(
    target: Numbers, cell: Any, c: Any, given: Given, i: Any, kind: Any, wides: Wides
) -> None:
    """A sum of two words into another one."""
    sums, first = target.sums, given.sums + given.short * (c + 1) - 2
    sums[cell, c, COUNT] += count_of(given, i, c)
    if kind == INTEGER_SUM:
        before = np.uint64(sums[cell, c, LOW])
        after = before + np.uint64(given.words[i, first])
        sums[cell, c, HIGH] += given.words[i, first + 1] + (1 if after < before else 0)
        sums[cell, c, LOW] = np.int64(after)
    elif kind != NO_SUM:
        floats = target.floats[cell, c]
        add_number(sums[cell, c], floats, given.floats[i, first], 1, wides)
        if given.floats[i, first + 1] != 0.0:
            add_number(sums[cell, c], floats, given.floats[i, first + 1], 1, wides)


@inlined
def add_given(
    given: Given, i: Any, cell: Any, kinds: Array, signs: Array, target: Numbers, wides: Wides
) -> None:
    """A cell into a group."""
    target.rows[cell] += given.words[i, given.rows]
    for c in range(kinds.size):
        _add_short(target, cell, c, given, i, kinds[c], wides)
    for e in range(signs.size):
        if given.words[i, given.extremes + signs.size + e]:
            meet(target, cell, e, given.words[i, given.extremes + e], signs[e])


@tight
def merge_given(
    given: Given, ids: Array, start: int, kinds: Array, signs: Array, target: Numbers, wides: Wides
) -> int:
    """Cells from `start` on into groups; those of group -1 are passed over."""
    for i in range(start, ids.size):
        cell = ids[i]
        if cell < 0:
            continue
        if not has_room(wides, kinds.size):
            return i
        add_given(given, i, cell, kinds, signs, target, wides)
    return ids.size
