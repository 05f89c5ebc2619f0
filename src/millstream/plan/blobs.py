"""Batches as Arrow IPC blobs: what travels between tasks, and what waits in files."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from millstream.calculus.types import Kind, QueueType
from millstream.plan.batch import Batch, Vector, vector_from_arrow

_RAW = {Kind.TIME: pa.int64(), Kind.DURATION: pa.int64()}


def encode_batch(batch: Batch) -> Any:
    """A buffer with one IPC stream: time, weight and rank where there are any, then the columns."""
    arrays: list[Any] = [pa.array(batch.time)]
    names = ["time"]
    for name, values in (("weight", batch.weight), ("rank", batch.rank)):
        if values is not None:
            arrays.append(pa.array(values))
            names.append(name)
    for number, column in enumerate(batch.columns):
        arrays.append(_array(column))
        names.append(f"c{number}")
    record = pa.record_batch(arrays, names=names)
    # Written twice, the first time only to count: a buffer that grows copies itself.
    counter = pa.MockOutputStream()
    _write(record, counter)
    buffer = pa.allocate_buffer(counter.size())
    _write(record, pa.FixedSizeBufferWriter(buffer))
    return buffer


def _write(record: Any, sink: Any) -> None:
    with pa.ipc.new_stream(sink, record.schema) as writer:
        writer.write_batch(record)


def _array(column: Vector) -> Any:
    if column.is_text:
        values = column.values
        if isinstance(values, pa.ChunkedArray):
            values = values.combine_chunks()
        if pa.types.is_dictionary(values.type) and len(values.dictionary) > len(values):
            return values.cast(pa.string())  # a slice need not carry words it does not use
        return values
    null = None if column.valid is None else ~column.valid
    return pa.array(column.values, mask=null)


def decode_batch(blob: Any, type_: QueueType) -> Batch:
    """The batch of a blob; its values are not copied."""
    with pa.ipc.open_stream(blob) as reader:
        table = reader.read_all()
    arrays = {name: table.column(name).combine_chunks() for name in table.column_names}

    def plain(name: str) -> Any:
        return np.asarray(arrays[name].to_numpy()) if name in arrays else None

    columns = tuple(
        _vector(field.type.kind, arrays[f"c{number}"], field.type)
        for number, field in enumerate(type_.schema)
    )
    return Batch(type_, plain("time"), columns, plain("weight"), plain("rank"))


def _vector(kind: Kind, array: Any, type_: Any) -> Vector:
    if kind is Kind.TEXT:
        return Vector(type_, array)
    if kind in _RAW:
        array = array.cast(pa.timestamp("us", tz="UTC") if kind is Kind.TIME else pa.duration("us"))
    return vector_from_arrow(type_, array)
