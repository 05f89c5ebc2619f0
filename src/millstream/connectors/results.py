"""The rows of files of results, as they were written: whatever their columns are.

Here no program tells the columns, so Arrow tables take the place of batches. Cells of CSV
stay the texts they are. Files of a folder that a job writes into at the same time are
listed once; each of them is complete.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq

from millstream.calculus.types import TIME_COLUMN
from millstream.connectors.dialect import Dialect
from millstream.connectors.folder import record_in
from millstream.connectors.location import Format, Location, files_now, matching_files
from millstream.connectors.shelf import Record
from millstream.errors import RunError
from millstream.plan.batch import Array
from millstream.values.instants import parse_time

_LINES = 65_536
_WORDS_FOR_NUMBERS = {"NaN": np.nan, "Infinity": np.inf, "-Infinity": -np.inf}


Tables = Generator[Any, None, None]


class Replaced(Exception):
    """A new job has replaced the results while they were read."""


class Results(Protocol):
    """Mutable: the rows of a sink, and which of them have been seen."""

    def count(self) -> int: ...

    def tables(self) -> Tables:
        """All rows that are there now, in the order of their times."""
        ...

    def news(self) -> Tables:
        """The rows that have come since."""
        ...

    def again(self) -> Tables:
        """As `tables`, after they have been replaced."""
        ...

    def close(self) -> None: ...


class FileResults:
    """Mutable: results in files, one or many. `Replaced` tells that they are new ones."""

    def __init__(self, location: Location) -> None:
        assert location.path is not None
        self._location = location
        self._folder = location.path if location.path.is_dir() else None
        self._start: str | None = None
        self._files: list[Path] = []
        self._list()

    def _list(self) -> None:
        record = self._record_now()
        if record is None:
            self._files = matching_files(self._location)
            return
        self._start = self._start_now()
        if not record.is_replacing:  # perhaps without parts that would tell their format
            self._location = replace(self._location, format=Format(record.format))
        self._files = files_now(self._location)

    def _record_now(self) -> Record | None:
        return record_in(self._folder) if self._folder is not None else None

    def _start_now(self) -> str | None:
        """Of the job whose parts are there; one that is about to replace them changes nothing."""
        record = self._record_now()
        return self._start if record is None or record.is_replacing else record.start

    def count(self) -> int:
        return sum(self._rows_of(path) for path in self._files)

    def _rows_of(self, path: Path) -> int:
        if self._location.format is Format.PARQUET:
            with self._told(path):
                return int(pq.read_metadata(path).num_rows)
        return sum(table.num_rows for table in self._tables_of(path, [TIME_COLUMN]))

    def tables(self) -> Tables:
        if self._are_sorted():
            for path in self._files:
                for table in self._tables_of(path):
                    yield self._typed(table)
        else:
            whole = joined([t for path in self._files for t in self._tables_of(path)])
            times = times_in(whole)
            assert times is not None
            yield self._typed(whole.take(pa.array(np.argsort(times, kind="stable"))))

    def _typed(self, table: Any) -> Any:
        """Only now: other rows of a column of CSV may look like another type."""
        return typed(table) if self._location.format is Format.CSV else table

    def _are_sorted(self) -> bool:
        """Late rows, for example, are not."""
        last: int | None = None
        for path in self._files:
            for table in self._tables_of(path, [TIME_COLUMN]):
                times = times_in(table)
                if times is None:
                    return True
                if len(times) and ((last is not None and times[0] < last) or _falls(times)):
                    return False
                last = int(times[-1]) if len(times) else last
        return True

    def news(self) -> Tables:
        if self._start_now() != self._start:
            raise Replaced
        known = set(self._files)
        for path in files_now(self._location):
            if path not in known:
                self._files.append(path)
                for table in self._tables_of(path):
                    yield self._typed(table)

    def again(self) -> Tables:
        self._list()
        return self.tables()

    def close(self) -> None:
        """No file stays open."""

    def _tables_of(self, path: Path, columns: list[str] | None = None) -> Iterator[Any]:
        with self._told(path):
            for table in tables_of(path, self._location, columns):
                # A new job uses the names of the parts again; what is open is of the old one.
                if self._start_now() != self._start:
                    raise Replaced
                yield table

    @contextmanager
    def _told(self, path: Path) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            raise Replaced from None
        except (OSError, ValueError, pa.ArrowException) as error:
            reason = str(error).split("\n", 1)[0]
            name = self._location.name_of(path)
            is_other = isinstance(error, UnicodeDecodeError) or "invalid UTF8" in reason
            hint = f'say its encoding: "{name}?encoding=cp1252"' if is_other else None
            raise RunError(f"cannot be read: {reason}", place=name, hint=hint) from None


def tables_of(path: Path, location: Location, columns: list[str] | None = None) -> Iterator[Any]:
    """The rows of one file; of all columns, or of those that it has among some."""
    if location.format is Format.PARQUET:
        yield from _parquet(path, columns)
    elif location.format is Format.CSV:
        yield from _csv(path, location.dialect, columns)
    else:
        for table in _jsonl(path):
            kept = [c for c in columns or table.column_names if c in table.column_names]
            yield table.select(kept or table.column_names[:1])  # without columns, no rows


def _parquet(path: Path, columns: list[str] | None) -> Iterator[Any]:
    with pq.ParquetFile(path) as file:
        names = file.schema_arrow.names
        kept = [n for n in names if columns is None or n in columns]
        for batch in file.iter_batches(columns=kept):
            yield pa.Table.from_batches([batch])
        if not file.metadata.num_rows:
            yield file.schema_arrow.empty_table().select(kept)


def _csv(path: Path, dialect: Dialect, columns: list[str] | None) -> Iterator[Any]:
    """Everything as text: `007` must stay what it is."""
    encoding = "utf-8-sig" if dialect.encoding == "utf-8" else dialect.encoding
    with pa.input_stream(str(path), compression="detect") as stream:
        lines = islice(io.TextIOWrapper(stream, encoding, newline=""), dialect.skip, None)
        header = csv.reader(
            lines, delimiter=dialect.separator, quotechar=dialect.quote or None,
            quoting=csv.QUOTE_MINIMAL if dialect.quote else csv.QUOTE_NONE,
        )  # fmt: skip
        names = next(header, None)
    if names is None:
        return
    kept = [n for n in names if columns is None or n in columns]
    options = arrow_csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()), include_columns=kept,
        strings_can_be_null=True, quoted_strings_can_be_null=False, null_values=[""],
    )  # fmt: skip
    reading = arrow_csv.ReadOptions(skip_rows=dialect.skip, encoding=dialect.encoding)
    parsing = arrow_csv.ParseOptions(
        delimiter=dialect.separator, quote_char=dialect.quote or False, newlines_in_values=True
    )
    with (
        pa.input_stream(str(path), compression="detect") as stream,
        arrow_csv.open_csv(stream, reading, parsing, options) as reader,
    ):
        is_empty = True
        for batch in reader:
            is_empty = False
            yield pa.Table.from_batches([batch])
        if is_empty:
            yield reader.schema.empty_table()


def _jsonl(path: Path) -> Iterator[Any]:
    """Not by Arrow, which takes no column of both numbers and `"NaN"`."""
    with pa.input_stream(str(path), compression="detect") as stream:
        lines = (line for line in io.TextIOWrapper(stream, "utf-8") if line.strip())
        while rows := [json.loads(line) for line in islice(lines, _LINES)]:
            if not all(isinstance(row, dict) for row in rows):
                raise ValueError("expected an object in every line")
            names = list(dict.fromkeys(name for row in rows for name in row))
            arrays = [_array([row.get(name) for row in rows]) for name in names]
            yield pa.table(dict(zip(names, arrays, strict=True)))


def _array(values: list[Any]) -> Any:
    """Numbers, texts or booleans; what is mixed, or deeper, as the JSON it was."""
    kinds = {type(v) for v in values if v is not None}
    if kinds <= {int, float, str} and kinds & {int, float}:
        numbers = [_WORDS_FOR_NUMBERS.get(v, v) if isinstance(v, str) else v for v in values]
        if not any(isinstance(n, str) for n in numbers):
            return _numbers(numbers)
    if kinds <= {str} or kinds == {bool}:
        return pa.array(values, pa.bool_() if bool in kinds else pa.string())
    return pa.array([None if v is None else json.dumps(v, ensure_ascii=False) for v in values])


def _numbers(values: list[Any]) -> Any:
    is_whole = all(v is None or isinstance(v, int) for v in values)
    if is_whole and all(v is None or -(2**63) <= v < 2**63 for v in values):
        return pa.array(values, pa.int64())
    return pa.array([None if v is None else float(v) for v in values], pa.float64())


def joined(tables: list[Any]) -> Any:
    """One table; columns that have several types become texts."""
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException:
        texts = [pa.table({n: t[n].cast(pa.string()) for n in t.column_names}) for t in tables]
        return pa.concat_tables(texts, promote_options="default")


def times_in(table: Any) -> Array | None:
    """The times of the rows in microseconds; None if the rows have none."""
    if TIME_COLUMN not in table.column_names:
        return None
    column = table[TIME_COLUMN]
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", column.type.tz), safe=False).cast(pa.int64())
    if pa.types.is_string(column.type):
        column = _parsed(column)
    if column.null_count or not pa.types.is_int64(column.type):
        return None
    return np.asarray(column.to_numpy())


def _parsed(texts: Any) -> Any:
    try:
        return texts.cast(pa.int64())
    except pa.ArrowInvalid:  # at least one is not in microseconds
        parsed = [None if v is None else parse_time(v) for v in texts.to_pylist()]
        return pa.array(parsed, pa.int64())


def typed(table: Any) -> Any:
    """Columns of texts as numbers or booleans, where those are written exactly so."""
    return pa.table({name: _typed_column(table[name]) for name in table.column_names})


def _typed_column(texts: Any) -> Any:
    for arrow in (pa.int64(), pa.float64(), pa.bool_()):
        with suppress(pa.ArrowInvalid):  # some text is no such value
            values = texts.cast(arrow)
            if values.cast(pa.string()).equals(texts):
                return values
    return texts


def _falls(times: Array) -> bool:
    return bool((times[1:] < times[:-1]).any())
