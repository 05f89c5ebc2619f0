# ruff: noqa: FBT001  compiled functions take plain arrays, all by position
r"""The compiled scanner of JSON Lines: flat objects, exactly as `json_rows` defines them.

A line with anything unusual (a nested value, a `\u` escape, a key twice, an error) is
marked as not good and left to `json_rows`.
"""

from __future__ import annotations

import numpy as np

from millstream.compiled import compiled, inlined
from millstream.connectors.cells import (
    BARE,
    ESCAPED,
    FALSE,
    NULL,
    QUOTED,
    TRUE,
)
from millstream.connectors.scan import Scan
from millstream.plan.batch import Array

#: How many keys that are not wanted can be told apart; lines with others are left alone.
_MORE_KEYS = 64


def scan_jsonl(data: Array, start: int, names: tuple[str, ...], scan: Scan, longest: int, *,
               final: bool) -> tuple[int, int, int]:  # fmt: skip
    """Fill `scan`; answers the number of rows, where they end, and their lines."""
    encoded = [name.encode() for name in names]
    wanted = np.frombuffer(b"".join(encoded) or b"\0", np.uint8)
    ends = np.cumsum([len(e) for e in encoded])
    keys = np.zeros((len(names) + _MORE_KEYS + 1, 4), np.int64)
    keys[: len(names), 0] = ends - [len(e) for e in encoded]
    keys[: len(names), 1] = ends
    keys[:, 2] = -1
    scanned: tuple[int, int, int] = _scan(
        data, start, final, longest, wanted, len(names), keys, scan.bounds, scan.lines,
        scan.good, scan.starts, scan.ends, scan.states,
    )  # fmt: skip
    return scanned


@compiled
def _scan(data: Array, start: int, final: bool, longest: int, wanted: Array, fields: int,
          keys: Array, bounds: Array, lines: Array, good: Array, starts: Array, ends: Array,
          states: Array) -> tuple[int, int, int]:  # fmt: skip
    """`keys` holds for each known key its bytes, its last row, and the key after it there.

    The first are the wanted ones, with their bytes in `wanted`, then others, with theirs
    in `data`. The last is no key but the beginning of an object.
    """
    row, at, line, known = 0, start, 0, fields
    while at < len(data) and row < len(good):
        end = _line_end(data, at)
        if end == len(data) and not final:
            break
        first = _skip(data, at, end)
        if first < end:
            for slot in range(fields):
                states[slot, row] = NULL
            known = _object(data, first, end, row, wanted, fields, known, keys, starts, ends,
                            states, good)  # fmt: skip
            good[row] = good[row] and end - at <= longest
            bounds[row, 0] = at
            bounds[row, 1] = min(end + 1, len(data))
            lines[row] = line
            row += 1
        line += 1
        at = min(end + 1, len(data))
    return row, at, line


@inlined
def _line_end(data: Array, at: int) -> int:
    while at < len(data) and data[at] != 10:
        at += 1
    return at


@inlined
def _skip(data: Array, at: int, end: int) -> int:
    """Past the blanks of JSON."""
    while at < end and data[at] in (32, 9, 13):
        at += 1
    return at


@inlined
def _object(data: Array, at: int, end: int, row: int, wanted: Array, fields: int,
            known: int, keys: Array, starts: Array, ends: Array, states: Array,
            good: Array) -> int:  # fmt: skip
    """Read one object and say in `good` whether it is a plain one; answers the known keys."""
    good[row] = False
    if data[at] != 123:
        return known
    at = _skip(data, at + 1, end)
    if at < end and data[at] == 125:
        good[row] = _skip(data, at + 1, end) == end
        return known
    previous = len(keys) - 1
    while True:
        if at >= end or data[at] != 34:
            return known
        last, state = _string(data, at + 1, end)
        if last < 0 or state == ESCAPED:
            return known
        key = _key(data, at + 1, last, wanted, fields, known, keys, keys[previous, 3])
        if key == len(keys) - 1 or keys[key, 2] == row:
            return known
        if key == known:
            keys[key, 0], keys[key, 1] = at + 1, last
            known += 1
        keys[key, 2] = row
        keys[previous, 3] = key
        previous = key
        at = _skip(data, last + 1, end)
        if at >= end or data[at] != 58:
            return known
        at = _skip(data, at + 1, end)
        first, last, state, at = _value(data, at, end)
        if at < 0:
            return known
        if key < fields:
            starts[key, row], ends[key, row], states[key, row] = first, last, state
        at = _skip(data, at, end)
        if at < end and data[at] == 44:
            at = _skip(data, at + 1, end)
            continue
        good[row] = at < end and data[at] == 125 and _skip(data, at + 1, end) == end
        return known


@inlined
def _key(data: Array, first: int, last: int, wanted: Array, fields: int, known: int,
         keys: Array, guess: int) -> int:  # fmt: skip
    """Which known key this is; `known` if it is a new one.

    Lines mostly have their keys in one order, so the one to try first is the guess.
    """
    if guess < known and _is_key(data, first, last, wanted, fields, keys, guess):
        return guess
    for key in range(known):
        if _is_key(data, first, last, wanted, fields, keys, key):
            return key
    return known


@inlined
def _is_key(data: Array, first: int, last: int, wanted: Array, fields: int, keys: Array,
            key: int) -> bool:  # fmt: skip
    start = keys[key, 0]
    if keys[key, 1] - start != last - first:
        return False
    for i in range(last - first):
        byte = wanted[start + i] if key < fields else data[start + i]
        if byte != data[first + i]:
            return False
    return True


@inlined
def _string(data: Array, at: int, end: int) -> tuple[int, int]:
    """The closing quote, or -1 if this is not a plain text; and the state."""
    state = QUOTED
    while at < end:
        byte = data[at]
        if byte == 34:
            return at, state
        if byte < 32:
            return -1, state
        if byte == 92:
            state = ESCAPED
            at += 1
            if at == end or data[at] not in (34, 92, 47, 98, 102, 110, 114, 116):
                return -1, state
        at += 1
    return -1, state


@inlined
def _value(data: Array, at: int, end: int) -> tuple[int, int, int, int]:
    """Start, end and state of a plain value, and where it is over; -1 if it is another."""
    if at >= end:
        return at, at, NULL, -1
    byte = data[at]
    if byte == 34:
        last, state = _string(data, at + 1, end)
        return at + 1, last, state, last + 1 if last >= 0 else -1
    if byte == 45 or 48 <= byte <= 57:
        last = _numeral(data, at, end)
        return at, last, BARE, last
    if byte == 116:
        return at, at, TRUE, _word(data, at, end, (116, 114, 117, 101, 0), 4)
    if byte == 102:
        return at, at, FALSE, _word(data, at, end, (102, 97, 108, 115, 101), 5)
    if byte == 110:
        return at, at, NULL, _word(data, at, end, (110, 117, 108, 108, 0), 4)
    return at, at, NULL, -1


@inlined
def _word(data: Array, at: int, end: int, word: tuple[int, ...], size: int) -> int:
    if end - at < size:
        return -1
    for i in range(size):
        if data[at + i] != word[i]:
            return -1
    return at + size


@inlined
def _numeral(data: Array, at: int, end: int) -> int:
    """The end of a number as JSON writes it, or -1."""
    if data[at] == 45:
        at += 1
    first = at
    at = _past_digits(data, at, end)
    if at == first or (data[first] == 48 and at > first + 1):
        return -1
    if at < end and data[at] == 46:
        first = at + 1
        at = _past_digits(data, first, end)
        if at == first:
            return -1
    if at < end and data[at] in (69, 101):
        first = at + 1
        if first < end and data[first] in (43, 45):
            first += 1
        at = _past_digits(data, first, end)
        if at == first:
            return -1
    return at


@inlined
def _past_digits(data: Array, at: int, end: int) -> int:
    while at < end and 48 <= data[at] <= 57:
        at += 1
    return at
