"""Cubes whose rows would all have to come to one place are made by parts, where rows are.

    before  (out) <- Cubify[...](rows)
    after   (out.parts) <- Cubify[..., parts](rows)                        wherever rows are
            (out.sums) <- Aggregate[by group, time; ...](out.parts)        by groups
            (out) <- Map[...](out.sums)

Only parts travel: of each place one for every group, not its rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from millstream.calculus.cube import TIME_OF_CELL
from millstream.calculus.cube_parts import result_of, together
from millstream.calculus.functions import Aggregate, Assign, Cubify, Map
from millstream.calculus.graph import Operator, Program, rewritten
from millstream.calculus.terms import Column
from millstream.calculus.types import QueueType, Schema


def cubes_in_parts(program: Program) -> Program:
    """The program with such cubes by parts; the same if there are none."""
    types = program.queue_types()
    instead = {
        id(op): list(_in_parts(op, op.function, types[op.inputs[0]].schema))
        for op in program.operators
        if isinstance(op.function, Cubify) and _is_worth_it(op.function, types[op.inputs[0]])
    }
    return rewritten(program, instead)


def _is_worth_it(function: Cubify, given: QueueType) -> bool:
    has_place = bool(function.facts((given,), 0).key)
    return not function.is_live and not has_place and bool(function.dimensions)


def _in_parts(op: Operator, function: Cubify, schema: Schema) -> Iterator[Operator]:
    sums_of = together(function.measures)
    parts = tuple(f"{queue}.parts" for queue in op.outputs)
    yield replace(op, function=replace(function, is_in_parts=True), outputs=parts)
    for part, queue, vertex in zip(parts, op.outputs, function.outputs, strict=True):
        by = (*vertex.attributes, TIME_OF_CELL)
        sums, state = f"{queue}.sums", (f"{queue}.sums",)
        yield Operator(Aggregate(by, sums_of), (part,), (sums,), state, state, op.origin)
        groups = function.schema_of(vertex, schema).fields[: len(by)]
        made = [Assign(f.name, Column(f.name, f.type)) for f in groups]
        made += [Assign(m.name, result_of(m)) for m in function.measures]
        yield Operator(Map(tuple(made)), (sums,), (queue,), origin=op.origin)
