"""Where whole rows of a text end: each byte is looked at once, and no value is parsed."""

from __future__ import annotations

import os
import re
from typing import BinaryIO, Protocol

from millstream.connectors.csv_rows import read_row, skip_blank_lines
from millstream.connectors.dialect import STANDARD, Dialect
from millstream.connectors.window import FileWindow, shorter

#: Small enough to stay in the processor's cache while it is looked at several times.
_BLOCK_BYTES = 1 << 20
_CSV_BLANKS = re.compile(rb"(?:\r?\n)*+")
_NO_BLANKS = re.compile(rb"")
_JSON_BLANKS = re.compile(rb"[ \t\r\n]*+")


class NotYet(Exception):
    """The file ends here for now, but may grow."""


class RowFinder(Protocol):
    """Where the whole rows in a window (or the first of them) end; whether there are any.

    Blank lines may be passed over even if there is none.
    """

    def __call__(
        self, window: FileWindow, longest: int, /, *, just_one: bool
    ) -> tuple[int, bool]: ...


def window_at(
    stream: BinaryIO, name: str, first: int, line: int, target: int, *, final: bool
) -> FileWindow:
    """What is in a file from `first` on: up to `target`, then what comes after it.

    The file may grow meanwhile: it is looked at as it was at the beginning.
    """
    size = stream.seek(0, os.SEEK_END)
    if size < first:
        raise shorter(name)
    at = stream.seek(first)

    def read(most: int) -> bytes:
        nonlocal at
        if at == size and not final:
            raise NotYet
        wanted = min(most, size - at, target - at if at < target else most)
        data = stream.read(wanted)
        if len(data) < wanted:
            raise shorter(name)
        at += len(data)
        return data

    return FileWindow(read, name, _BLOCK_BYTES, offset=first, line=line)


def has_passed_rows(window: FileWindow, find_rows: RowFinder, target: int, longest: int) -> bool:
    """Move a window past the whole rows before `target`; if there is none, past one."""
    has_row = False
    while True:
        end = window.offset + len(window.data)
        at, has_some = find_rows(window, longest, just_one=end > target)
        _pass(window, at)
        has_row = has_row or has_some
        if window.final or (has_row and end >= target):
            return has_row
        try:
            if len(window) <= longest + 1:
                window.more()
            else:
                return has_row or _has_passed_line(window)
        except NotYet:
            return has_row


def _pass(window: FileWindow, end: int) -> None:
    data, start = window.data, window.start
    is_cut_off = start < end and not data.endswith(b"\n", start, end)
    window.advance(end, data.count(b"\n", start, end) + is_cut_off)


def _has_passed_line(window: FileWindow) -> bool:
    """Move past an overlong line, without holding it."""
    while (newline := window.data.find(b"\n", window.start)) < 0:
        window.advance(len(window.data), int(window.final))
        if window.final:
            return True
        window.more()
    window.advance(newline + 1, 1)
    return True


def json_rows_in(window: FileWindow, _: int, *, just_one: bool) -> tuple[int, bool]:
    """A line is a row, however long it is."""
    return _lines_in(window, _JSON_BLANKS, just_one=just_one)


def all_lines_in(window: FileWindow, _: int, *, just_one: bool) -> tuple[int, bool]:
    """A line is a row, even if nothing is in it."""
    return _lines_in(window, _NO_BLANKS, just_one=just_one)


def csv_rows_in(
    window: FileWindow, longest: int, *, just_one: bool, dialect: Dialect = STANDARD
) -> tuple[int, bool]:
    """Without quotes, good and broken rows are lines; else rows must be scanned."""
    if not dialect.quote or window.data.find(dialect.quote.encode(), window.start) < 0:
        return _lines_in(window, _CSV_BLANKS, just_one=just_one)
    way = csv_rows_slowly if window.is_small else csv_rows_quickly
    return way(window, longest, just_one=just_one, dialect=dialect)


def _lines_in(window: FileWindow, blanks: re.Pattern[bytes], *, just_one: bool) -> tuple[int, bool]:
    data = window.data
    skipped = blanks.match(data, window.start)
    assert skipped is not None
    first = skipped.end()
    newline = data.find(b"\n", first) if just_one else data.rfind(b"\n", first)
    if newline >= 0:
        return newline + 1, True
    if window.final:
        return len(data), first < len(data)
    return max(window.start, data.rfind(b"\n", window.start, first) + 1), False


def csv_rows_slowly(
    window: FileWindow, longest: int, *, just_one: bool, dialect: Dialect = STANDARD
) -> tuple[int, bool]:
    """One row after another: the definition."""
    data, at, has_row = window.data, window.start, False
    while not (just_one and has_row):
        at, _ = skip_blank_lines(data, at)
        if at == len(data):
            break
        row = read_row(data, at, final=window.final, longest=longest, dialect=dialect)
        if row is None:
            break
        at, has_row = row.end, True
    return at, has_row


def csv_rows_quickly(
    window: FileWindow, longest: int, *, just_one: bool, dialect: Dialect = STANDARD
) -> tuple[int, bool]:
    """The same by a compiled scanner."""
    import numpy as np

    from millstream.connectors.csv_scan import row_ends

    data = np.frombuffer(window.data, np.uint8)
    end, rows = row_ends(
        data, window.start, longest, final=window.final, just_one=just_one, dialect=dialect
    )
    return end, rows > 0
