"""Columns to the bytes of PostgreSQL's binary COPY, whole batches at a time.

A row is the number of its cells and, per cell, a length (-1 for null) and a value with its
highest byte first. Binary rather than text: every number and every time arrives as it is,
and nothing has to be quoted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from millstream.calculus.types import Field, Kind
from millstream.errors import RunError
from millstream.plan.batch import Array, Vector

HEAD = b"PGCOPY\n\xff\r\n\0" + bytes(8)
TAIL = b"\xff\xff"
#: Few enough rows for the cache of a processor.
_ROWS = 16_384
#: PostgreSQL counts from 2000, and its calendar begins on 24 November of 4714 BC.
_EPOCH = 946_684_800_000_000
_FIRST_TIME = -210_866_803_200_000_000

#: The bytes of the values of a column one after another, and the length of each; -1 is null.
Cells = tuple[Array, Array]


def copy_rows(fields: Sequence[Field], columns: Sequence[Vector]) -> Iterator[bytes]:
    """The rows between `HEAD` and `TAIL`, in pieces."""
    for first in range(0, len(columns[0]), _ROWS):
        last = min(first + _ROWS, len(columns[0]))
        cells = [_cells(f, c.slice(first, last)) for f, c in zip(fields, columns, strict=True)]
        yield _joined(cells, last - first)


def _cells(field: Field, column: Vector) -> Cells:
    if column.is_text:
        return _texts(field, column)
    valid = column.mask()
    values = column.values[valid]
    kind = field.type.kind
    if kind is Kind.BOOLEAN:
        raw = values.astype(np.uint8)
    elif kind is Kind.NUMBER:
        raw = (values + 0.0).astype(">f8")  # minus zero is zero
    elif kind is Kind.TIME:
        raw = _times(field, values).astype(">i8")
    elif kind is Kind.DURATION:
        # Microseconds, and no days or months.
        raw = np.zeros((len(values), 2), ">i8")
        raw[:, 0] = values
    else:
        raw = values.astype(">i8")
    width = raw.itemsize * (2 if kind is Kind.DURATION else 1)
    return raw.reshape(-1).view(np.uint8), np.where(valid, width, -1)


def _times(field: Field, values: Array) -> Array:
    before = values[values < _FIRST_TIME]
    if len(before):
        raise RunError(
            f'the time {before[0]} of column "{field.name}" is too early for PostgreSQL',
            hint="its calendar begins in 4714 BC; times are microseconds since 1970",
        )
    return values - _EPOCH


def _texts(field: Field, column: Vector) -> Cells:
    array = column.to_arrow()
    valid = column.mask()
    _, offsets, data = array.buffers()
    ends = np.frombuffer(offsets, np.int32)[array.offset : array.offset + len(array) + 1]
    lengths = np.where(valid, np.diff(ends), 0)
    given = np.frombuffer(data or b"", np.uint8)
    raw = given[_runs(ends[:-1], lengths)]  # nulls may have bytes, which are left out
    if not raw.all():
        raise RunError(
            f'column "{field.name}" has a text with the character U+0000, '
            "which PostgreSQL cannot store"
        )
    return raw, np.where(valid, lengths, -1)


def _joined(cells: Sequence[Cells], rows: int) -> bytes:
    sizes = np.array([np.maximum(lengths, 0) + 4 for _, lengths in cells], np.int64)
    width = sizes.sum(axis=0) + 2
    ends = np.cumsum(width)
    out = np.empty(int(ends[-1]), np.uint8)
    place = ends - width
    _put(out, place, np.full(rows, len(cells), ">i2"))
    place = place + 2
    for (raw, lengths), size in zip(cells, sizes, strict=True):
        _put(out, place, lengths.astype(">i4"))
        out[_runs(place + 4, size - 4)] = raw
        place = place + size
    return out.tobytes()


def _put(out: Array, place: Array, values: Array) -> None:
    width = values.itemsize
    out[place[:, None] + np.arange(width)] = values.view(np.uint8).reshape(-1, width)


def _runs(starts: Array, lengths: Array) -> Array:
    """The indices start, start + 1, ... of every run, one run after another."""
    ends = np.cumsum(lengths)
    total = int(ends[-1])
    return np.repeat(starts - (ends - lengths), lengths) + np.arange(total)
