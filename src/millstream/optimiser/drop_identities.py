"""What only hands on is left out.

Law: who reads what it gives can read what it is given.

    before  (q) <- Map[a, b](in); (r) <- Filter[true](q); (out) <- Filter[a > 1](r);
    after   (out) <- Filter[a > 1](in);

A Map hands on if it gives all columns under their names and in their order; a filter of items
if it pushes what it pops, and what comes was made by another one: items from elsewhere are first
made as narrow as it takes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from millstream.calculus.functions import Duplicate, Filter, Map
from millstream.calculus.graph import Operator, Program, rewritten, without_copies
from millstream.calculus.terms import Column, Literal
from millstream.calculus.types import QueueType
from millstream.calculus.work import Work


def drop_identities(program: Program) -> Program:
    """Leave out all that only hands on; the same program if nothing does."""
    types, producers = program.queue_types(), program.producers()
    ends = set(program.input_names).union(program.outputs)
    idle = [
        op for op in program.operators
        if _hands_on(op, types, producers) and not ends.issuperset((*op.inputs, *op.outputs))
    ]  # fmt: skip
    if not idle:
        return program
    copies = {id(op): [replace(op, function=Duplicate(), reads=(), writes=())] for op in idle}
    return without_copies(rewritten(program, copies))


def refusals(program: Program) -> Iterator[tuple[Operator, str]]:
    """The filters that push what they pop and stay, and why."""
    for op in program.operators:
        if isinstance(op.function, Work) and op.function.is_identity:
            yield op, "what it is given was not made by a filter, and may not fit its items"


def _hands_on(
    op: Operator, types: Mapping[str, QueueType], producers: Mapping[str, Operator]
) -> bool:
    match op.function:
        case Filter(Literal(value)):
            return value is True
        case Map(columns):
            names = types[op.inputs[0]].schema.names
            terms = [c.term for c in columns]
            return names == tuple(c.name for c in columns) and names == tuple(
                t.name for t in terms if isinstance(t, Column)
            )
        case Work() as work if work.is_identity:
            maker = producers.get(op.inputs[0])
            made = maker.function.given if maker and isinstance(maker.function, Work) else None
            return made == work.taken and made is not None
        case _:
            return False
