"""The rows of a CSV text, one at a time: the definition of the format.

RFC 4180, strictly: cells are parted by commas, rows by LF or CRLF; a quoted cell may hold
commas, line breaks and doubled quotes. A quote inside an unquoted cell, anything between
a closing quote and the comma, and a carriage return outside quotes are errors. A dialect may have
another character for the comma, and another one or none for the quote.

A row that breaks these rules is rejected up to the end of its first line and reading goes
on with the next line, so that one stray quote never swallows the rows after it.
Blank lines are passed over.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from millstream.calculus.types import Kind, Row, Value
from millstream.connectors.dialect import STANDARD, Dialect
from millstream.connectors.layout import InputColumns, check_values
from millstream.connectors.values import Unfit, from_text, quoted

#: Numbers that somebody may have written as such, where a dialect is not told or not all of it.
_DOTTED = re.compile(r"[+-]?[0-9]{1,3}(?:\.[0-9]{3})+(?:,[0-9]*)?")
_WITH_COMMA = re.compile(r"[+-]?[0-9.]*,[0-9.,]*")

#: A longer row is rejected while it is being read, so that memory stays bounded.
LONGEST_ROW = 1 << 20


@functools.lru_cache
def _special(dialect: Dialect) -> re.Pattern[bytes]:
    """What ends a cell without quotes."""
    signs = f"{dialect.separator}{dialect.quote}\r\n"
    return re.compile(f"[{re.escape(signs)}]".encode())


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


def read_row(
    data: bytes, start: int, *, final: bool, longest: int = LONGEST_ROW, dialect: Dialect = STANDARD
) -> RawRow | None:
    """The row at `start`, or None if more data are needed (none will come if `final`)."""
    try:
        return _parted(data, start, dialect, final=final, longest=longest)
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


def _parted(data: bytes, start: int, dialect: Dialect, *, final: bool, longest: int) -> RawRow:
    cells: list[bytes | None] = []
    quote, separator = dialect.quote.encode(), dialect.separator.encode()
    at = start
    while True:
        if quote and data.startswith(quote, at):
            close = _closing_quote(data, at, start + longest, quote, final=final)
            cells.append(data[at + 1 : close].replace(quote * 2, quote))
            at = close + 1
        else:
            special = _special(dialect).search(data, at)
            end = special.start() if special else len(data)
            cells.append(data[at:end] or None)
            at = end
        if at - start > longest:
            raise _Broken(too_long(longest))
        delimiter = _delimiter(data, at, dialect, final=final)
        at += len(delimiter)
        if delimiter != separator:
            return RawRow(start, at, tuple(cells))


def _closing_quote(data: bytes, opening: int, limit: int, quote: bytes, *, final: bool) -> int:
    close = data.find(quote, opening + 1, limit)
    while close >= 0 and data.startswith(quote, close + 1):
        close = data.find(quote, close + 2, limit)
    if close >= 0:
        return close
    if final or len(data) > limit:
        raise _Broken("a quote is not closed")
    raise _Unfinished


def _delimiter(data: bytes, at: int, dialect: Dialect, *, final: bool) -> bytes:
    """What stands after a cell: a comma, a line break, or nothing at the end of all data."""
    quote = dialect.quote.encode()
    if at == len(data):
        if final:
            return b""
        raise _Unfinished
    for delimiter in (dialect.separator.encode(), b"\n", b"\r\n"):
        if data.startswith(delimiter, at):
            return delimiter
    if data[at:] == b"\r" and not final:
        raise _Unfinished
    if quote and data.endswith(quote, 0, at):
        comma = "a comma" if dialect.separator == "," else repr(dialect.separator)
        raise _Broken(f"expected {comma} or the end of the line after a closing quote")
    what = "a quote" if quote and data.startswith(quote, at) else "a carriage return"
    raise _Broken(f"{what} inside an unquoted cell")


def too_long(longest: int) -> str:
    size = f"{longest >> 20} MiB" if longest >= 1 << 20 else f"{longest} bytes"
    return f"longer than {size}"


def values_of_row(layout: InputColumns, columns: tuple[int, ...], width: int, raw: bytes,
                  row: RawRow, dialect: Dialect = STANDARD) -> Row:  # fmt: skip
    """The values of a row; `columns` says where in the file each field stands."""
    if row.fault:
        raise Unfit(row.fault)
    try:
        check_encoding(raw, dialect)
    except Unfit as unfit:
        more = "; another encoding? Say which: ?encoding=cp1252" if dialect.is_utf8 else ""
        raise Unfit(f"{unfit}{more}") from None
    if len(row.cells) != width:
        raise Unfit(f"expected {width} cells, got {len(row.cells)}")
    values: list[Value] = []
    for field, column in zip(layout.fields, columns, strict=True):
        cell = row.cells[column]
        try:
            value = None if cell is None else _value(field.type.kind, cell, layout, dialect)
        except Unfit as unfit:
            raise Unfit(f"{field.name}: {unfit}") from None
        values.append(value)
    return check_values(layout, tuple(values))


def _value(kind: Kind, cell: bytes, layout: InputColumns, dialect: Dialect) -> Value:
    text = dialect.decoded(cell)
    if kind in (Kind.NUMBER, Kind.INTEGER):
        text = dialect.ungrouped(text)
    if kind is Kind.NUMBER and dialect.decimal != ".":
        if "." in text:
            more = "; say it if they are between thousands: ?thousands=."
            raise Unfit(
                f"expected a number with a decimal comma, got {quoted(text)}"
                f"{more if _DOTTED.fullmatch(text) else ''}"
            )
        text = text.replace(",", ".")
    elif kind is Kind.NUMBER and _WITH_COMMA.fullmatch(text):
        raise Unfit(f"expected a number, got {quoted(text)}; say ?decimal=, or ?thousands=,")
    return from_text(kind, text, layout.times)


def check_encoding(raw: bytes, dialect: Dialect) -> None:
    if dialect.is_utf8:
        check_utf8(raw)
        return
    try:
        dialect.decoded(raw)
    except UnicodeDecodeError as error:
        raise Unfit(f"not {dialect.encoding} at byte {error.start + 1}") from None


def check_utf8(raw: bytes) -> None:
    try:
        raw.decode()
    except UnicodeDecodeError as error:
        raise Unfit(f"not UTF-8 at byte {error.start + 1}") from None
