"""A compiled scanner of lines, for texts of many of them."""

from __future__ import annotations

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
        size = min(8, stop - at)
        if at + 8 <= stop:
            word = load64(data, at)
            breaks, returns = word ^ _BREAKS, word ^ _RETURNS
            # The high bit is set of bytes beyond ASCII, and of those that have become zero.
            odd |= word | ((returns - _ONES) & ~returns)
            if (breaks - _ONES) & ~breaks & _HIGH == 0:
                copy64(out, made, data, at)
                at += 8
                made += 8
                continue
        for place in range(at, at + size):
            c = data[place]
            if c == 10:
                lines += 1
                offsets[lines] = made
                end = place + 1
                if lines + 1 == len(offsets):
                    break
                continue
            odd |= np.uint64(128) if c >= 128 or c == 13 else np.uint64(0)
            out[made] = c
            made += 1
        at += size
    done[0], done[1] = end, lines
    is_plain: bool = odd & _HIGH == 0
    return is_plain
