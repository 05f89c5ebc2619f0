"""`quantile(n)`: values that cut what was emitted into n - 1 parts of equal size.

Values are counted in buckets. While there are at most `BUCKETS` distinct ones, a bucket is a value
and the answer is exact. Beyond, values become coarser, all by as much, until there are few enough
buckets again: numbers lose their lowest bits, texts all but their first characters. How coarse it
gets is the least that suffices for all that was emitted, so it depends on nothing else. Ranks are
always exact: what is shown lies in the same bucket as the true value.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from millstream.values.records.types import BYTES, FLOAT, INT, STRING, TIME, RecordType, resolved
from millstream.values.tables.exact import ordered
from millstream.values.tables.kind import Declared, Result, Table, TableKind

BUCKETS = 65_536

#: How coarse values are, and the buckets: how many values, the least and the most of them.
_Counted = tuple[int, dict[Any, tuple[int, Any, Any]]]


@dataclass(frozen=True, slots=True)
class _Numbers:
    """Values as whole numbers in the same order; coarser by a bit at a time."""

    rank: Callable[[Any], int]
    value: Callable[[int], Any]

    def bucket(self, rank: int, level: int) -> int:
        return rank >> level


@dataclass(frozen=True, slots=True)
class _Texts:
    """Texts are cut; level 1 leaves the longest prefix that anyone could need."""

    rank: Callable[[Any], Any]
    value: Callable[[Any], Any]

    def bucket(self, rank: Any, level: int) -> Any:
        return rank if level == 0 else rank[: max(0, _LONGEST - level)]


#: Texts that agree in so many characters are one bucket as soon as any are.
_LONGEST = 64


def _same(value: Any) -> Any:
    return value


def _rank_of_float(value: float) -> int:
    """Bits in the order of the numbers; what is not a number comes first."""
    if value != value:
        return -(2**63)
    bits: int = struct.unpack("<q", struct.pack("<d", value + 0.0))[0]
    return bits if bits >= 0 else -(bits + 2**63)


def _float_of_rank(rank: int) -> float:
    if rank == -(2**63):
        return float("nan")
    bits = rank if rank >= 0 else -rank - 2**63
    value: float = struct.unpack("<d", struct.pack("<q", bits))[0]
    return value


def _scale(type_: RecordType) -> _Numbers | _Texts:
    kind = resolved(type_)
    if kind in (STRING, BYTES):
        return _Texts(_same, _same)
    if kind == FLOAT:
        return _Numbers(_rank_of_float, _float_of_rank)
    if kind in (INT, TIME):
        return _Numbers(_same, _same)
    # Of a bool the rank is 0 or 1.
    return _Numbers(int, bool if str(kind) == "bool" else _same)


@dataclass(frozen=True, slots=True)
class Quantiles(Table):
    count: int
    scale: _Numbers | _Texts
    most: int = BUCKETS

    def empty(self) -> _Counted:
        return (0, {})

    def add(self, acc: _Counted, value: Any, weight: Any = None, key: int = 0) -> _Counted:
        return self.add_times(acc, value, weight, key, 1)

    def add_times(self, acc: _Counted, value: Any, weight: Any, key: int, times: int) -> _Counted:
        level, buckets = acc
        rank = self.scale.rank(value)
        if times:
            _put(buckets, self.scale.bucket(rank, level), (times, rank, rank))
        return acc if len(buckets) <= self.most else self._coarser(level, buckets)

    def merge(self, acc: _Counted, other: _Counted) -> _Counted:
        level = max(acc[0], other[0])
        buckets = self._at(level, acc)
        for bucket, counted in self._at(level, other).items():
            _put(buckets, bucket, counted)
        return (level, buckets) if len(buckets) <= self.most else self._coarser(level, buckets)

    def _at(self, level: int, acc: _Counted) -> dict[Any, tuple[int, Any, Any]]:
        buckets: dict[Any, tuple[int, Any, Any]] = {}
        for counted in acc[1].values():
            _put(buckets, self.scale.bucket(counted[1], level), tuple(counted))
        return buckets

    def _coarser(self, level: int, buckets: dict[Any, tuple[int, Any, Any]]) -> _Counted:
        while len(buckets) > self.most:
            level += 1
            buckets = self._at(level, (level, buckets))
        return (level, buckets)

    def results(self, acc: _Counted) -> list[Result]:
        """The least, those between, and the largest value."""
        buckets = sorted(acc[1].values(), key=lambda counted: counted[1])
        total = sum(counted[0] for counted in buckets)
        if not total:
            return []
        rows, seen, at = [], 0, 0
        for n in range(self.count):
            place = 0 if self.count == 1 else n * (total - 1) // (self.count - 1)
            while seen + buckets[at][0] <= place:
                seen += buckets[at][0]
                at += 1
            _, least, most = buckets[at]
            rows.append(Result(self.scale.value(most if place == total - 1 else least)))
        return rows


def _put(
    buckets: dict[Any, tuple[int, Any, Any]], bucket: Any, counted: tuple[int, Any, Any]
) -> None:
    known = buckets.get(bucket)
    if known is None:
        buckets[bucket] = counted
    else:
        buckets[bucket] = (
            known[0] + counted[0], min(known[1], counted[1]), max(known[2], counted[2]),
        )  # fmt: skip


def _check(declared: Declared) -> str | None:
    if (declared.parameter or 0) < 2:
        return "quantile needs at least 2, the least and the largest value"
    return ordered(declared.value, "what quantile cuts")


QUANTILE = TableKind(
    "quantile", "table quantile(101) of v: int", True, False, _check,
    lambda d: Quantiles(d.parameter or 2, _scale(d.value)),
    bound=f"exact up to {BUCKETS:,} distinct values of an index; beyond, values that agree in "
    "all but their lowest bits (of texts, in their first characters) count as one, with exact "
    "ranks",
)  # fmt: skip
