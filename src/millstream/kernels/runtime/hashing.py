"""Compiled loops that everything else stands on: hash tables of rows of int64 words.

A table maps a row of words to a small dense id.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from millstream.compiled import compiled, inlined, tight
from millstream.plan.batch import Array

#: What `counters` count: ids ever given, those of them on the free stack, those in use;
#: of a `Table` also the width of a key.
TOP, FREE, LIVE, WIDTH = 0, 1, 2, 3

_LINE = 64
_K1 = np.uint64(0x9E3779B97F4A7C15)
_K2 = np.uint64(0xD6E8FEB86659FD93)
_SHIFT = np.uint64(32)
_LOW = np.int64(0xFFFFFFFF)
_SIGN_OFF = np.int64(0x7FFFFFFFFFFFFFFF)
_NAN_BITS = np.int64(0x7FF8000000000000)


class HashTable(NamedTuple):
    """A hash table with open addressing and linear probing, at most half full.

    A slot holds 32 bits of the hash and the id plus one, so that growing and deleting
    need not look at the keys. `free` is a stack of ids. A record has the words of a key,
    and perhaps words that belong to it: what is found together is used together, and
    memory is slow.
    """

    slots: Array
    records: Array
    free: Array
    counters: Array


def _define_prefetch(typing_context: Any, array: Any, row: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        view = context.make_array(signature.args[0])(context, builder, args[0])
        offset = builder.mul(args[1], builder.extract_value(view.strides, 0))
        start = builder.bitcast(view.data, ir.IntType(8).as_pointer())
        i32 = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [ir.IntType(8).as_pointer(), i32, i32, i32])
        hint = builder.module.declare_intrinsic("llvm.prefetch.p0", (), kind)
        builder.call(hint, [builder.gep(start, [offset]), i32(0), i32(3), i32(1)])
        return context.get_dummy_value()

    return types.void(array, types.int64), generate


#: `prefetch(array, row)` asks for a row that will be needed soon, wherever it lies; the
#: row need not exist. A loop over rows in no order else waits for memory at each of them.
prefetch: Any = intrinsic(_define_prefetch)


def _define_natural(typing_context: Any, number: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.FunctionType(ir.VoidType(), [ir.IntType(1)])
        assume = builder.module.declare_intrinsic("llvm.assume", (), kind)
        builder.call(assume, [builder.icmp_signed(">=", args[0], ir.IntType(64)(0))])
        return args[0]

    return types.int64(types.int64), generate


#: `natural(number)` is the number, of which it is known that it is not less than zero. Numba looks
#: at each index whether it counts from the end; at one of these it need not.
natural: Any = intrinsic(_define_natural)

#: How many rows ahead of a loop memory is asked for, when it is reached in several steps.
FAR, NEAR, NEXT = 24, 12, 6

#: Tables with more slots than this do not stay in the caches.
CACHED_SLOTS = 1 << 14


def frozen(array: Array) -> Array:
    """The array as contiguous and read-only, so that loops are compiled for one type."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


def padded(array: Array, length: int) -> Array:
    """A copy with exactly `length` rows; new rows are zero.

    It begins at a cache line, so that records of eight words do not straddle two.
    """
    size = int(length * array.dtype.itemsize * np.prod(array.shape[1:], dtype=np.int64))
    memory = np.zeros(size + _LINE, np.uint8)
    start = -memory.ctypes.data % _LINE
    bigger = memory[start : start + size].view(array.dtype).reshape(length, *array.shape[1:])
    bigger[: len(array)] = array
    return bigger


def grown(array: Array, length: int) -> Array:
    """The array with at least `length` rows, doubling; new rows are zero."""
    if len(array) >= length:
        return array
    return padded(array, max(length, 2 * len(array)))


@compiled
def extended(array: Array, length: int) -> Array:
    """As `grown`, inside loops, for arrays of one dimension; what is new is arbitrary."""
    bigger = np.empty(max(length, 2 * array.size), array.dtype)
    for i in range(array.size):
        bigger[i] = array[i]
    return bigger


@compiled
def dead_ids(used: Array, counts: Array, column: int) -> Array:
    """Which of the ids used (-1 for none) have a count of zero, each of them once.

    The counts are in a column of an array.
    """
    dead = np.empty(used.size, np.int64)
    size = 0
    for i in range(used.size):
        if i + FAR < used.size:
            prefetch(counts, used[i + FAR])
        if used[i] >= 0 and counts[used[i], column] == 0:
            counts[used[i], column] = -1  # so that it is not found again
            dead[size] = used[i]
            size += 1
    dead = dead[:size].copy()
    for number in dead:
        counts[number, column] = 0
    return dead


@inlined
def hash_row(words: Array, row: int, width: int) -> Any:
    """32 bits of hash, as int64."""
    h = _K2
    for j in range(width):
        h = (h ^ np.uint64(words[row, j])) * _K1
        h ^= h >> _SHIFT
    return np.int64((h * _K2) >> _SHIFT)


@inlined
def _same(words: Array, row: int, records: Array, number: int) -> bool:
    for j in range(words.shape[1]):  # noqa: SIM110  numba does not compile all()
        if words[row, j] != records[number, j]:
            return False
    return True


@inlined
def take_id(free: Array, counters: Array) -> Any:
    """An id to give; the caller has made sure that there is one."""
    counters[LIVE] += 1
    if counters[FREE] > 0:
        counters[FREE] -= 1
        return free[counters[FREE]]
    counters[TOP] += 1
    return counters[TOP] - 1


@inlined
def is_full(slots: Array, free: Array, counters: Array) -> Any:
    """Must the table grow before it can take one more?"""
    return 2 * (counters[LIVE] + 1) > slots.size or counters[LIVE] == free.size


@tight
def gather_columns(records: Array, ids: Array, columns: Array, nulls: Array) -> None:
    """The first words of the records of ids, a column each; of the words behind, all their bits."""
    for i in range(ids.size):
        if i + FAR < ids.size:
            prefetch(records, ids[i + FAR])
        row = ids[i]
        for j in range(columns.shape[0]):
            columns[j, i] = records[row, j]
        for j in range(nulls.size):
            nulls[j] |= records[row, columns.shape[0] + j]


@tight
def hash_rows(words: Array, hashes: Array) -> None:
    for i in range(words.shape[0]):
        hashes[i] = hash_row(words, i, words.shape[1])


@inlined
def prefetch_record(hashes: Array, i: Any, slots: Array, records: Array) -> None:
    """Ask for the slots of a later row, and for the record of one not so late."""
    mask = slots.size - 1
    if slots.size > CACHED_SLOTS and i + FAR < hashes.size:
        prefetch(slots, hashes[i + FAR] & mask)
        prefetch(records, (slots[hashes[i + NEAR] & mask] & _LOW) - 1)


@tight
def intern_rows(words: Array, hashes: Array, start: int, ids: Array, table: HashTable) -> int:
    """Ids of rows from `start` on; stops where the table must grow, and says where."""
    slots, records, free, counters = table
    mask = slots.size - 1
    for i in range(start, words.shape[0]):
        prefetch_record(hashes, i, slots, records)
        place = hashes[i] & mask
        tag = hashes[i] << 32
        while True:
            slot = slots[place]
            if slot == 0:
                if is_full(slots, free, counters):
                    return i
                number = take_id(free, counters)
                slots[place] = tag | (number + 1)
                for j in range(words.shape[1]):
                    records[number, j] = words[i, j]
                break
            if (slot ^ tag) & ~_LOW == 0:
                number = (slot & _LOW) - 1
                if _same(words, i, records, number):
                    break
            place = (place + 1) & mask
        ids[i] = number
    return len(words)


@inlined
def close_gap(slots: Array, gap: int) -> None:
    """Empty a slot and move later ones back, so that every probe still finds its key."""
    mask = slots.size - 1
    place = gap
    while True:
        place = (place + 1) & mask
        slot = slots[place]
        if slot == 0:
            break
        home = ((slot >> 32) & _LOW) & mask
        # The entry may move into the gap if its home does not lie after the gap.
        if ((place - home) & mask) >= ((place - gap) & mask):
            slots[gap] = slot
            gap = place
    slots[gap] = 0


@tight
def release_rows(ids: Array, table: HashTable) -> None:
    slots, records, free, counters = table
    mask = slots.size - 1
    for i in range(ids.size):
        number = ids[i]
        if slots.size > CACHED_SLOTS and i + FAR < ids.size:
            prefetch(records, ids[i + FAR])
            prefetch(slots, hash_row(records, ids[i + NEAR], counters[WIDTH]) & mask)
        place = hash_row(records, number, counters[WIDTH]) & mask
        while (slots[place] & _LOW) != number + 1:
            place = (place + 1) & mask
        close_gap(slots, place)
        for j in range(records.shape[1]):
            records[number, j] = 0  # so that snapshots do not depend on what is dead
        free[counters[FREE]] = number
        counters[FREE] += 1
        counters[LIVE] -= 1


@tight
def refill_slots(old: Array, slots: Array) -> None:
    """Put the entries of a table into a larger, empty one."""
    mask = slots.size - 1
    for i in range(old.size):
        slot = old[i]
        if slot != 0:
            place = ((slot >> 32) & _LOW) & mask
            while slots[place] != 0:
                place = (place + 1) & mask
            slots[place] = slot


@tight
def index_keys(table: HashTable, is_live: Array) -> None:
    """Fill the empty slots from the keys, after a restore."""
    slots, records, _, counters = table
    mask = slots.size - 1
    for number in range(is_live.size):
        if is_live[number]:
            h = hash_row(records, number, counters[WIDTH])
            place = h & mask
            while slots[place] != 0:
                place = (place + 1) & mask
            slots[place] = (h << 32) | (number + 1)


@tight
def put_numbers(words: Array, column: int, values: Array, bits: Array) -> None:
    """Floats as words whose order as integers is theirs: -0.0 = 0.0, one NaN, last."""
    for i in range(values.size):
        if values[i] == 0.0:
            words[i, column] = 0
        elif values[i] != values[i]:
            words[i, column] = _NAN_BITS
        else:
            word = bits[i]
            words[i, column] = word ^ ((word >> 63) & _SIGN_OFF)


@tight
def put_nulls(words: Array, column: int, null_column: int, bit: int, valid: Array) -> None:
    """Where a value is null its word is zero and its bit in the null word is set."""
    for i in range(valid.size):
        if not valid[i]:
            words[i, column] = 0
            words[i, null_column] |= np.int64(1) << bit


def numbers_of(words: Array) -> Array:
    """The floats of words made by `put_numbers`."""
    bits: Array = words ^ ((words >> 63) & _SIGN_OFF)
    return bits.view(np.float64)


def words_of_numbers(values: Array) -> Array:
    words = np.empty((len(values), 1), np.int64)
    plain = frozen(values)
    put_numbers(words, 0, plain, plain.view(np.int64))
    return words[:, 0]
