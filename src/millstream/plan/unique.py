"""Which columns identify the rows of a relation: what makes a table of it.

A relation is known to be a table if it holds the latest row of each key, and what keeps
the key keeps that. A join with a table on its key adds columns to rows, never rows.
"""

from __future__ import annotations

from millstream.calculus.functions import Columns, Duplicate, Filter, Join, Latest, Map, Rows
from millstream.calculus.graph import Operator, Program, in_dependency_order
from millstream.calculus.terms import Column

Key = tuple[str, ...]


def unique_keys(program: Program) -> dict[str, Key]:
    """For each queue that carries a table, the columns of its key."""
    found: dict[str, Key] = {}
    for op in in_dependency_order(program):
        key = _key(op, [found.get(q) for q in op.inputs])
        if key is not None:
            found.update(dict.fromkeys(op.outputs, key))
    return found


def _key(op: Operator, inputs: list[Key | None]) -> Key | None:
    match op.function:
        case Rows(count=1, by=by, length=None) | Latest(by):
            return by
        case Filter() | Duplicate():
            return inputs[0]
        case Map(columns) if inputs[0] is not None:
            return _renamed(inputs[0], columns)
        case Join() if is_table_join(op.function, inputs):
            return inputs[0]
        case _:
            return None


def _renamed(key: Key, columns: Columns) -> Key | None:
    names = {c.term.name: c.name for c in columns if isinstance(c.term, Column)}
    return tuple(names[n] for n in key) if all(n in names for n in key) else None


def is_table_join(join: Join, keys: list[Key | None]) -> bool:
    """Whether a join is between tables, on the whole key of the second."""
    left, right = keys
    if left is None or right is None or not join.on:
        return False
    ours = [one for one, _ in join.on]
    theirs = [other for _, other in join.on]
    return sorted(theirs) == sorted(right) and len(set(ours)) == len(ours)
