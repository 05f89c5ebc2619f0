"""Where the order of an instant would be lost, if partitions run in different places.

What comes from several places is put back into order by time and rank. Rows of a log have
ranks of their own, and whatever is made of them has the rank of its row. Rows that a relation
sets free at an instant have one rank, and the order of their values is their order. Several rows
that are made of one have its rank, and are in order as long as they are together: keys that they
do not share tear them apart. What is made of rows that a relation sets free, row by row, or what
streams give that are merged or joined in turn, is in no order that can be seen: it must be made
in one place, where each item is given a rank, if it then goes elsewhere to something that sees
the order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from millstream.calculus.each import PerKey
from millstream.calculus.functions import (
    Branch,
    Changes,
    Columns,
    Cubify,
    Duplicate,
    Filter,
    FlatMap,
    Fold,
    Judge,
    Map,
    Merge,
    Now,
    Opaque,
    Range,
    RoundRobinJoin,
    RoundRobinSplit,
    Tally,
    ToStream,
    Until,
)
from millstream.calculus.graph import Operator, Program, in_dependency_order
from millstream.calculus.sheets import Sheet
from millstream.calculus.terms import Column
from millstream.calculus.types import QueueType, Schema
from millstream.calculus.unique import Key, unique_keys

#: What orders items by neither rank nor value.
_IN_TURN = (Merge, RoundRobinJoin)
#: What shows the order of its input only if the order of what it gives is seen.
_ROW_BY_ROW = (Map, FlatMap, Filter, Duplicate, Opaque, Judge, Merge)


@dataclass(frozen=True, slots=True)
class _ByValues:
    """Rows of an instant are in the order of their values; a key tells them apart, if known."""

    key: Key | None


@dataclass(frozen=True, slots=True)
class _Copies:
    """Rows are in the order of their ranks, and those made of one row in the order they came in.

    All of these have the same values in the `shared` columns.
    """

    shared: frozenset[str]


#: How the items of an instant are known to be ordered.
_BY_RANK, _LOST = "by rank", "lost"
_Order = _ByValues | _Copies | str


def lost_by(program: Program, queues: Iterable[str], placed: frozenset[str]) -> frozenset[str]:
    """What should be made in one place so that these queues can leave theirs.

    Given is what is made in one place already; the answer are queues that one operator makes.
    """
    orders, seen = _orders(program, placed), _seen_in_order(program)
    producers = program.producers()
    lost: set[str] = set()
    for queue in queues:
        if queue in seen and orders.get(queue) == _LOST:
            op = producers[queue]
            while not isinstance(op.function, _IN_TURN) and (before := _first_lost(op, orders)):
                op = producers[before]  # it was lost before
            lost.update(op.outputs)
    return frozenset(lost)


def _first_lost(op: Operator, orders: dict[str, _Order]) -> str | None:
    return next((q for q in op.inputs if orders.get(q) == _LOST), None)


def _orders(program: Program, placed: frozenset[str]) -> dict[str, _Order]:
    """How the items of every stream are ordered, if some are made in one place."""
    types, keys = program.queue_types(), unique_keys(program)
    orders: dict[str, _Order] = dict.fromkeys(program.input_names, _BY_RANK)
    mixed = _mixed(program)
    for op in in_dependency_order(program):
        streams = [q for q in op.outputs if not types[q].is_relation]
        copies = [one for q in op.inputs if isinstance(one := orders.get(q), _Copies)]
        if placed.intersection(op.outputs):
            made: _Order = _Copies(frozenset()) if copies else _BY_RANK
        elif isinstance(op.function, Changes):
            made = _ByValues(op.function.by)
        elif isinstance(op.function, ToStream):
            made = _ByValues(keys.get(op.inputs[0]))
        elif isinstance(op.function, Sheet) and not mixed.isdisjoint(op.inputs):
            made = _LOST
        else:
            made = _made(op, [orders.get(q, _BY_RANK) for q in op.inputs], types)
        orders.update(dict.fromkeys(streams, made))
    return orders


def _mixed(program: Program) -> frozenset[str]:
    """Streams whose items have the ranks of several inputs: their positions are not an order."""
    mixed: set[str] = set()
    for op in in_dependency_order(program):
        hands_on = op.function.acts_at_once and not mixed.isdisjoint(op.inputs)
        if hands_on or isinstance(op.function, RoundRobinJoin):
            mixed.update(op.outputs)
    return frozenset(mixed)


def _made(op: Operator, inputs: list[_Order], types: Mapping[str, QueueType]) -> _Order:
    """The order of what an operator makes of streams."""
    first, schema = inputs[0], types[op.inputs[0]].schema
    match op.function:
        case Merge() | RoundRobinJoin():
            return _LOST
        case Filter() | Duplicate() | RoundRobinSplit():
            return first
        case FlatMap(branches) if first == _BY_RANK and len(branches) > 1:
            return _Copies(_shared(branches))
        case _ if isinstance(first, _Copies) and len(inputs) == 1:
            return _of_copies(op, first, types)
        case Map(columns) if isinstance(first, _ByValues):
            return first if _begins_with(columns, schema, first.key) else _LOST
        case Fold(emit=emit) if isinstance(first, _ByValues):
            # Equal rows need not give equal ones.
            is_kept = first.key is not None and _begins_with(emit or (), schema, first.key)
            return first if is_kept else _LOST
        case _:
            return _BY_RANK if all(input_ == _BY_RANK for input_ in inputs) else _LOST


def _shared(branches: tuple[Branch, ...]) -> frozenset[str]:
    """The columns that are the same whichever branch gives a row."""
    first, *others = ({c.name: c.term for c in branch.columns} for branch in branches)
    return frozenset(n for n, term in first.items() if all(o[n] == term for o in others))


def _of_copies(op: Operator, order: _Copies, types: Mapping[str, QueueType]) -> _Order:
    """What is made of rows of which some are made of one: they stay together, or are torn apart."""
    facts = op.function.facts(tuple(types[q] for q in op.inputs), 0)
    is_kept = facts.key is None or set(facts.key) <= order.shared
    if isinstance(op.function, PerKey) and op.function.first is not None:
        # So are blocks (`net_blocks`): of the two that a row goes to, one gives something for it.
        return _BY_RANK
    return _Copies(order.shared & facts.forwards) if is_kept else _LOST


def _begins_with(columns: Columns, schema: Schema, key: Key | None) -> bool:
    """Whether columns begin with those that decide on the order of the rows they are made of."""
    kept: set[str] = set()
    for column, name in zip(columns, schema.names, strict=False):
        if not (isinstance(column.term, Column) and column.term.name == column.name == name):
            break
        kept.add(name)
    return len(kept) == len(schema) or (key is not None and set(key) <= kept)


def _seen_in_order(program: Program) -> frozenset[str]:
    """The queues whose order shows in what comes out or is kept."""
    seen = set(program.outputs)
    for op in reversed(in_dependency_order(program)):
        is_seen = not isinstance(op.function, (*_ROW_BY_ROW, Range, Until, Now, Cubify, Tally))
        is_seen |= isinstance(op.function, _ROW_BY_ROW) and not seen.isdisjoint(op.outputs)
        seen.update(op.inputs if is_seen else ())
    return frozenset(seen)
