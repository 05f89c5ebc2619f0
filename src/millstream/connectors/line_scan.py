"""A compiled scanner of lines, for texts of many of them."""

from __future__ import annotations

import numpy as np

from millstream.blocks64 import copy_block, first_bit, within64
from millstream.compiled import tight
from millstream.plan.batch import Array

_BREAK, _RETURN, _BEYOND, _REST = np.uint8(10), np.uint8(13), np.uint8(128), np.uint8(127)
_ONE = np.uint8(0)
#: How many bytes more than the lines the array must have that they are put into.
SPARE = 64


@tight
def cut_lines(data: Array, start: int, stop: int, offsets: Array, out: Array, done: Array) -> bool:
    """Lay lines end to end, without what ends them, until `offsets` is full; whether all are plain.

    What is not plain has a byte beyond ASCII, or a carriage return. `done` tells where the last
    line ends that was ended by a break, and how many there are.
    """
    at, made, lines, end, odd = start, 0, 0, start, np.uint64(0)
    while at < stop and lines + 1 < len(offsets):
        if at + 64 > stop:
            c = data[at]
            at += 1
            if c == 10:
                lines += 1
                offsets[lines], end = made, at
                continue
            odd |= np.uint64(c >= 128 or c == 13)
            out[made] = c
            made += 1
            continue
        copy_block(out, made, data, at)
        odd |= within64(data, at, _BEYOND, _REST) | within64(data, at, _RETURN, _ONE)
        breaks = within64(data, at, _BREAK, _ONE)
        if breaks == 0:
            at += 64
            made += 64
            continue
        size = first_bit(breaks)
        lines += 1
        at += size + 1
        made += size
        offsets[lines], end = made, at
    done[0], done[1] = end, lines
    is_plain: bool = odd == 0
    return is_plain
