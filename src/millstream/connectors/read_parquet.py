"""Parquet in: only the columns that are wanted, piece by piece, mostly without copying."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from millstream.calculus.graph import Input
from millstream.calculus.types import Kind
from millstream.connectors.arrow_columns import (
    Taken,
    can_hold,
    plain_value,
    take_column,
    why_unfit,
)
from millstream.connectors.chunks import SHOWN_CHARACTERS, Chunk, Rejected
from millstream.connectors.layout import (
    Layout,
    batch_of_vectors,
    check_values,
    check_vectors,
    layout_in,
)
from millstream.connectors.values import EXPECTED, Unfit
from millstream.connectors.window import unreadable
from millstream.errors import CheckError, Fault, RunError

MOST_COLUMNS = 16_384
_LARGEST_FOOTER = 1 << 27
_READ_AHEAD = 1 << 20


class ParquetReader:
    """Mutable: one open Parquet file, whose columns have been checked."""

    def __init__(self, path: Path, name: str, input_: Input, chunk_rows: int) -> None:
        self._name = name
        self._chunk_rows = chunk_rows
        metadata = _metadata(path, name)
        schema = metadata.schema.to_arrow_schema()
        self._layout = layout_in(input_, schema.names, name)
        _check_types(self._layout, schema, name)
        try:
            # Without these two settings memory grows with the file, or with its row groups.
            self._file = pq.ParquetFile(
                path,
                metadata=metadata,
                pre_buffer=False,
                buffer_size=_READ_AHEAD,
                read_dictionary=_encoded_texts(self._layout, metadata),
            )
        except (OSError, pa.ArrowException) as error:
            raise _corrupt(name, error) from None

    def chunks(self) -> Iterator[Chunk]:
        names = list(dict.fromkeys(self._layout.names))
        batches = self._file.iter_batches(self._chunk_rows, columns=names)
        first = 1
        while True:
            try:
                batch = next(batches, None)
            except (OSError, pa.ArrowException) as error:
                raise _corrupt(self._name, error) from None
            if batch is None:
                return
            if len(batch):
                yield self._chunk([batch.column(n) for n in self._layout.names], first)
            first += len(batch)

    def _chunk(self, arrays: list[Any], first: int) -> Chunk:
        layout = self._layout
        taken = [take_column(f.type, a) for f, a in zip(layout.fields, arrays, strict=True)]
        vectors = [vector for vector, _ in taken]
        good = check_vectors(layout, vectors)
        for _, unfit in taken:
            if unfit is not None:
                good = good & ~unfit
        if good.all():
            return Chunk(batch_of_vectors(layout, vectors))
        rejected = [
            self._rejected(taken, arrays, row, first + row)
            for row in np.flatnonzero(~good).tolist()
        ]
        kept = [v.take(np.flatnonzero(good)) for v in vectors]
        return Chunk(batch_of_vectors(layout, kept), tuple(rejected))

    def _rejected(self, taken: list[Taken], arrays: list[Any], row: int, position: int) -> Rejected:
        cells = [array.slice(row, 1) for array in arrays]
        shown = dict(zip(self._layout.names, map(plain_value, cells), strict=True))
        text = json.dumps(shown, ensure_ascii=False)[:SHOWN_CHARACTERS]
        return Rejected(self._name, position, self._reason(taken, cells, row), text)

    def _reason(self, taken: list[Taken], cells: list[Any], row: int) -> str:
        fields = self._layout.fields
        for field, cell, (_, unfit) in zip(fields, cells, taken, strict=True):
            if unfit is not None and unfit[row]:
                return f"{field.name}: {why_unfit(field.type, cell)}"
        values = tuple(vector.slice(row, row + 1).to_list()[0] for vector, _ in taken)
        try:
            check_values(self._layout, values)
        except Unfit as missing:
            return str(missing)
        raise AssertionError(values)

    def close(self) -> None:
        self._file.close()


def _metadata(path: Path, name: str) -> Any:
    """The footer, unless it is so large that reading it would take all memory."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - 8))
            footer = int.from_bytes(file.read(4), "little")
    except OSError as error:
        raise unreadable(name, error) from None
    try:
        metadata = pq.read_metadata(path) if footer <= min(size, _LARGEST_FOOTER) else None
    except (OSError, pa.ArrowException) as error:
        raise _corrupt(name, error) from None
    if metadata is None and footer > size:
        raise _corrupt(name, pa.ArrowInvalid("the end of the file is missing"))
    if metadata is None or metadata.num_columns > MOST_COLUMNS:
        raise CheckError(f"it has more than {MOST_COLUMNS:,} columns", place=name)
    return metadata


def _check_types(layout: Layout, schema: Any, name: str) -> None:
    """All columns of the wrong type are told at once."""
    faults = [
        Fault(f'column "{f.name}": expected {EXPECTED[f.type.kind]}, found {found}', place=name)
        for f in layout.fields
        if not can_hold(f.type.kind, found := schema.field(f.name).type)
    ]
    if faults:
        raise CheckError(faults)


def _encoded_texts(layout: Layout, metadata: Any) -> list[str]:
    """Texts that the file itself keeps as a dictionary, which then need not be decoded."""
    if not metadata.num_row_groups:
        return []
    wanted = {f.name for f in layout.fields if f.type.kind is Kind.TEXT}
    group = metadata.row_group(0)
    columns = [group.column(i) for i in range(group.num_columns)]
    return [c.path_in_schema for c in columns
            if c.has_dictionary_page and c.path_in_schema in wanted]  # fmt: skip


def _corrupt(name: str, error: Exception) -> RunError:
    """One sentence of what Arrow says, which may be many."""
    reason = str(error).split("\n", 1)[0].split(". ", 1)[0].rstrip(".")
    return RunError(f"not a readable Parquet file: {reason}", place=name)
