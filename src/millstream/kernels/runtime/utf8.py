"""Compiled loops over UTF-8 text. The order of its bytes is that of its code points."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from millstream.compiled import inlined, tight
from millstream.kernels.runtime.hashing import (
    CACHED_SLOTS,
    FAR,
    FREE,
    LIVE,
    NEAR,
    NEXT,
    TOP,
    close_gap,
    is_full,
    prefetch,
    prefetch_record,
    take_id,
)
from millstream.plan.batch import Array
from millstream.words64 import copy64, load64

#: Beside TOP, FREE and LIVE: how many bytes of the arena are taken.
USED = 3

#: Codes of entries of a dictionary that have none: not yet looked at, and just found.
UNKNOWN, _FOUND = -2, -3

_K1 = np.uint64(0x9E3779B97F4A7C15)
_K2 = np.uint64(0xD6E8FEB86659FD93)
_SHIFT = np.uint64(32)
_LOW = np.int64(0xFFFFFFFF)


class TextColumn(NamedTuple):
    """Texts as Arrow has them; `valid` is empty where nothing is null."""

    offsets: Array
    data: Array
    valid: Array


class Texts(NamedTuple):
    """A pool of texts: as `loops.Table`, but the keys lie end to end in `arena`.

    `places` has the start and the length of each text; of a free code both are zero.
    """

    slots: Array
    places: Array
    arena: Array
    free: Array
    counters: Array


#: How many bytes `put_text` may read and write behind the end of a text.
SPARE = 8


@inlined
def put_text(arena: Array, at: Any, data: Array, start: Any, end: Any) -> Any:
    """Copy a text in steps of eight bytes; where it ends. What lies behind it is spoilt."""
    for j in range(0, end - start, 8):
        copy64(arena, at + j, data, start + j)
    return at + end - start


@inlined
def _last64(data: Array, start: Any, length: Any) -> Any:
    """The last `length` < 8 bytes of a text, never reading outside of `data`."""
    if start + 8 <= data.size:
        shift = np.uint64(64 - 8 * length)
        return (load64(data, start) << shift) >> shift
    word = np.uint64(0)
    for j in range(length):
        word |= np.uint64(data[start + j]) << np.uint64(8 * j)
    return word


@inlined
def hash_text(data: Array, start: Any, length: Any) -> Any:
    """32 bits of hash, as int64."""
    h = _K2 ^ np.uint64(length)
    rest = length
    while rest >= 8:
        h = (h ^ load64(data, start)) * _K1
        h ^= h >> _SHIFT
        start += 8
        rest -= 8
    if rest > 0:
        h = (h ^ _last64(data, start, rest)) * _K1
        h ^= h >> _SHIFT
    return np.int64((h * _K2) >> _SHIFT)


@inlined
def _same_text(one: Array, start: int, other: Array, other_start: Any, length: Any) -> Any:
    rest = length
    while rest >= 8:
        if load64(one, start) != load64(other, other_start):
            return False
        start += 8
        other_start += 8
        rest -= 8
    return rest == 0 or _last64(one, start, rest) == _last64(other, other_start, rest)


@inlined
def compare_texts(one: int, other: int, texts: Texts) -> int:
    """The sign of the order of two texts, given by their codes; equal ones may have two."""
    return 0 if one == other else compare_pools(one, texts, other, texts)


@inlined
def compare_pools(one: Any, texts: Texts, other: Any, others: Texts) -> Any:
    """The sign of the order of two texts of different pools, given by their codes."""
    start, length = texts.places[one, 0], texts.places[one, 1]
    other_start, other_length = others.places[other, 0], others.places[other, 1]
    arena, other_arena = texts.arena, others.arena
    shorter, j = min(length, other_length), 0
    while j + 8 <= shorter and load64(arena, start + j) == load64(other_arena, other_start + j):
        j += 8
    while j < shorter:
        a, b = arena[start + j], other_arena[other_start + j]
        if a != b:
            return -1 if a < b else 1
        j += 1
    return np.sign(length - other_length)


@tight
def hash_texts(column: TextColumn, hashes: Array) -> None:
    offsets, data, _ = column
    for i in range(hashes.size):
        hashes[i] = hash_text(data, np.int64(offsets[i]), np.int64(offsets[i + 1] - offsets[i]))


@inlined
def _prefetch_text(hashes: Array, i: Any, texts: Texts) -> None:
    """Ask for the slots of a later text, the place of one not so late, and a next one."""
    slots, places, arena = texts.slots, texts.places, texts.arena
    prefetch_record(hashes, i, slots, places)
    if slots.size > CACHED_SLOTS and i + FAR < hashes.size:
        slot = slots[hashes[i + NEXT] & (slots.size - 1)]
        if slot != 0:
            prefetch(arena, places[(slot & _LOW) - 1, 0])


@tight
def intern_texts(column: TextColumn, hashes: Array, start: int, codes: Array, texts: Texts) -> int:
    """Codes of texts from `start` on, -1 for null; stops where the pool must grow."""
    offsets, data, valid = column
    slots, places, arena, free, counters = texts
    mask = slots.size - 1
    for i in range(start, codes.size):
        _prefetch_text(hashes, i, texts)
        if valid.size > 0 and not valid[i]:
            codes[i] = -1
            continue
        begin: Any = np.int64(offsets[i])
        length: Any = np.int64(offsets[i + 1]) - begin
        place = hashes[i] & mask
        tag = hashes[i] << 32
        while True:
            slot = slots[place]
            if slot == 0:
                if is_full(slots, free, counters) or counters[USED] + length > arena.size:
                    return i
                code = take_id(free, counters)
                slots[place] = tag | (code + 1)
                places[code, 0] = counters[USED]
                places[code, 1] = length
                for j in range(length):
                    arena[counters[USED] + j] = data[begin + j]
                counters[USED] += length
                break
            if (slot ^ tag) & ~_LOW == 0:
                code = (slot & _LOW) - 1
                if places[code, 1] == length and _same_text(
                    data, begin, arena, places[code, 0], length
                ):
                    break
            place = (place + 1) & mask
        codes[i] = code
    return len(codes)


@tight
def find_first_uses(indices: Array, codes: Array, entries: Array) -> int:
    """The entries of a dictionary that are used and have no code yet, in order of use.

    Such entries have the code UNKNOWN. So texts get codes in the order in which rows
    bring them, however a column is encoded.
    """
    count = 0
    for i in range(indices.size):
        if indices[i] >= 0 and codes[indices[i]] == UNKNOWN:
            codes[indices[i]] = _FOUND
            entries[count] = indices[i]
            count += 1
    return count


@tight
def take_codes(indices: Array, codes: Array, taken: Array) -> None:
    """The codes of indices into a dictionary; index -1 is null and has code -1."""
    for i in range(indices.size):
        taken[i] = codes[indices[i]] if indices[i] >= 0 else -1


@tight
def sweep_texts(is_live: Array, texts: Texts, fresh: Array) -> None:
    """Free the codes that are not live and copy what is left into a fresh arena.

    A code that is already free is found neither live nor in the table.
    """
    slots, places, arena, free, counters = texts
    mask = slots.size - 1
    used = 0
    for code in range(counters[TOP]):
        start, length = places[code, 0], places[code, 1]
        if is_live[code]:
            for j in range(length):
                fresh[used + j] = arena[start + j]
            places[code, 0] = used
            used += length
            continue
        place = hash_text(arena, start, length) & mask
        while slots[place] != 0 and (slots[place] & _LOW) != code + 1:
            place = (place + 1) & mask
        if slots[place] != 0:
            close_gap(slots, place)
            free[counters[FREE]] = code
            counters[FREE] += 1
            counters[LIVE] -= 1
        places[code, 0] = 0
        places[code, 1] = 0
    counters[USED] = used


@tight
def index_texts(is_live: Array, texts: Texts) -> None:
    """Fill an empty table, after a restore."""
    slots, places, arena = texts.slots, texts.places, texts.arena
    mask = slots.size - 1
    for code in range(is_live.size):
        if is_live[code]:
            h = hash_text(arena, places[code, 0], places[code, 1])
            place = h & mask
            while slots[place] != 0:
                place = (place + 1) & mask
            slots[place] = (h << 32) | (code + 1)


@tight
def measure_texts(codes: Array, places: Array, offsets: Array) -> Any:
    """Fill the offsets of the texts of codes laid end to end; -1 is null, and empty."""
    total = 0
    for i in range(codes.size):
        offsets[i] = total
        if codes[i] >= 0:
            total += places[codes[i], 1]
    offsets[codes.size] = total
    return total


@tight
def gather_texts(codes: Array, texts: Texts, offsets: Array, data: Array) -> None:
    """Lay the texts of codes end to end; `data` has SPARE bytes more than they need."""
    places, arena = texts.places, texts.arena
    for i in range(codes.size):
        if i + FAR < codes.size:
            prefetch(places, codes[i + FAR])
            if codes[i + NEAR] >= 0:
                prefetch(arena, places[codes[i + NEAR], 0])
        if codes[i] < 0:
            continue
        start, begin, length = places[codes[i], 0], np.int64(offsets[i]), places[codes[i], 1]
        if start + length + SPARE <= arena.size:
            put_text(data, begin, arena, start, start + length)
        else:
            for j in range(length):
                data[begin + j] = arena[start + j]


@tight
def mark_codes(words: Array, column: int, is_live: Array) -> None:
    """Mark the codes that a text column of words uses; dead rows say 0, which is harmless."""
    for i in range(words.shape[0]):
        if words[i, column] < is_live.size:
            is_live[words[i, column]] = True
