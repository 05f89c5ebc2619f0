"""A compiled scanner of lines, for texts of many of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from millstream.compiled import tight
from millstream.plan.batch import Array
from millstream.words64 import copy64, load64

_ONES = np.uint64(0x0101010101010101)
_HIGH = np.uint64(0x8080808080808080)
_BREAKS = np.uint64(0x0A0A0A0A0A0A0A0A)
_RETURNS = np.uint64(0x0D0D0D0D0D0D0D0D)
#: How many bytes more than the lines the array must have that they are put into.
SPARE = 8


@tight
def cut_lines(data: Array, start: int, stop: int, offsets: Array, out: Array, done: Array) -> bool:
    """Lay lines end to end, without what ends them, until `offsets` is full; whether all are plain.

    What is not plain has a byte beyond ASCII, or a carriage return. `done` tells where the last
    line ends that was ended by a break, and how many there are.
    """
    at, made, lines, end, odd = start, 0, 0, start, np.uint64(0)
    while at < stop and lines + 1 < len(offsets):
        if at + 8 > stop:
            c = data[at]
            at += 1
            if c == 10:
                lines += 1
                offsets[lines], end = made, at
                continue
            odd |= np.uint64(128) if c >= 128 or c == 13 else np.uint64(0)
            out[made] = c
            made += 1
            continue
        word = load64(data, at)
        breaks, returns = word ^ _BREAKS, word ^ _RETURNS
        # The high bit is set of bytes beyond ASCII, and of those that have become zero.
        odd |= word | ((returns - _ONES) & ~returns)
        copy64(out, made, data, at)
        hits = (breaks - _ONES) & ~breaks & _HIGH
        if hits == 0:
            at += 8
            made += 8
            continue
        # The lowest bit that is set tells of the first break; below it lies one of `_ONES` for
        # each byte before, and one for its own.
        below = (hits & (~hits + np.uint64(1))) - np.uint64(1)
        size: Any = np.int64(((below & _ONES) * _ONES) >> np.uint64(56)) - 1
        lines += 1
        at += size + 1
        made += size
        offsets[lines], end = made, at
    done[0], done[1] = end, lines
    is_plain: bool = odd & _HIGH == 0
    return is_plain
