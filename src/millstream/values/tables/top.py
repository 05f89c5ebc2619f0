"""`top`: the values with the largest sums of weights.

While there are at most `EXACT` distinct values their sums are kept and the answer is exact. Beyond,
a count-min sketch keeps sums of all values by hashes, and only values that may be large are kept
by name. The sketch is a sum, so it does not depend on the order of emits.

Let W be the sum of all weights. A value of at least W / `NAMED` is always named, whatever the order
and the cut: at its last emit, or in one of two parts that are merged, it has at least that share
of what is known, and an estimate is never too small. Shown are named values whose estimate is at
least 2 W / `NAMED`. So a value that is not always named is shown only if the sketch errs by
W / `NAMED` in all of its rows at once; then, and only then, results might depend on the order.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import mul
from typing import Any

import numpy as np

from millstream.values.records.keys import Keys, hash64, keys_of, same
from millstream.values.records.numbers import FINITE_WEIGHT
from millstream.values.records.types import FLOAT, INT, UINT, RecordType
from millstream.values.tables.amounts import exact, rounded
from millstream.values.tables.exact import anything
from millstream.values.tables.kind import Array, Declared, Result, Table, TableKind

EXACT = 100_000
NAMED = 20_000
_ROWS = 5
_BITS = 16
_WIDTH = 1 << _BITS

#: Sums by value, and then None; or values that may be large, and the sums of the sketch by cell.
_Sums = tuple[dict[Any, Any], dict[int, int] | None]


@dataclass(frozen=True, slots=True)
class Top(Table):
    """Weights are whole numbers, or floats as whole numbers of 2^-1074, so that sums are exact."""

    most: int
    keys: Keys
    weight: RecordType | None
    exact_up_to: int = EXACT
    named: int = NAMED

    def empty(self) -> _Sums:
        return ({}, None)

    def add(self, acc: _Sums, value: Any, weight: Any = None, key: int = 0) -> _Sums:
        return self.add_times(acc, value, weight, key, 1)

    def add_times(self, acc: _Sums, value: Any, weight: Any, key: int, times: int) -> _Sums:
        amount = self._amount(weight) * times
        named = self.keys.key(value)
        sums, cells = acc
        if cells is None:
            sums[named] = sums.get(named, 0) + amount
            return acc if len(sums) <= self.exact_up_to else self._sketched(sums)
        for cell in _cells(named):
            cells[cell] = cells.get(cell, 0) + amount
        if self._may_be_large(named, cells):
            sums[named] = 0
            # Now and then those that are small by now are forgotten.
            if len(sums) > 4 * self.named:
                return (self._large(sums, cells), cells)
        return acc

    def add_all(
        self, acc: _Sums, values: Sequence[Any], weights: Sequence[Any] | None,
        keys: Sequence[int], times: Sequence[int],
    ) -> _Sums:  # fmt: skip
        sums, cells = acc
        is_plain = cells is None and self.weight != FLOAT and self.keys.key is same
        if not is_plain or len(sums) + len(values) > self.exact_up_to:
            return Table.add_all(self, acc, values, weights, keys, times)  # type: ignore[no-any-return]
        heavy = list(times) if weights is None else list(map(mul, weights, times))
        if not sums:
            fresh = dict(zip(values, heavy, strict=True))
            if len(fresh) == len(values):  # no value came with two weights
                return (fresh, None)
        for value, amount in zip(values, heavy, strict=True):
            sums[value] = sums.get(value, 0) + amount
        return acc

    def results_at_once(
        self, times: Array, weights: Array | None, values: Callable[[Array], list[Any]]
    ) -> list[Result] | None:
        """The heaviest are found on columns, if values have one weight and sums stay small."""
        heavy = 1 if weights is None else int(weights[0])
        is_plain = self.weight != FLOAT and 0 < len(times) <= self.exact_up_to
        if not is_plain or (weights is not None and bool((weights != heavy).any())):
            return None
        if heavy < 1 or heavy * int(times.sum()) >= 2**62:
            return None
        count = min(self.most, len(times))
        least = np.partition(times, len(times) - count)[len(times) - count]
        best = np.flatnonzero(times >= least)
        named = {self.keys.key(v): int(times[n]) for v, n in zip(values(best), best, strict=True)}
        return self.results(({key: heavy * often for key, often in named.items()}, None))

    def _amount(self, weight: Any) -> int:
        if self.weight is None:
            return 1
        return exact(weight)[0] if self.weight == FLOAT else int(weight)

    def _sketched(self, sums: dict[Any, Any]) -> _Sums:
        cells: dict[int, int] = {}
        for named, amount in sums.items():
            for cell in _cells(named):
                cells[cell] = cells.get(cell, 0) + amount
        return (self._large(sums, cells), cells)

    def _may_be_large(self, named: Any, cells: dict[int, int]) -> bool:
        return _estimate(named, cells) * self.named >= cells[_TOTAL]

    def _large(self, sums: dict[Any, Any], cells: dict[int, int]) -> dict[Any, Any]:
        return {named: 0 for named in sums if self._may_be_large(named, cells)}

    def merge(self, acc: _Sums, other: _Sums) -> _Sums:
        if acc[1] is None and other[1] is None:
            sums = acc[0]
            for named, amount in other[0].items():
                sums[named] = sums.get(named, 0) + amount
            return acc if len(sums) <= self.exact_up_to else self._sketched(sums)
        mine, theirs = (a if a[1] is not None else self._sketched(a[0]) for a in (acc, other))
        assert mine[1] is not None and theirs[1] is not None
        cells = dict(mine[1])
        for cell, amount in theirs[1].items():
            cells[cell] = cells.get(cell, 0) + amount
        return (self._large(mine[0] | theirs[0], cells), cells)

    def results(self, acc: _Sums) -> list[Result]:
        sums, cells = acc
        if cells is not None:
            estimates = {named: _estimate(named, cells) for named in sums}
            least = 2 * cells[_TOTAL]
            sums = {named: e for named, e in estimates.items() if e * self.named >= least}
        order = self.keys.order
        # Only those that weigh enough to be among the first are put in order.
        weights = heapq.nlargest(self.most, sums.values())
        heavy = [named for named, weight in sums.items() if weight >= weights[-1]]
        best = sorted(heavy, key=lambda named: (-sums[named], order(named)))[: self.most]
        # What a cell has too much is on average the W of all over the cells of a row.
        error = self._shown(0 if cells is None else 2 * cells[_TOTAL] // _WIDTH)
        return [Result(self.keys.value(n), self._shown(sums[n]), error) for n in best]

    def _shown(self, amount: int) -> Any:
        if self.weight == FLOAT:
            return rounded((amount, 0, 0, 0))
        # A sum of integers wraps only when it is shown, so that no share of it is wrong.
        return (amount + 2**63) % 2**64 - 2**63 if self.weight != UINT else amount % 2**64


#: The cell with the sum of all weights.
_TOTAL = -1


def _cells(named: Any) -> list[int]:
    """The cells of a value: one in every row, and the one of all."""
    low, high = hash64(named, 1), hash64(named, 2)
    bits = low | high << 64
    rows = range(_ROWS)
    return [_TOTAL, *(row << _BITS | bits >> _BITS * row & _WIDTH - 1 for row in rows)]


def _estimate(named: Any, cells: dict[int, int]) -> int:
    return min(cells.get(cell, 0) for cell in _cells(named)[1:])


def _check(declared: Declared) -> str | None:
    if declared.weight not in (None, INT, UINT, FLOAT):
        return f"a weight of top is int, uint or float; got {declared.weight}"
    return anything(declared)


TOP = TableKind(
    "top", "table top(10) of v: string weight w: int", True, None, _check,
    lambda d: Top(d.parameter or 0, keys_of(d.value), d.weight),
    weight=lambda d: d.weight or INT, has_error=True, weighed=FINITE_WEIGHT,
    bound=f"exact up to {EXACT:,} distinct values of an index; beyond, values with at least "
    f"1/{NAMED // 2:,} of all weight, each at most 1/{_WIDTH // 2:,} of all weight too heavy with "
    "a probability of 97 % or more",
)  # fmt: skip
