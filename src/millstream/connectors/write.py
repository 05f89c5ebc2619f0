"""Writers: rows out as CSV, JSON Lines or Parquet.

A row of a stream is its `_time` and the columns; a change of a relation is its `_time`,
its `_weight` and the columns. In text, times and durations are microseconds unless the
location asks for ISO 8601.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pyarrow as pa

from millstream.calculus.graph import Input
from millstream.calculus.types import (
    INTEGER,
    TEXT,
    TIME,
    TIME_COLUMN,
    WEIGHT_COLUMN,
    Field,
    Kind,
    QueueType,
)
from millstream.connectors.chunks import Rejected
from millstream.connectors.location import Format, Location
from millstream.connectors.raw import raw_bytes
from millstream.connectors.sink import STANDARD_ERROR, FileSink, Sink, StandardSink, told
from millstream.connectors.texts import csv_header, csv_lines, jsonl_lines
from millstream.errors import CheckError, UsageError
from millstream.plan.batch import ARROW_TYPES, Batch, Vector, vector_of

#: Few enough rows for the cache of a processor.
_TEXT_ROWS = 65_536
_ROW_GROUP_ROWS = 1 << 18
_ENCODED = pa.dictionary(pa.int32(), pa.string())
#: So many times longer than its dictionary texts must be if they are to be written with it.
_SHORTER = 4

REJECTED_FIELDS = (
    Field("_source", TEXT),
    Field("_position", INTEGER),
    Field("_reason", TEXT),
    Field("_text", TEXT),
)
#: Whose columns are written: those of an output, or those that an input reads.
Shape = QueueType | Input
#: The columns of a table to the bytes of its rows.
Lines = Callable[[Sequence[Vector]], memoryview]


class TextTable:
    """Mutable: a table that is being written as text."""

    def __init__(self, sink: Sink, header: bytes, lines: Lines) -> None:
        self._sink = sink
        self._lines = lines
        with told(sink.name):
            sink.file.write(header)

    def write(self, vectors: Sequence[Vector]) -> None:
        with told(self._sink.name):
            for first in range(0, len(vectors[0]), _TEXT_ROWS):
                last = min(first + _TEXT_ROWS, len(vectors[0]))
                self._write_piece([v.slice(first, last) for v in vectors])

    def _write_piece(self, vectors: Sequence[Vector]) -> None:
        try:
            lines = self._lines(vectors)
        except pa.ArrowCapacityError:  # over 2 GiB of text
            middle = len(vectors[0]) // 2
            self._write_piece([v.slice(0, middle) for v in vectors])
            self._write_piece([v.slice(middle, len(v)) for v in vectors])
        else:
            self._sink.file.write(lines)

    def close(self) -> None:
        self._sink.commit()

    def abort(self) -> None:
        self._sink.abort()


class ParquetTable:
    """Mutable: a table that is being written as Parquet; rows wait for a full row group.

    Texts that come as words of a dictionary are written as such: to put them out in full, only to
    have them looked up again, takes as long as all other columns.
    """

    def __init__(self, sink: Sink, fields: Sequence[Field]) -> None:
        self._sink = sink
        self._fields = fields
        self._waiting: list[list[Any]] = []
        self._rows = 0
        #: Opened with the first rows, which tell how texts come.
        self._writer: Any = None
        self._schema: Any = None

    def write(self, vectors: Sequence[Vector]) -> None:
        self._waiting.append([_stored(v) for v in vectors])
        self._rows += len(vectors[0])
        if self._rows >= _ROW_GROUP_ROWS:
            self._flush()

    def _flush(self) -> None:
        if self._writer is None:
            self._open()
        if self._rows:
            batches = [self._batch(arrays) for arrays in self._waiting]
            table = pa.Table.from_batches(batches, self._schema).unify_dictionaries()
            with told(self._sink.name):
                self._writer.write_table(table, row_group_size=_ROW_GROUP_ROWS)
        self._waiting, self._rows = [], 0

    def _open(self) -> None:
        import pyarrow.parquet as pq  # with it come file systems and TLS, which take a while

        fields = self._fields
        plain = pa.schema([(f.name, ARROW_TYPES[f.type.kind]) for f in fields])
        self._schema = plain
        for number in range(len(fields)):
            if self._waiting and all(_is_encoded(arrays[number]) for arrays in self._waiting):
                self._schema = self._schema.set(number, plain.field(number).with_type(_ENCODED))
        with told(self._sink.name):
            self._writer = pq.ParquetWriter(
                self._sink.file, self._schema, write_page_checksum=True, store_schema=False,
                # Numbers and times hardly repeat; looking for that takes longer than writing.
                use_dictionary=[f.name for f in fields if f.type.kind is Kind.TEXT],
                # The least and the largest text take half of the time, and help nobody who reads
                # rows in the order of time.
                write_statistics=[f.name for f in fields if f.type.kind is not Kind.TEXT],
                column_encoding={
                    f.name: "DELTA_BINARY_PACKED" for f in fields if f.type.kind is Kind.TIME
                },
            )  # fmt: skip
            # Whoever reads the file need not know how texts came to it.
            types = base64.b64encode(plain.serialize())
            self._writer.add_key_value_metadata({"ARROW:schema": types})

    def _batch(self, arrays: Sequence[Any]) -> Any:
        """Columns as the file has them, however their texts have come."""
        alike = [_as_type(a, field.type) for a, field in zip(arrays, self._schema, strict=True)]
        return pa.record_batch(alike, schema=self._schema)

    def close(self) -> None:
        try:
            self._flush()
            with told(self._sink.name):
                self._writer.close()
        except BaseException:
            self.abort()
            raise
        self._sink.commit()

    def abort(self) -> None:
        if self._writer is not None:
            with suppress(OSError, pa.ArrowException):
                self._writer.close()
            self._writer.is_open = False  # or it would try again when it is collected
        self._sink.abort()


def _stored(vector: Vector) -> Any:
    """A column as an array; texts stay words of a dictionary where that is short."""
    if vector.is_text and _is_short(vector.values):
        return vector.values.cast(_ENCODED)
    return _canonical(vector).to_arrow()


def _is_short(texts: Any) -> bool:
    """Whether texts are words of a dictionary that is worth being written for them."""
    if not pa.types.is_dictionary(texts.type):
        return False
    words = texts.dictionary
    return not words.null_count and _SHORTER * len(words) <= len(texts)


def _is_encoded(array: Any) -> bool:
    return bool(array.type == _ENCODED)


def _as_type(array: Any, type_: Any) -> Any:
    if array.type == type_:
        return array
    return array.dictionary_encode() if type_ == _ENCODED else array.cast(type_)


def _canonical(vector: Vector) -> Vector:
    if vector.type.kind is not Kind.NUMBER:
        return vector
    return Vector(vector.type, vector.values + 0.0, vector.valid)


Table = TextTable | ParquetTable


class QueueWriter:
    """Mutable: writes the items of a queue to a table."""

    def __init__(self, table: Table, shape: Shape) -> None:
        self._table = table
        self._shape = shape

    def write(self, batch: Batch) -> None:
        if len(batch):
            self._table.write(columns_of(batch, self._shape))

    def close(self) -> None:
        self._table.close()

    def abort(self) -> None:
        self._table.abort()


class RejectedWriter:
    """Mutable: writes rejected rows with where they stood and why."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def write(self, rejected: Iterable[Rejected]) -> None:
        rows = [(r.source, r.position, r.reason, r.text) for r in rejected]
        if rows:
            columns = zip(*rows, strict=True)
            self._table.write(
                [vector_of(f.type, c) for f, c in zip(REJECTED_FIELDS, columns, strict=True)]
            )

    def close(self) -> None:
        self._table.close()

    def abort(self) -> None:
        self._table.abort()


def open_writer(location: Location, shape: Shape, name: str | None = None) -> QueueWriter:
    """A writer for the items of a queue, in the shape of an output or of an input."""
    if isinstance(shape, Input) and (shape.unit, shape.zone, shape.time_format) != (None,) * 3:
        location = replace(location, times="iso")  # integers would count the unit
    return QueueWriter(open_table(location, fields_of(shape), name), shape)


def fields_of(shape: Shape) -> list[Field]:
    """The columns of an output, or an error if the program has used their names."""
    if isinstance(shape, Input):
        return _fields_of_input(shape)
    type_ = shape
    for name in (TIME_COLUMN, WEIGHT_COLUMN)[: 2 if type_.is_relation else 1]:
        if name in type_.schema:
            raise CheckError(
                f'column "{name}" cannot be written: the output has one of its own',
                hint="give it another name in the program",
            )
    weight = [Field(WEIGHT_COLUMN, INTEGER)] if type_.is_relation else []
    return [Field(TIME_COLUMN, TIME), *weight, *type_.schema]


def _fields_of_input(input_: Input) -> list[Field]:
    """Late rows have the columns that their input reads, so that they can be fed in again."""
    time = input_.time or TIME_COLUMN
    head = [] if time in input_.type.schema else [Field(time, TIME)]
    weight = (
        [Field(WEIGHT_COLUMN, INTEGER)] if input_.type.is_relation and not input_.is_log else []
    )
    return [*head, *weight, *input_.type.schema]


def columns_of(batch: Batch, shape: Shape) -> list[Vector]:
    """The rows of a batch as columns, in the order of `fields_of`."""
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    if batch.weight is not None:
        columns = {WEIGHT_COLUMN: Vector(INTEGER, batch.weight), **columns}
    time = (shape.time if isinstance(shape, Input) else None) or TIME_COLUMN
    columns = {time: Vector(TIME, batch.time), **columns}
    return [columns[field.name] for field in fields_of(shape)]


def open_rejected_writer(location: Location) -> RejectedWriter:
    return RejectedWriter(open_table(location, REJECTED_FIELDS))


def open_table(location: Location, fields: Sequence[Field], name: str | None = None) -> Table:
    """A table of some columns, which appears when it is closed."""
    sink = _sink(location, name)
    try:
        return _table(location, sink, [f.name for f in fields], fields)
    except BaseException:
        sink.abort()
        raise


def _table(location: Location, sink: Sink, names: Sequence[str], fields: Sequence[Field]) -> Table:
    times = location.times
    if location.format is Format.PARQUET:
        return ParquetTable(sink, fields)
    if location.format is Format.CSV:
        return TextTable(sink, csv_header(names), lambda columns: csv_lines(columns, times))
    if location.format is Format.RAW:
        return TextTable(sink, b"", lambda columns: raw_bytes(names, columns))
    return TextTable(sink, b"", lambda columns: jsonl_lines(names, columns, times))


def _sink(location: Location, name: str | None = None) -> Sink:
    """A file is called by its own name in messages, or by that of what it is a part of."""
    if location.format is Format.GENERATOR:
        raise UsageError("a generator cannot be written to", place=location.text)
    if location.path is None:
        return StandardSink()
    if location.path == STANDARD_ERROR:
        return StandardSink(is_error=True)
    if location.database is not None:
        raise UsageError("rejected rows cannot go to a database", hint="give them a file")
    if location.is_pattern or location.is_folder:
        raise UsageError("an output must be one file", place=location.text)
    return FileSink(location.path, name or location.name_of(location.path))
