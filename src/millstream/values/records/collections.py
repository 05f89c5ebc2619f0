"""Functions of arrays, maps, strings and bytes that look at their elements."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from millstream.values.records.intrinsic import (
    Intrinsic,
    RecordSurroundings,
    Signature,
    plain,
    spoken,
)
from millstream.values.records.keys import keys_of, same
from millstream.values.records.types import (
    BOOL,
    BYTES,
    INT,
    STRING,
    ArrayOf,
    Basic,
    FunctionOf,
    MapOf,
    RecordType,
    resolved,
)

_Types = tuple[RecordType, ...]


def _len(args: _Types) -> Signature | str:
    if len(args) == 1:
        type_ = resolved(args[0])
        if type_ in (STRING, BYTES) or isinstance(type_, (ArrayOf, MapOf)):
            return Signature(args, INT)
    return f"expected an array, map, string or bytes, got ({spoken(args)})"


def _haskey(args: _Types) -> Signature | str:
    if len(args) == 2 and isinstance(of := resolved(args[0]), MapOf) and args[1] == of.key:
        return Signature(args, BOOL)
    return f"expected a map and a key of it, got ({spoken(args)})"


def _keys(args: _Types) -> Signature | str:
    if len(args) == 1 and isinstance(of := resolved(args[0]), MapOf):
        return Signature(args, ArrayOf(of.key))
    return f"expected a map, got ({spoken(args)})"


def _lookup(args: _Types) -> Signature | str:
    if len(args) == 3 and isinstance(of := resolved(args[0]), MapOf) and args[1:] == (
        of.key, of.value,
    ):  # fmt: skip
        return Signature(args, of.value)
    return f"expected a map, a key and a value of it, got ({spoken(args)})"


def _sorting(result: Callable[[RecordType], RecordType]) -> Callable[[_Types], Signature | str]:
    def rule(args: _Types) -> Signature | str:
        if args and isinstance(of := resolved(args[0]), ArrayOf):
            element = of.element
            compares = FunctionOf((element, element), INT)
            if len(args) == 1 and isinstance(resolved(element), Basic):
                return Signature(args, result(element))
            if len(args) == 2 and args[1] == compares:
                return Signature(args, result(element))
        return (
            "expected an array of values that have an order, or an array and a function of two "
            f"elements that gives an int, got ({spoken(args)})"
        )

    return rule


def _bind_keys(
    settings: RecordSurroundings, signature: Signature
) -> Callable[[dict[Any, Any]], Any]:
    of = resolved(signature.params[0])
    assert isinstance(of, MapOf)
    order = _own_order(of.key)
    return lambda values: tuple(sorted(values, key=order))


def _own_order(type_: RecordType) -> Callable[[Any], Any] | None:
    """What sorts values of a type; None if they are sorted as they are."""
    order = keys_of(type_).order
    return None if order is same else order


def _order(signature: Signature) -> Callable[..., Callable[[Any], Any] | None]:
    """What sorts elements: their own order, or what a function of two of them says."""
    of = resolved(signature.params[0])
    assert isinstance(of, ArrayOf)
    if len(signature.params) == 2:
        return functools.cmp_to_key
    order = _own_order(of.element)
    return lambda: order


def _bind_sort(settings: RecordSurroundings, signature: Signature) -> Callable[..., Any]:
    order = _order(signature)
    return lambda items, *compare: tuple(sorted(items, key=order(*compare)))


def _bind_sortx(settings: RecordSurroundings, signature: Signature) -> Callable[..., Any]:
    """The places of the elements in the order of sorting; equal ones stay in their order."""
    order = _order(signature)

    def sortx(items: tuple[Any, ...], *compare: Any) -> tuple[int, ...]:
        rank = order(*compare)
        if rank is None:
            return tuple(sorted(range(len(items)), key=items.__getitem__))
        return tuple(sorted(range(len(items)), key=lambda place: rank(items[place])))

    return sortx


COLLECTIONS: tuple[Intrinsic, ...] = (
    plain("len", "len(value)", _len, len),
    plain("haskey", "haskey(map, key)", _haskey, lambda values, key: key in values),
    Intrinsic("keys", "keys(map)", _keys, _bind_keys),
    plain("lookup", "lookup(map, key, otherwise)", _lookup,
          lambda values, key, otherwise: values.get(key, otherwise)),
    Intrinsic("sort", "sort(array, compare)", _sorting(ArrayOf), _bind_sort),
    Intrinsic("sortx", "sortx(array, compare)", _sorting(lambda _: ArrayOf(INT)), _bind_sortx),
)  # fmt: skip
