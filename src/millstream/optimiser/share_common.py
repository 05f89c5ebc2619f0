"""Work that is done twice is done once.

Law: two operators with the same function on copies of the same queues give the same, so
one of them can do for both. They must keep their state to themselves.

    before  (a, b) <- Duplicate(trades);
            (x) <- Range[5 min](a); (y) <- Range[5 min](b);
    after   (x.shared) <- Range[5 min](trades); (x, y) <- Duplicate(x.shared);

This is how queries of one file share their windows, joins and aggregates.
"""

from __future__ import annotations

from dataclasses import replace

from millstream.calculus.functions import Duplicate, Fold, Opaque, OpaqueFold
from millstream.calculus.graph import Operator, Program, without_copies

#: Functions whose meaning is not all in the function: shared variables, foreign code.
_NOT_ALONE = (Fold, Opaque, OpaqueFold, Duplicate)


def share_common(program: Program) -> Program:
    """Let the first pair of equal operators be one; the same program if there is none."""
    copies = {
        queue: op
        for op in program.operators
        if isinstance(op.function, Duplicate)
        for queue in op.outputs
    }
    candidates = [
        op for op in program.operators
        if not isinstance(op.function, _NOT_ALONE) and all(q in copies for q in op.inputs)
    ]  # fmt: skip
    for number, second in enumerate(candidates):
        for first in candidates[:number]:
            if _is_same(first, second, copies):
                return _shared(program, first, second)
    return program


def _is_same(first: Operator, second: Operator, copies: dict[str, Operator]) -> bool:
    if first.function != second.function or len(first.outputs) != len(second.outputs):
        return False
    pairs = zip(first.inputs, second.inputs, strict=True)
    return all(copies[a].inputs == copies[b].inputs for a, b in pairs)


def _shared(program: Program, first: Operator, second: Operator) -> Program:
    """The program with the first operator working for both."""
    gone = set(second.inputs)
    common = tuple(f"{queue}.shared" for queue in first.outputs)
    operators: list[Operator] = []
    for op in program.operators:
        if op is second:
            continue
        if op is first:
            operators.append(replace(first, outputs=common))
            operators += [
                Operator(Duplicate(), (queue,), (one, other), origin=first.origin)
                for queue, one, other in zip(common, first.outputs, second.outputs, strict=True)
            ]
        elif isinstance(op.function, Duplicate):
            operators.append(replace(op, outputs=tuple(q for q in op.outputs if q not in gone)))
        else:
            operators.append(op)
    return without_copies(_flattened(replace(program, operators=tuple(operators))))


def _flattened(program: Program) -> Program:
    """Copies of copies become copies, so that what reads them can be seen to read the same."""
    producers = program.producers()
    for op in program.operators:
        above = producers.get(op.inputs[0]) if isinstance(op.function, Duplicate) else None
        if above is None or not isinstance(above.function, Duplicate):
            continue
        outputs = tuple(
            q for queue in above.outputs
            for q in (op.outputs if queue == op.inputs[0] else (queue,))
        )  # fmt: skip
        operators = tuple(
            replace(above, outputs=outputs) if o is above else o
            for o in program.operators
            if o is not op
        )
        return _flattened(replace(program, operators=operators))
    return program
