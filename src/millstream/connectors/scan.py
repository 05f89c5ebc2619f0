"""What a compiled scanner finds in a block of text, and how it becomes columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.calculus.types import Field, Kind, Row
from millstream.connectors import cells
from millstream.connectors.chunks import Rejected
from millstream.connectors.dialect import STANDARD, Dialect
from millstream.connectors.layout import (
    InputColumns,
    batch_of_values,
    batch_of_vectors,
    check_vectors,
)
from millstream.connectors.time_style import TimeStyle
from millstream.connectors.values import TIME_UNITS, Unfit, time_of
from millstream.plan.batch import DTYPES, Array, Batch, Vector, concat_batches


@dataclass(frozen=True, slots=True)
class Scan:
    """Rows and their cells, filled in place by a scanner.

    A row lies in the data at [bounds[row, 0], bounds[row, 1]) and so many `lines` after
    the first. Only rows that are `good` have cells: starts[field, row] and so on.
    """

    bounds: Array
    lines: Array
    good: Array
    starts: Array
    ends: Array
    states: Array

    @staticmethod
    def of(rows: int, fields: int) -> Scan:
        return Scan(
            np.empty((rows, 2), np.int64),
            np.empty(rows, np.int64),
            np.empty(rows, np.bool_),
            np.empty((fields, rows), np.int64),
            np.empty((fields, rows), np.int64),
            np.empty((fields, rows), np.uint8),
        )

    def first(self, rows: int) -> Scan:
        return Scan(
            self.bounds[:rows], self.lines[:rows], self.good[:rows],
            self.starts[:, :rows], self.ends[:, :rows], self.states[:, :rows],
        )  # fmt: skip


def mark_foreign_bytes(data: bytes, scan: Scan, dialect: Dialect = STANDARD) -> None:
    """Rows that are not UTF-8 are not good; of another encoding, those that are not ASCII."""
    if not len(scan.good) or data.isascii():
        return
    if not dialect.is_utf8:
        foreign = np.flatnonzero(np.frombuffer(data, np.uint8) > 127)
        rows = np.searchsorted(scan.bounds[:, 0], foreign, "right") - 1
        inside = (rows >= 0) & (foreign < scan.bounds[-1, 1])
        scan.good[rows[inside]] = False
        return
    at, end = int(scan.bounds[0, 0]), int(scan.bounds[-1, 1])
    while at < end:
        try:
            str(memoryview(data)[at:end], "utf-8")
        except UnicodeDecodeError as error:
            row = int(np.searchsorted(scan.bounds[:, 0], at + error.start, "right")) - 1
            scan.good[row] = False
            at = max(int(scan.bounds[row, 1]), at + error.start + 1)
        else:
            return


def columns_of(
    data: Array, scan: Scan, layout: InputColumns, dialect: Dialect | None
) -> list[Vector]:
    """The columns; rows with a cell that is not of the common kind stop being good.

    The dialect is that of CSV; without one the cells are those of JSON.
    """
    vectors = [
        _column(data, scan, slot, field, layout.times, dialect)
        for slot, field in enumerate(layout.fields)
    ]
    scan.good[:] &= check_vectors(layout, vectors)
    return vectors


def _column(
    data: Array, scan: Scan, slot: int, field: Field, style: TimeStyle, dialect: Dialect | None
) -> Vector:
    is_csv, dialect = dialect is not None, dialect or STANDARD
    where = (data, scan.starts[slot], scan.ends[slot], scan.states[slot], is_csv)
    rows = len(scan.good)
    valid = np.empty(rows, np.bool_)
    kind = field.type.kind
    if kind is Kind.TEXT:
        return Vector(field.type, _texts(where, scan.good, dialect))
    if kind is Kind.TIME and not style.is_plain:
        return _styled_times(field, _texts(where, scan.good, dialect), scan.good, style)
    values = np.zeros(rows, DTYPES[kind])
    if kind is Kind.NUMBER:
        hard = np.empty(rows, np.int64)
        count = cells.parse_numbers(*where, ord(dialect.decimal), values, valid, scan.good, hard)
        if count:
            values[hard[:count]] = _exact(where, hard[:count], dialect)
    elif kind is Kind.TIME:
        scale = TIME_UNITS[style.unit or "us"]
        cells.parse_times(*where, *scale, style.unit is not None, values, valid, scan.good)
    else:
        _PARSERS[kind](*where, values, valid, scan.good)
    return Vector(field.type, values, None if valid.all() else valid)


_PARSERS: dict[Kind, Callable[..., None]] = {
    Kind.INTEGER: cells.parse_integers,
    Kind.DURATION: cells.parse_integers,
    Kind.BOOLEAN: cells.parse_booleans,
}


def _styled_times(field: Field, texts: Any, good: Array, style: TimeStyle) -> Vector:
    """Times in a style of their own: each text once, by the definition of what it means."""
    coded = texts.dictionary_encode()
    meant: list[int | None] = []
    for text in coded.dictionary.to_pylist():
        try:
            meant.append(time_of(text, style))
        except Unfit:
            meant.append(None)
    micros = pa.array(meant, pa.int64()).take(coded.indices)
    good &= ~np.asarray(pc.and_(pc.is_null(micros), pc.is_valid(texts)))
    times = np.asarray(pc.fill_null(micros, 0))
    valid = np.asarray(pc.is_valid(texts))
    return Vector(field.type, times, None if valid.all() else valid)


def _texts(where: tuple[Any, ...], good: Array, dialect: Dialect) -> Any:
    """An Arrow array of the texts of cells."""
    data, starts, ends, states, is_csv = where
    rows = len(states)
    used = good & (states != cells.NULL)
    out = np.empty(int(np.sum((ends - starts)[used])), np.uint8)
    offsets, valid = np.empty(rows + 1, np.int32), np.empty(rows, np.bool_)
    quote = dialect.quote_byte
    size = cells.gather_texts(data, starts, ends, states, is_csv, quote, offsets, out, valid, good)
    nulls = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.StringArray.from_buffers(rows, pa.py_buffer(offsets), pa.py_buffer(out[:size]), nulls)


def _exact(where: tuple[Any, ...], rows: Array, dialect: Dialect) -> Array:
    """Numbers with many digits; Arrow's parser rounds correctly, and all fit."""
    data, starts, ends, _, _ = where
    bare = np.full(len(rows), cells.BARE, np.uint8)
    all_ = np.ones(len(rows), np.bool_)
    texts = _texts((data, starts[rows], ends[rows], bare, True), all_, dialect)
    if dialect.decimal != ".":
        texts = pc.replace_substring(texts, dialect.decimal, ".")
    return np.asarray(pc.cast(texts, pa.float64()).to_numpy(zero_copy_only=False))


def assembled(
    layout: InputColumns,
    scan: Scan,
    vectors: list[Vector],
    examine: Callable[[int], Row | Rejected],
) -> tuple[Batch, tuple[Rejected, ...]]:
    """The good rows and those that a closer look accepts, in order; and the rejected."""
    if scan.good.all():
        return batch_of_vectors(layout, vectors), ()
    good = np.flatnonzero(scan.good)
    batch = batch_of_vectors(layout, [v.take(good) for v in vectors])
    looked_at = [(row, examine(row)) for row in np.flatnonzero(~scan.good).tolist()]
    rejected = tuple(r for _, r in looked_at if isinstance(r, Rejected))
    late = [(row, r) for row, r in looked_at if not isinstance(r, Rejected)]
    if not late:
        return batch, rejected
    both = concat_batches([batch, batch_of_values(layout, [r for _, r in late])],
                          layout.input.type)  # fmt: skip
    order = np.argsort(np.concatenate([good, [row for row, _ in late]]), kind="stable")
    return both.take(order), rejected
