"""Batches as Arrow IPC blobs: what travels between tasks, and what waits in files."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from millstream.calculus.types import QueueType
from millstream.plan.batch import Batch, Vector, vector_from_arrow

#: Of so many bytes it takes longer to count them than to copy them.
_SMALL = 1 << 16
#: The usual ones; without them the environment is looked at for each blob.
_OPTIONS = pa.ipc.IpcWriteOptions()


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
    if record.nbytes < _SMALL:
        sink = pa.BufferOutputStream()
        _write(record, sink)
        return sink.getvalue()
    # Written twice, the first time only to count: a buffer that grows copies itself.
    counter = pa.MockOutputStream()
    _write(record, counter)
    buffer = pa.allocate_buffer(counter.size())
    _write(record, pa.FixedSizeBufferWriter(buffer))
    return buffer


def _write(record: Any, sink: Any) -> None:
    with pa.ipc.new_stream(sink, record.schema, options=_OPTIONS) as writer:
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
        record = reader.read_next_batch()
    arrays = dict(zip(record.schema.names, record.columns, strict=True))

    def plain(name: str) -> Any:
        return np.asarray(arrays[name].to_numpy()) if name in arrays else None

    columns = tuple(
        vector_from_arrow(field.type, arrays[f"c{number}"])
        for number, field in enumerate(type_.schema)
    )
    return Batch(type_, plain("time"), columns, plain("weight"), plain("rank"))
