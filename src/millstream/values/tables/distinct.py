"""Tables of distinct values, by the smallest of their hashes.

A value is kept if its hash is among the n smallest of all. It was so from its first emit on in
every part, so what is counted of it is exact. The kept values are a fair sample of the distinct
ones: the n-th smallest hash tells how many there are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from millstream.values.records.keys import Keys, hash64, keys_of, mix64, mixes64
from millstream.values.records.packing import packed
from millstream.values.records.types import (
    FINGERPRINT,
    FLOAT,
    INT,
    TIME,
    UINT,
    RecordType,
    resolved,
    unsigned,
    wrapped,
)
from millstream.values.tables.amounts import exact, rounded, together
from millstream.values.tables.exact import anything
from millstream.values.tables.kind import Array, Declared, Result, Table, TableKind

_ALL = 2**64

#: By hash: the value and its sum of weights; what all hashes are below; whether there were more.
_Kept = tuple[dict[int, Any], int, bool]


@dataclass(frozen=True, slots=True)
class Smallest(Table):
    """The values of the smallest hashes with their weights; what is shown differs by kind."""

    most: int
    keys: Keys
    weight: RecordType | None
    seed: int
    #: What a value is known by.
    hashed: Callable[[Any, int], int]

    def empty(self) -> _Kept:
        return ({}, _ALL, False)

    def add(self, acc: _Kept, value: Any, weight: Any = None, key: int = 0) -> _Kept:
        return self.add_times(acc, value, weight, key, 1)

    def add_times(self, acc: _Kept, value: Any, weight: Any, key: int, times: int) -> _Kept:
        if not times:
            return acc
        kept = self.keys.key(value)
        return self._put(acc, self.hashed(kept, self.seed), (kept, self._amount(weight, times)))

    def add_all(
        self, acc: _Kept, values: Sequence[Any], weights: Sequence[Any] | None,
        keys: Sequence[int], times: Sequence[int],
    ) -> _Kept:  # fmt: skip
        if acc[0] or weights is not None or self.hashed is not mix64:
            return Table.add_all(self, acc, values, weights, keys, times)  # type: ignore[no-any-return]
        hashes = self._hashes(list(values))
        kept = dict(zip(hashes, zip(values, times, strict=True), strict=True))
        return self._fewest((kept, _ALL, False))

    @property
    def lowest(self) -> int:
        return self.most + 1  # one more says that there were more

    def ranks(self, values: list[Any], weights: Array | None, keys: list[int]) -> Array | None:
        return np.array(self._hashes(values), np.uint64)

    def _hashes(self, values: list[Any]) -> list[int]:
        if self.hashed is mix64:
            return mixes64(values, self.seed)
        return [self.hashed(self.keys.key(value), self.seed) for value in values]

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
        kept, bound, _ = acc
        if hashed >= bound:
            return acc
        if hashed in kept:
            pair = (kept[hashed][0], self._plus(kept[hashed][1], pair[1]))
        kept[hashed] = pair
        # More are held than are wanted, so that the largest are seldom looked for.
        return acc if len(kept) < 2 * self.most else self._fewest(acc)

    def _fewest(self, acc: _Kept) -> _Kept:
        """What the smallest hashes alone come to."""
        kept, _, _ = acc
        if len(kept) <= self.most:
            return acc
        order = sorted(kept)[: self.most]
        return ({hashed: kept[hashed] for hashed in order}, order[-1] + 1, True)

    def merge(self, acc: _Kept, other: _Kept) -> _Kept:
        kept, bound, more = acc
        least = min(bound, other[1])
        if least < bound:
            kept = {hashed: pair for hashed, pair in kept.items() if hashed < least}
        acc = (kept, least, more or other[2])
        for hashed, pair in other[0].items():
            acc = self._put(acc, hashed, tuple(pair))
        return acc

    def encode(self, acc: _Kept) -> bytes:
        kept, bound, more = self._fewest(acc)
        return packed((dict(sorted(kept.items())), bound, more))

    def distinct(self, acc: _Kept) -> float:
        """How many distinct values there are, or an estimate of it."""
        kept, _, more = self._fewest(acc)
        return max(len(kept) - 1, 1) * _ALL / max(kept) if more else len(kept)

    def shown_weight(self, amount: Any) -> Any:
        return rounded(tuple(amount)) if self.weight == FLOAT else amount

    def results(self, acc: _Kept) -> list[Result]:
        kept = self._fewest(acc)[0]
        pairs = sorted(kept.values(), key=lambda pair: self.keys.order(pair[0]))
        return [Result(self.keys.value(v), self.shown_weight(w)) for v, w in pairs]


class Unique(Smallest):
    """How many distinct values there were."""

    __slots__ = ()

    def results(self, acc: _Kept) -> list[Result]:
        return [Result(round(self.distinct(acc)))] if acc[0] else []

    def results_at_once(
        self, times: Array, weights: Array | None, values: Callable[[Array], list[Any]]
    ) -> list[Result] | None:
        return [Result(len(times))] if 0 < len(times) <= self.most else None


class InverseHistogram(Smallest):
    """For every multiplicity (or sum of weights): how many distinct values have it."""

    __slots__ = ()

    def results(self, acc: _Kept) -> list[Result]:
        kept = self._fewest(acc)[0]
        counts = Counter(self.shown_weight(w) for _, w in kept.values())
        each = self.distinct(acc) / len(kept) if kept else 0.0
        return [Result(weight, count * each) for weight, count in sorted(counts.items())]


def _check(declared: Declared) -> str | None:
    if declared.weight not in (None, INT, UINT, FLOAT):
        return f"a weight is int, uint or float here; got {declared.weight}"
    return anything(declared)


def _table(kind: type[Smallest]) -> Any:
    def made(d: Declared) -> Smallest:
        hashed = mix64 if resolved(d.value) in (INT, UINT, TIME, FINGERPRINT) else hash64
        return kind(d.parameter or 0, keys_of(d.value), d.weight, d.seed, hashed)

    return made


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
