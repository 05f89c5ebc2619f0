"""What travels between steps: batches of columns.

A `Vector` is a column: NumPy values with a mask for numbers, integers, booleans, times
and durations; an Arrow array for text, which may be dictionary-encoded. A `Batch` is a
run of items of one queue, in order.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.calculus.terms import canonical
from millstream.calculus.types import Kind, QueueType, Row, Schema, Type, Value

Array = np.ndarray[Any, np.dtype[Any]]

DTYPES: dict[Kind, Any] = {
    Kind.NUMBER: np.float64,
    Kind.INTEGER: np.int64,
    Kind.BOOLEAN: np.bool_,
    Kind.TIME: np.int64,
    Kind.DURATION: np.int64,
}

ARROW_TYPES: dict[Kind, Any] = {
    Kind.NUMBER: pa.float64(),
    Kind.INTEGER: pa.int64(),
    Kind.BOOLEAN: pa.bool_(),
    Kind.TEXT: pa.string(),
    Kind.TIME: pa.timestamp("us", tz="UTC"),
    Kind.DURATION: pa.duration("us"),
}


@dataclass(frozen=True, slots=True)
class Vector:
    """A column. `valid` is None where nothing is null; text keeps its nulls inside.

    Values under a false mask are arbitrary and must never be looked at.
    """

    type: Type
    values: Any
    valid: Array | None = None

    def __len__(self) -> int:
        return len(self.values)

    @property
    def is_text(self) -> bool:
        return self.type.kind is Kind.TEXT

    def take(self, indices: Array) -> Vector:
        if self.is_text:
            return Vector(self.type, self.values.take(pa.array(indices)))
        # `take` is half again as fast as indexing by an array.
        valid = None if self.valid is None else self.valid.take(indices)
        return Vector(self.type, self.values.take(indices), valid)

    def slice(self, start: int, stop: int) -> Vector:
        if self.is_text:
            return Vector(self.type, self.values.slice(start, stop - start))
        valid = None if self.valid is None else self.valid[start:stop]
        return Vector(self.type, self.values[start:stop], valid)

    def mask(self) -> Array:
        """Which values are not null, always as an array."""
        if self.is_text and self.may_have_nulls:
            return np.asarray(pc.is_valid(self.values).to_numpy(zero_copy_only=False))
        return np.ones(len(self), np.bool_) if self.valid is None else self.valid

    @property
    def may_have_nulls(self) -> bool:
        """False if there surely are none; of encoded text their dictionary may have some."""
        if self.is_text:
            return bool(self.values.null_count) or pa.types.is_dictionary(self.values.type)
        return self.valid is not None

    def to_arrow(self) -> Any:
        if self.is_text:
            if pa.types.is_dictionary(self.values.type):
                return self.values.cast(pa.string())
            return self.values
        null = None if self.valid is None else ~self.valid
        return pa.array(self.values, mask=null).cast(ARROW_TYPES[self.type.kind])

    def to_list(self) -> list[Value]:
        """Canonical Python values, as the reference has them."""
        if self.is_text:
            values: list[Value] = self.values.to_pylist()
            return values
        plain = self.values.tolist()
        if self.type.kind is Kind.NUMBER:
            plain = [canonical(v) for v in plain]
        if self.valid is None:
            return list(plain)
        return [v if ok else None for v, ok in zip(plain, self.valid.tolist(), strict=True)]


def vector_of(type_: Type, values: Sequence[Value]) -> Vector:
    """A vector of Python values."""
    if type_.kind is Kind.TEXT:
        return Vector(type_, text_array(values))
    valid = np.array([v is not None for v in values], np.bool_)
    filled = np.array([0 if v is None else v for v in values], DTYPES[type_.kind])
    return Vector(type_, filled, None if valid.all() else valid)


#: More than so many texts are worth the import of what makes arrays of them faster.
_FEW_TEXTS = 10_000


def text_array(values: Sequence[Value]) -> Any:
    """Texts as an Arrow array. `pa.array` would import pandas, which takes a third of a second."""
    if len(values) > _FEW_TEXTS:
        return pa.array(values, pa.string())
    raw = [str(v).encode() for v in values if v is not None]
    lengths = np.array([0 if v is None else 1 for v in values], np.int64)
    has_nulls = len(raw) < len(values)
    lengths[lengths > 0] = [len(r) for r in raw]
    offsets = np.zeros(len(values) + 1, np.int32)
    offsets[1:] = np.cumsum(lengths)
    mask = np.packbits([v is not None for v in values], bitorder="little") if has_nulls else None
    return pa.StringArray.from_buffers(
        len(values), pa.py_buffer(offsets), pa.py_buffer(b"".join(raw)),
        None if mask is None else pa.py_buffer(mask),
    )  # fmt: skip


def integer_array(values: Array) -> Any:
    """Integers of 64 bits as an Arrow array, without pandas as well."""
    plain = np.ascontiguousarray(values, np.int64)
    return pa.Array.from_buffers(pa.int64(), len(plain), [None, pa.py_buffer(plain)])


def booleans_of(array: Any) -> Array:
    """The values of an Arrow array of booleans without nulls, without pandas as well."""
    whole = array.cast(pa.uint8())
    return np.frombuffer(whole.buffers()[1], np.bool_, len(whole), whole.offset)


def vector_from_arrow(type_: Type, array: Any) -> Vector:
    """A vector of an Arrow array whose type is already the one of `ARROW_TYPES`."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if type_.kind is Kind.TEXT:
        return Vector(type_, array)
    valid = None
    if array.null_count:
        valid = np.asarray(pc.is_valid(array).to_numpy(zero_copy_only=False))
    if type_.kind is Kind.BOOLEAN:
        filled = array.fill_null(False) if array.null_count else array
        return Vector(type_, filled.to_numpy(zero_copy_only=False), valid)
    plain = array.view(pa.int64()) if type_.kind in (Kind.TIME, Kind.DURATION) else array
    if valid is None:
        return Vector(type_, plain.to_numpy(zero_copy_only=True))
    width = DTYPES[type_.kind]
    values = np.frombuffer(plain.buffers()[1], width, len(plain), plain.offset * 8)
    return Vector(type_, values, valid)


def concat_vectors(vectors: Sequence[Vector]) -> Vector:
    if len(vectors) == 1:
        return vectors[0]
    type_ = vectors[0].type
    if type_.kind is Kind.TEXT:
        if _are_well_encoded([v.values for v in vectors]):
            return Vector(type_, pa.concat_arrays([v.values for v in vectors]))
        plain = [v.to_arrow() for v in vectors]
        return Vector(type_, pa.concat_arrays(plain))
    values = np.concatenate([v.values for v in vectors])
    if all(v.valid is None for v in vectors):
        return Vector(type_, values)
    return Vector(type_, values, np.concatenate([v.mask() for v in vectors]))


def _are_well_encoded(texts: list[Any]) -> bool:
    """Are all encoded alike, by dictionaries short enough to be worth joining?"""
    types = {t.type for t in texts}
    return (
        len(types) == 1
        and pa.types.is_dictionary(types.pop())
        and all(len(t.dictionary) <= len(t) for t in texts)
    )


@dataclass(frozen=True, slots=True)
class Batch:
    """Items of one queue. Inside a plan, times never decrease.

    `weight` is +1 or -1 (or a multiple) per change of a relation, None for a stream; on its way to
    a table an item of a stream may stand for several, so many as its weight says.
    `rank` orders items of equal time across the inputs of a step whose operators share
    a variable; only plans that need it carry it. Changes that are known to be net, and in
    the order in which they will leave, need not be consolidated when they do.
    """

    type: QueueType
    time: Array
    columns: tuple[Vector, ...]
    weight: Array | None = None
    rank: Array | None = None
    is_net: bool = False

    def __len__(self) -> int:
        return len(self.time)

    @property
    def schema(self) -> Schema:
        return self.type.schema

    def column(self, name: str) -> Vector:
        return self.columns[self.schema.index(name)]

    def take(self, indices: Array) -> Batch:
        return Batch(
            self.type,
            self.time.take(indices),
            tuple(c.take(indices) for c in self.columns),
            None if self.weight is None else self.weight.take(indices),
            None if self.rank is None else self.rank.take(indices),
        )

    def slice(self, start: int, stop: int) -> Batch:
        return Batch(
            self.type,
            self.time[start:stop],
            tuple(c.slice(start, stop) for c in self.columns),
            None if self.weight is None else self.weight[start:stop],
            None if self.rank is None else self.rank[start:stop],
            self.is_net,
        )

    def rows(self) -> list[Row]:
        if not self.columns:
            return [()] * len(self)
        return list(zip(*(c.to_list() for c in self.columns), strict=True))


@functools.lru_cache(maxsize=4096)
def empty_batch(type_: QueueType) -> Batch:
    """No items; one for all, because a round of a large plan asks for many."""
    return batch_of(type_, [], [], [] if type_.is_relation else None)


def batch_of(
    type_: QueueType,
    times: Sequence[int],
    rows: Sequence[Row],
    weights: Sequence[int] | None = None,
) -> Batch:
    """A batch of Python rows."""
    columns = tuple(vector_of(f.type, [row[i] for row in rows]) for i, f in enumerate(type_.schema))
    weight = None if weights is None else np.array(weights, np.int64)
    return Batch(type_, np.array(times, np.int64), columns, weight)


def concat_batches(batches: Iterable[Batch], type_: QueueType) -> Batch:
    parts = [b for b in batches if len(b)]
    if not parts:
        return empty_batch(type_)
    if len(parts) == 1:
        return parts[0]
    columns = tuple(concat_vectors([p.columns[i] for p in parts]) for i in range(len(type_.schema)))
    return Batch(
        type_,
        np.concatenate([p.time for p in parts]),
        columns,
        weights_of(parts),
        None if parts[0].rank is None else np.concatenate([p.rank for p in parts]),
        all(p.is_net for p in parts)
        and all(a.time[-1] < b.time[0] for a, b in itertools.pairwise(parts)),
    )


def weights_of(parts: Sequence[Batch]) -> Array | None:
    """The weights of several batches in a row; what has none is there once."""
    if all(part.weight is None for part in parts):
        return None
    ones = (np.ones(len(p), np.int64) if p.weight is None else p.weight for p in parts)
    return np.concatenate(list(ones))


def distinct_times(times: Array) -> Array:
    """Each time once, in order; quick where they are in order already."""
    if not len(times):
        return times
    ordered = times if bool((times[1:] >= times[:-1]).all()) else np.sort(times)
    is_new = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_new[1:])
    return ordered[is_new]
