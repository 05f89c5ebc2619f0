"""JSON Lines in."""

from __future__ import annotations

from collections.abc import Callable

from millstream import cold
from millstream.calculus.graph import Input
from millstream.calculus.types import TIME_COLUMN, Row
from millstream.connectors.chunks import Rejected, shown
from millstream.connectors.csv_rows import LONGEST_ROW
from millstream.connectors.json_rows import object_in, values_of_line
from millstream.connectors.layout import (
    InputColumns,
    batch_of_values,
    layout_of_objects,
    missing,
    refuse_weights,
)
from millstream.connectors.values import Unfit
from millstream.connectors.window import DecodedStep, FileWindow
from millstream.errors import CheckError

#: A line of nothing else is passed over.
BLANKS = b" \t\r\n"
#: How many lines are looked at to see whether a file has times at all.
_LOOKED_AT = 100


class JsonlDecoder:
    blanks = BLANKS

    def __init__(
        self, layout: InputColumns, source: str, chunk_rows: int, longest: int = LONGEST_ROW
    ) -> None:
        self.longest = longest
        self._layout = layout
        self._source = source
        self._chunk_rows = chunk_rows

    def decode(self, window: FileWindow) -> DecodedStep:
        way = self.slowly if window.is_small else self.quickly
        return way(window.data, window.start, window.line, final=window.final)

    def slowly(self, data: bytes, start: int, line: int, *, final: bool) -> DecodedStep:
        """One line after another: the definition."""
        most = cold.rows_at_once(self._chunk_rows)
        rows: list[Row] = []
        rejected: list[Rejected] = []
        first = line
        while start < len(data) and len(rows) + len(rejected) < most:
            end = data.find(b"\n", start) + 1 or (len(data) if final else 0)
            if not end:
                break
            raw = data[start:end]
            if raw.strip(BLANKS):
                examined = self._examine(raw, line)
                if isinstance(examined, Rejected):
                    rejected.append(examined)
                else:
                    rows.append(examined)
            line += 1
            start = end
        batch = batch_of_values(self._layout, rows)
        return DecodedStep(batch, tuple(rejected), start, line - first)

    def quickly(self, data: bytes, start: int, line: int, *, final: bool) -> DecodedStep:
        """The same by compiled scanners, with a closer look at lines they do not take."""
        import numpy as np

        from millstream.connectors.json_scan import scan_jsonl
        from millstream.connectors.scan import Scan, assembled, columns_of, mark_foreign_bytes

        names = self._layout.names
        array = np.frombuffer(data, np.uint8)
        scan = Scan.of(self._chunk_rows, len(names))
        count, end, lines = scan_jsonl(array, start, names, scan, self.longest, final=final)
        scan = scan.first(count)
        mark_foreign_bytes(data, scan)
        vectors = columns_of(array, scan, self._layout, None)

        def examine(row: int) -> Row | Rejected:
            first, last = scan.bounds[row].tolist()
            return self._examine(data[first:last], line + int(scan.lines[row]))

        batch, rejected = assembled(self._layout, scan, vectors, examine)
        return DecodedStep(batch, rejected, end, lines)

    def _examine(self, raw: bytes, line: int) -> Row | Rejected:
        try:
            return values_of_line(self._layout, raw, self.longest)
        except Unfit as unfit:
            return Rejected(self._source, line, str(unfit), shown(raw))


def jsonl_decoder(
    input_: Input, chunk_rows: int, longest: int = LONGEST_ROW
) -> Callable[[FileWindow], JsonlDecoder]:
    """What looks at the first lines of a window and checks them against the input.

    There is no header, and a missing key is null, so only one thing can be seen to be
    wrong: an event time that no line has and nobody declared.
    """

    def decoder_of(window: FileWindow) -> JsonlDecoder:
        keys = _first_keys(window, longest)
        is_timed = input_.time is None and not (input_.is_read_once or input_.is_numbered)
        if keys and is_timed and TIME_COLUMN not in keys:
            raise CheckError(missing(input_, TIME_COLUMN, keys, window.name))
        refuse_weights(input_, keys, window.name)
        return JsonlDecoder(layout_of_objects(input_), window.name, chunk_rows, longest)

    return decoder_of


def _first_keys(window: FileWindow, longest: int) -> tuple[str, ...]:
    """The keys of the first lines, in order."""
    while b"\n" not in window.data and not window.final and len(window) <= longest:
        window.more()
    end = len(window.data) if window.final else window.data.rfind(b"\n") + 1
    keys: dict[str, None] = {}
    for raw in window.data[window.start : end].split(b"\n", _LOOKED_AT)[:_LOOKED_AT]:
        try:
            keys.update(dict.fromkeys(object_in(raw, longest)))
        except Unfit:
            continue
    return tuple(keys)
