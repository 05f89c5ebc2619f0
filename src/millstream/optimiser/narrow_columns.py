"""Columns that nobody reads do not enter windows, joins and lookups.

Law: a window decides by time and order, a join by its keys and its condition, a lookup by
its keys; what else is in a row only travels along. So dropping a column before is
dropping it after, as long as nothing behind reads it. Rows that become equal stay as
many as they were, because relations are bags.

    before  (w) <- Range[1 h](trades); (out) <- Aggregate[by symbol; n = count()](w);
    after   (trades.narrow) <- Map[symbol](trades); (w) <- Range[1 h](trades.narrow); ...

A merge is narrowed for the sake of what lies before it. A sheet does not show what nobody reads,
and has no cells that only that needs; it sends as many tuples as before.
What reads whole rows (Distinct, Top, Istream and their like) keeps all columns alive.
"""

from __future__ import annotations

from collections.abc import Iterator
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
from millstream.calculus.graph import Operator, Program, has_cycle, in_dependency_order, rewritten
from millstream.calculus.sheets import Sheet
from millstream.calculus.terms import Column
from millstream.calculus.types import Kind, QueueType, Schema

#: Functions that keep rows as they are given, so that every column costs memory; and merges.
_KEEPERS = (Window, Join, Lookup, Merge)


def narrow_columns(program: Program) -> Program:
    """Narrow all queues that can be; the same program if there are none."""
    if mixes_ways(program):
        return program
    needed = columns_needed(program)
    types = dict(program.queue_types())
    instead: dict[int, list[Operator]] = {}
    for op in in_dependency_order(program):
        # From the inputs on: what is narrow before a window is narrow behind it.
        wide = [
            q for q in op.inputs if any(name not in needed[q] for name in types[q].schema.names)
        ]
        if isinstance(op.function, Sheet):
            narrower = _narrow_sheet(op, op.function, needed)
            if narrower is not op:
                instead[id(op)] = [narrower]
            op = narrower  # noqa: PLW2901 - what it gives is what the narrower one gives
        if isinstance(op.function, _KEEPERS) and wide:
            instead |= _narrowed(op, {q: _only(types[q], needed[q]) for q in wide}, program)
            types.update({q: _only(types[q], needed[q]) for q in wide})
        inputs = tuple(types[q] for q in op.inputs)
        types.update(
            zip(op.outputs, op.function.output_types(inputs, len(op.outputs)), strict=True)
        )
    return rewritten(program, instead)


def refusals(program: Program) -> Iterator[tuple[Operator, str]]:
    """What keeps columns that nobody behind it reads, and why it goes on to."""
    keepers = [op for op in program.operators if isinstance(op.function, _KEEPERS)]
    if not keepers or not mixes_ways(program):
        return
    if has_cycle(program):
        why = "rows come round to where they were: what is read behind it is read before it too"
        yield from ((op, why) for op in keepers)
        return
    needed, types = columns_needed(program), program.queue_types()
    for op in keepers:
        unread = sorted({n for q in op.inputs for n in types[q].schema.names if n not in needed[q]})
        if unread:
            why = "rows that are joined in turns must look alike by every way"
            yield op, f"nobody behind it reads {', '.join(unread)}, but {why}"


def mixes_ways(program: Program) -> bool:
    """Whether rows must look alike by several ways, or come round to where they were.

    What is read behind a cycle is also what is read before it.
    """
    joins = any(isinstance(op.function, RoundRobinJoin) for op in program.operators)
    return joins or has_cycle(program)


def columns_needed(program: Program, *, as_it_is: bool = False) -> dict[str, frozenset[str]]:
    """For every queue the columns that something behind it reads.

    A `Map` that will be narrowed reads only what it is narrowed to, unless the program is to be
    taken as it is.
    """
    types, readers = program.queue_types(), program.consumers()
    needed = {q: frozenset(types[q].schema.names) for q in program.outputs}
    for op in reversed(in_dependency_order(program)):
        wanted = frozenset[str]().union(*(needed[q] for q in op.outputs))
        function = op.function
        if isinstance(function, Map) and op.outputs[0] in readers and not as_it_is:
            if isinstance(readers[op.outputs[0]][0].function, _KEEPERS):
                function = _narrow_map(function, wanted)
        inputs = tuple(types[q] for q in op.inputs)
        for index, queue in enumerate(op.inputs):
            facts = function.facts(inputs, index)
            needed[queue] = facts.reads | (facts.forwards & wanted)
            if isinstance(function, _KEEPERS):
                needed[queue] = _kept(types[queue].schema, needed[queue])
    return needed


def _kept(schema: Schema, needed: frozenset[str]) -> frozenset[str]:
    """The columns to keep; a row must have at least one, and a short one if none is read."""
    kept = needed.intersection(schema.names)
    if not kept and schema.fields:
        kept = frozenset((min(schema.fields, key=lambda f: f.type.kind is Kind.TEXT).name,))
    return kept


def _only(type_: QueueType, kept: frozenset[str]) -> QueueType:
    return replace(type_, schema=Schema(tuple(f for f in type_.schema if f.name in kept)))


def _narrow_map(function: Map, kept: frozenset[str]) -> Map:
    return Map(tuple(c for c in function.columns if c.name in kept))


def _narrow_sheet(op: Operator, sheet: Sheet, needed: dict[str, frozenset[str]]) -> Operator:
    """Without what nobody reads, and without the variables of cells that only that needs."""
    narrower = sheet.narrowed([needed[q] for q in op.outputs])
    if narrower is sheet:
        return op
    waiting, kept = op.reads[: len(op.inputs)], op.reads[len(op.inputs) :]
    left = {c.address for c in narrower.stateful()}
    by_cell = zip(sheet.stateful(), kept, strict=True)
    variables = (*waiting, *(name for cell, name in by_cell if cell.address in left))
    return replace(op, function=narrower, reads=variables, writes=variables)


def _narrowed(
    reader: Operator, narrow: dict[str, QueueType], program: Program
) -> dict[int, list[Operator]]:
    """Drop columns on queues: each by the Map that makes it, or by one more."""
    instead: dict[int, list[Operator]] = {}
    drops: dict[str, Operator] = {}
    for queue, type_ in narrow.items():
        producer = program.producers().get(queue)
        if producer is not None and isinstance(producer.function, Map):
            function = _narrow_map(producer.function, frozenset(type_.schema.names))
            instead[id(producer)] = [replace(producer, function=function)]
            continue
        columns = tuple(Assign(f.name, Column(f.name, f.type)) for f in type_.schema)
        drops[queue] = Operator(Map(columns), (queue,), (f"{queue}.narrow",), origin=reader.origin)
    if drops:
        inputs = tuple(drops[q].outputs[0] if q in drops else q for q in reader.inputs)
        instead[id(reader)] = [*drops.values(), replace(reader, inputs=inputs)]
    return instead
