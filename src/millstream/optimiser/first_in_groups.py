"""Of groups in order, of which only the first rows are wanted, only these are told.

Law: a row whose number in its group is at most n is one of the first n rows of its group. What
follows from the place of a row does not depend on whether rows behind it are told.

    before  (q) <- Ordered[by k; on a; emit n = row_number()](in); (out) <- Filter[n <= 3](q);
    after   (q) <- Ordered[3; by k; on a; emit n = row_number()](in); (out) <- Filter[n <= 3](q);

A change behind the first rows then changes nothing, and need not be told.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from millstream.calculus.functions import Filter, Ordered
from millstream.calculus.graph import Operator, Program, rewritten
from millstream.calculus.terms import Call, Column, Literal, Term, conjuncts


def first_in_groups(program: Program) -> Program:
    """Let all groups in order tell no more than is wanted; the same program if all are."""
    instead: dict[int, list[Operator]] = {}
    for op, function, reader in _numbered(program):
        asked = _asked(function, reader)
        if function.count is not None:
            asked.append(function.count)
        if asked and min(asked) != function.count:
            instead[id(op)] = [replace(op, function=replace(function, count=min(asked)))]
    return rewritten(program, instead)


def refusals(program: Program) -> Iterator[tuple[Operator, str]]:
    """The groups whose rows are numbered and all told, and who wants them all."""
    for op, function, reader in _numbered(program):
        if function.count is None and not _asked(function, reader):
            if not isinstance(reader.function, Filter):
                yield op, f"{reader.id} reads all rows of a group"
            else:
                yield op, f"{reader.id} does not say how many rows of a group it wants at most"


def _numbered(program: Program) -> Iterator[tuple[Operator, Ordered, Operator]]:
    """What numbers the rows of groups, each with who reads it."""
    readers = {queue: op for queue, (op, _) in program.consumers().items()}
    for op in program.operators:
        if isinstance(op.function, Ordered) and op.outputs[0] in readers:
            if any(c.function == "row_number" for c in op.function.columns):
                yield op, op.function, readers[op.outputs[0]]


def _asked(function: Ordered, reader: Operator) -> list[int]:
    """How many rows of a group are wanted at most, by each condition that says so."""
    if not isinstance(reader.function, Filter):
        return []
    numbers = {c.name for c in function.columns if c.function == "row_number"}
    conditions = conjuncts(reader.function.condition)
    return [most for t in conditions if (most := _most(t, numbers))]


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
