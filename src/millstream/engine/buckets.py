"""Which bucket a row belongs to: a fixed hash of its key.

The hash must be the same in every process, on every machine and in every version that is
to read an old checkpoint, so it is never taken from a library that may change it, and a
test knows some of its values.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.calculus.types import Kind
from millstream.kernels.runtime.interning_text import text_column
from millstream.kernels.runtime.utf8 import hash_texts
from millstream.plan.batch import Array, Batch, Vector
from millstream.plan.keys import Copies, Key

_NULL = np.uint64(0x9E3779B97F4A7C15)
#: Instead of the number of a bucket: all of them.
EVERY = -1


def buckets_of(batch: Batch, key: tuple[str, ...] | None, buckets: int, turn: int) -> Array:
    """The bucket of each row; rows without a key go together to one bucket, in turn."""
    if key is None:
        return np.full(len(batch), turn % buckets, np.int64)
    if len(key) == 1 and batch.column(key[0]).is_text:
        # The bucket of a word is worked out once, however many rows have it.
        hashes, codes = _text_hashes(batch.column(key[0]))
        numbers = _numbers(_mixed(hashes), buckets)
        return numbers if codes is None else numbers.take(codes)
    total = np.zeros(len(batch), np.uint64)
    for name in key:
        total = _mixed(total ^ _hashes(batch.column(name)))
    return _numbers(total, buckets)


def _numbers(hashes: Array, buckets: int) -> Array:
    return (hashes % np.uint64(buckets)).astype(np.int64)


def _hashes(column: Vector) -> Array:
    if column.is_text:
        words, codes = _text_hashes(column)
        return words if codes is None else words.take(codes)
    if column.type.kind is Kind.NUMBER:
        # Equal numbers hash alike: one NaN, and no minus zero.
        values = np.where(np.isnan(column.values), np.nan, column.values + 0.0)
        words = values.view(np.uint64)
    else:
        words = column.values.astype(np.int64).view(np.uint64)
    hashes = _mixed(words)
    if column.valid is None:
        return hashes
    return np.where(column.valid, hashes, _NULL)


def _text_hashes(column: Vector) -> tuple[Array, Array | None]:
    """The hash of each text; or of each word of a dictionary, and which of them each text is.

    To make a dictionary would take longer than to hash.
    """
    values = column.values
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if not pa.types.is_dictionary(values.type):
        hashes = _word_hashes(values)
        if values.null_count:
            hashes[pc.is_null(values).to_numpy(zero_copy_only=False)] = _NULL
        return hashes, None
    words = np.append(_word_hashes(values.dictionary), _NULL)
    indices = values.indices
    if indices.null_count:
        indices = pc.fill_null(indices, len(words) - 1)
    return words, indices.to_numpy()


def _word_hashes(words: Any) -> Array:
    hashes = np.empty(len(words), np.int64)
    hash_texts(text_column(words), hashes)
    return _mixed(hashes.view(np.uint64))


def _mixed(words: Array) -> Array:
    """The finaliser of splitmix64: every bit of the input moves every bit of the output."""
    with np.errstate(over="ignore"):
        words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed: Array = words ^ (words >> np.uint64(31))
    return mixed


def parts(batch: Batch, key: Key, buckets: int, turn: int) -> Iterator[tuple[int, Batch]]:
    """The batch cut by bucket, or whole for every one; parts keep the order of their rows."""
    if not len(batch):
        return
    if isinstance(key, Copies):
        yield EVERY, batch
        return
    if key is None or key == () or buckets == 1:
        yield (turn % buckets if key is None else 0), batch
        return
    numbers = buckets_of(batch, key, buckets, turn)
    # Few distinct numbers are sorted by counting if NumPy can see that they are small.
    small = numbers.astype(np.uint16) if buckets <= 1 << 16 else numbers
    order = np.argsort(small, kind="stable")
    ends = np.cumsum(np.bincount(numbers, minlength=buckets))
    whole = batch.take(order)
    start = 0
    for bucket, end in enumerate(ends.tolist()):
        if end > start:
            yield bucket, whole.slice(start, end)
        start = end
