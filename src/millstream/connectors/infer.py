"""The columns of a source that nobody has declared: as it says itself, or by a sample of its rows.

Of a sample a column is of the narrowest type that takes all of its values: boolean, integer,
number, time (ISO 8601), else text. Digits that begin with a zero, as those of `007`, are a text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from millstream.calculus.types import (
    BOOLEAN,
    DURATION,
    INTEGER,
    NUMBER,
    TEXT,
    TIME,
    TIME_COLUMN,
    WEIGHT_COLUMN,
    Field,
    Schema,
    Type,
)
from millstream.connectors.csv_rows import check_encoding, read_row, skip_blank_lines
from millstream.connectors.dialect import recoded
from millstream.connectors.location import Format, Location, matching_files
from millstream.connectors.read_parquet import read_footer
from millstream.connectors.values import Unfit, boolean_of, integer_of, number_of
from millstream.connectors.window import open_file
from millstream.errors import UsageError, listing
from millstream.values.instants import parse_time

SAMPLED_ROWS = 1_000
_SAMPLED_BYTES = 1 << 20
_ZEROS = re.compile(r"[+-]?0\d+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Inferred:
    """The columns of a source; `rows` is of how many rows, if they were told by a sample."""

    schema: Schema
    #: The file that was looked at.
    name: str
    rows: int | None
    #: Whether rows have times and weights of their own.
    has_times: bool
    #: Columns that no type takes.
    left_out: tuple[str, ...]


def inferred(location: Location) -> Inferred:
    """What the first file of a location tells of its columns."""
    if not location.is_at_hand or location.format not in _WAYS:
        raise UsageError("the columns of this source must be declared", place=location.text)
    path = matching_files(location)[0]
    name = location.name_of(path)
    types, rows = _WAYS[location.format](path, name, location)
    if not types:
        raise UsageError("has no column to be told by", place=name, hint="declare its columns")
    own = (TIME_COLUMN, WEIGHT_COLUMN)
    fields = [Field(n, t) for n, t in types.items() if t is not None and n not in own]
    left_out = tuple(n for n, t in types.items() if t is None)
    return Inferred(Schema(tuple(fields)), name, rows, TIME_COLUMN in types, left_out)


@dataclass(frozen=True, slots=True)
class Undeclared:
    """The columns and the event time of a stream of which only its place was declared."""

    schema: Schema
    time: str | None
    #: What was told by a sample, and what was chosen or left.
    notes: tuple[tuple[str, str | None], ...]


def undeclared(
    location: Location, stream: str, time: str | None, *, has_time: bool, how: str
) -> Undeclared:
    """What a source tells of a stream; `how` says how its time would be declared."""
    inference = inferred(location)
    if time is not None:
        time = _as_in(inference, time)
    elif has_time and not inference.has_times:
        times = [f.name for f in inference.schema if f.type == TIME]
        if len(times) != 1:
            which = f"it could be {listing(times)}" if times else "none holds times"
            raise UsageError(
                f'which column of {inference.name} is the event time of "{stream}"? {which}',
                hint=f"say {how}; it has: {listing(inference.schema.names)}",
            )
        time = times[0]
    # What is said to be the time holds times, in whatever way they are written.
    fields = (Field(f.name, TIME) if f.name == time else f for f in inference.schema)
    schema = Schema(tuple(fields))
    return Undeclared(schema, time, tuple(_notes(inference, stream, schema)))


def _notes(inference: Inferred, stream: str, schema: Schema) -> Iterator[tuple[str, str | None]]:
    if inference.rows is not None:
        types = ", ".join(f"{f.name} {f.type}" for f in schema)
        rows = f"{inference.rows:,} row{'s' if inference.rows != 1 else ''}"
        by = f"{rows} of {inference.name}"
        yield f'columns of "{stream}" by {by}: {types}', "declare them to be sure"
    if inference.left_out:
        left_out = f"{listing(inference.left_out)} of {inference.name}"
        yield f"{left_out} cannot be a column and is left out", None


def _as_in(inference: Inferred, time: str) -> str:
    """The column of time as the source has it: headers may differ in case and blanks."""
    return inference.schema.like(time) or time


Told = tuple[dict[str, Type | None], int | None]


def _of_parquet(path: Path, name: str, _: Location) -> Told:
    schema = read_footer(path, name)[1]
    return {field.name: _of_arrow(field.type) for field in schema}, None


def _of_arrow(arrow: Any) -> Type | None:
    types = pa.types
    if types.is_dictionary(arrow):
        return _of_arrow(arrow.value_type)
    kinds = (
        (types.is_boolean, BOOLEAN), (types.is_integer, INTEGER), (types.is_floating, NUMBER),
        (types.is_decimal, NUMBER), (types.is_timestamp, TIME), (types.is_date, TIME),
        (types.is_duration, DURATION), (types.is_string, TEXT), (types.is_large_string, TEXT),
        (types.is_string_view, TEXT),
    )  # fmt: skip
    return next((type_ for is_kind, type_ in kinds if is_kind(arrow)), None)


def _of_csv(path: Path, name: str, location: Location) -> Told:
    rows = _csv_rows(_beginning(path, name, location), location, name)
    header = next(rows, [])
    names = ["" if cell is None else cell for cell in header]
    cells: list[list[str]] = [[] for _ in names]
    count = 0
    for row in rows:
        if len(row) == len(names):
            count += 1
            for column, cell in zip(cells, row, strict=True):
                if cell is not None:
                    column.append(location.dialect.ungrouped(cell))
    decimal = location.dialect.decimal
    return {n: _of_texts(c, decimal) for n, c in zip(names, cells, strict=True) if n}, count


def _csv_rows(data: bytes, location: Location, name: str) -> Iterator[list[str | None]]:
    """The header and the rows of a sample; those that break the rules are passed over."""
    dialect, at = location.dialect, 0
    for _ in range(dialect.skip):
        at = data.find(b"\n", at) + 1 or len(data)
    for number in range(SAMPLED_ROWS + 1):
        at, _ = skip_blank_lines(data, at)
        row = read_row(data, at, final=True, dialect=dialect) if at < len(data) else None
        if row is None:
            return
        raw, at = data[row.start : row.end], row.end
        try:
            check_encoding(raw, dialect)
        except Unfit as unfit:
            if number == 0:
                raise UsageError(f"cannot read the header: {unfit}", place=name) from None
            continue
        yield [None if cell is None else dialect.decoded(cell) for cell in row.cells]


def _of_json(path: Path, name: str, location: Location) -> Told:
    values_of: dict[str, list[Any]] = {}
    count = 0
    for line in _beginning(path, name, location).split(b"\n")[:SAMPLED_ROWS]:
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            continue  # rejected with its reason by whoever reads it
        if isinstance(row, dict):
            count += 1
            for key, value in row.items():
                values_of.setdefault(key, []).append(value)
    return {key: _of_values(values) for key, values in values_of.items()}, count


def _of_values(values: Iterable[Any]) -> Type | None:
    """The type of values of JSON; None if they are lists or objects."""
    there = [v for v in values if v is not None]
    kinds = {bool if isinstance(v, bool) else type(v) for v in there}
    if kinds == {bool}:
        return BOOLEAN
    if kinds and kinds <= {int, float}:
        return INTEGER if kinds == {int} else NUMBER
    if kinds <= {str}:
        return TIME if there and all(_is_time(v) for v in there) else TEXT
    return None


def _of_texts(cells: list[str], decimal: str) -> Type:
    if not cells or any(_ZEROS.fullmatch(cell) for cell in cells):
        return TEXT
    numbers = [c.replace(",", ".") for c in cells] if decimal == "," else cells
    for type_, read, texts in (
        (BOOLEAN, boolean_of, cells), (INTEGER, integer_of, cells), (NUMBER, number_of, numbers),
    ):  # fmt: skip
        if _all_fit(read, texts):
            return type_
    return TIME if all(_is_time(cell) for cell in cells) else TEXT


def _all_fit(read: Any, texts: list[str]) -> bool:
    try:
        for text in texts:
            read(text)
    except Unfit:
        return False
    return True


def _is_time(text: str) -> bool:
    return not text.strip().isdigit() and parse_time(text) is not None


def _beginning(path: Path, name: str, location: Location) -> bytes:
    """The first whole lines of a file."""
    with recoded(open_file(path, name), location.dialect) as stream:
        data = stream.read(_SAMPLED_BYTES).removeprefix(b"\xef\xbb\xbf")
    if len(data) < _SAMPLED_BYTES:
        return data
    return data[: data.rfind(b"\n") + 1] or data


_WAYS = {Format.PARQUET: _of_parquet, Format.CSV: _of_csv, Format.JSONL: _of_json}
