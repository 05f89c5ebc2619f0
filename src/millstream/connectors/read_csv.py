"""CSV in: the header decides where each column is found, rows follow.

Text cells: an empty cell is null, an empty pair of quotes is an empty text.
"""

from __future__ import annotations

from collections.abc import Callable

from millstream import cold
from millstream.calculus.graph import Input
from millstream.calculus.types import Row
from millstream.connectors.chunks import Rejected, shown
from millstream.connectors.csv_rows import (
    LONGEST_ROW,
    RawRow,
    check_encoding,
    read_row,
    skip_blank_lines,
    too_long,
    values_of_row,
)
from millstream.connectors.dialect import STANDARD, Dialect
from millstream.connectors.layout import (
    InputColumns,
    as_declared,
    batch_of_values,
    layout_in,
    layout_of,
)
from millstream.connectors.values import Unfit
from millstream.connectors.window import DecodedStep, FileWindow
from millstream.errors import CheckError
from millstream.source import Source, Span

MOST_COLUMNS = 16_384


class CsvDecoder:
    """Rows of a file whose header has been read; `columns` is where its fields stand."""

    blanks = b""

    def __init__(
        self,
        layout: InputColumns,
        header: tuple[str, ...],
        source: str,
        chunk_rows: int,
        longest: int = LONGEST_ROW,
        dialect: Dialect = STANDARD,
    ) -> None:
        self.longest = longest
        self._dialect = dialect
        self._layout = layout
        self._width = len(header)
        self._columns = tuple(header.index(name) for name in layout.names)
        self._source = source
        self._chunk_rows = chunk_rows

    def decode(self, window: FileWindow) -> DecodedStep:
        way = self.slowly if window.is_small else self.quickly
        return way(window.data, window.start, window.line, final=window.final, stop=window.stop)

    def slowly(
        self, data: bytes, start: int, line: int, *, final: bool, stop: int | None = None
    ) -> DecodedStep:
        """One row after another: the definition. No row may begin at `stop` or after it."""
        most = cold.rows_at_once(self._chunk_rows)
        rows: list[Row] = []
        rejected: list[Rejected] = []
        first = line
        stop = len(data) if stop is None else stop
        while len(rows) + len(rejected) < most:
            at, blank = skip_blank_lines(data, start)
            line += blank
            row = self._row_at(data, at, final=final) if at < stop else None
            if row is None:
                start = min(at, max(start, stop))
                break
            examined = self._examine(data, row, line)
            if isinstance(examined, Rejected):
                rejected.append(examined)
            else:
                rows.append(examined)
            line += data.count(b"\n", row.start, row.end - 1) + 1
            start = row.end
        batch = batch_of_values(self._layout, rows)
        return DecodedStep(batch, tuple(rejected), start, line - first)

    def quickly(
        self, data: bytes, start: int, line: int, *, final: bool, stop: int | None = None
    ) -> DecodedStep:
        """The same by compiled scanners, with a closer look at rows they do not take."""
        import numpy as np

        from millstream.connectors.csv_scan import scan_csv
        from millstream.connectors.scan import Scan, assembled, columns_of, mark_foreign_bytes

        slots = np.full(self._width, -1, np.int64)
        slots[list(self._columns)] = np.arange(len(self._columns))
        array = np.frombuffer(data, np.uint8)
        scan = Scan.of(self._chunk_rows, len(self._columns))
        stop = len(data) if stop is None else stop
        count, end, lines = scan_csv(
            array, start, stop, slots, scan, self.longest, final=final, dialect=self._dialect
        )
        scan = scan.first(count)
        mark_foreign_bytes(data, scan, self._dialect)
        vectors = columns_of(array, scan, self._layout, self._dialect)

        def examine(row: int) -> Row | Rejected:
            raw = self._row_at(data, int(scan.bounds[row, 0]), final=final)
            assert raw is not None
            assert raw.end == scan.bounds[row, 1], raw
            return self._examine(data, raw, line + int(scan.lines[row]))

        batch, rejected = assembled(self._layout, scan, vectors, examine)
        return DecodedStep(batch, rejected, end, lines)

    def _row_at(self, data: bytes, start: int, *, final: bool) -> RawRow | None:
        return read_row(data, start, final=final, longest=self.longest, dialect=self._dialect)

    def _examine(self, data: bytes, row: RawRow, line: int) -> Row | Rejected:
        raw = data[row.start : row.end]
        try:
            return values_of_row(self._layout, self._columns, self._width, raw, row, self._dialect)
        except Unfit as unfit:
            return Rejected(self._source, line, str(unfit), shown(raw))


def csv_decoder(
    input_: Input, chunk_rows: int, longest: int = LONGEST_ROW, dialect: Dialect = STANDARD
) -> Callable[[FileWindow], CsvDecoder]:
    """What reads the header at the start of a window and checks it against the input."""

    def decoder_of(window: FileWindow) -> CsvDecoder:
        written, text = _header(window, input_, longest, dialect)
        place = Source(window.name, "\n" * (window.line - 1) + text)
        header = as_declared(input_, written)
        layout = layout_in(
            input_, header, window.name,
            lambda name: _place(place, window.line, written, header, name, dialect),
        )  # fmt: skip
        window.advance(window.start, text.count("\n") + 1)
        return CsvDecoder(layout, header, window.name, chunk_rows, longest, dialect)

    return decoder_of


def skip_header(
    window: FileWindow, input_: Input, longest: int = LONGEST_ROW, dialect: Dialect = STANDARD
) -> None:
    """Move a window past the header, whatever columns it names."""
    _, text = _header(window, input_, longest, dialect)
    window.advance(window.start, text.count("\n") + 1)


def _header(
    window: FileWindow, input_: Input, longest: int, dialect: Dialect
) -> tuple[tuple[str, ...], str]:
    """The names of the columns, and the text of the header; the window stands after it."""
    for _ in range(dialect.skip):
        window.skip_line(b"")
    row = _first_row(window, longest, dialect)
    while row is None:
        if window.final:
            expected = dialect.separator.join(layout_of(input_, has_weight=False).names)
            raise CheckError(
                "the file is empty, expected a header line",
                hint=f"the first line names the columns, such as {expected}",
                place=window.name,
            )
        if len(window) > longest + 1:
            raise _no_header(window, too_long(longest), dialect)
        window.more()
        row = _first_row(window, longest, dialect)
    if row.fault:
        raise _no_header(window, row.fault, dialect)
    raw = window.data[row.start : row.end]
    try:
        check_encoding(raw, dialect)
    except Unfit as unfit:
        raise _no_header(window, str(unfit), dialect) from None
    window.advance(row.end, 0)
    text = dialect.decoded(raw).rstrip("\r\n")
    return tuple(dialect.decoded(cell or b"") for cell in row.cells), text


def _first_row(window: FileWindow, longest: int, dialect: Dialect) -> RawRow | None:
    start, blank = skip_blank_lines(window.data, window.start)
    window.advance(start, blank)
    if not len(window):
        return None
    newline = window.data.find(b"\n", start)
    line_end = len(window.data) if newline < 0 else newline
    if window.data.count(dialect.separator.encode(), start, line_end) >= MOST_COLUMNS:
        raise _no_header(window, f"it has more than {MOST_COLUMNS:,} columns", dialect)
    return read_row(window.data, start, final=window.final, longest=longest, dialect=dialect)


def _no_header(window: FileWindow, reason: str, dialect: Dialect) -> CheckError:
    is_standard = dialect == STANDARD
    return CheckError(
        f"cannot read the header: {reason}",
        hint="is this a CSV file, in UTF-8, with commas? If not, say what it is, such as "
        f"{window.name}?encoding=latin-1&separator=;"
        if is_standard
        else f"is this a CSV file, in {dialect.encoding}, with {dialect.separator!r}?",
        place=f"{window.name}:{window.line}",
    )


def _place(
    source: Source,
    line: int,
    written: tuple[str, ...],
    header: tuple[str, ...],
    name: str | None,
    dialect: Dialect,
) -> Span:
    """Where a column stands in the header, or the whole of it."""
    at = line - 1
    if name is None:
        return Span(source, at, len(source.text))
    quote = dialect.quote
    for cell, taken_as in zip(written, header, strict=True):
        quoted = bool(quote) and source.text.startswith(quote, at)
        length = len(cell) + cell.count(quote) + 2 if quoted else len(cell)
        if taken_as == name:
            return Span(source, at, at + length)
        at += length + 1
    raise AssertionError(name)
