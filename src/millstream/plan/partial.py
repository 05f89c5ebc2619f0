"""Totals of parts that are totalled again: they may be made wherever their rows are.

Law: let totals by some columns be totalled again by fewer of them, numbers and sums by sums, the
smallest by the smallest and the largest by the largest. Then it is the same how the rows of the
first are cut further: the second adds up what each cut has told. So rows need not come together for
the first totals, each place makes those of its own rows, and only these move.

    (sums) <- Aggregate[by k, part; n = count()](rows); (out) <- Aggregate[by k; n = sum(n)](sums);

Guards: nothing but the second reads the first, and only what was totalled; sums are of integers,
for numbers would be rounded in another way; the first has a key, or a place without rows would
tell of none.
"""

from __future__ import annotations

from millstream.calculus.functions import Aggregate, Aggregation
from millstream.calculus.graph import Program
from millstream.calculus.terms import Column
from millstream.calculus.types import Kind

_AGAIN = {"count": "sum", "sum": "sum", "min": "min", "max": "max"}


def partial_totals(program: Program) -> frozenset[str]:
    """The operators that make such totals, by their ids."""
    readers = program.consumers()
    partial: set[str] = set()
    for op in program.operators:
        if isinstance(op.function, Aggregate) and op.outputs[0] in readers:
            reader = readers[op.outputs[0]][0].function
            if isinstance(reader, Aggregate) and _is_totalled_again(op.function, reader):
                partial.add(op.id)
    return frozenset(partial)


def _is_totalled_again(first: Aggregate, second: Aggregate) -> bool:
    made = {aggregation.name: aggregation for aggregation in first.aggregations}
    is_coarser = bool(first.by) and set(second.by) <= set(first.by)
    return is_coarser and all(_adds_up(one, made) for one in second.aggregations)


def _adds_up(again: Aggregation, made: dict[str, Aggregation]) -> bool:
    if not isinstance(again.term, Column) or again.term.name not in made:
        return False
    once = made[again.term.name]
    is_exact = again.function in ("min", "max") or once.result_type().kind in (
        Kind.INTEGER,
        Kind.DURATION,
    )
    return is_exact and _AGAIN.get(once.function) == again.function
