"""The compiled loops of most questions: cells in the order of their groups, told group by group.

A key and the place of its cell are one word. In the order of these words the cells of a group
lie together, so a group needs no room of its own. Cells are moved into that order once; then each
attribute and each measure is told by a loop of its own, which has little to decide. What two floats
do not hold exactly, and measures that are made of several sums, are told by `tell_slowly`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from millstream.compiled import inlined, tight
from millstream.kernels.cube.loops import Numbers, looked_at, tell
from millstream.kernels.cube.reading import Given, add_given, code_of, count_of
from millstream.kernels.relational.accumulators import (
    COUNT_ROWS,
    COUNT_VALUES,
    EXTREME,
    MEAN_NUMBERS,
    SUM_INTEGERS,
    SUM_NUMBERS,
)
from millstream.kernels.relational.aggregate_loop import GroupChanges
from millstream.kernels.runtime.hashing import NEAR, prefetch
from millstream.kernels.windows.heap import Heaps
from millstream.kernels.windows.sums import (
    COUNT,
    HI,
    LO,
    WIDE,
    Wides,
    add_in_two,
    give_back,
)
from millstream.plan.batch import Array

#: Bits of a word that are looked at together when words are sorted.
_DIGIT = 12
#: Measures that have loops of their own.
_ALONE = (COUNT_ROWS, COUNT_VALUES, SUM_NUMBERS, SUM_INTEGERS, MEAN_NUMBERS, EXTREME)


class Side(NamedTuple):
    """Cells, and the words of those that count."""

    given: Given
    words: Array


class Gathered(NamedTuple):
    """Cells that lie as their groups do, where they lay before, and where groups start."""

    cells: Given
    places: Array
    starts: Array


class Naming(NamedTuple):
    """How groups get the codes of their attributes and of their part of time.

    `numbers` has for each column of cells what a member is at the level that is wanted.
    """

    columns: list[int]
    numbers: list[Array]
    partitions: list[Array]
    by_time: Array
    first: int
    shift: int
    has_time: bool


@tight
def join_places(keys: Array, bits: int, words: Array) -> Any:
    """Keys that count with their places in the lowest bits: how many, and whether in order."""
    size, last, is_in_order = 0, np.int64(0), True
    for i in range(keys.size):
        if keys[i] >= 0:
            is_in_order &= keys[i] >= last
            last = keys[i]
            words[size] = (keys[i] << bits) | i
            size += 1
    return size, is_in_order


@tight
def _sort(words: Array, spare: Array, shift: int, digit: int, counts: Array) -> None:
    """One pass: by some bits, those that are equal in them as they were."""
    mask = (1 << digit) - 1
    for d in range(counts.size):
        counts[d] = 0
    for i in range(words.size):
        counts[(words[i] >> shift) & mask] += 1
    total = 0
    for d in range(counts.size):
        total, counts[d] = total + counts[d], total
    for i in range(words.size):
        place = (words[i] >> shift) & mask
        spare[counts[place]] = words[i]
        counts[place] += 1


def sorted_words(keys: Array, bits: int, product: int) -> Array:
    """The words of keys below a product, by key, then by place."""
    words = np.empty(len(keys), np.int64)
    size, is_in_order = join_places(keys, bits, words)
    words = words[:size]
    if is_in_order:
        return words
    width = max(1, (product - 1).bit_length())
    passes = -(-width // _DIGIT)
    digit = -(-width // passes)
    spare, counts = np.empty_like(words), np.empty(1 << digit, np.int64)
    for number in range(passes):
        _sort(words, spare, bits + number * digit, digit, counts)
        words, spare = spare, words
    return words


# --- cells by their groups ---


@tight
def _merge(one: Array, other: Array, bits: int, beyond: int, words: Array) -> None:
    """Two lists of words in the order of both; places of the other begin beyond the first's."""
    j = 0
    size = 0
    for i in range(one.size):
        while j < other.size and other[j] >> bits < one[i] >> bits:
            words[size] = other[j] + beyond
            j += 1
            size += 1
        words[size] = one[i]
        size += 1
    while j < other.size:
        words[size] = other[j] + beyond
        j += 1
        size += 1


@tight
def _find_starts(words: Array, bits: int, starts: Array) -> int:
    """Where groups start, as many as there is room for; words become places. Answers how many."""
    count, last, mask = 0, np.int64(-1), (1 << bits) - 1
    for i in range(words.size):
        key = words[i] >> bits
        if key != last:
            starts[count] = i
            if count + 1 == starts.size:
                return count
            last = key
            count += 1
        words[i] &= mask
    starts[count] = words.size
    return count


@tight
def _gather(one: Given, other: Given, places: Array, into: Array) -> None:
    """Cells of both sides in the order of places."""
    split, width = one.words.shape[0], into.shape[1]
    for i in range(places.size):
        if i + NEAR < places.size:
            prefetch(one.words, places[i + NEAR])
            # A cell may lie across the lines of the cache.
            prefetch(one.words, places[i + NEAR] + 1)
        place = places[i]
        if place < split:
            for k in range(width):
                into[i, k] = one.words[place, k]
        else:
            for k in range(width):
                into[i, k] = other.words[place - split, k]


def gathered(one: Side, other: Side, bits: int, most: int) -> Gathered:
    """The cells of two sides by their groups, of which there are at most so many."""
    words, given = one.words, one.given
    if len(other.words):
        words = np.empty(len(one.words) + len(other.words), np.int64)
        _merge(one.words, other.words, bits, len(given.words), words)
    starts = np.empty(min(len(words), most) + 1, np.int64)
    starts = starts[: _find_starts(words, bits, starts) + 1]
    places = words[: starts[-1]]
    into = np.empty((len(places), given.words.shape[1]), np.int64)
    _gather(given, other.given, places, into)
    return Gathered(given._replace(words=into, floats=into.view(np.float64)), places, starts)


# --- attributes and measures, one after the other ---


@tight
def _name(groups: Gathered, column: int, numbers: Array, codes: Array) -> None:
    """What groups are at the level that is wanted, from their first cells."""
    for group in range(codes.size):
        codes[group] = numbers[code_of(groups.cells.words, groups.starts[group], column)]


def named(groups: Gathered, naming: Naming) -> Array:
    """The codes of groups: a column for each attribute, and one for the part of time."""
    size = len(groups.starts) - 1
    codes = np.empty((len(naming.columns) + 1, size), np.int64).T
    for place, (column, numbers) in enumerate(zip(naming.columns, naming.numbers, strict=True)):
        _name(groups, column, numbers, codes[:, place])
    codes[:, -1] = naming.shift
    if naming.has_time:
        places = groups.places[groups.starts[:-1]]
        partitions = np.concatenate(naming.partitions)[places]
        codes[:, -1] += naming.by_time[partitions - naming.first]
    return codes


@tight
def _tell_rows(groups: Gathered, words: Array) -> None:
    for group in range(words.size):
        total = np.int64(0)
        for i in range(groups.starts[group], groups.starts[group + 1]):
            total += groups.cells.words[i, groups.cells.rows]
        words[group] = total


@tight
def _tell_counts(groups: Gathered, c: int, words: Array) -> None:
    for group in range(words.size):
        total = np.int64(0)
        for i in range(groups.starts[group], groups.starts[group + 1]):
            total += count_of(groups.cells, i, c)
        words[group] = total


@tight
def _tell_numbers(
    groups: Gathered, c: int, how: int, floats: Array, valid: Array, is_hard: Array
) -> None:
    """Sums of numbers, or their means; those that two floats do not hold are hard."""
    cells = groups.cells
    first = cells.sums + cells.short * (c + 1) - 2
    for group in range(floats.size):
        start = groups.starts[group]
        count = count_of(cells, start, c)
        hi, lo = cells.floats[start, first], cells.floats[start, first + 1]
        is_exact = True
        for i in range(start + 1, groups.starts[group + 1]):
            count += count_of(cells, i, c)
            hi, lo, could = add_in_two(hi, lo, cells.floats[i, first])
            is_exact &= could
            if cells.floats[i, first + 1] != 0.0:
                hi, lo, could = add_in_two(hi, lo, cells.floats[i, first + 1])
                is_exact &= could
        total = hi + 0.0
        if how == MEAN_NUMBERS and count > 0:
            total = total / count + 0.0
        valid[group] = count > 0
        floats[group] = total if count > 0 else 0.0
        is_hard[group] |= not is_exact


@tight
def _tell_integers(groups: Gathered, c: int, words: Array, valid: Array) -> None:
    """Sums of integers, of 128 bits; they are there if 64 suffice."""
    cells = groups.cells
    first = cells.sums + cells.short * (c + 1) - 2
    for group in range(words.size):
        count, low, high = np.int64(0), np.uint64(0), np.int64(0)
        for i in range(groups.starts[group], groups.starts[group + 1]):
            count += count_of(cells, i, c)
            after = low + np.uint64(cells.words[i, first])
            high += cells.words[i, first + 1] + (1 if after < low else 0)
            low = after
        fits = count > 0 and high == np.int64(low) >> 63
        valid[group] = fits
        words[group] = np.int64(low) if fits else 0


@tight
def _tell_extremes(
    groups: Gathered, e: int, count: int, sign: int, words: Array, valid: Array
) -> None:
    """One of so many extremes that cells have."""
    given, first = groups.cells.words, groups.cells.extremes + e
    for group in range(words.size):
        is_known, best = False, np.int64(0)
        for i in range(groups.starts[group], groups.starts[group + 1]):
            word = given[i, first]
            is_better = word < best if sign > 0 else word > best
            if given[i, first + count] != 0 and (not is_known or is_better):
                is_known, best = True, word
        valid[group], words[group] = is_known, best


def told_alone(groups: Gathered, outputs: Array, signs: Array, out: GroupChanges) -> Array:
    """Tell all measures that have loops of their own; answers the groups that are left."""
    if not np.isin(outputs[:, 0], _ALONE).all():
        return np.arange(len(out.words))
    is_hard = np.zeros(len(out.words), np.bool_)
    for number, (how, which, _) in enumerate(outputs.tolist()):
        words, floats, valid = out.words[:, number], out.floats[:, number], out.valid[:, number]
        if how == COUNT_ROWS:
            valid[:] = True
            _tell_rows(groups, words)
        elif how == COUNT_VALUES:
            valid[:] = True
            _tell_counts(groups, which, words)
        elif how == SUM_INTEGERS:
            _tell_integers(groups, which, words, valid)
        elif how == EXTREME:
            _tell_extremes(groups, which, len(signs), int(signs[which]), words, valid)
        else:
            _tell_numbers(groups, which, how, floats, valid, is_hard)
    return np.flatnonzero(is_hard)


# --- all measures of a group ---


@inlined
def _begin(given: Given, i: Any, scratch: Numbers, wides: Wides) -> None:
    """A group of one cell; there are no infinities among cells without wide sums."""
    scratch.rows[0] = given.words[i, given.rows]
    for c in range(scratch.sums.shape[1]):
        sums, first = scratch.sums[0, c], given.sums + given.short * (c + 1) - 2
        if sums[WIDE] != 0:
            give_back(sums, wides)
        sums[COUNT] = count_of(given, i, c)
        sums[HI], sums[LO] = given.words[i, first], given.words[i, first + 1]
    extremes = scratch.extremes.shape[1]
    for e in range(extremes):
        scratch.known[0, e] = given.words[i, given.extremes + extremes + e] != 0
        scratch.extremes[0, e] = given.words[i, given.extremes + e]


@tight
def tell_slowly(
    groups: Gathered, chosen: Array, kinds: Array, signs: Array, outputs: Array, scratch: Numbers,
    wides: Wides, heaps: Heaps, out: GroupChanges,
) -> None:  # fmt: skip
    """All measures of some groups. There must be room for as many wide sums as a cell has."""
    kept = looked_at(scratch, wides, heaps)
    for n in range(chosen.size):
        group = chosen[n]
        start = groups.starts[group]
        _begin(groups.cells, start, scratch, wides)
        for i in range(start + 1, groups.starts[group + 1]):
            add_given(groups.cells, i, 0, kinds, signs, scratch, wides)
        tell(scratch, 0, outputs, kept, out, group)
