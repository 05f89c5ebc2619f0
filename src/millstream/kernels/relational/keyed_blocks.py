"""What the loop of a join stands on: the rows of a key side by side.

The numbers of the rows that a key has on one side lie in one block of memory, so that who goes
through them need not wait for one row to know the next. Blocks have room for a power of two; a
key with a single row has none. Rows may be in order within their block.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from millstream.compiled import inlined
from millstream.kernels.runtime.hashing import grown, natural
from millstream.kernels.runtime.kernel import State
from millstream.kernels.runtime.utf8 import Texts, compare_texts
from millstream.plan.batch import Array

#: Behind ROWS and BEFORE it is kept with each row where in its block it was put.
PLACE = 2
ROW_EXTRA = 3

#: What is kept with each key after its words: how many rows it has on both sides, then for each
#: side the beginning of its block (or its only row), and a word of how many rows there are, how
#: many places before them are empty, and the power of two for which there is room.
KEY_ROWS, START, SHAPE = range(3)
SIDE_WORDS = 2
KEY_EXTRA = 1 + 2 * SIDE_WORDS

_EMPTY_AT, _COUNT_AT = 6, 35
_POWER = (1 << _EMPTY_AT) - 1
_EMPTY = (1 << (_COUNT_AT - _EMPTY_AT)) - 1

#: Powers of two that a block can have; behind the free blocks of each stands the end of all.
_POWERS = 32
_TOP = _POWERS
#: The first places are for keys with one row, a place for each side.
_LEAST = 2

#: Of so many words that are moved one is counted as a row that is looked at.
_QUICK = 4


class Blocks(NamedTuple):
    """The numbers of rows, and the first free block of each power (zero if there is none)."""

    numbers: Array
    free: Array


class InOrder(NamedTuple):
    """How the rows of a key are kept in order: by so many words after the number of the key.

    No order is zero words. Rows are put where they belong as long as there is patience.
    Whether each row comes strictly after the one before it is noted, for good; who puts rows in
    order later need not do so then. Behind the words of the `columns` of a row there is one that
    is zero unless there are nulls.
    """

    is_text: Array
    texts: Texts
    columns: int


class KeyBlocks(NamedTuple):
    """Keys, and the blocks of their rows; `extra` is where in a record the words above begin."""

    records: Array
    extra: int
    numbers: Array
    free: Array


#: What is known of all rows of a side: as how many may still be looked at to put others in order,
#: whether rows are in strict order, how many are there more than once, and whether some have nulls.
PATIENCE, IS_STRICT, MULTIPLES, HAS_NULLS = range(4)
_NOTES = 4


class BlockStore:
    """Mutable: the memory of all blocks of a join, and what is known of the rows of each side.

    What a loop does follows from these and from the rows alone, not from how much memory there is.
    """

    def __init__(self, patience: int) -> None:
        self.blocks = Blocks(np.zeros(64, np.int64), np.zeros(_POWERS + 1, np.int64))
        self.blocks.free[_TOP] = _LEAST
        self.notes = np.zeros((2, _NOTES), np.int64)
        self.notes[:, PATIENCE], self.notes[:, IS_STRICT] = patience, 1

    def grow(self) -> None:
        """Twice as much room."""
        numbers, free = self.blocks
        self.blocks = Blocks(grown(numbers, 2 * len(numbers)), free)

    def snapshot(self) -> State:
        numbers, free = self.blocks
        kept = numbers[: free[_TOP]].copy()
        kept[:_LEAST] = 0
        return {"numbers": kept, "free": free.copy(), "notes": self.notes.copy()}

    def restore(self, state: State) -> None:
        numbers = np.array(state["numbers"], np.int64)
        self.blocks = Blocks(grown(numbers, 2 * len(numbers)), np.array(state["free"], np.int64))
        self.notes = np.array(state["notes"], np.int64).reshape(2, _NOTES)


@inlined
def count_of(key: Any, number: Any, keys: KeyBlocks) -> Any:
    """How many rows a key has on a side."""
    return keys.records[key, keys.extra + SHAPE + SIDE_WORDS * number] >> _COUNT_AT


@inlined
def block_of(key: Any, number: Any, keys: KeyBlocks) -> Any:
    """Where the numbers of the rows of a key begin, or its single row, and which of these it is."""
    at = keys.extra + SIDE_WORDS * number
    start, shape = keys.records[key, at + START], keys.records[key, at + SHAPE]
    return start + ((shape >> _EMPTY_AT) & _EMPTY), shape & _POWER == 0


@inlined
def first_of(key: Any, number: Any, keys: KeyBlocks) -> Any:
    """Where the numbers of the rows of a key begin; of a single row that holds until the next."""
    start, is_single = block_of(key, number, keys)
    if is_single:
        keys.numbers[number] = start
        return number
    return start


@inlined
def _used_again(power: Any, keys: KeyBlocks) -> Any:
    """A block that has been given back; zero if there is none."""
    block = keys.free[power]
    if block != 0:
        keys.free[power] = keys.numbers[block]
    return block


@inlined
def _allocated(power: Any, keys: KeyBlocks) -> Any:
    """A block; zero if there is no more memory."""
    block = _used_again(power, keys)
    top = keys.free[_TOP]
    if block == 0 and top + (1 << power) <= keys.numbers.size:
        keys.free[_TOP] = top + (1 << power)
        return top
    return block


@inlined
def _give_back(block: Any, power: Any, keys: KeyBlocks) -> None:
    if power != 0:
        keys.numbers[block] = keys.free[power]
        keys.free[power] = block


@inlined
def _set(at: Any, key: Any, start: Any, shape: Any, keys: KeyBlocks) -> None:
    """Say where a block is: its empty places, its rows and its power are the shape."""
    empty, count, power = shape
    keys.records[key, at + START] = start
    keys.records[key, at + SHAPE] = (count << _COUNT_AT) | (empty << _EMPTY_AT) | power


@inlined
def _move(side: Any, key: Any, power: Any, keys: KeyBlocks) -> Any:
    """Put the rows of a key to the beginning of a block of this power; False without memory."""
    at = keys.extra + SIDE_WORDS * side.number
    old, shape = keys.records[key, at + START], keys.records[key, at + SHAPE]
    was, count = shape & _POWER, shape >> _COUNT_AT
    block = old
    if power > was:
        block = _allocated(power, keys)
    elif power < was:
        block = _used_again(power, keys)
    if block == 0:
        return False
    first = first_of(key, side.number, keys)
    for i in range(count):
        row = keys.numbers[first + i]
        keys.numbers[block + i] = row
        side.records[row, side.extra + PLACE] = i
    if power != was:
        _give_back(old, was, keys)
    _set(at, key, block, (0, count, power), keys)
    return True


@inlined
def has_null(row: Any, side: Any) -> Any:
    nulls = 0
    for j in range(side.order.columns, side.extra):
        nulls |= side.records[row, j]
    return nulls != 0


@inlined
def comes_before(row: Any, other: Any, side: Any) -> Any:
    """Whether a row comes before another of its key; a null counts as zero."""
    for j in range(side.order.is_text.size):
        a, b = side.records[row, 1 + j], side.records[other, 1 + j]
        if a != b:
            return compare_texts(a, b, side.order.texts) < 0 if side.order.is_text[j] else a < b
    return False


@inlined
def _place_for(row: Any, first: Any, count: Any, side: Any, numbers: Array) -> Any:
    """Behind how many rows a row belongs: most belong at the end."""
    if side.order.is_text.size == 0 or count == 0:
        return count
    place = count
    if comes_before(row, numbers[first + count - 1], side):
        low, place = 0, count - 1
        while low < place:
            middle = (low + place) >> 1
            if comes_before(row, numbers[first + middle], side):
                place = middle
            else:
                low = middle + 1
        cost = min(place, count - place) >> _QUICK
        if cost > side.notes[PATIENCE]:
            side.notes[IS_STRICT] = 0
            return count
        side.notes[PATIENCE] -= cost
    if place > 0 and not comes_before(numbers[first + place - 1], row, side):
        side.notes[IS_STRICT] = 0
    return place


@inlined
def can_put(row: Any, side: Any, keys: KeyBlocks) -> Any:
    """Whether there is memory to put a row to those of its key."""
    shape = keys.records[
        natural(side.records[row, 0]), keys.extra + SHAPE + SIDE_WORDS * side.number
    ]
    power, count = shape & _POWER, shape >> _COUNT_AT
    is_full = ((shape >> _EMPTY_AT) & _EMPTY) + count == 1 << power
    if not is_full or 2 * count <= 1 << power:
        return True
    return keys.free[power + 1] != 0 or keys.free[_TOP] + (2 << power) <= keys.numbers.size


@inlined
def put_row(row: Any, side: Any, keys: KeyBlocks) -> Any:
    """Put a row to those of its key; False if there is no memory, to be done again."""
    key, at = natural(side.records[row, 0]), keys.extra + SIDE_WORDS * side.number
    shape = keys.records[key, at + SHAPE]
    power, count = shape & _POWER, shape >> _COUNT_AT
    if count == 0:
        _set(at, key, row, (0, 1, 0), keys)
        side.records[row, side.extra + PLACE] = 0
    else:
        empty = (shape >> _EMPTY_AT) & _EMPTY
        if empty + count == 1 << power:
            wanted = power + 1 if 2 * count > 1 << power else power
            if not _move(side, key, wanted, keys):
                return False
            power, empty = wanted, 0
        start, numbers = keys.records[key, at + START], keys.numbers
        first = natural(start + empty)
        place = _place_for(row, first, count, side, numbers)
        if place == count or empty == 0 or 2 * place >= count:
            for i in range(count - place):
                numbers[first + count - i] = numbers[first + count - i - 1]
        else:
            for i in range(place):
                numbers[first + i - 1] = numbers[first + i]
            empty -= 1
        numbers[start + empty + place] = row
        side.records[row, side.extra + PLACE] = empty + place
        _set(at, key, start, (empty, count + 1, power), keys)
    if side.order.is_text.size != 0 and has_null(row, side):
        side.notes[IS_STRICT] = 0
    keys.records[key, keys.extra + KEY_ROWS] += 1
    return True


@inlined
def place_of(row: Any, side: Any, keys: KeyBlocks) -> Any:
    """Behind how many rows of its key a row is; it is looked for from where it was put."""
    key, at = natural(side.records[row, 0]), keys.extra + SIDE_WORDS * side.number
    shape = keys.records[key, at + SHAPE]
    count, empty = shape >> _COUNT_AT, (shape >> _EMPTY_AT) & _EMPTY
    if shape & _POWER == 0:
        return 0
    first = natural(keys.records[key, at + START] + empty)
    up = min(max(side.records[row, side.extra + PLACE] - empty, 0), count - 1)
    down = up
    while True:
        if up < count:
            if keys.numbers[first + up] == row:
                return up
            up += 1
        if down > 0:
            down -= 1
            if keys.numbers[first + down] == row:
                return down


@inlined
def take_row(row: Any, side: Any, keys: KeyBlocks) -> None:
    """Take a row from those of its key."""
    key, at = natural(side.records[row, 0]), keys.extra + SIDE_WORDS * side.number
    shape, start = keys.records[key, at + SHAPE], keys.records[key, at + START]
    power, count, empty = shape & _POWER, shape >> _COUNT_AT, (shape >> _EMPTY_AT) & _EMPTY
    keys.records[key, keys.extra + KEY_ROWS] -= 1
    if count == 1:
        _give_back(start, power, keys)
        _set(at, key, 0, (0, 0, 0), keys)
        return
    place, numbers = place_of(row, side, keys), keys.numbers
    first, last = natural(start + empty), natural(count - 1)
    cost = min(place, last - place) >> _QUICK
    if side.order.is_text.size == 0 or cost > side.notes[PATIENCE]:
        moved = numbers[first + last]
        numbers[first + place] = moved
        side.records[moved, side.extra + PLACE] = empty + place
        if place != last:
            side.notes[IS_STRICT] = 0
    elif 2 * place < last:
        side.notes[PATIENCE] -= cost
        for i in range(place):
            numbers[first + place - i] = numbers[first + place - i - 1]
        empty += 1
    else:
        side.notes[PATIENCE] -= cost
        for i in range(last - place):
            numbers[first + place + i] = numbers[first + place + i + 1]
    _set(at, key, start, (empty, last, power), keys)
    if 8 * last <= 1 << power:
        _move(side, key, power - 1, keys)
