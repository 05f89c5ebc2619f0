"""Tables whose results are exact: all that was emitted, sums, extremes, small sets."""

from __future__ import annotations

import bisect
from dataclasses import dataclass
from typing import Any

import numpy as np

from millstream.values.records.keys import Keys, keys_of
from millstream.values.records.types import (
    BYTES,
    INT,
    STRING,
    ArrayOf,
    Basic,
    FunctionOf,
    MapOf,
    Named,
    RecordType,
    TupleOf,
    resolved,
)
from millstream.values.tables.amounts import Amounts, amounts_of
from millstream.values.tables.kind import Array, Declared, Result, Table, TableKind


def anything(declared: Declared) -> str | None:
    """Every value can be kept but a function."""
    return _no_function(declared.value)


def _no_function(type_: RecordType, seen: frozenset[str] = frozenset()) -> str | None:
    if isinstance(type_, Named):
        if type_.name in seen:
            return None
        seen |= {type_.name}
    inside: tuple[RecordType, ...] = ()
    match resolved(type_):
        case FunctionOf():
            return "a function cannot be emitted"
        case ArrayOf(element):
            inside = (element,)
        case MapOf(key, value):
            inside = (key, value)
        case TupleOf(fields):
            inside = tuple(f.type for f in fields)
    return next((c for t in inside if (c := _no_function(t, seen))), None)


def ordered(type_: RecordType | None, what: str) -> str | None:
    if type_ is not None and isinstance(resolved(type_), Basic):
        return None
    return f"{what} must have an order, as int, float, time or string have; got {type_}"


def ordered_in_turn(type_: RecordType | None, what: str) -> str | None:
    """Tuples are ordered by their first fields, then by the next."""
    if type_ is not None and isinstance(kind := resolved(type_), TupleOf):
        return next((f for one in kind.fields if (f := ordered_in_turn(one.type, what))), None)
    return ordered(type_, what)


@dataclass(frozen=True, slots=True)
class Collection(Table):
    """All values, with how often each was emitted; shown in their order."""

    keys: Keys

    def empty(self) -> dict[Any, int]:
        return {}

    def add(
        self, acc: dict[Any, int], value: Any, weight: Any = None, key: int = 0
    ) -> dict[Any, int]:
        return self.add_times(acc, value, weight, key, 1)

    def add_times(
        self, acc: dict[Any, int], value: Any, weight: Any, key: int, times: int
    ) -> dict[Any, int]:
        kept = self.keys.key(value)
        acc[kept] = acc.get(kept, 0) + times
        return acc

    def merge(self, acc: dict[Any, int], other: dict[Any, int]) -> dict[Any, int]:
        for kept, count in other.items():
            acc[kept] = acc.get(kept, 0) + count
        return acc

    def results(self, acc: dict[Any, int]) -> list[Result]:
        return [
            Result(self.keys.value(kept))
            for kept in sorted(acc, key=self.keys.order)
            for _ in range(acc[kept])
        ]


@dataclass(frozen=True, slots=True)
class Sum(Table):
    amounts: Amounts

    def empty(self) -> Any:
        return None

    def add(self, acc: Any, value: Any, weight: Any = None, key: int = 0) -> Any:
        amount = self.amounts.of(value)
        return amount if acc is None else self.amounts.plus(acc, amount)

    def add_times(self, acc: Any, value: Any, weight: Any, key: int, times: int) -> Any:
        """By doubling: a sum of many is a sum of sums."""
        amount = self.amounts.of(value)
        while times:
            if times & 1:
                acc = amount if acc is None else self.amounts.plus(acc, amount)
            times >>= 1
            if times:
                amount = self.amounts.plus(amount, amount)
        return acc

    def merge(self, acc: Any, other: Any) -> Any:
        if acc is None or other is None:
            return other if acc is None else acc
        return self.amounts.plus(acc, other)

    def results(self, acc: Any) -> list[Result]:
        return [] if acc is None else [Result(self.amounts.value(acc))]


@dataclass(frozen=True, slots=True)
class Extremes(Table):
    """The emits of the largest (or smallest) weights, each for itself, at most `most` of them.

    Of equal weights those of the smaller values are kept. An accumulator has (weight, value), best
    first.
    """

    most: int
    values: Keys
    weights: Keys
    largest: bool

    def _rank(self, pair: tuple[Any, Any]) -> Any:
        weight = self.weights.order(pair[0])
        return (_Reversed(weight) if self.largest else weight, self.values.order(pair[1]))

    def empty(self) -> list[tuple[Any, Any]]:
        return []

    def add(
        self, acc: list[tuple[Any, Any]], value: Any, weight: Any = None, key: int = 0
    ) -> list[tuple[Any, Any]]:
        return self._put(acc, (self.weights.key(weight), self.values.key(value)))

    def add_times(
        self, acc: list[tuple[Any, Any]], value: Any, weight: Any, key: int, times: int
    ) -> list[tuple[Any, Any]]:
        for _ in range(min(times, self.most)):
            acc = self.add(acc, value, weight)
        return acc

    def _put(self, acc: list[tuple[Any, Any]], pair: tuple[Any, Any]) -> list[tuple[Any, Any]]:
        if len(acc) == self.most:
            if not self._rank(pair) < self._rank(acc[-1]):
                return acc
            acc.pop()
        bisect.insort(acc, pair, key=self._rank)
        return acc

    def merge(
        self, acc: list[tuple[Any, Any]], other: list[tuple[Any, Any]]
    ) -> list[tuple[Any, Any]]:
        for pair in other:
            acc = self._put(acc, tuple(pair))
        return acc

    @property
    def lowest(self) -> int:
        return self.most

    def ranks(self, values: list[Any], weights: Array | None, keys: list[int]) -> Array | None:
        if weights is None:
            return None
        ranks = in_order(weights)
        return ~ranks if self.largest else ranks

    def results(self, acc: list[tuple[Any, Any]]) -> list[Result]:
        return [Result(self.values.value(v), self.weights.value(w)) for w, v in acc]


def in_order(numbers: Array) -> Array:
    """Unsigned integers in the order of some numbers; what is none comes first."""
    if numbers.dtype == np.uint64:
        return numbers
    top = np.uint64(1 << 63)
    if numbers.dtype != np.float64:
        return numbers.astype(np.int64).view(np.uint64) ^ top
    bits = (numbers + 0.0).view(np.uint64)
    ordered = np.where(bits >= top, ~bits, bits | top)
    return np.where(np.isnan(numbers), np.uint64(0), ordered)


@dataclass(frozen=True, slots=True)
class _Reversed:
    """What sorts the other way round."""

    of: Any

    def __lt__(self, other: _Reversed) -> bool:
        smaller: bool = other.of < self.of
        return smaller


@dataclass(frozen=True, slots=True)
class SmallSet(Table):
    """The distinct values, if they are at most `most`; None once there were more."""

    most: int
    keys: Keys

    def empty(self) -> dict[Any, None] | None:
        return {}

    def add(
        self, acc: dict[Any, None] | None, value: Any, weight: Any = None, key: int = 0
    ) -> dict[Any, None] | None:
        if acc is not None:
            acc[self.keys.key(value)] = None
        return self._small(acc)

    def add_times(
        self, acc: dict[Any, None] | None, value: Any, weight: Any, key: int, times: int
    ) -> dict[Any, None] | None:
        return self.add(acc, value) if times else acc

    def merge(
        self, acc: dict[Any, None] | None, other: dict[Any, None] | None
    ) -> dict[Any, None] | None:
        return None if acc is None or other is None else self._small(acc | other)

    @property
    def lowest(self) -> int:
        return self.most + 1

    def ranks(self, values: list[Any], weights: Array | None, keys: list[int]) -> Array | None:
        # Whichever they are, one more than there may be says that there are too many.
        return np.arange(len(values), dtype=np.uint64)

    def _small(self, acc: dict[Any, None] | None) -> dict[Any, None] | None:
        return acc if acc is not None and len(acc) <= self.most else None

    def results(self, acc: dict[Any, None] | None) -> list[Result]:
        return [Result(self.keys.value(kept)) for kept in sorted(acc or (), key=self.keys.order)]


def _can_add(declared: Declared) -> str | None:
    if amounts_of(declared.value) is not None:
        return None
    return f"sum adds int, uint, float and time, and tuples and maps of these; got {declared.value}"


def _sum(declared: Declared) -> Sum:
    amounts = amounts_of(declared.value)
    assert amounts is not None
    return Sum(amounts)


def _text(declared: Declared) -> str | None:
    if declared.value in (STRING, BYTES):
        return None
    return f"text takes string or bytes; got {declared.value}"


def _extremes(name: str, *, largest: bool) -> TableKind:
    def table(declared: Declared) -> Extremes:
        assert declared.parameter is not None and declared.weight is not None
        weights = keys_of(declared.weight)
        return Extremes(declared.parameter, keys_of(declared.value), weights, largest)

    return TableKind(
        name, f"table {name}(10) of v: string weight w: int", True, True,
        lambda d: anything(d) or ordered_in_turn(d.weight, "a weight"), table,
        weight=lambda declared: declared.weight,
    )  # fmt: skip


def _collection(declared: Declared) -> Collection:
    return Collection(keys_of(declared.value))


EXACT: tuple[TableKind, ...] = (
    TableKind("collection", "table collection of v: string", False, False, anything, _collection),
    TableKind("text", "table text of v: string", False, False, _text, _collection),
    # Its number is the size of blocks to compress, which says nothing here.
    TableKind("recordio", "table recordio(0) of v: bytes", None, False, anything, _collection,
              least=0),
    TableKind("sum", "table sum of v: int", False, False, _can_add, _sum),
    TableKind("mrcounter", "table mrcounter of v: int", False, False,
              lambda d: None if d.value == INT else f"mrcounter counts int; got {d.value}", _sum),
    _extremes("maximum", largest=True),
    _extremes("minimum", largest=False),
    TableKind("set", "table set(10) of v: string", True, False, anything,
              lambda d: SmallSet(d.parameter or 0, keys_of(d.value))),
)  # fmt: skip
