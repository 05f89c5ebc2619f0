"""Showing things to people: tables, numbers, and writers for the terminal."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Sequence
from typing import Any, TextIO

from millstream.calculus.types import TIME_COLUMN, WEIGHT_COLUMN, Kind, QueueType, Value
from millstream.errors import Fault
from millstream.plan.batch import Batch
from millstream.values.instants import render_time

SHOWN_ROWS = 20


def print_table(records: Sequence[dict[str, Any]], file: TextIO | None = None) -> None:
    """Records as aligned columns: numbers to the right, all else to the left.

    On a terminal they fit its width; what is cut ends in an ellipsis.
    """
    out = file or sys.stdout
    for line in table_lines(records, shutil.get_terminal_size().columns if out.isatty() else None):
        print(line, file=out)


def table_lines(records: Sequence[dict[str, Any]], width: int | None = None) -> list[str]:
    if not records:
        return []
    names = list(records[0])
    cells = [[_cell(record[name]) for name in names] for record in records]
    widths = [max(len(n), *(len(row[i]) for row in cells)) for i, n in enumerate(names)]
    right = [all(_is_number(record[name]) for record in records) for name in names]
    if width is not None:
        is_text = [not r and n != TIME_COLUMN for n, r in zip(names, right, strict=True)]
        widths = _fitted(widths, [_LEAST_TEXT if t else _LEAST for t in is_text], width)
    lines = []
    for row in [names, *cells]:
        shown = [
            cut(cell, w).rjust(w) if r else cut(cell, w).ljust(w)
            for cell, w, r in zip(row, widths, right, strict=False)
        ]
        more = [] if len(widths) == len(names) else [_CUT]
        lines.append(_GAP.join(shown + more).rstrip())
    return lines


_GAP = "  "
_CUT = "…"
#: Columns are not made narrower than that; what has no room then is left out.
_LEAST_TEXT = 8
_LEAST = 27


def _fitted(widths: list[int], least: list[int], width: int) -> list[int]:
    """The widths of the columns that a line has room for: the widest give way first."""
    widths = list(widths)
    while widths:
        over = sum(widths) + len(_GAP) * (len(widths) - 1) - width
        if len(widths) < len(least):
            over += len(_GAP) + len(_CUT)
        if over <= 0:
            break
        spare = [max(0, w - small) for w, small in zip(widths, least, strict=False)]
        widest = max(range(len(widths)), key=spare.__getitem__)
        if spare[widest]:
            widths[widest] -= 1
        elif len(widths) > 1:
            widths.pop()
        else:
            break
    return widths


def cut(text: str, width: int) -> str:
    """A text with room for so many characters, and a sign that some are missing."""
    return text if len(text) <= width else text[: max(0, width - 1)] + _CUT


def print_json(records: Sequence[dict[str, Any]]) -> None:
    """A list of flat objects."""
    print(json.dumps(list(records), indent=2, ensure_ascii=False))


def print_warnings(faults: Sequence[Fault]) -> None:
    """What is odd, though it does not keep anything from running."""
    for fault in faults:
        print(f"warning: {fault.render()}", file=sys.stderr)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        is_large = 1e6 <= abs(value) < 1e15
        return f"{value:.1f}".removesuffix(".0") if is_large else f"{value:.6g}"
    # Numbers may be identifiers, which nobody writes in groups of thousands.
    text = "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(value))
    return cut(text, 60)


def clear_line() -> None:
    """Take back what stands in the last line of a terminal, such as live progress."""
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def in_words(number: float) -> str:
    """`1.2 M`, `350 k`, `17`."""
    for size, letter in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if number >= size:
            return f"{number / size:.3g}{letter}"
    return f"{number:.0f}"


class TableWriter:
    """Mutable: keeps the first rows of an output and prints them at the end."""

    def __init__(
        self,
        name: str,
        type_: QueueType,
        limit: int = SHOWN_ROWS,
        *,
        more: str = "",
        is_json: bool = False,
    ) -> None:
        self.name = name
        self.type = type_
        self.limit = limit
        self.more = more
        self.is_json = is_json
        self.count = 0
        self.first: list[dict[str, Any]] = []

    def write(self, batch: Batch) -> None:
        self.count += len(batch)
        missing = self.limit - len(self.first)
        if missing > 0:
            self.first += records_of(batch.slice(0, min(missing, len(batch))), is_readable=True)

    def close(self) -> None:
        clear_line()
        if self.is_json:
            print_json(self.first)
            return
        print_table(self.first)
        if self.count > len(self.first):
            print(f"... {self.count:,} rows in all{self.more}")
        elif not self.count:
            print(f"{self.name}: no rows")

    def abort(self) -> None:
        """Nothing has been printed yet."""


class JsonWriter:
    """Mutable: prints an output as one list of flat objects, as it comes."""

    def __init__(self) -> None:
        self.is_first = True

    def write(self, batch: Batch) -> None:
        for record in records_of(batch, is_readable=False):
            print("[" if self.is_first else ",", json.dumps(record, ensure_ascii=False))
            self.is_first = False

    def close(self) -> None:
        print("[]" if self.is_first else "]")

    def abort(self) -> None:
        """What was printed cannot be taken back; the list stays open."""


class NowhereWriter:
    """For an output that nobody has asked for."""

    def write(self, batch: Batch) -> None: ...

    def close(self) -> None: ...

    def abort(self) -> None: ...


def records_of(batch: Batch, *, is_readable: bool) -> list[dict[str, Any]]:
    """The rows of a batch with their times and weights, for people or for programs."""
    heads: list[dict[str, Any]] = [
        {TIME_COLUMN: time_shown(t) if is_readable else t} for t in batch.time.tolist()
    ]
    if batch.weight is not None:
        for head, weight in zip(heads, batch.weight.tolist(), strict=True):
            head[WEIGHT_COLUMN] = weight
    kinds = [f.type.kind for f in batch.schema]
    for head, row in zip(heads, batch.rows(), strict=True):
        for name, value, kind in zip(batch.schema.names, row, kinds, strict=True):
            head[name] = _shown(value, kind, is_readable=is_readable)
    return heads


def _shown(value: Value, kind: Kind, *, is_readable: bool) -> Any:
    if kind is Kind.TIME and is_readable and isinstance(value, int):
        return time_shown(value)
    if isinstance(value, float) and value - value != 0 and not is_readable:
        # JSON has no NaN and no infinities; our readers take these words back.
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[repr(value)]
    return value


#: Times within a day of 1970 are counters, not dates, and read better as they are.
_DAY = 86_400_000_000


def time_shown(micros: int) -> Any:
    if -_DAY < micros < _DAY:
        return micros
    text = render_time(micros)
    return micros if text is None else text.replace(".000000Z", "Z")
