"""Columns of tuples as a compiled sheet reads them: doubles and statuses, texts as numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.calculus.types import Kind, Type
from millstream.formulas.dates import OFFSET_1904
from millstream.formulas.values import folded
from millstream.kernels.interning import Interner
from millstream.kernels.loops import frozen
from millstream.kernels.loops_sheet import merge_two, missing_codes, used_codes
from millstream.kernels.sheet import merged_order
from millstream.kernels.sheet_operands import EMPTY, FIRST_ERROR, Texts
from millstream.plan.batch import Array, Batch, Vector
from millstream.plan.lateness import is_sorted

_NUM = FIRST_ERROR + 5
_MICROS_PER_DAY = 86_400_000_000
_DAYS_TO_1970 = 25_569


def number_column(vector: Vector, *, uses_1904: bool) -> list[Array]:
    """A column without texts as doubles and statuses."""
    statuses = np.zeros(len(vector), np.int8)
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
            if not np.isfinite(values.sum()):
                strange = ~np.isfinite(values)
                statuses[strange] = _NUM
                values = np.where(strange, 0.0, values)
        case _:
            values = vector.values.astype(np.float64)
    if vector.valid is not None:
        statuses[~vector.valid] = EMPTY
        values = np.where(vector.valid, values, 0.0)
    return [values, statuses]


def encoded(vector: Vector) -> Any:
    array = vector.values
    if not pa.types.is_dictionary(array.type):
        array = pc.dictionary_encode(array)
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


class Known:
    """Mutable: what is known of the words of a dictionary, as long as batches share it."""

    def __init__(self) -> None:
        self.dictionary: Any = None
        self.numbers = np.zeros(0, np.int64)

    def of(self, array: Any, find: Callable[[Any], Array]) -> tuple[Array, Array]:
        """For each row its number, and which rows are null; `find` gives numbers of words.

        Only words that are used are asked for: a dictionary may have many more.
        """
        dictionary = array.dictionary
        if not _is_same(dictionary, self.dictionary):
            self.dictionary = dictionary
            self.numbers = np.full(max(1, len(dictionary)), -1, np.int64)
        indices = array.indices
        nulls = np.zeros(0, np.bool_)
        if indices.null_count:
            nulls = np.asarray(pc.is_null(indices).to_numpy(zero_copy_only=False))
            indices = pc.fill_null(indices, 0)
            # A null is numbered as if it were the first word; whoever asks sees that it is null.
        codes = np.asarray(indices.to_numpy(zero_copy_only=False), np.int64)
        if not len(dictionary):
            return np.zeros(len(codes), np.int64), nulls
        missing = np.empty(len(self.numbers), np.int64)
        count = missing_codes(frozen(codes), self.numbers, missing)
        if count:
            words = dictionary.take(pa.array(missing[:count]))
            self.numbers[missing[:count]] = find(words)
        return self.numbers.take(codes), nulls

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
    """Mutable: the numbers of keys. Those of texts are found once per word of a dictionary."""

    def __init__(self, interner: Interner) -> None:
        self.interner = interner
        self.known: dict[int, Known] = {}

    def of(self, number: int, vector: Vector) -> Array:
        if not vector.is_text or vector.values.null_count:
            return self.interner.ids([vector], len(vector))
        known = self.known.setdefault(number, Known())
        type_ = vector.type
        return known.of(
            encoded(vector), lambda words: self.interner.ids([Vector(type_, words)], len(words))
        )[0]

    def forget(self) -> None:
        self.known.clear()


class TextNumbers:
    """Mutable: the dictionary of texts with what loops look up in it."""

    def __init__(self) -> None:
        self.texts = Texts()
        self.known: dict[object, Known] = {}
        self.folded = np.zeros(0, np.int64)
        self.lengths = np.zeros(0, np.int64)
        self.by_fold: dict[str, int] = {}

    def column(self, place: object, vector: Vector) -> list[Array]:
        numbers, nulls = self.known.setdefault(place, Known()).of(encoded(vector), self._find)
        statuses = np.zeros(len(numbers), np.int8)
        values = numbers.astype(np.float64)
        if len(nulls):
            statuses[nulls] = EMPTY
            values[nulls] = 0.0
        return [values, statuses]

    def _find(self, words: Any) -> Array:
        return np.array(
            [0 if w is None else self.texts.number(w) for w in words.to_pylist()], np.int64
        )

    def look_up(self) -> None:
        """For every text the number of the first one that differs only in case; its length."""
        known = len(self.folded)
        texts = self.texts.texts
        if known == len(texts):
            return
        new = [
            self.by_fold.setdefault(folded(text), known + n) for n, text in enumerate(texts[known:])
        ]
        self.folded = np.concatenate([self.folded, np.array(new, np.int64)])
        lengths = [len(text.encode("utf-16-le")) // 2 for text in texts[known:]]
        self.lengths = np.concatenate([self.lengths, np.array(lengths, np.int64)])

    def replace(self, texts: list[str]) -> None:
        """Another dictionary: all that was looked up is forgotten."""
        self.texts.texts = list(texts)
        self.texts.numbers = {t: n for n, t in enumerate(self.texts.texts)}
        self.known.clear()
        self.by_fold.clear()
        self.folded = np.zeros(0, np.int64)
        self.lengths = np.zeros(0, np.int64)

    def vector(self, type_: Type, codes: Array, missing: Array) -> Vector:
        """A column of texts, with a dictionary of those that are used."""
        numbers = np.full(len(self.texts.texts), -1, np.int64)
        found = np.empty(len(self.texts.texts), np.int64)
        count = used_codes(codes, numbers, found)
        words = [self.texts.texts[n] for n in found[:count].tolist()]
        indices = pa.array(codes.astype(np.int32), mask=missing if missing.any() else None)
        return Vector(type_, pa.DictionaryArray.from_arrays(indices, pa.array(words, pa.string())))


def in_order(inputs: tuple[Batch, ...]) -> tuple[Array, Array, Array]:
    """For the tuples of all inputs in order: of which input, at which place, at which time."""
    if len(inputs) == 1:
        count = len(inputs[0])
        return np.zeros(count, np.int64), np.arange(count, dtype=np.int64), inputs[0].time
    if len(inputs) == 2 and all(is_sorted(b.time) for b in inputs):
        count = len(inputs[0]) + len(inputs[1])
        which, place, time = (np.empty(count, np.int64) for _ in range(3))
        merge_two(frozen(inputs[0].time), frozen(inputs[1].time), which, place, time)
        return which, place, time
    which, place = merged_order(inputs)
    return which, place, merged([b.time for b in inputs], which, place)


def merged(arrays: list[Any], which: Array, place: Array) -> Array:
    """Values of several inputs in their common order."""
    if len(arrays) == 1:
        return np.asarray(arrays[0])
    starts = np.cumsum([0, *(len(a) for a in arrays[:-1])])
    return np.concatenate(arrays).take(starts.take(which) + place)
