"""Tables of distinct values, by the smallest of their hashes.

A value is kept if its hash is among the n smallest of all. It was so from its first emit on in
every part, so what is counted of it is exact. The kept values are a fair sample of the distinct
ones: the n-th smallest hash tells how many there are.
"""

from __future__ import annotations

import bisect
from collections import Counter
from dataclasses import dataclass
from typing import Any

from millstream.values.records.keys import Keys, hash64, keys_of
from millstream.values.records.types import FLOAT, INT, UINT, RecordType, unsigned, wrapped
from millstream.values.tables.amounts import exact, rounded, together
from millstream.values.tables.exact import anything
from millstream.values.tables.kind import Declared, Result, Table, TableKind

_ALL = 2**64

#: By hash: the value and its sum of weights; the hashes in order; whether there were more.
_Kept = tuple[dict[int, Any], list[int], bool]


@dataclass(frozen=True, slots=True)
class Smallest(Table):
    """The values of the smallest hashes with their weights; what is shown differs by kind."""

    most: int
    keys: Keys
    weight: RecordType | None
    seed: int

    def empty(self) -> _Kept:
        return ({}, [], False)

    def add(self, acc: _Kept, value: Any, weight: Any = None, key: int = 0) -> _Kept:
        return self.add_times(acc, value, weight, key, 1)

    def add_times(self, acc: _Kept, value: Any, weight: Any, key: int, times: int) -> _Kept:
        if not times:
            return acc
        kept = self.keys.key(value)
        return self._put(acc, hash64(kept, self.seed), (kept, self._amount(weight, times)))

    def _amount(self, weight: Any, times: int) -> Any:
        if self.weight is None:
            return times
        if self.weight == FLOAT:
            return tuple(part * times for part in exact(weight))
        return self._plus(weight * times, 0)

    def _plus(self, a: Any, b: Any) -> Any:
        if self.weight == FLOAT:
            return together(a, b)
        return unsigned(a + b) if self.weight == UINT else wrapped(a + b)

    def _put(self, acc: _Kept, hashed: int, pair: tuple[Any, Any]) -> _Kept:
        kept, order, more = acc
        if hashed in kept:
            kept[hashed] = (kept[hashed][0], self._plus(kept[hashed][1], pair[1]))
            return acc
        if len(order) < self.most:
            kept[hashed] = pair
            bisect.insort(order, hashed)
            return acc
        if hashed < order[-1]:
            del kept[order.pop()]
            kept[hashed] = pair
            bisect.insort(order, hashed)
        return acc if more else (kept, order, True)

    def merge(self, acc: _Kept, other: _Kept) -> _Kept:
        for hashed, pair in other[0].items():
            acc = self._put(acc, hashed, tuple(pair))
        return (acc[0], acc[1], acc[2] or other[2])

    def distinct(self, acc: _Kept) -> float:
        """How many distinct values there are, or an estimate of it."""
        _, order, more = acc
        return max(len(order) - 1, 1) * _ALL / order[-1] if more else len(order)

    def shown_weight(self, amount: Any) -> Any:
        return rounded(tuple(amount)) if self.weight == FLOAT else amount

    def results(self, acc: _Kept) -> list[Result]:
        pairs = sorted(acc[0].values(), key=lambda pair: self.keys.order(pair[0]))
        return [Result(self.keys.value(v), self.shown_weight(w)) for v, w in pairs]


class Unique(Smallest):
    """How many distinct values there were."""

    __slots__ = ()

    def results(self, acc: _Kept) -> list[Result]:
        return [Result(round(self.distinct(acc)))] if acc[0] else []


class InverseHistogram(Smallest):
    """For every multiplicity (or sum of weights): how many distinct values have it."""

    __slots__ = ()

    def results(self, acc: _Kept) -> list[Result]:
        kept = acc[0]
        counts = Counter(self.shown_weight(w) for _, w in kept.values())
        each = self.distinct(acc) / len(kept) if kept else 0.0
        return [Result(weight, count * each) for weight, count in sorted(counts.items())]


def _check(declared: Declared) -> str | None:
    if declared.weight not in (None, INT, UINT, FLOAT):
        return f"a weight is int, uint or float here; got {declared.weight}"
    return anything(declared)


def _table(kind: type[Smallest]) -> Any:
    return lambda d: kind(d.parameter or 0, keys_of(d.value), d.weight, d.seed)


_BOUND = (
    "exact up to n distinct values of an index; beyond, an estimate whose standard error is one "
    "part in the square root of n - 2"
)

DISTINCT: tuple[TableKind, ...] = (
    TableKind("unique", "table unique(1000) of v: string", True, False, _check,
              _table(Unique), value=lambda _: INT, bound=_BOUND),
    TableKind("distinctsample", "table distinctsample(100) of v: string weight w: int", True, None,
              _check, _table(Smallest), weight=lambda d: d.weight or INT,
              bound="a fair sample of the distinct values, with exact weights"),
    TableKind("inversehistogram", "table inversehistogram(100) of v: string weight w: int", True,
              None, _check, _table(InverseHistogram), value=lambda d: d.weight or INT,
              weight=lambda _: FLOAT, bound=_BOUND),
)  # fmt: skip
