"""Rows as rows of int64 words: equal rows have equal words.

Each column is a word whose order as an integer is the order of the values (of texts it
is a code in a pool, and their order is that of the pooled texts); the words at the end
have a bit for each null.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from millstream.calculus.types import Kind, Type
from millstream.kernels.runtime.hashing import frozen, numbers_of, put_nulls, put_numbers
from millstream.kernels.runtime.interning_text import TextPool
from millstream.kernels.runtime.utf8 import mark_codes
from millstream.plan.batch import DTYPES, Array, Vector

_BITS = 63


class Codec:
    """Turns vectors into words and back; texts go into a pool, which others may share."""

    def __init__(self, types: Sequence[Type], pool: TextPool) -> None:
        self.types = tuple(types)
        self.pool = pool
        self.columns = len(self.types)
        #: At least one word, so that the row without columns is a row like any other.
        self.width = self.columns + max(1, -(-self.columns // _BITS))
        self.text_columns = tuple(i for i, t in enumerate(self.types) if t.kind is Kind.TEXT)

    def words(self, vectors: Sequence[Vector | Array], count: int) -> Array:
        """Of texts whose codes in the pool are known, the codes will do."""
        words = np.empty((count, self.width), np.int64)
        words[:, self.columns :] = 0
        for column, vector in enumerate(vectors):
            if not isinstance(vector, Vector):
                words[:, column] = vector
                continue
            valid = vector.valid
            if vector.is_text:
                codes = self.pool.codes(vector.values)
                words[:, column] = codes
                valid = codes >= 0 if vector.values.null_count or _has_null(codes) else None
            elif vector.type.kind is Kind.NUMBER:
                values = frozen(np.asarray(vector.values, np.float64))
                put_numbers(words, column, values, values.view(np.int64))
            else:
                words[:, column] = vector.values
            if valid is not None:
                put_nulls(
                    words, column, self.columns + column // _BITS, column % _BITS, frozen(valid)
                )
        return words

    def vectors(self, words: Array) -> tuple[Vector, ...]:
        """The rows of words that may change later."""
        rows = words.T.copy()
        masks = [nulls if nulls.any() else None for nulls in rows[self.columns :]]
        return self.vectors_of(tuple(rows[: self.columns]), masks)

    def vectors_of(
        self, columns: Sequence[Array], nulls: Sequence[Array | None]
    ) -> tuple[Vector, ...]:
        """Of columns of words that nobody will change; nulls that are all zero are None."""
        return tuple(
            self.vector(n, words, nulls[n // _BITS])
            for n, words in enumerate(columns[: self.columns])
        )

    def null_word(self, column: int) -> int:
        """In which word of a row there is a bit for the nulls of a column."""
        return self.columns + column // _BITS

    def vector(self, column: int, words: Array, bits: Array | None) -> Vector:
        """One column of its words, and of those with the bits of its nulls, if there are any."""
        valid = None
        if bits is not None:
            valid = (bits >> (column % _BITS)) & 1 == 0
            valid = None if valid.all() else valid
        return self._vector(self.types[column], words, valid)

    def _vector(self, type_: Type, words: Array, valid: Array | None) -> Vector:
        if type_.kind is Kind.TEXT:
            codes = words if valid is None else np.where(valid, words, -1)
            return Vector(type_, self.pool.array(codes))
        if type_.kind is Kind.NUMBER:
            return Vector(type_, numbers_of(words), valid)
        is_plain = words.flags.c_contiguous and words.dtype == DTYPES[type_.kind]
        return Vector(type_, words if is_plain else words.astype(DTYPES[type_.kind]), valid)

    def wants_sweep(self) -> bool:
        return bool(self.text_columns) and self.pool.wants_sweep()

    def sweep(self, words: Array) -> None:
        """Free the texts that none of all rows uses; those that are dead must be all zero."""
        marks = self.pool.marks()
        for column in self.text_columns:
            mark_codes(words, column, marks)
        self.pool.sweep(marks)


def _has_null(codes: Array) -> bool:
    return bool(len(codes)) and bool(codes.min() < 0)
