"""Raw files: 32 bits per number, lowest byte first, and nothing else; text as it is.

There are no times in them: the n-th row is at time n.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from millstream.calculus.graph import Input
from millstream.calculus.types import TIME_COLUMN, Kind
from millstream.connectors.chunks import Chunk
from millstream.connectors.layout import batch_of_vectors, layout_of
from millstream.connectors.window import shorter, unreadable
from millstream.errors import CheckError, UsageError
from millstream.plan.batch import Array, Vector

#: How the values of a column stand in a file, and how they are held.
_STORED = {Kind.INTEGER: "<i4", Kind.BOOLEAN: "<i4", Kind.NUMBER: "<f4", Kind.TIME: "<i4"}
_HELD = {Kind.INTEGER: np.int64, Kind.BOOLEAN: np.bool_, Kind.NUMBER: np.float64}


class RawReader:
    """A raw file, of which at most so many rows are read, or the `rows` [a, b)."""

    def __init__(
        self, path: Path, name: str, input_: Input, chunk_rows: int, most: int | None,
        rows: tuple[int, int] | None = None,
    ) -> None:  # fmt: skip
        self._path, self._name, self._chunk_rows = path, name, chunk_rows
        self._columns = [f for f in input_.type.schema if f.name != input_.time]
        self._layout = layout_of(input_, has_weight=False)
        for field in self._columns:
            if field.type.kind not in _HELD:
                raise CheckError(f'a raw file has no {field.type}, as column "{field.name}" is',
                                 place=name, span=input_.span)  # fmt: skip
        count = rows_in(path, name, len(self._columns), most)
        if rows is not None and rows[1] > count:
            raise shorter(name)
        self._first, self._last = rows or (0, count)

    def chunks(self) -> Iterator[Chunk]:
        for first in range(self._first, self._last, self._chunk_rows):
            yield self._chunk(first, min(first + self._chunk_rows, self._last))

    def _chunk(self, first: int, last: int) -> Chunk:
        stored = np.dtype([(f.name, _STORED[f.type.kind]) for f in self._columns])
        try:
            offset = first * stored.itemsize
            table = np.fromfile(self._path, stored, last - first, offset=offset)
        except OSError as error:
            raise unreadable(self._name, error) from None
        if len(table) < last - first:
            raise shorter(self._name)
        times = np.arange(first + 1, last + 1, dtype=np.int64)
        names = {f.name for f in self._columns}
        vectors = [
            Vector(f.type, table[f.name].astype(_HELD[f.type.kind]) if f.name in names else times)
            for f in self._layout.fields
        ]
        return Chunk(batch_of_vectors(self._layout, vectors))

    def close(self) -> None:
        """It is opened for each chunk."""


def rows_in(path: Path, name: str, columns: int, most: int | None) -> int:
    """How many rows are to be read of a file."""
    try:
        size = path.stat().st_size
    except OSError as error:
        raise unreadable(name, error) from None
    width = 4 * max(columns, 1)
    if size % width:
        raise CheckError(f"expected items of {width} bytes, but {size % width} bytes are left over "
                         f"of {size:,}", place=name)  # fmt: skip
    count = size // width
    return count if most is None else min(count, most)


def joined_texts(vector: Vector) -> memoryview:
    """Texts end to end, as they lie in the memory of a column."""
    array = vector.to_arrow()
    _, offsets, data = array.buffers()
    if array.null_count or array.type != pa.string():  # what is null may have bytes all the same
        return memoryview("".join(str(text or "") for text in vector.to_list()).encode())
    if not len(array) or data is None:
        return memoryview(b"")
    places = np.frombuffer(offsets, np.int32, len(array) + 1, 4 * array.offset)
    return memoryview(data)[int(places[0]) : int(places[-1])]


def raw_bytes(names: Sequence[str], vectors: Sequence[Vector]) -> memoryview:
    """Rows without their times. Text can only stand alone."""
    columns = [v for name, v in zip(names, vectors, strict=True) if name != TIME_COLUMN]
    if len(columns) == 1 and columns[0].is_text:
        return joined_texts(columns[0])
    if any(v.type.kind not in _HELD for v in columns):
        raise UsageError("a raw file has numbers and booleans, or one text",
                         hint="choose csv, jsonl or parquet")  # fmt: skip
    stored = np.dtype([(f"f{n}", _STORED[v.type.kind]) for n, v in enumerate(columns)])
    table: Array = np.zeros(len(vectors[0]), stored)
    for number, vector in enumerate(columns):
        with np.errstate(all="ignore"):
            table[f"f{number}"] = np.where(vector.mask(), vector.values, 0)
    return memoryview(table.tobytes())
