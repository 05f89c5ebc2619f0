"""Work that is done twice is done once.

Law: two operators with the same function on copies of the same queues give the same, so
one of them can do for both. They must keep their state to themselves.

    before  (a, b) <- Duplicate(trades);
            (x) <- Range[5 min](a); (y) <- Range[5 min](b);
    after   (x.shared) <- Range[5 min](trades); (x, y) <- Duplicate(x.shared);

This is how queries of one file share their windows, joins and aggregates.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

from millstream.calculus.functions import Duplicate, Fold, Function, Opaque, OpaqueFold
from millstream.calculus.graph import (
    Operator,
    Program,
    in_dependency_order,
    rewritten,
    without_copies,
)
from millstream.calculus.text import render_function

#: Functions whose meaning is not all in the function: shared variables, foreign code.
_NOT_ALONE = (Fold, Opaque, OpaqueFold, Duplicate)


def share_common(program: Program) -> Program:
    """Let all equal operators be one; the same program if there are none."""
    twins = _twins(program)
    if not twins:
        return program
    gone = [op for others in twins.values() for op in others]
    unread = {q for op in gone for q in op.inputs}
    instead: dict[int, list[Operator]] = {id(op): [] for op in gone}
    for op in reversed(in_dependency_order(program)):
        if isinstance(op.function, Duplicate):
            outputs = tuple(q for q in op.outputs if q not in unread)
            unread.update(() if outputs else op.inputs)
            if outputs != op.outputs:
                instead[id(op)] = [replace(op, outputs=outputs)] if outputs else []
        elif id(op) in twins:
            instead[id(op)] = _working_for(op, twins[id(op)], unread)
    return without_copies(_flattened(rewritten(program, instead)))


def refusals(program: Program) -> Iterator[tuple[Operator, str]]:
    """What does the same as another and is done all the same, and the guard of each."""
    same: dict[str, str] = {}
    known: dict[object, Operator] = {}
    for op in in_dependency_order(program):
        sources = tuple(same.get(q, q) for q in op.inputs)
        if isinstance(op.function, Duplicate):
            same.update(dict.fromkeys(op.outputs, sources[0]))
        elif isinstance(op.function, _NOT_ALONE) or op.function.shared_count:
            first = known.setdefault((op.function, sources), op)
            if first is not op and isinstance(op.function, (Opaque, OpaqueFold)):
                yield op, f"it may be the same as {first.id}, but nobody sees into Python's code"
            elif first is not op:
                yield op, f"it may be the same as {first.id}, but others may share its variables"


def _twins(program: Program) -> dict[int, list[Operator]]:
    """By the identity of an operator those that give the same as it does."""
    #: For what is a copy of another queue, that queue.
    same: dict[str, str] = {}
    known: defaultdict[object, list[Operator]] = defaultdict(list)
    #: The only ones of their kind on their queues: nothing need be compared with those.
    alone: dict[object, Operator | None] = {}
    twins: defaultdict[int, list[Operator]] = defaultdict(list)
    for op in in_dependency_order(program):
        sources = tuple(same.get(q, q) for q in op.inputs)
        if isinstance(op.function, Duplicate):
            same.update(dict.fromkeys(op.outputs, sources[0]))
        if isinstance(op.function, _NOT_ALONE) or op.function.shared_count:
            continue
        kind = type(op.function), sources, len(op.outputs)
        if kind not in alone:
            alone[kind] = op
            continue
        other, alone[kind] = alone[kind], None
        if other is not None:
            known[other.function, sources, len(op.outputs)].append(other)
        alike = known[op.function, sources, len(op.outputs)]
        first = next((one for one in alike if _is_same(one.function, op.function)), None)
        if first is None:
            alike.append(op)
            continue
        twins[id(first)].append(op)
        same.update(zip(op.outputs, first.outputs, strict=True))
    return twins


def _is_same(one: Function, other: Function) -> bool:
    """Whether functions that are equal are the same: to Python 0.0 and -0.0 are equal."""
    return one is other or render_function(one) == render_function(other)


def _working_for(first: Operator, others: list[Operator], unread: set[str]) -> list[Operator]:
    """An operator and the copies of what it gives for all who want it."""
    outputs: list[str] = []
    copying: list[Operator] = []
    for queues in zip(first.outputs, *(op.outputs for op in others), strict=True):
        read = tuple(q for q in queues if q not in unread)
        outputs.append(read[0] if len(read) == 1 else f"{queues[0]}.shared")
        if len(read) > 1:
            copying.append(Operator(Duplicate(), (outputs[-1],), read, origin=first.origin))
    return [replace(first, outputs=tuple(outputs)), *copying]


def _flattened(program: Program) -> Program:
    """Copies of copies become copies, so that what reads them can be seen to read the same."""
    flat: dict[str, tuple[str, ...]] = {}
    for op in reversed(in_dependency_order(program)):
        if isinstance(op.function, Duplicate):
            flat[op.inputs[0]] = tuple(q for out in op.outputs for q in flat.pop(out, (out,)))
    return replace(program, operators=tuple(
        replace(op, outputs=flat[op.inputs[0]]) if isinstance(op.function, Duplicate) else op
        for op in program.operators
        if not isinstance(op.function, Duplicate) or op.inputs[0] in flat
    ))  # fmt: skip
