"""The compiled loops of most questions: cells in the order of their groups, told group by group.

A key and the place of its cell are one word. In the order of these words the cells of a group
lie together, so a group needs no room of its own: it is told when its last cell has come.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from millstream.compiled import inlined, tight
from millstream.kernels.cube.loops import Numbers, looked_at, tell
from millstream.kernels.cube.reading import Given, add_packed
from millstream.kernels.relational.aggregate_loop import GroupChanges
from millstream.kernels.runtime.hashing import NEAR, prefetch
from millstream.kernels.windows.heap import Heaps
from millstream.kernels.windows.sums import COUNT, HI, LO, WIDE, Wides, give_back
from millstream.plan.batch import Array

#: Bits of a word that are looked at together when words are sorted.
_DIGIT = 12


class Side(NamedTuple):
    """Cells without wide sums, in which partition each lies, and the words of those that count."""

    given: Given
    codes: Array
    partitions: Array
    words: Array


class Naming(NamedTuple):
    """How groups get the codes of their attributes and of their part of time.

    `numbers` has, from each of the starts on, what a member is at the level that is wanted.
    """

    columns: Array
    starts: Array
    numbers: Array
    by_time: Array
    first: int
    shift: int
    has_time: bool


@tight
def join_places(keys: Array, bits: int, words: Array) -> int:
    """Keys that count with their places in the lowest bits; answers how many they are."""
    size = 0
    for i in range(keys.size):
        if keys[i] >= 0:
            words[size] = (keys[i] << bits) | i
            size += 1
    return size


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
    words = words[: join_places(keys, bits, words)]
    width = max(1, (product - 1).bit_length())
    passes = -(-width // _DIGIT)
    digit = -(-width // passes)
    spare, counts = np.empty_like(words), np.empty(1 << digit, np.int64)
    for number in range(passes):
        _sort(words, spare, bits + number * digit, digit, counts)
        words, spare = spare, words
    return words


@inlined
def _name(side: Side, place: Any, naming: Naming, codes: Array, group: Any) -> None:
    """The codes of a group, from any of its cells."""
    width = naming.columns.size
    for k in range(width):
        code = side.codes[place, naming.columns[k]]
        codes[group, k] = naming.numbers[naming.starts[k] + code]
    codes[group, width] = naming.shift
    if naming.has_time:
        codes[group, width] += naming.by_time[side.partitions[place] - naming.first]


@inlined
def _ask_for(side: Side, i: Any, mask: Any) -> None:
    """Ask memory for a cell that comes soon."""
    if i + NEAR < side.words.size:
        soon = side.words[i + NEAR] & mask
        prefetch(side.given.sums, soon)
        prefetch(side.given.rows, soon)
        prefetch(side.codes, soon)


@inlined
def _begin(given: Given, i: Any, scratch: Numbers, wides: Wides) -> None:
    """A group of one cell."""
    skipped = given.sums.shape[2] - 2
    scratch.rows[0] = given.rows[i]
    for c in range(scratch.sums.shape[1]):
        sums = scratch.sums[0, c]
        if sums[WIDE] != 0:
            give_back(sums, wides)
        sums[COUNT] = given.sums[i, c, 0] if skipped else given.rows[i]
        sums[HI] = given.sums[i, c, skipped]
        sums[LO] = given.sums[i, c, skipped + 1]
        for k in range(WIDE, sums.size):
            sums[k] = 0
    for e in range(scratch.extremes.shape[1]):
        scratch.known[0, e] = given.known[i, e]
        scratch.extremes[0, e] = given.extremes[i, e]


@inlined
def _begin_with(
    side: Side, i: Any, mask: Any, naming: Naming, scratch: Numbers, wides: Wides, codes: Array,
    group: Any,
) -> None:  # fmt: skip
    _name(side, side.words[i] & mask, naming, codes, group)
    _ask_for(side, i, mask)
    _begin(side.given, side.words[i] & mask, scratch, wides)


@inlined
def _take_in(
    side: Side, start: Any, bits: Any, key: Any, kinds: Array, signs: Array, scratch: Numbers,
    wides: Wides,
) -> Any:  # fmt: skip
    """All cells of a key from a word on; answers where the next key is."""
    mask = (1 << bits) - 1
    i = start
    while i < side.words.size and side.words[i] >> bits == key:
        _ask_for(side, i, mask)
        add_packed(side.given, side.words[i] & mask, 0, kinds, signs, scratch, wides)
        i += 1
    return i


@tight
def tell_sorted(
    one: Side, other: Side, bits: int, naming: Naming, kinds: Array, signs: Array, outputs: Array,
    scratch: Numbers, wides: Wides, heaps: Heaps, codes: Array, out: GroupChanges,
) -> int:  # fmt: skip
    """Groups of the cells of two sides, in the order of keys; as many as there is room for.

    There must be room for as many wide sums as a cell has.
    """
    kept = looked_at(scratch, wides, heaps)
    mask = (1 << bits) - 1
    i, j, size = 0, 0, 0
    while (i < one.words.size or j < other.words.size) and size < codes.shape[0]:
        is_first = j == other.words.size or (
            i < one.words.size and one.words[i] >> bits <= other.words[j] >> bits
        )
        if is_first:
            key = one.words[i] >> bits
            _begin_with(one, i, mask, naming, scratch, wides, codes, size)
            i += 1
        else:
            key = other.words[j] >> bits
            _begin_with(other, j, mask, naming, scratch, wides, codes, size)
            j += 1
        i = _take_in(one, i, bits, key, kinds, signs, scratch, wides)
        j = _take_in(other, j, bits, key, kinds, signs, scratch, wides)
        tell(scratch, 0, outputs, kept, out, size)
        size += 1
    return size
