"""Of groups in order, of which only the first rows are wanted, only these are told.

Law: a row whose number in its group is at most n is one of the first n rows of its group. What
follows from the place of a row does not depend on whether rows behind it are told.

    before  (q) <- Ordered[by k; on a; emit n = row_number()](in); (out) <- Filter[n <= 3](q);
    after   (q) <- Ordered[3; by k; on a; emit n = row_number()](in); (out) <- Filter[n <= 3](q);

A change behind the first rows then changes nothing, and need not be told.
"""

from __future__ import annotations

from dataclasses import replace

from millstream.calculus.functions import Filter, Ordered
from millstream.calculus.graph import Operator, Program, rewritten
from millstream.calculus.terms import Call, Column, Literal, Term, conjuncts


def first_in_groups(program: Program) -> Program:
    """Let all groups in order tell no more than is wanted; the same program if all are."""
    readers = {queue: op for queue, (op, _) in program.consumers().items()}
    instead: dict[int, list[Operator]] = {}
    for op in program.operators:
        if not isinstance(op.function, Ordered) or op.outputs[0] not in readers:
            continue
        select = readers[op.outputs[0]].function
        if not isinstance(select, Filter):
            continue
        numbers = {c.name for c in op.function.columns if c.function == "row_number"}
        asked = [most for t in conjuncts(select.condition) if (most := _most(t, numbers))]
        if op.function.count is not None:
            asked.append(op.function.count)
        if asked and min(asked) != op.function.count:
            instead[id(op)] = [replace(op, function=replace(op.function, count=min(asked)))]
    return rewritten(program, instead)


def _most(condition: Term, numbers: set[str]) -> int | None:
    """How many rows of a group a condition lets through at most; None if it does not say.

    A condition that lets none through is left alone.
    """
    match condition:
        case Call("<=" | "==", (Column(name), Literal(int() as most))) if name in numbers:
            return most if most > 0 else None
        case Call("<", (Column(name), Literal(int() as end))) if name in numbers:
            return end - 1 if end > 1 else None
        case _:
            return None
