"""What a loop has called out for, kept by what it was made of: a table of hashes in the loop.

An entry is a hash, the bits of the values, their statuses, and what was given: a value and a
status. A loop that finds no entry asks: it writes down the values and calls back.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from millstream.compiled import apart, tight
from millstream.kernels.windows.sums import bits_of_float, float_of_bits
from millstream.plan.batch import Array

#: The words of what is asked: whom to call, whether the loop is to stop before the next tuple,
#: which part, what it gave, and then the values and statuses that it is made of; after these
#: where the windows begin and end that it looks at, four words each, as in the row of a key.
WHOM, STOPS, SITE, VALUE, STATUS, ASKED = range(6)
WINDOW = 4
#: The words of a table: where it begins, how many entries it has room for, how many there are,
#: and how long they are.
BASE, SIZE, COUNT, STRIDE = range(4)
TABLE = 4
_PRIME = np.uint64(0x9E3779B97F4A7C15)


def _define_call_back(typing_context: Any, address: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        function = ir.FunctionType(ir.VoidType(), [])
        builder.call(builder.inttoptr(args[0], function.as_pointer()), [])
        return context.get_dummy_value()

    return types.none(types.int64), generate


#: Call a function without arguments by its address.
call_back: Any = intrinsic(_define_call_back)


@apart
def recalled(memo: Array, sites: Array, asked: Array, site: int, values: Any, statuses: Any) -> Any:
    """What a part gives for values, asked for if it is not known."""
    table, count = sites[site], len(values)
    hashed = np.uint64(site + 1)
    for n in range(count):
        hashed = (hashed ^ np.uint64(bits_of_float(values[n]))) * _PRIME
        hashed = (hashed ^ (hashed >> np.uint64(29)) ^ np.uint64(statuses[n])) * _PRIME
    mark = np.int64((hashed ^ (hashed >> np.uint64(32))) >> np.uint64(1)) | 1
    slot, mask = mark >> 1, table[SIZE] - 1
    while True:
        at = table[BASE] + (slot & mask) * table[STRIDE]
        if memo[at] == 0:
            break
        if memo[at] == mark and _is_same(memo, at, values, statuses):
            end = at + 1 + 2 * count
            return float_of_bits(memo[end]), memo[end + 1]
        slot += 1
    asked[SITE] = site
    for n in range(count):
        asked[ASKED + n] = bits_of_float(values[n])
        asked[ASKED + count + n] = statuses[n]
    call_back(asked[WHOM])
    if 2 * table[COUNT] < table[SIZE]:
        memo[at] = mark
        for n in range(2 * count):
            memo[at + 1 + n] = asked[ASKED + n]
        memo[at + 1 + 2 * count], memo[at + 2 + 2 * count] = asked[VALUE], asked[STATUS]
        table[COUNT] += 1
        if 2 * table[COUNT] >= table[SIZE]:
            asked[STOPS] = 1
    return float_of_bits(asked[VALUE]), asked[STATUS]


@apart
def called(asked: Array, site: int, values: Any, statuses: Any, row: Array, windows: Any) -> Any:
    """What a part gives for values and for what windows hold now; nothing of it is kept."""
    asked[SITE], count = site, len(values)
    for n in range(count):
        asked[ASKED + n] = bits_of_float(values[n])
        asked[ASKED + count + n] = statuses[n]
    at = ASKED + 2 * count
    for n in range(len(windows)):
        for word in range(WINDOW):
            asked[at + WINDOW * n + word] = row[windows[n] + word]
    call_back(asked[WHOM])
    return float_of_bits(asked[VALUE]), asked[STATUS]


@apart
def _is_same(memo: Array, at: Any, values: Any, statuses: Any) -> Any:
    count = len(values)
    for n in range(count):
        if memo[at + 1 + n] != bits_of_float(values[n]):
            return False
        if memo[at + 1 + count + n] != statuses[n]:
            return False
    return True


@tight
def refill(old: Array, table: Array, memo: Array, base: int, size: int) -> None:
    """Move the entries of a table to a larger one."""
    stride, mask = table[STRIDE], size - 1
    for n in range(table[SIZE]):
        begin = table[BASE] + n * stride
        if old[begin] == 0:
            continue
        slot = old[begin] >> 1
        while memo[base + (slot & mask) * stride] != 0:
            slot += 1
        at = base + (slot & mask) * stride
        for k in range(stride):
            memo[at + k] = old[begin + k]
