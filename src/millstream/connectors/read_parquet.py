"""Parquet in: only the columns that are wanted, piece by piece, mostly without copying."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Sequence
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
_SAMPLED_ROWS = 4_096


class ParquetReader:
    """Mutable: one Parquet file, whose columns have been checked."""

    def __init__(self, path: Path, name: str, input_: Input, chunk_rows: int) -> None:
        self._path = path
        self._name = name
        self._chunk_rows = chunk_rows
        self._file: Any = None
        self._metadata, self._schema = _footer(path, name)
        self._layout = layout_in(input_, self._schema.names, name)
        _check_types(self._layout, self._schema, name)

    def chunks(self) -> Iterator[Chunk]:
        with _told(self._name):
            self._file = self._open(self._repeated_texts())
        names = list(dict.fromkeys(self._layout.names))
        batches = self._file.iter_batches(self._chunk_rows, columns=names)
        first = 1
        while True:
            with _told(self._name):
                batch = next(batches, None)
                if batch is None and first - 1 != self._metadata.num_rows:
                    promised = self._metadata.num_rows
                    raise pa.ArrowInvalid(f"{first - 1} rows instead of {promised}")
            if batch is None:
                return
            if len(batch):
                yield self._chunk([batch.column(n) for n in self._layout.names], first)
            first += len(batch)

    def _open(self, encoded: Sequence[str]) -> Any:
        """Without these settings memory grows with the file, or with its row groups."""
        return pq.ParquetFile(
            self._path,
            metadata=self._metadata,
            pre_buffer=False,
            buffer_size=_READ_AHEAD,
            read_dictionary=list(encoded),
            page_checksum_verification=True,
        )

    def _repeated_texts(self) -> list[str]:
        """Columns whose first texts repeat, which kernels like to get as a dictionary.

        The metadata would say how a column is stored, but in a damaged file asking for
        them ends the process (pyarrow 26).
        """
        texts = [f.name for f in self._layout.fields if f.type.kind is Kind.TEXT]
        known = [n for n in texts if pa.types.is_dictionary(self._schema.field(n).type)]
        asked = [n for n in texts if n not in known]
        if not asked:
            return known
        with contextlib.closing(self._open(known)) as file:
            batch = next(file.iter_batches(_SAMPLED_ROWS, columns=asked), None)
        if batch is None:
            return known
        return known + [n for n in asked if len(batch.column(n).unique()) * 4 <= len(batch)]

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
        if self._file is not None:
            self._file.close()


def _footer(path: Path, name: str) -> tuple[Any, Any]:
    """Metadata and schema, unless they are so large that reading them takes all memory."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - 8))
            footer = int.from_bytes(file.read(4), "little")
    except OSError as error:
        raise unreadable(name, error) from None
    too_wide = CheckError(f"it has more than {MOST_COLUMNS:,} columns", place=name)
    with _told(name):
        if footer > size:
            raise pa.ArrowInvalid("the end of the file is missing")
        if footer > _LARGEST_FOOTER:
            raise too_wide
        metadata = pq.read_metadata(path)
        if metadata.num_columns > MOST_COLUMNS:
            raise too_wide
        return metadata, metadata.schema.to_arrow_schema()


def _check_types(layout: Layout, schema: Any, name: str) -> None:
    """All columns of the wrong type are told at once."""
    faults = [
        Fault(f'column "{f.name}": expected {EXPECTED[f.type.kind]}, found {found}', place=name)
        for f in layout.fields
        if not can_hold(f.type.kind, found := schema.field(f.name).type)
    ]
    if faults:
        raise CheckError(faults)


@contextlib.contextmanager
def _told(name: str) -> Iterator[None]:
    """What Arrow says of a damaged file, cut to one sentence."""
    try:
        yield
    except (OSError, UnicodeDecodeError, pa.ArrowException) as error:
        reason = str(error).split("\n", 1)[0].split(". ", 1)[0].rstrip(".")
        raise RunError(f"not a readable Parquet file: {reason}", place=name) from None
