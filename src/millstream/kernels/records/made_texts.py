"""Texts that are made of others and of numbers, on columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from millstream.compiled import tight
from millstream.kernels.records.slices import Slices
from millstream.kernels.runtime.hashing import frozen
from millstream.plan.batch import Array
from millstream.words64 import copy64

#: An integer of 64 bits has at most so many digits and a sign.
_LONGEST = 20


@tight
def _put(data: Array, starts: Array, ends: Array, chosen: Array, at: Array, out: Array) -> None:
    """Copy the texts of rows to where they belong, and move on; nothing else is touched."""
    for row in range(len(starts)):
        if not chosen[row]:
            continue
        start, size, to = starts[row], ends[row] - starts[row], at[row]
        whole = size - size % 8
        for j in range(0, whole, 8):
            copy64(out, to + j, data, start + j)
        for j in range(whole, size):
            out[to + j] = data[start + j]
        at[row] = to + size


def joined(parts: Sequence[Slices], chosen: Array) -> Slices:
    """The texts of several columns one after the other, in the rows that are asked for."""
    lengths = parts[0].lengths()
    for part in parts[1:]:
        lengths = lengths + part.lengths()
    lengths = lengths * chosen
    ends = np.cumsum(lengths)
    starts = ends - lengths
    out = np.empty(int(ends[-1]) + 1 if len(ends) else 1, np.uint8)
    out[-1] = 0
    at = starts.copy()
    for part in parts:
        data, firsts, lasts = frozen(part.data), frozen(part.starts), frozen(part.ends)
        _put(data, firsts, lasts, frozen(chosen), at, out)
    return Slices(frozen(out), starts, ends)


@tight
def _write(values: Array, starts: Array, out: Array) -> None:
    for row in range(len(values)):
        # Of the least integer the positive one would not fit.
        rest, at = values[row], (row + 1) * _LONGEST
        is_negative = rest < 0
        while True:
            digit = rest % 10
            if is_negative and digit:
                digit -= 10
            rest = (rest - digit) // 10
            at -= 1
            out[at] = 48 + abs(digit)
            if rest == 0:
                break
        if is_negative:
            at -= 1
            out[at] = 45
        starts[row] = at


def decimal(values: Array) -> Slices:
    """Integers as decimal numbers."""
    out = np.zeros(len(values) * _LONGEST + 1, np.uint8)
    starts = np.empty(len(values), np.int64)
    _write(frozen(values), starts, out)
    return Slices(frozen(out), starts, (np.arange(len(values)) + 1) * _LONGEST)
