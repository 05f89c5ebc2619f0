"""What is counted by a hidden key: distinct values, exactly and nearly, and quantiles.

Each is a function of how often every key comes, so parts can be put together, and taken away
again, in any order, and nothing of it can be seen in an answer:

    distinct          the key is the value: how many keys there are
    approx_distinct   a register and a rank, made of a hash: an estimate of the largest ranks
    quantile          a part of the number line that is 1/64 of its distance from 0, or less, wide

The estimate is Ertl's, from the registers alone, with a standard error of 1.6 %. A quantile is told
as the middle of its part, which is within 0.8 % of the value.
"""

from __future__ import annotations

import math
import struct
from collections import Counter
from collections.abc import Iterable

from millstream.calculus.types import Value

#: Bits of a hash that choose a register; the others make its rank.
REGISTER_BITS = 12
REGISTERS = 1 << REGISTER_BITS
RANK_BITS = 64 - REGISTER_BITS
#: A code of a register and a rank has so many bits for the rank.
RANK_ROOM = 6
#: Bits of a float that are left out of the number of its part.
PART_BITS = 46
#: Quantiles are given in millionths.
WHOLE = 1_000_000

_MASK = (1 << 64) - 1
_NAN_BITS = 0x7FF8_0000_0000_0000
_INFINITY_PART = 0x7FF0_0000_0000_0000 >> PART_BITS


def hash_of(value: Value) -> int:
    """64 bits of a value."""
    if isinstance(value, str):
        hashed = 0xCBF2_9CE4_8422_2325
        for byte in value.encode():
            hashed = (hashed ^ byte) * 0x100_0000_01B3 & _MASK
        return _mixed(hashed)
    if isinstance(value, float):
        return _mixed(_NAN_BITS if value != value else _bits(value + 0.0) if value else 0)
    return _mixed(int(value or 0) & _MASK)


def _bits(value: float) -> int:
    (bits,) = struct.unpack("<Q", struct.pack("<d", value))
    return int(bits)


def _mixed(word: int) -> int:
    word = (word ^ (word >> 30)) * 0xBF58_476D_1CE4_E5B9 & _MASK
    word = (word ^ (word >> 27)) * 0x94D0_49BB_1331_11EB & _MASK
    return word ^ (word >> 31)


def distinct_nearly(values: Iterable[Value]) -> int:
    """How many different values there are, by the largest rank of each register."""
    ranks: dict[int, int] = {}
    for value in values:
        hashed = hash_of(value)
        rest = hashed & ((1 << RANK_BITS) - 1)
        rank = RANK_BITS - rest.bit_length() + 1
        register = hashed >> RANK_BITS
        ranks[register] = max(ranks.get(register, 0), rank)
    counts = Counter(ranks.values())
    counts[0] = REGISTERS - len(ranks)
    total = REGISTERS * _tau(1.0 - counts[RANK_BITS + 1] / REGISTERS)
    for rank in range(RANK_BITS, 0, -1):
        total = 0.5 * (total + counts[rank])
    total += REGISTERS * _sigma(counts[0] / REGISTERS)
    return math.floor(ALPHA * REGISTERS * REGISTERS / total + 0.5)


#: The constant of the estimate, 1 / (2 log 2).
ALPHA = 0.7213475204444817


def _sigma(x: float) -> float:
    if x == 1.0:
        return math.inf
    y, z, before = 1.0, x, -1.0
    while z != before:
        x *= x
        before = z
        z += x * y
        y += y
    return z


def _tau(x: float) -> float:
    if x in (0.0, 1.0):
        return 0.0
    y, z, before = 1.0, 1.0 - x, -1.0
    while z != before:
        x = math.sqrt(x)
        before = z
        y *= 0.5
        z -= (1.0 - x) * (1.0 - x) * y
    return z / 3.0


def part_of(value: float) -> int:
    """The number of the part of the line that a value lies in; their order is that of values."""
    if value != value:
        return _NAN_BITS >> PART_BITS
    part = _bits(abs(value)) >> PART_BITS
    return -1 - part if value < 0 else part


def middle_of(part: int) -> float:
    """What a part is told as."""
    if part < 0:
        return -middle_of(-1 - part) + 0.0
    if part == 0:
        return 0.0
    bits = part << PART_BITS
    if part < _INFINITY_PART:
        bits |= 1 << (PART_BITS - 1)
    (value,) = struct.unpack("<d", struct.pack("<Q", bits))
    return float(value)


def quantile_of(values: Iterable[tuple[float, int]], at: int) -> float | None:
    """The quantile of values that come so often each, at so many millionths."""
    counts: Counter[int] = Counter()
    for value, count in values:
        counts[part_of(float(value))] += count
    rest = max(1, -(-at * counts.total() // WHOLE))
    for part in sorted(counts):
        rest -= counts[part]
        if rest <= 0:
            return middle_of(part)
    return None
