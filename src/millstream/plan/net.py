"""Which relations travel consolidated: no change undoes another of its instant, all in order.

What judges rows, or puts them into cells, sums up what it says; what only gives columns other
names keeps that so.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

from millstream.calculus.functions import Cubify, Duplicate, Filter, Judge, Map
from millstream.calculus.graph import Operator, Program, in_dependency_order
from millstream.calculus.terms import Column
from millstream.calculus.types import Schema
from millstream.plan.steps import Plan


def consolidated_queues(plan: Plan) -> frozenset[str]:
    """What carries ranks is not summed up: every change has a place of its own there."""
    types = plan.program.queue_types()
    walked = {q for step in plan.steps if step.fallback is not None for q in step.outputs}
    queues: set[str] = set()
    for op in in_dependency_order(plan.program):
        is_judged = isinstance(op.function, Judge) and types[op.inputs[0]].is_relation
        is_cube = isinstance(op.function, Cubify) and not op.function.is_in_parts
        is_cube = is_cube and not walked.intersection(op.outputs)
        is_summed = is_judged or is_cube
        is_kept = op.inputs[0] in queues and _keeps_rows(op, types[op.inputs[0]].schema)
        if (is_summed or is_kept) and not plan.ranked.intersection(op.outputs):
            queues.update(op.outputs)
    return frozenset(queues)


def _keeps_rows(op: Operator, schema: Schema) -> bool:
    """Whether rows stay as they are but for the names of their columns."""
    if isinstance(op.function, Duplicate):
        return True
    if not isinstance(op.function, Map):
        return False
    kept = [c.term.name for c in op.function.columns if isinstance(c.term, Column)]
    return tuple(kept) == schema.names and len(kept) == len(op.function.columns)


class Leaving(NamedTuple):
    """By which columns of a queue, first to last, its rows are ordered where they leave.

    Those that are made of others on the way are left out; before the first of these stand the
    ones that are `leading`.
    """

    columns: tuple[str, ...] = ()
    leading: tuple[str, ...] = ()


NO_ORDER = Leaving()


def leaving_order(program: Program, queue: str) -> Leaving:
    """The order of rows that leave by row functions alone; of others there is none."""
    types = program.queue_types()
    readers = {name: op for name, (op, _) in program.consumers().items()}
    columns = {name: name for name in types[queue].schema.names}
    while queue not in program.outputs:
        reader = readers.get(queue)
        if reader is None or not isinstance(reader.function, Map | Filter):
            return NO_ORDER
        (queue,) = reader.outputs
        if isinstance(reader.function, Map):
            plain = {c.name: c.term.name for c in reader.function.columns
                     if isinstance(c.term, Column)}  # fmt: skip
            columns = {name: columns[old] for name, old in plain.items() if old in columns}
    plain_first = itertools.takewhile(columns.__contains__, types[queue].schema.names)
    leading = dict.fromkeys(columns[name] for name in plain_first)
    return Leaving(tuple(dict.fromkeys(columns.values())), tuple(leading))
