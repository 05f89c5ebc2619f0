"""Joins of tables as joins of relations.

The key of the second table takes the names that it has in the first, and so leaves once.
"""

from __future__ import annotations

from collections.abc import Iterable

from millstream.calculus.functions import Assign, Columns, Filter, Join, Lookup, Map, Merge
from millstream.calculus.terms import Call, Column
from millstream.calculus.types import BOOLEAN, Schema
from millstream.calculus.wiring import Queue, Wiring
from millstream.languages.algebra.columns import flag, kept, nothing, unlike
from millstream.languages.algebra.nodes import ForeignJoin, InnerJoin, OuterJoin, TableNode


def inner_join(wiring: Wiring, node: InnerJoin, left: Queue, right: Queue) -> Queue:
    renamed = _with_key(wiring, node.right, right, node.key)
    # Keys of tables may be null, and then are keys like any other.
    return wiring.add(Join(_pairs(node.key), nulls_match=True), left, renamed, name="joined")


def foreign_join(wiring: Wiring, node: ForeignJoin, left: Queue, right: Queue) -> Queue:
    renamed = _with_key(wiring, node.right, right, node.on)
    joined = wiring.add(Join(_pairs(node.on)), left, renamed, name="joined")
    if node.found is None:
        return joined
    there = (*kept(joined.schema), flag(node.found, value=True))
    found = wiring.add(Map(there), joined, name="found")
    alone = _without(wiring, left, renamed, node.on, nulls_match=False)
    absent = (*kept(left.schema), *nothing(_values(node.right)), flag(node.found, value=False))
    missing = wiring.add(Map(absent), alone, name="missing")
    return wiring.add(Merge(), found, missing, name="foreign")


def outer_join(wiring: Wiring, node: OuterJoin, left: Queue, right: Queue) -> Queue:
    renamed = _with_key(wiring, node.right, right, node.key)
    pairs = wiring.add(Join(_pairs(node.key), nulls_match=True), left, renamed, name="joined")

    def flags(*, has_left: bool, has_right: bool) -> Columns:
        return (flag(node.has_left, value=has_left), flag(node.has_right, value=has_right))

    both = (*kept(pairs.schema), *flags(has_left=True, has_right=True))
    parts = [wiring.add(Map(both), pairs, name="both")]
    only_left = (
        *kept(left.schema), *nothing(_values(node.right)), *flags(has_left=True, has_right=False)
    )  # fmt: skip
    alone = _without(wiring, left, renamed, node.key, nulls_match=True)
    parts.append(wiring.add(Map(only_left), alone, name="only_left"))
    only_right = {
        c.name: c
        for c in (
            *nothing(left.schema), *kept(renamed.schema), *flags(has_left=False, has_right=True)
        )
    }  # fmt: skip
    alone = _without(wiring, renamed, left, node.key, nulls_match=True)
    ordered = tuple(only_right[n] for n in node.schema.names)
    parts.append(wiring.add(Map(ordered), alone, name="only_right"))
    return wiring.add(Merge(), *parts, name="outer")


def _without(
    wiring: Wiring, queue: Queue, other: Queue, on: tuple[str, ...], *, nulls_match: bool
) -> Queue:
    """The rows that have no partner."""
    found = unlike("found", queue.schema)
    asked = wiring.add(Lookup(found, _pairs(on), nulls_match), queue, other, name="asked")
    is_alone = Call("not", (Column(found, BOOLEAN),), BOOLEAN)
    alone = wiring.add(Filter(is_alone), asked, name="alone")
    return wiring.add(Map(kept(queue.schema)), alone, name="alone")


def _with_key(wiring: Wiring, table: TableNode, queue: Queue, names: Iterable[str]) -> Queue:
    """The table with its key under other names."""
    keys = tuple(
        Assign(new, Column(old, table.schema[old]))
        for new, old in zip(names, table.key, strict=True)
    )
    columns = (*keys, *kept(_values(table)))
    if columns == kept(queue.schema):
        return queue
    return wiring.add(Map(columns), queue, name="keyed")


def _values(table: TableNode) -> Schema:
    return Schema(tuple(f for f in table.schema if f.name not in table.key))


def _pairs(names: Iterable[str]) -> tuple[tuple[str, str], ...]:
    return tuple((n, n) for n in names)
