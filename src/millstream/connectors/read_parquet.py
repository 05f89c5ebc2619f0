"""Parquet in: only the columns that are wanted, piece by piece, mostly without copying."""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from millstream.calculus.graph import Input
from millstream.calculus.types import Kind
from millstream.connectors.arrow_rows import ArrowRows, check_types
from millstream.connectors.chunks import Chunk
from millstream.connectors.layout import as_declared, layout_in
from millstream.connectors.window import shorter, unreadable
from millstream.errors import CheckError, RunError

MOST_COLUMNS = 16_384
_LARGEST_FOOTER = 1 << 27
_READ_AHEAD = 1 << 20
_SAMPLED_ROWS = 4_096


class ParquetReader:
    """Mutable: one Parquet file, whose columns have been checked, or the `rows` [a, b)."""

    def __init__(
        self,
        path: Path,
        name: str,
        input_: Input,
        chunk_rows: int,
        rows: tuple[int, int] | None = None,
    ) -> None:
        self._path = path
        self._name = name
        self._chunk_rows = chunk_rows
        self._rows = rows
        self._file: Any = None
        self._metadata, self._schema = read_footer(path, name)
        if rows and self._metadata.num_rows < rows[1]:
            raise shorter(name)
        stored = as_declared(input_, self._schema.names)
        #: Names of columns in the file by those that the input declares.
        self._stored = dict(zip(stored, self._schema.names, strict=True))
        self._schema = pa.schema(
            field.with_name(n) for n, field in zip(stored, self._schema, strict=True)
        )
        self._layout = layout_in(input_, stored, name)
        check_types(self._layout, self._schema, name)
        self._rows_in = ArrowRows(self._layout, name)

    def chunks(self) -> Iterator[Chunk]:
        with told(self._name):
            self._file = self._open(self._repeated_texts())
        for first, batch in self._wanted():
            columns = [batch.column(self._stored[n]) for n in self._layout.names]
            yield self._rows_in.chunk(columns, first + 1)

    def _wanted(self) -> Iterator[tuple[int, Any]]:
        """The wanted rows, as batches and the rows before each."""
        groups, at = None, 0
        first, last = self._rows or (0, self._metadata.num_rows)
        if self._rows:
            groups, at = _groups_with(first, last, group_rows(self._metadata, self._name))
        names = list(dict.fromkeys(self._stored[n] for n in self._layout.names))
        batches = self._file.iter_batches(self._chunk_rows, groups, columns=names)
        while self._rows is None or at < last:
            with told(self._name):
                batch = next(batches, None)
                if batch is None and at != last:
                    raise pa.ArrowInvalid(f"{at} rows instead of {last}")
            if batch is None:
                return
            skipped = max(first - at, 0)
            wanted = batch.slice(skipped, max(last - at - skipped, 0)) if self._rows else batch
            if len(wanted):
                yield at + skipped, wanted
            at += len(batch)

    def _open(self, encoded: Sequence[str]) -> Any:
        """Without these settings memory grows with the file, or with its row groups."""
        return pq.ParquetFile(
            self._path,
            metadata=self._metadata,
            pre_buffer=False,
            buffer_size=_READ_AHEAD,
            read_dictionary=[self._stored[n] for n in encoded],
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
        first, last = self._rows or (0, self._metadata.num_rows)
        if not asked or last - first <= _SAMPLED_ROWS:
            return known  # to look at so few takes as long as to read them
        with contextlib.closing(self._open(known)) as file:
            batch = next(
                file.iter_batches(_SAMPLED_ROWS, columns=[self._stored[n] for n in asked]), None
            )
        if batch is None:
            return known
        return known + [
            n for n in asked if len(batch.column(self._stored[n]).unique()) * 2 <= len(batch)
        ]

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def group_rows(metadata: Any, name: str) -> list[int]:
    """How many rows each row group has."""
    with told(name):
        rows = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
        if min(rows, default=0) < 0 or sum(rows) != metadata.num_rows:
            raise pa.ArrowInvalid(f"{sum(rows)} rows instead of {metadata.num_rows}")
    return rows


def _groups_with(first: int, last: int, rows: list[int]) -> tuple[list[int], int]:
    """The row groups in which rows [first, last) lie, and the number of rows before them."""
    ends = list(itertools.accumulate(rows))
    groups = [g for g, end in enumerate(ends) if end > first and end - rows[g] < last]
    return groups, ends[groups[0]] - rows[groups[0]] if groups else 0


def read_footer(path: Path, name: str) -> tuple[Any, Any]:
    """Metadata and schema, unless they are so large that reading them takes all memory."""
    try:
        status = path.stat()
        return _footer_of(path, name, status.st_size, status.st_mtime_ns, status.st_ino)
    except OSError as error:
        raise unreadable(name, error) from None


@functools.lru_cache(maxsize=4)
def _footer_of(path: Path, name: str, size: int, changed: int, inode: int) -> tuple[Any, Any]:
    """Who plans a batch and who reads it ask for the same footer one after the other."""
    with path.open("rb") as file:
        file.seek(max(0, size - 8))
        footer = int.from_bytes(file.read(4), "little")
    too_wide = CheckError(f"it has more than {MOST_COLUMNS:,} columns", place=name)
    with told(name):
        if footer > size:
            raise pa.ArrowInvalid("the end of the file is missing")
        if footer > _LARGEST_FOOTER:
            raise too_wide
        metadata = pq.read_metadata(path)
        if metadata.num_columns > MOST_COLUMNS:
            raise too_wide
        return metadata, metadata.schema.to_arrow_schema()


@contextlib.contextmanager
def told(name: str) -> Iterator[None]:
    """What Arrow says of a damaged file, cut to one sentence."""
    try:
        yield
    except (OSError, UnicodeDecodeError, pa.ArrowException) as error:
        reason = str(error).split("\n", 1)[0].split(". ", 1)[0].rstrip(".")
        raise RunError(f"not a readable Parquet file: {reason}", place=name) from None
