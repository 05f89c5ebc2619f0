"""The compiled loops of most questions: which group each cell is of, then a measure at a time.

Groups are numbered in the order of their keys. Where there are not many more keys than cells each
key has a bit, and the bits that are set before one say its number; otherwise keys are sorted, each
with the place of its cell in one word. What two floats do not hold exactly, and measures that are
made of several sums, are told by `Measures.told`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from millstream.compiled import inlined, tight
from millstream.kernels.cube.reading import Given, count_of
from millstream.kernels.relational.accumulators import (
    COUNT_ROWS,
    COUNT_VALUES,
    EXTREME,
    MEAN_NUMBERS,
    SUM_INTEGERS,
    SUM_NUMBERS,
)
from millstream.kernels.windows.sums import add_in_two
from millstream.plan.batch import Array

#: Bits of a word that are looked at together when words are sorted.
_DIGIT = 13
#: Keys have bits where these need at most so many words for each cell, or so many at all.
_WORDS_PER_CELL, _FEW_WORDS = 3, 1 << 10
#: Keys and the places of their cells must be one word.
LONGEST = 62
#: Measures that have loops of their own.
_ALONE = (COUNT_ROWS, COUNT_VALUES, SUM_NUMBERS, SUM_INTEGERS, MEAN_NUMBERS, EXTREME)
_OF_NUMBERS = (SUM_NUMBERS, MEAN_NUMBERS)
_LEFT = np.uint64(63)
_ONE = np.uint64(1)


class Side(NamedTuple):
    """Cells, and the number of the group of each, or -1."""

    given: Given
    ids: Array


# --- numbers of groups ---


@inlined
def _bits_set(word: Any) -> Any:
    """How many bits of a word are set."""
    word = word - ((word >> _ONE) & np.uint64(0x5555555555555555))
    pairs = word & np.uint64(0x3333333333333333)
    word = pairs + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@tight
def _mark(keys: Array, present: Array) -> int:
    """Set the bits of keys; answers how many were not set before."""
    count = 0
    for i in range(keys.size):
        key = keys[i]
        if key >= 0:
            word, bit = present[key >> 6], _ONE << (np.uint64(key) & _LEFT)
            count += 1 if word & bit == 0 else 0
            present[key >> 6] = word | bit
    return count


@tight
def _list_marked(present: Array, before: Array, keys: Array) -> None:
    """The keys whose bits are set, in order, and for each word how many come before it."""
    size = 0
    for w in range(present.size):
        before[w] = size
        word = present[w]
        while word != 0:
            lowest = word & (~word + _ONE)
            keys[size] = (w << 6) + _bits_set(lowest - _ONE)
            size += 1
            word ^= lowest


@tight
def _find_marked(keys: Array, present: Array, before: Array, ids: Array) -> None:
    for i in range(keys.size):
        key = keys[i]
        ids[i] = -1
        if key >= 0:
            bits = (_ONE << (np.uint64(key) & _LEFT)) - _ONE
            ids[i] = before[key >> 6] + _bits_set(present[key >> 6] & bits)


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


def sorted_words(keys: Array, bits: int, width: int) -> Array:
    """The words of keys of so many bits, by key, then by place."""
    words = np.empty(len(keys), np.int64)
    size, is_in_order = join_places(keys, bits, words)
    words = words[:size]
    if is_in_order:
        return words
    passes = max(1, -(-width // _DIGIT))
    digit = -(-width // passes)
    spare, counts = np.empty_like(words), np.empty(1 << digit, np.int64)
    for number in range(passes):
        _sort(words, spare, bits + number * digit, digit, counts)
        words, spare = spare, words
    return words


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
def _number(words: Array, bits: int, ids: Array, keys: Array) -> int:
    """The numbers of cells by their places, and the keys of groups; answers how many."""
    count, last, mask = 0, np.int64(-1), (1 << bits) - 1
    for i in range(words.size):
        key = words[i] >> bits
        if key != last:
            keys[count] = key
            last = key
            count += 1
        ids[words[i] & mask] = count - 1
    return count


def numbered(keys: Sequence[Array], width: int) -> tuple[Array, list[Array]]:
    """The keys of groups, in order, and for the cells of each side the numbers of their groups.

    Keys are of so many bits; those of cells that do not count are -1.
    """
    sizes = [len(own) for own in keys]
    words = (1 << width) + 63 >> 6
    if words <= max(_FEW_WORDS, _WORDS_PER_CELL * sum(sizes)):
        return _by_bits(keys, words)
    ids = np.full(sum(sizes), -1, np.int64)
    numbers = np.empty(len(ids), np.int64)
    bits = len(ids).bit_length()
    whole = sorted_words(keys[0], bits, width)
    start = sizes[0]
    for own in keys[1:]:
        more = sorted_words(own, bits, width)
        both = np.empty(len(whole) + len(more), np.int64)
        _merge(whole, more, bits, start, both)
        whole, start = both, start + len(own)
    count = _number(whole, bits, ids, numbers)
    return numbers[:count], np.split(ids, np.cumsum(sizes)[:-1])


def _by_bits(keys: Sequence[Array], words: int) -> tuple[Array, list[Array]]:
    present, before = np.zeros(words, np.uint64), np.empty(words, np.int64)
    marked = np.empty(sum(_mark(own, present) for own in keys), np.int64)
    _list_marked(present, before, marked)
    ids = [np.empty(len(own), np.int64) for own in keys]
    for own, numbers in zip(keys, ids, strict=True):
        _find_marked(own, present, before, numbers)
    return marked, ids


@tight
def name_groups(keys: Array, shift: int, width: int, members: Array, codes: Array) -> None:
    """The members that some bits of keys stand for."""
    mask = (1 << width) - 1
    for i in range(keys.size):
        codes[i] = members[(keys[i] >> shift) & mask]


# --- measures, one after the other ---


@tight
def _add_rows(given: Given, ids: Array, totals: Array) -> None:
    for i in range(ids.size):
        if ids[i] >= 0:
            totals[ids[i]] += given.words[i, given.rows]


@tight
def _add_counts(given: Given, ids: Array, c: int, totals: Array) -> None:
    for i in range(ids.size):
        if ids[i] >= 0:
            totals[ids[i]] += count_of(given, i, c)


@tight
def _add_numbers(
    given: Given, ids: Array, c: int, sums: Array, counts: Array, is_hard: Array
) -> None:
    """Sums of numbers in two floats each, and their counts; what floats do not hold is hard."""
    first = given.sums + given.short * (c + 1) - 2
    for i in range(ids.size):
        group = ids[i]
        if group < 0:
            continue
        hi, lo, could = add_in_two(sums[group, 0], sums[group, 1], given.floats[i, first])
        if given.floats[i, first + 1] != 0.0:
            hi, lo, could_too = add_in_two(hi, lo, given.floats[i, first + 1])
            could &= could_too
        sums[group, 0] = hi
        sums[group, 1] = lo
        counts[group] += count_of(given, i, c)
        if not could:
            is_hard[group] = True


@tight
def _add_integers(given: Given, ids: Array, c: int, sums: Array) -> None:
    """Sums of integers, of 128 bits."""
    first = given.sums + given.short * (c + 1) - 2
    for i in range(ids.size):
        group = ids[i]
        if group < 0:
            continue
        before = np.uint64(sums[group, 0])
        after = before + np.uint64(given.words[i, first])
        sums[group, 0] = np.int64(after)
        sums[group, 1] += given.words[i, first + 1] + (1 if after < before else 0)


@tight
def _meet(
    given: Given, ids: Array, at: int, of: int, sign: int, words: Array, valid: Array
) -> None:
    """One of so many extremes that cells have."""
    first = given.extremes + at
    for i in range(ids.size):
        group = ids[i]
        if group >= 0 and given.words[i, first + of] != 0:
            word = given.words[i, first]
            is_better = word < words[group] if sign > 0 else word > words[group]
            if is_better or not valid[group]:
                valid[group], words[group] = True, word


class ToldGroups(NamedTuple):
    """Measures of groups as words, which of them are there, and groups that are yet to be told."""

    words: Array
    valid: Array
    left: Array


def told_alone(
    sides: Sequence[Side], size: int, outputs: Sequence[tuple[int, int, int]],
    wanted: Sequence[int], signs: Array,
) -> ToldGroups:  # fmt: skip
    """The measures of so many groups that are wanted, if all have loops of their own.

    Each column lies together.
    """
    words = np.empty((len(outputs), size), np.int64)
    valid = np.ones((len(outputs), size), np.bool_)
    words[[n for n in range(len(outputs)) if n not in wanted]] = 0
    if not all(outputs[number][0] in _ALONE for number in wanted):
        return ToldGroups(words.T, valid.T, np.arange(size))
    is_hard = np.zeros(size, np.bool_)
    counts = _Counts(sides, size)
    # Sums of numbers come first: their loop counts too.
    for number in sorted(wanted, key=lambda n: outputs[n][0] not in _OF_NUMBERS):
        how, which, _ = outputs[number]
        if how == COUNT_ROWS:
            words[number] = counts.rows()
        elif how == COUNT_VALUES:
            words[number] = counts.of(which)
        elif how == EXTREME:
            words[number], valid[number] = 0, False
            for given, ids in sides:
                _meet(
                    given, ids, which, len(signs), int(signs[which]), words[number], valid[number]
                )
        elif how == SUM_INTEGERS:
            sums = np.zeros((size, 2), np.int64)
            for given, ids in sides:
                _add_integers(given, ids, which, sums)
            low, high = sums.T
            valid[number] = (counts.of(which) > 0) & (high == low >> 63)
            words[number] = np.where(valid[number], low, 0)
        else:
            floats, own = np.zeros((size, 2)), np.zeros(size, np.int64)
            for given, ids in sides:
                _add_numbers(given, ids, which, floats, own, is_hard)
            counts.know(which, own)
            _finish(floats[:, 0], own, words[number], valid[number], how)
    return ToldGroups(words.T, valid.T, np.flatnonzero(is_hard))


def _finish(totals: Array, count: Array, words: Array, valid: Array, how: int) -> None:
    """Sums, or means, as words; those of no values are not there."""
    valid[:] = count > 0
    # That of nothing is zero, and no zero has a sign.
    results = words.view(np.float64)
    np.add(totals, 0.0, out=results)
    if how == MEAN_NUMBERS:
        np.divide(results, count, out=results, where=valid)
        results += 0.0


class _Counts:
    """Mutable: how many rows groups have, and how many values of each sum; each made once."""

    def __init__(self, sides: Sequence[Side], size: int) -> None:
        self._sides = sides
        self._size = size
        self._rows: Array | None = None
        self._of: dict[int, Array] = {}
        #: Whether all rows have values of all sums.
        self._is_all = all(side.given.short == 2 for side in sides)

    def know(self, which: int, counts: Array) -> None:
        """Counts that were made beside something else."""
        self._of[which] = counts
        if self._is_all:
            self._rows = counts

    def rows(self) -> Array:
        if self._rows is None:
            self._rows = np.zeros(self._size, np.int64)
            for given, ids in self._sides:
                _add_rows(given, ids, self._rows)
        return self._rows

    def of(self, which: int) -> Array:
        if self._is_all:
            return self.rows()
        if which not in self._of:
            self._of[which] = np.zeros(self._size, np.int64)
            for given, ids in self._sides:
                _add_counts(given, ids, which, self._of[which])
        return self._of[which]
