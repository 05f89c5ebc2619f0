# ruff: noqa: FBT001  compiled functions take plain arrays, all by position
"""The compiled scanner of CSV: finds rows and cells exactly as `csv_rows` defines them.

Rows that break the rules or have the wrong number of cells are found too, with the same
bounds, and marked as not good; their reason is left to `csv_rows`.
"""

from __future__ import annotations

import numpy as np

from millstream.compiled import compiled, inlined
from millstream.connectors.cells import BARE, ESCAPED, NULL, QUOTED
from millstream.connectors.dialect import STANDARD, Dialect
from millstream.connectors.scan import Scan
from millstream.plan.batch import Array

_UNFINISHED = -1
_BROKEN = -2


def scan_csv(data: Array, start: int, stop: int, slots: Array, scan: Scan, longest: int, *,
             final: bool, dialect: Dialect = STANDARD) -> tuple[int, int, int]:  # fmt: skip
    """Fill `scan`; answers the number of rows, where they end, and their lines.

    No row begins at `stop` or after it. `slots` says for each column of the file which of
    the wanted ones it is, or -1.
    """
    scanned: tuple[int, int, int] = _scan(
        data, start, stop, final, slots, longest, scan.bounds, scan.lines, scan.good,
        scan.starts, scan.ends, scan.states, dialect.separator_byte, dialect.quote_byte,
    )  # fmt: skip
    return scanned


def row_ends(data: Array, start: int, longest: int, *, final: bool, just_one: bool,
             dialect: Dialect = STANDARD) -> tuple[int, int]:  # fmt: skip
    """Where the whole rows (or the first of them) end, and how many there are."""
    ends: tuple[int, int] = _ends(
        data, start, final, longest, just_one, _NO_CELLS, _NO_CELLS, dialect.separator_byte,
        dialect.quote_byte,
    )  # fmt: skip
    return ends


#: No cell is wanted: slots of columns, and places for what is found.
_NO_CELLS = np.empty(0, np.int64)


@compiled
def _ends(data: Array, start: int, final: bool, longest: int, just_one: bool, slots: Array,
          cells: Array, comma: int, quote: int) -> tuple[int, int]:  # fmt: skip
    rows, at = 0, start
    while at < len(data) and not (just_one and rows):
        blank = _line_break(data, at)
        if blank > 0:
            at += blank
            continue
        end, _ = _row(data, at, final, slots, longest, cells, cells, cells, comma, quote)
        if end < 0:
            end = _end_of_broken(data, at, final, longest, end)
            if end < 0:
                break
        rows += 1
        at = end
    return at, rows


@compiled
def _scan(data: Array, start: int, stop: int, final: bool, slots: Array, longest: int,
          bounds: Array, lines: Array, good: Array, starts: Array, ends: Array, states: Array,
          comma: int, quote: int) -> tuple[int, int, int]:  # fmt: skip
    row, at, line = 0, start, 0
    while at < stop and row < len(good):
        blank = _line_break(data, at)
        if blank > 0:
            at += blank
            line += 1
            continue
        end, height = _row(data, at, final, slots, longest, starts[:, row], ends[:, row],
                           states[:, row], comma, quote)  # fmt: skip
        good[row] = end >= 0 and height > 0
        if end < 0:
            end = _end_of_broken(data, at, final, longest, end)
            height = 1
            if end < 0:
                break
        bounds[row, 0] = at
        bounds[row, 1] = end
        lines[row] = line
        row += 1
        at = end
        line += abs(height)
    return row, at, line


@inlined
def _line_break(data: Array, at: int) -> int:
    """The length of the line break that stands here, or 0."""
    if data[at] == 10:
        return 1
    if data[at] == 13 and at + 1 < len(data) and data[at + 1] == 10:
        return 2
    return 0


@inlined
def _end_of_broken(data: Array, start: int, final: bool, longest: int, why: int) -> int:
    """A broken row costs its first line."""
    if why == _UNFINISHED and len(data) - start <= longest + 1:
        return -1
    for at in range(start, len(data)):
        if data[at] == 10:
            return at + 1
    return len(data) if final else -1


@inlined
def _row(data: Array, start: int, final: bool, slots: Array, longest: int, starts: Array,
         ends: Array, states: Array, comma: int, quote: int) -> tuple[int, int]:  # fmt: skip
    """Where the row ends, or why it does not; its lines, negative if it does not fit."""
    at, column, height = start, 0, 1
    largest = max(comma, 13 if quote > 255 else quote, 13)
    while True:
        if at < len(data) and data[at] == quote:
            first = at + 1
            last, state, inside = _quoted(data, first, start + longest, final, quote)
            if last < 0:
                return last, 0
            at = last + 1
            height += inside
        else:
            first = at
            at = _plain(data, at, comma, quote, largest)
            last = at
            state = BARE if last > first else NULL
        if at - start > longest:
            return _BROKEN, 0
        if column < len(slots) and slots[column] >= 0:
            slot = slots[column]
            starts[slot], ends[slot], states[slot] = first, last, state
        column += 1
        if at == len(data):
            if not final:
                return _UNFINISHED, 0
            return at, height if column == len(slots) else -height
        if data[at] == comma:
            at += 1
            continue
        ending = _line_break(data, at)
        if ending > 0:
            return at + ending, height if column == len(slots) else -height
        unfinished = data[at] == 13 and at + 1 == len(data) and not final
        return _UNFINISHED if unfinished else _BROKEN, 0


@inlined
def _quoted(data: Array, at: int, limit: int, final: bool, quote: int) -> tuple[int, int, int]:
    """The closing quote (or why there is none), the state, and the line breaks inside."""
    state, inside = QUOTED, 0
    stop = min(limit, len(data))
    while at < stop:
        byte = data[at]
        if byte == quote:
            if at + 1 < len(data) and data[at + 1] == quote:
                state = ESCAPED
                at += 1
            else:
                return at, state, inside
        elif byte == 10:
            inside += 1
        at += 1
    broken = final or len(data) > limit
    return _BROKEN if broken else _UNFINISHED, state, inside


@inlined
def _plain(data: Array, at: int, comma: int, quote: int, largest: int) -> int:
    """The next comma, line break or quote."""
    while at < len(data):
        byte = data[at]
        # Letters and digits are mostly larger than all of these: one comparison tells them.
        if byte <= largest and byte in (comma, 10, 13, quote):
            return at
        at += 1
    return at
