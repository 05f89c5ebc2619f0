"""Tables that leave something to chance: samples of emits, and sums of resampled emits.

Chance is a hash of the seed, the value and the key of the emit, so that it falls alike whatever the
order and the cut. Emits that agree in all of this are drawn alike.
"""

from __future__ import annotations

import bisect
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from millstream.values.records.keys import Keys, hash64, keys_of
from millstream.values.records.numbers import WEIGHT
from millstream.values.records.types import FLOAT, INT, UINT, RecordType
from millstream.values.tables.amounts import Amounts, amounts_of
from millstream.values.tables.exact import anything
from millstream.values.tables.kind import Array, Declared, Result, Table, TableKind

#: What decides, the hash that resolves ties, the value and its weight; smallest first.
_Drawn = list[tuple[float, int, Any, Any]]


@dataclass(frozen=True, slots=True)
class Sample(Table):
    """So many emits, each as likely as its weight says (all alike without weights)."""

    most: int
    keys: Keys
    weight: RecordType | None
    seed: int

    def empty(self) -> _Drawn:
        return []

    def add(self, acc: _Drawn, value: Any, weight: Any = None, key: int = 0) -> _Drawn:
        if weight == 0:
            return acc
        kept = self.keys.key(value)
        drawn = hash64((kept, key), self.seed)
        return self._put(acc, (_wait(drawn, weight), drawn, kept, weight))

    def add_times(self, acc: _Drawn, value: Any, weight: Any, key: int, times: int) -> _Drawn:
        for _ in range(min(times, self.most)):
            acc = self.add(acc, value, weight, key)
        return acc

    @property
    def lowest(self) -> int:
        return self.most

    def ranks(self, values: list[Any], weights: Array | None, keys: list[int]) -> Array | None:
        heavy = [None] * len(values) if weights is None else weights.tolist()
        return np.array([
            math.inf if weight == 0 else _wait(hash64((self.keys.key(v), k), self.seed), weight)
            for v, weight, k in zip(values, heavy, keys, strict=True)
        ])  # fmt: skip

    def _rank(self, item: tuple[float, int, Any, Any]) -> Any:
        return (item[0], item[1], self.keys.order(item[2]), item[3] or 0)

    def _put(self, acc: _Drawn, item: tuple[float, int, Any, Any]) -> _Drawn:
        if len(acc) == self.most:
            if not self._rank(item) < self._rank(acc[-1]):
                return acc
            acc.pop()
        bisect.insort(acc, item, key=self._rank)
        return acc

    def merge(self, acc: _Drawn, other: _Drawn) -> _Drawn:
        for item in other:
            acc = self._put(acc, tuple(item))
        return acc

    def results(self, acc: _Drawn) -> list[Result]:
        chosen = sorted(acc, key=lambda item: (self.keys.order(item[2]), item[3] or 0, item[1]))
        return [Result(self.keys.value(value), weight) for _, _, value, weight in chosen]


def _wait(drawn: int, weight: Any) -> float:
    """How long one waits for an event that comes as often as the weight says."""
    wait: float = -math.log((drawn + 0.5) / 2**64) / (1 if weight is None else weight)
    return wait


@dataclass(frozen=True, slots=True)
class BootstrapSum(Table):
    """The sum of all, and sums of so many resamples: how far the sum could be off by chance.

    An emit counts in each resample as often as a Poisson variable of mean 1 says. The weight names
    what is drawn: emits of one weight are drawn together.
    """

    most: int
    amounts: Amounts
    names: Keys
    seed: int

    def empty(self) -> list[Any]:
        return []

    def add(self, acc: list[Any], value: Any, weight: Any = None, key: int = 0) -> list[Any]:
        amount = self.amounts.of(value)
        sums = acc or [self.amounts.zero] * (self.most + 1)
        sums[0] = self.amounts.plus(sums[0], amount)
        name = self.names.key(weight)
        for n in range(self.most):
            for _ in range(_poisson(hash64((name, n), self.seed))):
                sums[n + 1] = self.amounts.plus(sums[n + 1], amount)
        return sums

    def merge(self, acc: list[Any], other: list[Any]) -> list[Any]:
        if not acc or not other:
            return acc or list(other)
        return [self.amounts.plus(a, b) for a, b in zip(acc, other, strict=True)]

    def results(self, acc: list[Any]) -> list[Result]:
        return [Result(self.amounts.value(amount)) for amount in acc]


def _poisson_steps() -> tuple[int, ...]:
    """How likely it is that a Poisson variable of mean 1 is at most 0, 1, 2..., of 2^64."""
    total, chance, steps = 0.0, math.exp(-1), []
    for n in range(1, 20):
        total += chance
        steps.append(int(total * 2**64))
        chance /= n
    return tuple(steps)


_POISSON = _poisson_steps()


def _poisson(drawn: int) -> int:
    return bisect.bisect_right(_POISSON, drawn)


def _weighted(declared: Declared) -> str | None:
    if declared.weight not in (None, INT, UINT, FLOAT):
        return f"a weight is int, uint or float here; got {declared.weight}"
    return anything(declared)


def _resampled(declared: Declared) -> str | None:
    if amounts_of(declared.value) is None:
        return f"bootstrapsum adds numbers, and tuples and maps of these; got {declared.value}"
    return None


def _sample(declared: Declared) -> Sample:
    return Sample(declared.parameter or 0, keys_of(declared.value), declared.weight, declared.seed)


def _bootstrap(declared: Declared) -> BootstrapSum:
    amounts = amounts_of(declared.value)
    assert amounts is not None and declared.weight is not None
    return BootstrapSum(declared.parameter or 0, amounts, keys_of(declared.weight), declared.seed)


SAMPLES: tuple[TableKind, ...] = (
    TableKind("sample", "table sample(100) of v: string", True, False, _weighted, _sample,
              uses_keys=True, bound="a fair sample of the emits"),
    TableKind("weightedsample", "table weightedsample(100) of v: string weight w: float", True,
              True, _weighted, _sample, weight=lambda d: d.weight, uses_keys=True, weighed=WEIGHT,
              bound="a sample in which emits are as likely as their weights"),
    TableKind("bootstrapsum", "table bootstrapsum(100) of v: int weight id: string", True, True,
              _resampled, _bootstrap, bound="the exact sum, then sums of resamples"),
)  # fmt: skip
