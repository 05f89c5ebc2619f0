"""Two selections in a row become one.

Law: a row that is true under both conditions is true under their conjunction.

    before  (q) <- Filter[a > 1](in); (out) <- Filter[b > 2](q);
    after   (out) <- Filter[a > 1 and b > 2](in);
"""

from __future__ import annotations

from dataclasses import replace

from millstream.calculus.functions import Filter
from millstream.calculus.graph import Operator, Program, in_dependency_order, rewritten
from millstream.calculus.terms import Call
from millstream.calculus.types import BOOLEAN


def merge_selects(program: Program) -> Program:
    """Merge all selections in a row; the same program if there are none."""
    selects: dict[str, Operator] = {}
    instead: dict[int, list[Operator]] = {}
    for op in in_dependency_order(program):
        if not isinstance(op.function, Filter):
            continue
        second, first = op, selects.pop(op.inputs[0], None)
        if first is not None:
            assert isinstance(first.function, Filter)
            both = Call("and", (first.function.condition, op.function.condition), BOOLEAN)
            second = replace(op, function=Filter(both), inputs=first.inputs)
            instead[id(first)], instead[id(op)] = [], [second]
        selects[second.outputs[0]] = second
    return rewritten(program, instead)
