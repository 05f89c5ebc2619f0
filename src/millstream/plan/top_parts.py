"""The first rows of all are made of the first rows of each part, where rows are.

Law: the first n rows of a bag are the first n of what is first in each of its parts, whichever way
the bag is cut: a row behind n others of its part is behind these in the whole too, and rows that
are alike in everything are one as good as the other.

    before  (out) <- Top[3 by x](rows)
    after   (out.parts) <- Top[3 by x](rows)          wherever rows are
            (out) <- Top[3 by x](out.parts)           in one place

Few rows of a part are ever among its first, so few move. Guards: nothing but the second reads the
first, which asks for the same rows; a row goes where it came, so that each part is a bag. What is
in one place anyway is not cut.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from millstream.calculus.functions import Duplicate, Filter, Map, Merge, Range, Top
from millstream.calculus.graph import Operator, Program, rewritten


def tops_in_parts(program: Program) -> Program:
    """The program with such rows by parts; the same if there are none."""
    partial = partial_tops(program)
    instead = {
        id(op): list(_in_parts(op))
        for op in program.operators
        if isinstance(op.function, Top) and op.id not in partial and _is_spread(program, op)
    }
    return rewritten(program, instead)


def partial_tops(program: Program) -> frozenset[str]:
    """The operators that make the first rows of parts, by their ids."""
    readers = program.consumers()
    return frozenset(
        op.id
        for op in program.operators
        if isinstance(op.function, Top) and op.outputs[0] in readers
        and readers[op.outputs[0]][0].function == op.function
    )  # fmt: skip


def _in_parts(op: Operator) -> Iterator[Operator]:
    (queue,) = op.outputs
    parts = f"{queue}.parts"
    yield Operator(op.function, op.inputs, (parts,), (parts,), (parts,), op.origin)
    yield replace(op, inputs=(parts,))


def _is_spread(program: Program, op: Operator) -> bool:
    """Whether its rows can be in several places: those of groups, of keys or of a window."""
    if partial_tops(program) & {p.id for p in program.operators if op.inputs[0] in p.outputs}:
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
