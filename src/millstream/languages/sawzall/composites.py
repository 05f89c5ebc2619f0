"""Composites, `{...}`, which take their type from where they stand."""

from __future__ import annotations

from millstream.calculus.scripts import Expression, Make
from millstream.languages.sawzall.scope import COMPOSITE, is_same
from millstream.values.records.types import ArrayOf, MapOf, RecordType, TupleOf, resolved


class Pairs(MapOf):
    """Of `{k: v}`, whose values may be composites that are still to be typed."""


def are_alike(value: Expression) -> bool:
    """Whether all items of a composite whose types are known are of one type."""
    items = value.items if isinstance(value, Make) else ()
    known = [i.type for i in items if i.type != COMPOSITE]
    return all(is_same(one, known[0]) for one in known)


def item_types(value: Expression, type_: RecordType) -> list[RecordType] | None:
    """What the items of a composite must be for it to be an array, a map or a tuple."""
    if not isinstance(value, Make):
        return None
    is_pairs, count = isinstance(value.type, Pairs), len(value.items)
    match resolved(type_):
        case ArrayOf(element) if not is_pairs:
            return [element] * count
        case MapOf(key, inner) if is_pairs or not count:
            return [key, inner] * (count // 2)
        case TupleOf(fields) if not is_pairs and len(fields) == count:
            return [f.type for f in fields]
    return None


def count_fault(value: Expression, type_: RecordType) -> str | None:
    """What is wrong with a composite that is to be a tuple of another number of fields."""
    wanted = resolved(type_)
    if not isinstance(value, Make) or not isinstance(wanted, TupleOf) or wanted.is_proto:
        return None
    fields, values = len(wanted.fields), len(value.items)
    if fields == values or isinstance(value.type, Pairs):
        return None
    counts = (f"{n} {word}{'s' * (n != 1)}" for n, word in ((fields, "field"), (values, "value")))
    return "the tuple has {}, got {}".format(*counts)
