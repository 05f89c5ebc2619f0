"""Hidden keys: what distinct values, exactly and nearly, and quantiles are counted by.

A measure is a function of how often each hidden key comes in a group, so what was counted in
several places is put together by counting on, and a key can be told as a value that has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from millstream.calculus.aggregation import SKETCHES, Aggregation
from millstream.calculus.sketches import (
    ALPHA,
    PART_BITS,
    RANK_BITS,
    RANK_ROOM,
    REGISTERS,
    WHOLE,
)
from millstream.calculus.terms import Column
from millstream.calculus.types import INTEGER, NUMBER, Kind, Type
from millstream.compiled import inlined, tight
from millstream.kernels.runtime.hashing import words_of_numbers
from millstream.kernels.runtime.interning import Interner
from millstream.kernels.runtime.interning_text import text_column
from millstream.kernels.runtime.kernel import Composed
from millstream.plan.batch import Array, Batch, Vector

_FNV_START = np.uint64(0xCBF29CE484222325)
_FNV_PRIME = np.uint64(0x100000001B3)
_SIGN_OFF = np.int64(0x7FFFFFFFFFFFFFFF)
_INFINITY_PART = np.int64(0x7FF0000000000000 >> PART_BITS)
_FACTORS = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)


class CountedKeys(NamedTuple):
    """How many rows have a hidden key in a cell; the same key may come several times."""

    ids: Array
    hidden: Array
    counts: Array


class HiddenKeys(Composed):
    """Mutable: the hidden keys of a column, and the measures that are made of them."""

    #: Words beside each value, for who counts how often it is used.
    beside = 0

    def __init__(self, function: str, column: str, type_: Type) -> None:
        self.function = function
        self.column = column
        self.type = type_
        #: The place of each measure, and which quantile it is.
        self.wanted: list[tuple[int, int]] = []
        self.values = Interner([type_], self.beside) if function == "distinct" else None
        self.parts = {} if self.values is None else {"values": self.values}

    def keys(self, batch: Batch) -> tuple[Array, Array]:
        """The hidden keys of rows, and which rows have one."""
        vector = batch.column(self.column)
        if self.values is not None:
            return self.values.ids([vector], len(batch)), vector.mask()
        if self.function == "quantile":
            return _parts(np.asarray(vector.values, np.float64)), vector.mask()
        return _registers(_hashes(vector)), vector.mask()

    def examples(self, hidden: Array) -> Vector:
        """For each key a value that has it."""
        if self.values is not None:
            return self.values.vectors(hidden)[0]
        if self.function == "quantile":
            return Vector(NUMBER, _middles(hidden))
        return Vector(INTEGER, _with_registers(hidden))

    def tell(self, given: CountedKeys, words: Array, valid: Array) -> None:
        """The measures of cells from what was counted in them; cell -1 is passed over."""
        order = np.lexsort((given.hidden, given.ids))
        order = order[np.searchsorted(given.ids[order], 0) :]
        ids, hidden = given.ids[order], np.ascontiguousarray(given.hidden[order], np.int64)
        counts = given.counts[order]
        size = len(words)
        for place, at in self.wanted:
            told, is_there = np.zeros(size, np.int64), np.ones(size, np.bool_)
            if self.function == "distinct":
                is_new = np.ones(len(ids), np.bool_)
                is_new[1:] = (ids[1:] != ids[:-1]) | (hidden[1:] != hidden[:-1])
                told += np.bincount(ids[is_new], minlength=size)
            elif self.function == "approx_distinct":
                estimate_cells(ids, hidden, np.zeros(RANK_BITS + 2, np.int64), told)
            else:
                find_quantiles((ids, hidden, counts), at, told, told.view(np.float64), is_there)
            words[:, place], valid[:, place] = told, is_there


_Kind = TypeVar("_Kind", bound=HiddenKeys)


def hidden_keys_of(measures: Sequence[Aggregation], kind: type[_Kind]) -> list[_Kind]:
    """What must be counted for measures; those of one column and kind share it."""
    made: dict[tuple[str, str], _Kind] = {}
    for place, one in enumerate(measures):
        if one.function in SKETCHES:
            assert isinstance(one.term, Column)
            key = one.function, one.term.name
            keys = made.setdefault(key, kind(*key, one.term.type))
            keys.wanted.append((place, one.at or 0))
    return list(made.values())


# --- hidden keys -----------------------------------------------------------------------


def _hashes(vector: Vector) -> Array:
    """64 bits of each value, as in `calculus.sketches.hash_of`."""
    if vector.is_text:
        texts = text_column(vector.to_arrow())
        hashed = np.empty(len(vector), np.uint64)
        hash_bytes(texts.offsets, texts.data, hashed)
        return _mixed(hashed)
    if vector.type.kind is Kind.NUMBER:
        ordered = words_of_numbers(np.asarray(vector.values, np.float64))
        bits: Array = ordered ^ ((ordered >> 63) & _SIGN_OFF)
        return _mixed(bits.view(np.uint64))
    return _mixed(np.asarray(vector.values).astype(np.int64).view(np.uint64))


def _mixed(words: Array) -> Array:
    first, second = map(np.uint64, _FACTORS)
    words = (words ^ (words >> np.uint64(30))) * first
    words = (words ^ (words >> np.uint64(27))) * second
    mixed: Array = words ^ (words >> np.uint64(31))
    return mixed


def _unmixed(words: Array) -> Array:
    """What becomes these words when it is mixed."""
    first, second = (np.uint64(pow(factor, -1, 1 << 64)) for factor in _FACTORS)
    words = _unshifted(words, 31) * second
    words = _unshifted(words, 27) * first
    return _unshifted(words, 30)


def _unshifted(words: Array, bits: int) -> Array:
    """What becomes these words by `x ^ (x >> bits)`; a third time nothing is left to shift."""
    once: Array = words ^ (words >> np.uint64(bits))
    twice: Array = once ^ (words >> np.uint64(2 * bits))
    return twice


@tight
def hash_bytes(offsets: Array, data: Array, hashes: Array) -> None:
    for i in range(hashes.size):
        hashed = _FNV_START
        for k in range(offsets[i], offsets[i + 1]):
            hashed = (hashed ^ np.uint64(data[k])) * _FNV_PRIME
        hashes[i] = hashed


def _registers(hashes: Array) -> Array:
    """Registers and ranks as one number."""
    rest = hashes & np.uint64((1 << RANK_BITS) - 1)
    # So many bits are exact in a float, whose exponent is then their length.
    length = np.frexp(rest.astype(np.float64))[1].astype(np.int64)
    register = (hashes >> np.uint64(RANK_BITS)).astype(np.int64)
    codes: Array = (register << RANK_ROOM) | (RANK_BITS - length + 1)
    return codes


def _with_registers(codes: Array) -> Array:
    """Integers whose hashes have these registers and ranks."""
    rank = codes & ((1 << RANK_ROOM) - 1)
    rest = np.where(rank > RANK_BITS, 0, np.int64(1) << np.maximum(RANK_BITS - rank, 0))
    hashes = ((codes >> RANK_ROOM) << RANK_BITS) | rest
    integers: Array = _unmixed(hashes.view(np.uint64)).view(np.int64)
    return integers


def _parts(values: Array) -> Array:
    # Words are ordered as numbers are: those of negative ones are below 0.
    parts: Array = words_of_numbers(values) >> PART_BITS
    return parts


def _middles(parts: Array) -> Array:
    """The middles of parts, as in `calculus.sketches.middle_of`."""
    size = np.where(parts < 0, -1 - parts, parts)
    half = np.where((size > 0) & (size < _INFINITY_PART), np.int64(1) << (PART_BITS - 1), 0)
    middles = ((size << PART_BITS) | half).view(np.float64)
    signed: Array = np.where((parts < 0) & (size > 0), -middles, middles)
    return signed


# --- measures --------------------------------------------------------------------------


@inlined
def _sigma(x: Any) -> Any:
    if x == 1.0:
        return np.inf
    y, z, before = 1.0, x, -1.0
    while z != before:
        x *= x
        before = z
        z += x * y
        y += y
    return z


@inlined
def _tau(x: Any) -> Any:
    if x == 0.0 or x == 1.0:  # noqa: PLR1714  numba
        return 0.0
    y, z, before = 1.0, 1.0 - x, -1.0
    while z != before:
        x = np.sqrt(x)
        before = z
        y *= 0.5
        z -= (1.0 - x) * (1.0 - x) * y
    return z / 3.0


@tight
def estimate_cells(ids: Array, codes: Array, counts: Array, estimates: Array) -> None:
    """How many values cells have, of registers and ranks in order of cells and codes."""
    start = 0
    while start < ids.size:
        end = start
        counts[:] = 0
        registers = 0
        while end < ids.size and ids[end] == ids[start]:
            register = codes[end] >> RANK_ROOM
            is_last = end + 1 == ids.size or ids[end + 1] != ids[start]
            if is_last or codes[end + 1] >> RANK_ROOM != register:
                counts[codes[end] & ((1 << RANK_ROOM) - 1)] += 1
                registers += 1
            end += 1
        counts[0] = REGISTERS - registers
        total = REGISTERS * _tau(1.0 - counts[RANK_BITS + 1] / REGISTERS)
        for rank in range(RANK_BITS, 0, -1):
            total = 0.5 * (total + counts[rank])
        total += REGISTERS * _sigma(counts[0] / REGISTERS)
        estimates[ids[start]] = np.int64(np.floor(ALPHA * REGISTERS * REGISTERS / total + 0.5))
        start = end


@tight
def find_quantiles(
    given: tuple[Array, Array, Array], at: int, words: Array, quantiles: Array, is_there: Array
) -> None:
    """Quantiles of cells, of parts of the line in order of cells and parts."""
    ids, parts, counts = given
    is_there[:] = False
    start = 0
    while start < ids.size:
        total, end = np.int64(0), start
        while end < ids.size and ids[end] == ids[start]:
            total += counts[end]
            end += 1
        rest = max(np.int64(1), (at * total + WHOLE - 1) // WHOLE)
        for i in range(start, end):
            rest -= counts[i]
            if rest <= 0:
                part = parts[i] if parts[i] >= 0 else -1 - parts[i]
                bits = part << PART_BITS
                if 0 < part < _INFINITY_PART:
                    bits |= np.int64(1) << (PART_BITS - 1)
                words[ids[start]] = bits
                if parts[i] < 0 and part > 0:
                    quantiles[ids[start]] = -quantiles[ids[start]]
                is_there[ids[start]] = True
                break
        start = end
