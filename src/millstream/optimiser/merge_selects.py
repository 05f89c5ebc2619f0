"""Two selections in a row become one.

Law: a row that is true under both conditions is true under their conjunction.

    before  (q) <- Filter[a > 1](in); (out) <- Filter[b > 2](q);
    after   (out) <- Filter[a > 1 and b > 2](in);
"""

from __future__ import annotations

from dataclasses import replace

from millstream.calculus.functions import Filter
from millstream.calculus.graph import Program
from millstream.calculus.terms import Call
from millstream.calculus.types import BOOLEAN


def merge_selects(program: Program) -> Program:
    """Merge the first pair of selections; the same program if there is none."""
    producers = program.producers()
    for second in program.operators:
        first = producers.get(second.inputs[0])
        if first is None or not isinstance(second.function, Filter):
            continue
        if not isinstance(first.function, Filter):
            continue
        both = Call("and", (first.function.condition, second.function.condition), BOOLEAN)
        merged = replace(second, function=Filter(both), inputs=first.inputs)
        operators = (merged if op == second else op for op in program.operators if op != first)
        return replace(program, operators=tuple(operators))
    return program
