"""The end of a finite run, and what is told only then.

Time ends at the largest time stamp of all inputs, so that nothing expires that has not yet
expired. What waits for the end of its input is told after that, and time goes on to the end for
it and for what follows from it alone: windows beside it stay as they are.
"""

from __future__ import annotations

from millstream.calculus.graph import Program, in_dependency_order

#: The mark of the round in which it is told. No row has this time.
OVER = (1 << 63) - 1


def has_end(program: Program) -> bool:
    """Whether something is told when all inputs of a finite run are over."""
    return any(input_.closes for input_ in program.inputs)


def ending(program: Program) -> frozenset[str]:
    """The operators that tell something at the end, and those behind them."""
    behind: set[str] = set()
    queues: set[str] = set()
    for op in in_dependency_order(program):
        if op.function.waits_for_end or not queues.isdisjoint(op.inputs):
            behind.add(op.id)
            queues.update(op.outputs)
    return frozenset(behind)


def entering(program: Program) -> tuple[str, ...]:
    """The queues that lead from what is over to what is told at the end."""
    late = ending(program)
    makers = program.producers()
    return tuple(
        queue
        for op in program.operators
        if op.id in late
        for queue in op.inputs
        if queue not in makers or makers[queue].id not in late
    )
