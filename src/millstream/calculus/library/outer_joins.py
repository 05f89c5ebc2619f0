"""Outer joins: the pairs, and the rows without a partner, padded with nulls.

pairs  = Join(left, right)
asked  = Lookup(left, keys of right)     every row knows whether it has a partner
padded = Map(Filter(asked))              those that have none, with nulls
outer  = Merge(pairs, padded)
"""

from __future__ import annotations

from millstream.calculus.functions import Assign, Columns, Filter, Lookup, Map
from millstream.calculus.library.columns import unlike
from millstream.calculus.terms import Call, Column, Literal
from millstream.calculus.types import BOOLEAN, Schema
from millstream.calculus.wiring import Queue, Wiring
from millstream.source import Span

Pairs = tuple[tuple[str, str], ...]


def padded(schema: Schema, side: Schema) -> Columns:
    """The columns of a schema, with nulls for those that a side does not have."""
    return tuple(
        Assign(f.name, Column(f.name, f.type) if f.name in side else Literal(None, f.type))
        for f in schema
    )


def without_partner(
    wiring: Wiring,
    side: Queue,
    other: Queue,
    on: Pairs,
    made: Columns,
    *,
    name: str,
    nulls_match: bool = False,
    origin: Span | None = None,
) -> Queue:
    """The rows of a side for which the other has none with equal keys, as `made` of them.

    Only the keys of the other side are looked at, so that a change to the rest of a row
    asks nothing anew.
    """
    keys = other
    if on:
        keys = wiring.columns(other, {key: key for _, key in on}, f"{name}_keys", origin)
    there = unlike("found", side.schema)
    asked = wiring.add(
        Lookup(there, on, nulls_match), side, keys, name=f"{name}_lookup", origin=origin
    )
    is_alone = Call("not", (Column(there, BOOLEAN),), BOOLEAN)
    alone = wiring.add(Filter(is_alone), asked, name=f"{name}_alone", origin=origin)
    return wiring.add(Map(made), alone, name=f"{name}_padded", origin=origin)
