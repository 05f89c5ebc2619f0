"""Which columns identify the rows of a relation: of each value of them there is one row at most.

The latest row of each key and the sums of each group are identified by their keys, and what
keeps the key keeps that. A join with such a relation on its key adds columns to rows, never
rows. Two relations with the same key have it together as well if no value of it is in both: the
rows that are there and, for those who ask for others, rows of nulls.
"""

from __future__ import annotations

from millstream.calculus import functions
from millstream.calculus.apart import Origins
from millstream.calculus.cube import TIME_OF_CELL
from millstream.calculus.graph import Operator, Program, in_dependency_order
from millstream.calculus.terms import Column
from millstream.calculus.types import QueueType

Key = tuple[str, ...]


def unique_keys(program: Program) -> dict[str, Key]:
    """For each queue that carries such a relation, the columns of its key; there may be none."""
    types = program.queue_types()
    origins = Origins(program)
    keys: dict[str, Key] = {}
    for op in in_dependency_order(program):
        inputs = [keys.get(q) for q in op.inputs]
        key = _key(op, inputs, types[op.inputs[0]])
        if isinstance(op.function, functions.Merge) and types[op.inputs[0]].is_relation:
            key = _common_key(op, inputs, origins)
        if key is not None:
            keys.update(dict.fromkeys(op.outputs, key))
    return keys


def _key(op: Operator, inputs: list[Key | None], first: QueueType) -> Key | None:
    match op.function:
        case functions.Rows(count=1, by=by) | functions.Latest(by) | functions.Aggregate(by):
            return by
        case functions.Cubify(outputs=(vertex,)):
            return (*vertex.attributes, TIME_OF_CELL)
        case functions.Top(count=1):
            return ()
        case (
            functions.Filter() | functions.Duplicate() | functions.Lookup() | functions.Except()
        ) if first.is_relation:
            return inputs[0]
        case functions.Map(columns) if inputs[0] is not None:
            return _renamed(inputs[0], columns)
        case functions.Join(on) if is_within(inputs[1], [other for _, other in on]):
            return inputs[0]
        case functions.Distinct():
            return first.schema.names
        case _:
            return None


def _common_key(op: Operator, inputs: list[Key | None], origins: Origins) -> Key | None:
    """The key of two relations together."""
    match inputs, op.inputs:
        case [(tuple() as key), (tuple() as other)], (first, second) if set(key) == set(other):
            return key if origins.are_apart(first, second, key) else None
    return None


def _renamed(key: Key, columns: functions.Columns) -> Key | None:
    # Of several copies the first, which is what whoever looks up by it has put in front.
    names = {c.term.name: c.name for c in reversed(columns) if isinstance(c.term, Column)}
    return tuple(names[n] for n in key) if all(n in names for n in key) else None


def is_within(key: Key | None, columns: list[str]) -> bool:
    """Whether these columns identify the rows of a relation with such a key."""
    return key is not None and set(key) <= set(columns)
