"""Columns of tuples as a compiled sheet reads them: doubles and statuses, texts as numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.calculus.types import INTEGER, Kind, Type
from millstream.kernels.runtime.hashing import frozen
from millstream.kernels.runtime.interning import Interner
from millstream.kernels.sheets.operands import EMPTY, FIRST_ERROR
from millstream.kernels.sheets.tuples import missing_codes, missing_integers
from millstream.kernels.sheets.walked import merged_order
from millstream.plan.batch import Array, Batch, Vector
from millstream.plan.lateness import is_sorted
from millstream.values.excel.dates import OFFSET_1904

_NUM = FIRST_ERROR + 5
_MICROS_PER_DAY = 86_400_000_000
_DAYS_TO_1970 = 25_569
#: Microseconds of more days than these are no 64-bit integers; nor are numbers beyond.
_LAST_DAYS, _INTEGERS_END = 106_000_000.0, 2.0**63
#: Integers below are looked up in a table, which grows from one size to the other.
_FEW, _MANY = 1 << 12, 1 << 20


class Zeros:
    """Mutable: zeros for whoever leaves them zero, as many as were ever asked for."""

    def __init__(self) -> None:
        self.zeros = np.zeros(0, np.int8)

    def first(self, count: int) -> Array:
        if count > len(self.zeros):
            self.zeros = np.zeros(max(count, 2 * len(self.zeros)), np.int8)
        return self.zeros[:count]


def number_column(vector: Vector, zeros: Zeros, *, uses_1904: bool) -> list[Array]:
    """A column without texts as doubles, or integers as they are, and statuses."""
    statuses = zeros.first(len(vector))
    match vector.type.kind:
        case Kind.TIME:
            values = vector.values / _MICROS_PER_DAY + _DAYS_TO_1970
            if uses_1904:
                values -= OFFSET_1904
        case Kind.DURATION:
            values = vector.values / _MICROS_PER_DAY
        case Kind.NUMBER:
            values = np.asarray(vector.values, np.float64)
            # The sum is finite if all are, unless they are huge; then each is looked at.
            with np.errstate(invalid="ignore", over="ignore"):
                is_plain = np.isfinite(values.sum())
            if not is_plain:
                strange = ~np.isfinite(values)
                statuses = np.where(strange, np.int8(_NUM), statuses)
                values = np.where(strange, 0.0, values)
        case Kind.INTEGER:
            values = vector.values
        case _:
            values = vector.values.astype(np.float64)
    if vector.valid is not None:
        statuses = np.where(vector.valid, statuses, np.int8(EMPTY))
        values = np.where(vector.valid, values, values.dtype.type(0))
    return [values, statuses]


def shown_column(type_: Type, values: Array, *, uses_1904: bool) -> Vector:
    """Numbers as a column of numbers, of integers, of times or of durations.

    What does not fit is null: what is no whole number, and what is out of bounds.
    """
    if type_.kind is Kind.NUMBER:
        return Vector(type_, np.asarray(values, np.float64), None)
    whole = np.floor(values)
    if type_.kind is Kind.INTEGER:
        fits = (whole == values) & (np.abs(values) < _INTEGERS_END)
        held = np.where(fits, whole, 0.0).astype(np.int64)
        return Vector(type_, held, None if fits.all() else fits)
    fits = np.abs(values) < _LAST_DAYS
    days = np.where(fits, whole, 0.0).astype(np.int64)
    micros = np.where(fits, np.rint((values - whole) * _MICROS_PER_DAY), 0.0).astype(np.int64)
    if type_.kind is Kind.TIME:
        days -= _DAYS_TO_1970 - (OFFSET_1904 if uses_1904 else 0)
    return Vector(type_, days * _MICROS_PER_DAY + micros, None if fits.all() else fits)


def encoded(vector: Vector) -> Any:
    array = vector.values
    if not pa.types.is_dictionary(array.type):
        array = pc.dictionary_encode(array)
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


class KnownWords:
    """Mutable: what is known of the words of a dictionary, as long as batches share it."""

    def __init__(self) -> None:
        self.dictionary: Any = None
        self.numbers = np.zeros(1, np.int64)
        #: How many words nothing is known of.
        self.left = 0

    def of(self, array: Any, find: Callable[[Any], Array]) -> tuple[Array, Array, Array]:
        """For each row its code, for each code its number, and which rows are null.

        `find` gives numbers of words. Only words that are used are asked for: a dictionary may
        have many more. The code of what is null comes after all others and has the number zero.
        """
        dictionary = array.dictionary
        if not _is_same(dictionary, self.dictionary):
            self.dictionary = dictionary
            self.left = len(dictionary)
            self.numbers = np.full(self.left + 1, -1, np.int64)
            self.numbers[-1] = 0
        indices = array.indices
        nulls = np.zeros(0, np.bool_)
        if indices.null_count:
            nulls = np.asarray(pc.is_null(indices).to_numpy(zero_copy_only=False))
            indices = pc.fill_null(indices.cast(pa.int32()), len(dictionary))
        codes = np.asarray(indices.to_numpy(zero_copy_only=False), np.int32)
        if self.left:
            missing = np.empty(self.left, np.int64)
            count = missing_codes(frozen(codes), self.numbers, missing)
            if count:
                self.numbers[missing[:count]] = find(dictionary.take(pa.array(missing[:count])))
                self.left -= count
        return codes, self.numbers, nulls

    def forget(self) -> None:
        self.dictionary = None


def _is_same(one: Any, other: Any) -> bool:
    """Do two dictionaries lie in the same memory? It is not reused while one is kept."""
    if other is None or len(one) != len(other) or one.offset != other.offset:
        return False
    mine, others = one.buffers(), other.buffers()
    return all(
        (a is None) == (b is None) and (a is None or a.address == b.address)
        for a, b in zip(mine, others, strict=True)
    )


class KeyIds:
    """Mutable: the numbers of keys, found once per word of a dictionary or small integer."""

    def __init__(self, interner: Interner) -> None:
        self.interner = interner
        self.known: dict[int, KnownWords] = {}
        self.themselves = np.zeros(0, np.int64)
        #: The numbers of integers; -1 where nothing is known.
        self.integers = np.full(_FEW, -1, np.int64)

    def of(self, number: int, vector: Vector) -> list[Array]:
        """A code for each row, and for each code the number of the key."""
        codes, numbers = self.at_first(number, vector)
        return self.learnt(codes) if numbers is self.integers else [codes, numbers]

    def at_first(self, number: int, vector: Vector) -> list[Array]:
        """The same, but nothing may be known of an integer: it has no place, or the number -1."""
        is_integer = vector.type.kind is Kind.INTEGER
        if vector.is_text and not vector.values.null_count:
            codes, numbers, _ = self.known.setdefault(number, KnownWords()).of(
                encoded(vector), lambda words: self._ids(Vector(vector.type, words))
            )
            return [codes, numbers]
        if is_integer and vector.valid is None:
            return [vector.values, self.integers]
        return self._themselves(self._ids(vector).astype(np.int64 if is_integer else np.int32))

    def learnt(self, values: Array) -> list[Array]:
        """Integers as their own codes, if they are small enough, and their numbers."""
        missing = np.empty(len(self.integers), np.int64)
        count = missing_integers(frozen(values), self.integers, missing)
        if count < 0:
            largest = int(values.max())
            if int(values.min()) < 0 or not len(self.integers) <= largest < _MANY:
                return self._themselves(self._ids(Vector(INTEGER, values)))
            more = np.full(2 * largest - len(self.integers), -1, np.int64)
            self.integers = np.concatenate([self.integers, more])
            return self.learnt(values)
        if count:
            unknown = missing[:count]
            self.integers[unknown] = self._ids(Vector(INTEGER, unknown))
        return [values, self.integers]

    def _themselves(self, ids: Array) -> list[Array]:
        if self.interner.bound > len(self.themselves):
            self.themselves = np.arange(2 * self.interner.bound, dtype=np.int64)
        return [ids, self.themselves]

    def _ids(self, vector: Vector) -> Array:
        return self.interner.ids([vector], len(vector))

    def forget(self) -> None:
        self.known.clear()
        self.integers.fill(-1)


def in_order(inputs: tuple[Batch, ...]) -> tuple[Array, Array, Array]:
    """For the tuples of all inputs in order: of which input, at which place, at which time."""
    which, place = merged_order(inputs)
    return which, place, merged([b.time for b in inputs], which, place)


def rising(batch: Batch) -> Batch:
    """In order of time, and where times are equal as it was."""
    if is_sorted(batch.time):
        return batch
    return batch.take(np.argsort(batch.time, kind="stable"))


def merged(arrays: list[Any], which: Array, place: Array) -> Array:
    """Values of several inputs in their common order."""
    starts = np.cumsum([0, *(len(a) for a in arrays[:-1])])
    return np.concatenate(arrays).take(starts.take(which) + place)
