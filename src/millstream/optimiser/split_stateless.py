"""Operators without state work side by side.

Law: what comes of an item depends on that item alone, so copies of the operator can take turns
with the items, and what they give is put together in the same turns.

    before  (out) <- Map[b = a + 1](in);
    after   (t1, t2, $sc) <- RoundRobinSplit(in, $sc);
            (out.1) <- Map[b = a + 1](t1); (out.2) <- Map[b = a + 1](t2);
            (out, $v1, $v2, $jc) <- RoundRobinJoin(out.1, out.2, $v1, $v2, $jc);

The paper's rule O-Split asks only that there be no variables. That does not suffice: where an
item gives none or two, turns no longer meet (see `_refusal`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from millstream.calculus.functions import (
    Duplicate,
    Map,
    Opaque,
    RoundRobinJoin,
    RoundRobinSplit,
)
from millstream.calculus.graph import Operator, Program, rewritten
from millstream.calculus.types import QueueType
from millstream.calculus.work import Work

#: How many copies there are, if nobody says.
DEGREE = 2
_TURNS = (RoundRobinSplit, RoundRobinJoin)
_ON_THE_WAY = (Duplicate, Map, Work)
_DONE = "it is one of several that take turns already"


def split_stateless(program: Program, degree: int = DEGREE) -> Program:
    """Split every operator that can be; the same program if none can."""
    producers, types = program.producers(), program.queue_types()
    instead = {
        id(op): _copies(op, degree)
        for op in program.operators
        if _refusal(op, producers, types) is None
    }
    return rewritten(program, instead)


def refusals(program: Program) -> Iterator[tuple[Operator, str]]:
    """The operators that stay as they are, and the guard of each."""
    producers, types = program.producers(), program.queue_types()
    for op in program.operators:
        why = _refusal(op, producers, types)
        if why is not None and why != _DONE and not isinstance(op.function, _TURNS):
            yield op, why


def _refusal(
    op: Operator, producers: Mapping[str, Operator], types: Mapping[str, QueueType]
) -> str | None:
    """Why an operator stays as it is; None if it can be split."""
    if op.variables:
        return "it has variables, in which the items of all turns would have to meet"
    if isinstance(op.function, Opaque):
        return "what it does is not known"
    if not isinstance(op.function, Map):
        return "it does not give one item for each that it takes, so turns would not meet again"
    if any(types[q].is_relation for q in op.inputs):
        return "changes of a relation at one instant have no turns"
    return _DONE if is_given_turns(op, producers) else None


def is_given_turns(op: Operator, producers: Mapping[str, Operator]) -> bool:
    """Whether an operator is given the turns of a split, perhaps by others.

    What other passes put between the two hands on an item for each that it takes.
    """
    seen: set[str] = set()
    below = producers.get(op.inputs[0])
    while below is not None and isinstance(below.function, _ON_THE_WAY) and below.id not in seen:
        seen.add(below.id)
        below = producers.get(below.inputs[0])
    return below is not None and isinstance(below.function, RoundRobinSplit)


def _copies(op: Operator, degree: int) -> list[Operator]:
    """The operator as several between a split and a join."""
    (given,), (taken,) = op.inputs, op.outputs
    numbers = range(1, degree + 1)
    inner = [replace(op, inputs=(f"{taken}.turn{n}",), outputs=(f"{taken}.{n}",)) for n in numbers]
    cursor = f"{taken}.split"
    held = (*(f"{taken}.held{n}" for n in numbers), f"{taken}.join")
    split = Operator(
        RoundRobinSplit(), (given,), tuple(o.inputs[0] for o in inner), (cursor,), (cursor,),
        origin=op.origin,
    )  # fmt: skip
    join = Operator(
        RoundRobinJoin(), tuple(o.outputs[0] for o in inner), (taken,), held, held,
        origin=op.origin,
    )  # fmt: skip
    return [split, *inner, join]
