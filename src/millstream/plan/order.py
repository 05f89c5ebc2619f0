"""Which operators blur the order of an instant, where partitions run in different places.

Rows that a relation sets free at an instant have one rank, and the order of their values is
their order. A map that makes other values of them leaves nothing to put the rows of several
places back into order by. If what it makes comes out, it must see all of them in one place.
Inside a program that is not worth its price: see docs/semantics.md.
"""

from __future__ import annotations

from millstream.calculus.functions import (
    Columns,
    Dstream,
    Duplicate,
    Filter,
    FlatMap,
    Istream,
    Map,
    Merge,
    Opaque,
    Rstream,
)
from millstream.calculus.graph import Operator, Program, in_dependency_order
from millstream.calculus.terms import Column
from millstream.calculus.types import Schema
from millstream.calculus.unique import Key, unique_keys

_SETS_FREE = (Istream, Dstream, Rstream)
_ROW_BY_ROW = (Map, FlatMap, Opaque)
_HANDS_ON = (Filter, Duplicate)


def blurred_queues(program: Program) -> frozenset[str]:
    """What is made row by row of rows that a relation has set free, and is not in their order."""
    types, keys = program.queue_types(), unique_keys(program)
    seen = _seen_in_order(program)
    #: Of each queue of such rows the columns that tell those of an instant apart, if known.
    free: dict[str, Key | None] = {}
    blurred: set[str] = set()
    for op in in_dependency_order(program):
        if isinstance(op.function, _SETS_FREE):
            free.update(dict.fromkeys(op.outputs, keys.get(op.inputs[0])))
        elif op.inputs and op.inputs[0] in free and isinstance(op.function, _HANDS_ON):
            free.update(dict.fromkeys(op.outputs, free[op.inputs[0]]))
        elif op.inputs and op.inputs[0] in free and isinstance(op.function, _ROW_BY_ROW):
            key = free[op.inputs[0]]
            keeps = _keeps_order(op, types[op.inputs[0]].schema, key)
            free.update(dict.fromkeys(op.outputs, key if keeps else None))
            if not keeps and seen.intersection(op.outputs):
                blurred.update(op.outputs)
    return frozenset(blurred)


def _seen_in_order(program: Program) -> frozenset[str]:
    """The queues that come out row by row, so that their order is seen."""
    found = set(program.outputs)
    for op in reversed(in_dependency_order(program)):
        is_seen = isinstance(op.function, (*_ROW_BY_ROW, *_HANDS_ON, Merge))
        found.update(op.inputs if is_seen and found.intersection(op.outputs) else ())
    return frozenset(found)


def _keeps_order(op: Operator, schema: Schema, key: Key | None) -> bool:
    """Whether a map begins with the columns that decide on the order of its rows."""
    if not isinstance(op.function, Map):
        return False
    same = _first_kept(op.function.columns, schema)
    return len(same) == len(schema) or (key is not None and set(key) <= same)


def _first_kept(columns: Columns, schema: Schema) -> set[str]:
    kept: set[str] = set()
    for column, name in zip(columns, schema.names, strict=False):
        if not (isinstance(column.term, Column) and column.term.name == column.name == name):
            break
        kept.add(name)
    return kept
