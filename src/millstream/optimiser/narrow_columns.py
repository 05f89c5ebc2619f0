"""Columns that nobody reads do not enter windows, joins and lookups.

Law: a window decides by time and order, a join by its keys and its condition, a lookup by
its keys; what else is in a row only travels along. So dropping a column before is
dropping it after, as long as nothing behind reads it. Rows that become equal stay as
many as they were, because relations are bags.

    before  (w) <- Range[1 h](trades); (out) <- Aggregate[by symbol; n = count()](w);
    after   (trades.narrow) <- Map[symbol](trades); (w) <- Range[1 h](trades.narrow); ...

A merge is narrowed on all its inputs at once, and for the sake of what lies before it.
What reads whole rows (Distinct, Top, Istream and their like) keeps all columns alive.
"""

from __future__ import annotations

from dataclasses import replace

from millstream.calculus.functions import (
    Assign,
    Join,
    Lookup,
    Map,
    Merge,
    RoundRobinJoin,
    Window,
)
from millstream.calculus.graph import Operator, Program, in_dependency_order
from millstream.calculus.terms import Column
from millstream.calculus.types import Kind, QueueType, Schema

#: Functions that keep rows as they are given, so that every column costs memory.
_KEEPERS = (Window, Join, Lookup)


def narrow_columns(program: Program) -> Program:
    """Narrow the first queue that can be; the same program if there is none."""
    if any(isinstance(op.function, RoundRobinJoin) for op in program.operators):
        return program  # in a cycle what is read behind is also what is read before
    types = program.queue_types()
    needed = columns_needed(program, types)
    for op in in_dependency_order(program):
        if isinstance(op.function, Merge):
            kept = _kept(types[op.outputs[0]].schema, needed[op.outputs[0]])
            if len(kept) < len(types[op.outputs[0]].schema):
                for queue in op.inputs:  # they must stay alike
                    program = _narrowed(program, queue, kept)
                return program
        elif isinstance(op.function, _KEEPERS):
            for queue in op.inputs:
                kept = _kept(types[queue].schema, needed[queue])
                if len(kept) < len(types[queue].schema):
                    return _narrowed(program, queue, kept)
    return program


def columns_needed(program: Program, types: dict[str, QueueType]) -> dict[str, frozenset[str]]:
    """For every queue the columns that something behind it reads."""
    needed = {q: frozenset(types[q].schema.names) for q in program.outputs}
    for op in reversed(in_dependency_order(program)):
        wanted = frozenset[str]().union(*(needed.get(q, frozenset()) for q in op.outputs))
        inputs = tuple(types[q] for q in op.inputs)
        for index, queue in enumerate(op.inputs):
            facts = op.function.facts(inputs, index)
            needed[queue] = facts.reads | (facts.forwards & wanted)
            if isinstance(op.function, Merge):
                # Only all inputs together can be narrowed.
                needed[queue] = frozenset(inputs[index].schema.names)
    return needed


def _kept(schema: Schema, needed: frozenset[str]) -> Schema:
    """The columns to keep; a row must have at least one, and a short one if none is read."""
    kept = tuple(f for f in schema if f.name in needed)
    if not kept and schema.fields:
        kept = (min(schema.fields, key=lambda f: f.type.kind is Kind.TEXT),)
    return Schema(kept)


def _narrowed(program: Program, queue: str, kept: Schema) -> Program:
    """Drop columns on a queue: by the Map that makes it, or by one more."""
    producer = program.producers().get(queue)
    if producer is not None and isinstance(producer.function, Map):
        columns = tuple(c for c in producer.function.columns if c.name in kept)
        narrow = replace(producer, function=Map(columns))
        operators = tuple(narrow if op is producer else op for op in program.operators)
        return replace(program, operators=operators)
    columns = tuple(Assign(f.name, Column(f.name, f.type)) for f in kept)
    reader, _ = program.consumers()[queue]
    name = f"{queue}.narrow"
    drop = Operator(Map(columns), (queue,), (name,), origin=reader.origin)
    operators_: list[Operator] = []
    for op in program.operators:
        if op is reader:
            inputs = tuple(name if q == queue else q for q in op.inputs)
            operators_ += [drop, replace(op, inputs=inputs)]
        else:
            operators_.append(op)
    return replace(program, operators=tuple(operators_))
