"""The rows of a CSV text, one at a time: the definition of the format.

RFC 4180, strictly: cells are parted by commas, rows by LF or CRLF; a quoted cell may hold
commas, line breaks and doubled quotes. A quote inside an unquoted cell, anything between
a closing quote and the comma, and a carriage return outside quotes are errors.

A row that breaks these rules is rejected up to the end of its first line and reading goes
on with the next line, so that one stray quote never swallows the rows after it.
Blank lines are passed over.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from millstream.calculus.types import Row, Value
from millstream.connectors.layout import InputColumns, check_values
from millstream.connectors.values import Unfit, from_text

#: A longer row is rejected while it is being read, so that memory stays bounded.
LONGEST_ROW = 1 << 20
_SPECIAL = re.compile(rb'[",\r\n]')


@dataclass(frozen=True, slots=True)
class RawRow:
    """The bytes [start, end) with their line break, parted into cells.

    A cell is None if it is empty and unquoted. A row with a fault has no cells.
    """

    start: int
    end: int
    cells: tuple[bytes | None, ...] = ()
    fault: str | None = None


def skip_blank_lines(data: bytes, at: int) -> tuple[int, int]:
    """Where the next row starts, and how many lines were passed over."""
    lines = 0
    while data.startswith((b"\n", b"\r\n"), at):
        at = data.index(b"\n", at) + 1
        lines += 1
    return at, lines


class _Broken(Exception):
    """The row breaks the rules of the format."""


class _Unfinished(Exception):
    """The data end inside the row."""


def read_row(data: bytes, start: int, *, final: bool, longest: int = LONGEST_ROW) -> RawRow | None:
    """The row at `start`, or None if more data are needed (none will come if `final`)."""
    try:
        return _parted(data, start, final=final, longest=longest)
    except _Unfinished:
        if len(data) - start <= longest + 1:  # the last byte may be half a line break
            return None
        fault = too_long(longest)
    except _Broken as broken:
        fault = str(broken)
    newline = data.find(b"\n", start)
    if newline < 0 and not final:
        return None
    end = len(data) if newline < 0 else newline
    if end - start > longest:
        fault = too_long(longest)
    return RawRow(start, min(end + 1, len(data)), (), fault)


def _parted(data: bytes, start: int, *, final: bool, longest: int) -> RawRow:
    cells: list[bytes | None] = []
    at = start
    while True:
        if data.startswith(b'"', at):
            close = _closing_quote(data, at, start + longest, final=final)
            cells.append(data[at + 1 : close].replace(b'""', b'"'))
            at = close + 1
        else:
            special = _SPECIAL.search(data, at)
            end = special.start() if special else len(data)
            cells.append(data[at:end] or None)
            at = end
        if at - start > longest:
            raise _Broken(too_long(longest))
        delimiter = _delimiter(data, at, final=final)
        at += len(delimiter)
        if delimiter != b",":
            return RawRow(start, at, tuple(cells))


def _closing_quote(data: bytes, opening: int, limit: int, *, final: bool) -> int:
    close = data.find(b'"', opening + 1, limit)
    while close >= 0 and data.startswith(b'"', close + 1):
        close = data.find(b'"', close + 2, limit)
    if close >= 0:
        return close
    if final or len(data) > limit:
        raise _Broken("a quote is not closed")
    raise _Unfinished


def _delimiter(data: bytes, at: int, *, final: bool) -> bytes:
    """What stands after a cell: a comma, a line break, or nothing at the end of all data."""
    if at == len(data):
        if final:
            return b""
        raise _Unfinished
    for delimiter in (b",", b"\n", b"\r\n"):
        if data.startswith(delimiter, at):
            return delimiter
    if data[at:] == b"\r" and not final:
        raise _Unfinished
    if data.endswith(b'"', 0, at):
        raise _Broken("expected a comma or the end of the line after a closing quote")
    what = "a quote" if data.startswith(b'"', at) else "a carriage return"
    raise _Broken(f"{what} inside an unquoted cell")


def too_long(longest: int) -> str:
    size = f"{longest >> 20} MiB" if longest >= 1 << 20 else f"{longest} bytes"
    return f"longer than {size}"


def values_of_row(layout: InputColumns, columns: tuple[int, ...], width: int, raw: bytes,
                  row: RawRow) -> Row:  # fmt: skip
    """The values of a row; `columns` says where in the file each field stands."""
    if row.fault:
        raise Unfit(row.fault)
    check_utf8(raw)
    if len(row.cells) != width:
        raise Unfit(f"expected {width} cells, got {len(row.cells)}")
    values: list[Value] = []
    for field, column in zip(layout.fields, columns, strict=True):
        cell = row.cells[column]
        try:
            value = None if cell is None else from_text(field.type.kind, cell.decode(), layout.unit)
        except Unfit as unfit:
            raise Unfit(f"{field.name}: {unfit}") from None
        values.append(value)
    return check_values(layout, tuple(values))


def check_utf8(raw: bytes) -> None:
    try:
        raw.decode()
    except UnicodeDecodeError as error:
        raise Unfit(f"not UTF-8 at byte {error.start + 1}") from None
