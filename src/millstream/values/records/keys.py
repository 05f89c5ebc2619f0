"""Values as keys: hashable, one per value, in an order, with a hash that is the same everywhere.

A map becomes a tuple of pairs, in order; -0.0 becomes 0.0, and every NaN the same one. What is
already so stays as it is.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from millstream.values.records.packing import packed
from millstream.values.records.types import (
    FLOAT,
    ArrayOf,
    Basic,
    FunctionOf,
    MapOf,
    RecordType,
    TupleOf,
    resolved,
)

_Function = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Keys:
    """For one type: `key` of a value, `value` of a key, and what sorts keys."""

    key: _Function
    value: _Function
    order: _Function


def same(value: Any) -> Any:
    return value


def _float_key(value: float) -> float:
    return value + 0.0 if value == value else math.nan


def _float_order(value: float) -> tuple[bool, float]:
    """What is not a number comes first."""
    return (False, 0.0) if value != value else (True, value)


_PLAIN = Keys(same, same, same)
_FLOATS = Keys(_float_key, same, _float_order)


def keys_of(type_: RecordType) -> Keys:
    match resolved(type_):
        case Basic() as basic:
            return _FLOATS if basic == FLOAT else _PLAIN
        case ArrayOf(element):
            return _keys_of_arrays(element)
        case MapOf(key, value):
            return _keys_of_maps(key, value)
        case TupleOf(fields):
            return _keys_of_tuples(tuple(f.type for f in fields))
        case FunctionOf() as function:
            raise AssertionError(f"a {function} is no key")
        case other:
            raise AssertionError(other)


def _lazy(type_: RecordType) -> Callable[[], Keys]:
    """The keys of what is inside, looked at when there is a value: a type may contain itself."""
    known: list[Keys] = []

    def inner() -> Keys:
        if not known:
            known.append(keys_of(type_))
        return known[0]

    return inner


def _keys_of_arrays(element: RecordType) -> Keys:
    inner = _lazy(element)

    def each(part: str) -> _Function:
        def convert(items: tuple[Any, ...]) -> tuple[Any, ...]:
            function = getattr(inner(), part)
            return items if function is same else tuple(map(function, items))

        return convert

    return Keys(each("key"), each("value"), each("order"))


def _keys_of_tuples(types: tuple[RecordType, ...]) -> Keys:
    inner = [_lazy(t) for t in types]

    def each(part: str) -> _Function:
        def convert(items: tuple[Any, ...]) -> tuple[Any, ...]:
            return tuple(getattr(i(), part)(v) for i, v in zip(inner, items, strict=True))

        return convert

    return Keys(each("key"), each("value"), each("order"))


def _keys_of_maps(key: RecordType, value: RecordType) -> Keys:
    keys, values = _lazy(key), _lazy(value)

    def key_(items: dict[Any, Any]) -> tuple[Any, ...]:
        k, v = keys(), values()
        pairs = [(k.key(a), v.key(b)) for a, b in items.items()]
        return tuple(sorted(pairs, key=lambda pair: k.order(pair[0])))

    def value_(pairs: tuple[Any, ...]) -> dict[Any, Any]:
        k, v = keys(), values()
        return {k.value(a): v.value(b) for a, b in pairs}

    def order(pairs: tuple[Any, ...]) -> tuple[Any, ...]:
        k, v = keys(), values()
        return tuple((k.order(a), v.order(b)) for a, b in pairs)

    return Keys(key_, value_, order)


_MASK = 2**64 - 1


def mix64(number: int, seed: int = 0) -> int:
    """A hash of a plain integer: the bits of SplitMix64, which gives no two of them the same."""
    mixed = number + (seed + 1) * 0x9E3779B97F4A7C15 & _MASK
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & _MASK
    return mixed ^ mixed >> 31


def mixes64(numbers: list[int], seed: int = 0) -> list[int]:
    """The hashes of many plain integers."""
    try:
        mixed = np.array(numbers, np.int64).view(np.uint64)
    except OverflowError:
        mixed = np.array([n & _MASK for n in numbers], np.uint64)
    mixed += np.uint64((seed + 1) * 0x9E3779B97F4A7C15 & _MASK)
    mixed = (mixed ^ mixed >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ mixed >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    hashes: list[int] = (mixed ^ mixed >> np.uint64(31)).tolist()
    return hashes


def hash64(key: Any, seed: int = 0) -> int:
    """BLAKE2b of the packed key, of 8 bytes; another function for every seed."""
    digest = hashlib.blake2b(packed(key), digest_size=8, salt=seed.to_bytes(8, "little"))
    return int.from_bytes(digest.digest(), "big")
