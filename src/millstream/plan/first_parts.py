"""The first rows of all, and extremes of all, are made of those of each part, where rows are.

Law: the first n rows of a bag are the first n of what is first in each of its parts, whichever way
the bag is cut: a row behind n others of its part is behind these in the whole too, and rows that
are alike in everything are one as good as the other. So it is with the smallest and the largest
value; a part in which nothing is left tells null, which they pass over.

    before  (out) <- Top[3 by x](rows)
    after   (out.parts) <- Top[3 by x](rows)          wherever rows are
            (out) <- Top[3 by x](out.parts)           in one place

    before  (out) <- Aggregate[high = max(x)](rows)
    after   (out.parts) <- Aggregate[high = max(x)](rows)
            (out) <- Aggregate[high = max(high)](out.parts)

Few rows of a part are ever among its first, so few move. Guards: nothing but the second reads the
first, which asks for the same; a row goes where it came, so that each part is a bag. What is
in one place anyway is not cut. Sums and counts change with each row of a part, so nothing would be
gained by telling them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from millstream.calculus.functions import (
    Aggregate,
    Aggregation,
    Duplicate,
    Filter,
    Function,
    Map,
    Merge,
    Range,
    Top,
)
from millstream.calculus.graph import Operator, Program, rewritten
from millstream.calculus.terms import Column

#: What may be cut, by the names under which a checkpoint knows that it was.
CUTS: dict[str, Callable[[Function], bool]] = {
    "tops": lambda function: isinstance(function, Top),
    "extremes": lambda function: isinstance(function, Aggregate) and _is_of_extremes(function),
}
ALL = frozenset(CUTS)


def firsts_in_parts(program: Program, cuts: frozenset[str] = ALL) -> Program:
    """The program with such rows by parts; the same if there are none."""
    partial = partial_firsts(program)
    instead = {
        id(op): list(_in_parts(op))
        for op in program.operators
        if any(CUTS[cut](op.function) for cut in cuts)
        and op.id not in partial and _is_spread(program, op)
    }  # fmt: skip
    return rewritten(program, instead)


def partial_firsts(program: Program) -> frozenset[str]:
    """The operators that make what is first in parts, by their ids."""
    readers = program.consumers()
    return frozenset(
        op.id
        for op in program.operators
        if isinstance(op.function, (Top, Aggregate)) and op.outputs[0] in readers
        and readers[op.outputs[0]][0].function == _again(op.function)
    )  # fmt: skip


def _again(function: Function) -> Function | None:
    """What makes of the first of parts the first of all."""
    match function:
        case Top():
            return function
        case Aggregate(by, aggregations) if _is_of_extremes(function):
            return Aggregate(by, tuple(
                replace(one, term=Column(one.name, one.result_type())) for one in aggregations
            ))  # fmt: skip
    return None


def _is_of_extremes(function: Aggregate) -> bool:
    return not function.by and all(map(_is_extreme, function.aggregations))


def _is_extreme(one: Aggregation) -> bool:
    return one.function in ("min", "max")


def _in_parts(op: Operator) -> Iterator[Operator]:
    (queue,) = op.outputs
    parts = f"{queue}.parts"
    again = _again(op.function)
    assert again is not None
    yield Operator(op.function, op.inputs, (parts,), (parts,), (parts,), op.origin)
    yield replace(op, function=again, inputs=(parts,))


def _is_spread(program: Program, op: Operator) -> bool:
    """Whether its rows can be in several places: those of groups, of keys or of a window."""
    if partial_firsts(program) & {p.id for p in program.operators if op.inputs[0] in p.outputs}:
        return False  # they are in parts already
    producers = program.producers()
    types = program.queue_types()
    waiting = list(op.inputs)
    while waiting:
        queue = waiting.pop()
        before = producers.get(queue)
        if before is None or isinstance(before.function, Range):
            return True
        if isinstance(before.function, (Filter, Map, Duplicate, Merge)):
            waiting += before.inputs
            continue
        given = tuple(types[q] for q in before.inputs)
        keys = [before.function.facts(given, n).key for n in range(len(given))]
        if all(keys):
            return True
    return False
