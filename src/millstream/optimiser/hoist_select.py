"""Selections move towards the inputs.

Law: a selection commutes with an operator if it reads only columns that the operator
forwards unchanged, and rows on which it may decide differently never meet in the
operator's state. They never meet if the operator has no state, if any partitioning of
its input will do (windows by time, merges), or if the selection reads only the key.

    before  (q) <- Range[5 min](trades); (out) <- Filter[symbol == "IBM"](q);
    after   (q) <- Filter[symbol == "IBM"](trades); (out) <- Range[5 min](q);

The paper's rule O-HoistSelect is the case of a stateless operator. A column that a Map
only renames goes by its old name before it:

    before  (q) <- Map[sym = symbol](trades); (out) <- Filter[sym == "IBM"](q);
    after   (q) <- Filter[symbol == "IBM"](trades); (out) <- Map[sym = symbol](q);
"""

from __future__ import annotations

from dataclasses import replace

from millstream.calculus.functions import Filter, Join, Lookup, Map
from millstream.calculus.graph import Operator, Program
from millstream.calculus.rename import substitute
from millstream.calculus.terms import Column, Term, columns_read
from millstream.calculus.types import TIME_COLUMN, QueueType


def hoist_select(program: Program) -> Program:
    """Hoist the first selection that can be hoisted; the same program if none can."""
    producers = program.producers()
    types = program.queue_types()
    for select in program.operators:
        if not isinstance(select.function, Filter):
            continue
        below = producers.get(select.inputs[0])
        if below is None or isinstance(below.function, Filter):
            continue
        moved = _hoisted(program, select, below, tuple(types[q] for q in below.inputs))
        if moved is not None:
            return moved
    return program


def _hoisted(
    program: Program, select: Operator, below: Operator, inputs: tuple[QueueType, ...]
) -> Program | None:
    assert isinstance(select.function, Filter)
    reads = columns_read(select.function.condition)
    if not reads or TIME_COLUMN in reads:
        return None  # a constant says nothing about rows, and times change on the way
    if len(below.outputs) != 1:
        return None  # the other readers of a split want all rows
    if program.shared_variables() & set(below.variables):
        return None  # someone else would see that rows are missing
    old = _old_names(below, reads)
    if old is not None:
        condition = substitute(select.function.condition, old)
        select = replace(select, function=Filter(condition))
        chosen = [0]
    else:
        chosen = _inputs_to_filter(below, inputs, reads)
    if not chosen:
        return None
    selects, renamed = [], list(below.inputs)
    for index in chosen:
        filtered = f"{below.inputs[index]}.selected"
        renamed[index] = filtered
        selects.append(replace(select, inputs=(below.inputs[index],), outputs=(filtered,)))
    moved = replace(below, inputs=tuple(renamed), outputs=select.outputs)
    operators: list[Operator] = []
    for op in program.operators:
        if op == below:
            operators += [*selects, moved]
        elif op.outputs != moved.outputs:
            operators.append(op)
    return replace(program, operators=tuple(operators))


def _old_names(below: Operator, reads: frozenset[str]) -> dict[str, Term] | None:
    """What a Map makes columns of, if it takes each of them as it is, under whatever name."""
    if not isinstance(below.function, Map):
        return None
    terms = {c.name: c.term for c in below.function.columns if c.name in reads}
    is_plain = all(isinstance(t, Column) and t.name != TIME_COLUMN for t in terms.values())
    return terms if is_plain else None


def _inputs_to_filter(
    below: Operator, inputs: tuple[QueueType, ...], reads: frozenset[str]
) -> list[int]:
    """The inputs that must be filtered instead, or none if the law does not apply."""
    fits = []
    for index in range(len(inputs)):
        facts = below.function.facts(inputs, index)
        never_meet = facts.is_stateless or facts.key is None or reads <= frozenset(facts.key)
        # A join is linear in each input: selecting pairs by one half is selecting halves.
        # So is a lookup in its first input, the only one whose columns leave.
        is_linear = isinstance(below.function, (Join, Lookup))
        fits.append(reads <= facts.forwards and (never_meet or is_linear))
    if isinstance(below.function, (Join, Lookup)):
        return [fits.index(True)] if any(fits) else []
    return list(range(len(inputs))) if all(fits) else []
