"""Joins of tables as joins of relations.

The key of the second table takes the names that it has in the first, and so leaves once.
"""

from __future__ import annotations

from collections.abc import Iterable

from millstream.calculus.functions import Assign, Columns, Join, Map, Merge
from millstream.calculus.library.columns import flag, kept, nothing
from millstream.calculus.library.outer_joins import without_partner
from millstream.calculus.terms import Column
from millstream.calculus.types import Schema
from millstream.calculus.wiring import Queue, Wiring
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
    matched = wiring.add(Map(there), joined, name="found")
    absent = (*kept(left.schema), *nothing(_values(node.right)), flag(node.found, value=False))
    missing = without_partner(wiring, left, renamed, _pairs(node.on), absent, name="missing")
    return wiring.add(Merge(), matched, missing, name="foreign")


def outer_join(wiring: Wiring, node: OuterJoin, left: Queue, right: Queue) -> Queue:
    renamed = _with_key(wiring, node.right, right, node.key)
    on = _pairs(node.key)
    pairs = wiring.add(Join(on, nulls_match=True), left, renamed, name="joined")

    def flags(*, has_left: bool, has_right: bool) -> Columns:
        return (flag(node.has_left, value=has_left), flag(node.has_right, value=has_right))

    both = (*kept(pairs.schema), *flags(has_left=True, has_right=True))
    parts = [wiring.add(Map(both), pairs, name="both")]
    only_left = (
        *kept(left.schema), *nothing(_values(node.right)), *flags(has_left=True, has_right=False)
    )  # fmt: skip
    parts.append(
        without_partner(wiring, left, renamed, on, only_left, name="only_left", nulls_match=True)
    )
    only_right = {
        c.name: c
        for c in (
            *nothing(left.schema), *kept(renamed.schema), *flags(has_left=False, has_right=True)
        )
    }  # fmt: skip
    ordered = tuple(only_right[n] for n in node.schema.names)
    parts.append(
        without_partner(wiring, renamed, left, on, ordered, name="only_right", nulls_match=True)
    )
    return wiring.add(Merge(), *parts, name="outer")


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
