"""The pipeline, and the driver that records every rewrite."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from millstream.calculus.graph import Program
from millstream.calculus.verify import verify
from millstream.optimiser.hoist_select import hoist_select
from millstream.optimiser.index_joins import index_joins
from millstream.optimiser.look_up_joins import look_up_joins
from millstream.optimiser.merge_selects import merge_selects
from millstream.optimiser.narrow_columns import narrow_columns
from millstream.optimiser.share_common import share_common
from millstream.optimiser.sum_in_parts import sum_in_parts

Pass = Callable[[Program], Program]

#: Run in turn until nothing changes. A pass returns the same object if it does not apply.
PASSES: tuple[Pass, ...] = (
    hoist_select,  # first: what never enters needs no work
    merge_selects,  # after: selections that have met at the same place
    index_joins,  # a join that tries every pair is the worst there is
    look_up_joins,  # after indexing: keys ask less than comparisons
    share_common,  # after hoisting: what is equal then is equal to the inputs
    sum_in_parts,  # after sharing: a window that others read stays as it is
    narrow_columns,  # last: who reads what is settled
)

#: Why each pass is worth its while, for those who read what it has done.
REASONS: dict[str, str] = {
    "hoist_select": "the selection reads only what the operator before it leaves as it is, "
    "and what is dropped early costs nothing later",
    "merge_selects": "two selections in a row are one",
    "index_joins": "pairs with equal keys are found, others need not be tried",
    "look_up_joins": "a join tells all pairs anew whenever the other side changes; a lookup "
    "touches only the rows whose answer turns",
    "share_common": "the same function on the same queue gives the same",
    "sum_in_parts": "all rows of a total would have to come together in one place; now only the "
    "sums of parts do, and they change only when the window slides",
    "narrow_columns": "nothing behind reads the other columns, which would be kept in state",
}

MAX_REWRITES = 10_000


@dataclass(frozen=True, slots=True)
class Rewrite:
    """One application of a pass, and why it was made."""

    name: str
    reason: str
    before: Program
    after: Program
    seconds: float


def optimise(
    program: Program,
    passes: tuple[Pass, ...] = PASSES,
    trace: Callable[[Rewrite], None] | None = None,
) -> Program:
    """Apply passes until none changes the program; every result is verified."""
    rewrites = 0
    changed = True
    while changed:
        changed = False
        for one in passes:
            while (after := _applied(one, program, trace)) is not program:
                program, changed = after, True
                rewrites += 1
                if rewrites > MAX_REWRITES:
                    names = ", ".join(p.__name__ for p in passes)
                    raise AssertionError(f"the passes {names} do not come to an end")
    return program


def _applied(one: Pass, program: Program, trace: Callable[[Rewrite], None] | None) -> Program:
    start = time.perf_counter()
    after = one(program)
    if after is not program:
        faults = verify(after)
        assert not faults, (one.__name__, [f.render() for f in faults])
        if trace is not None:
            seconds = time.perf_counter() - start
            trace(Rewrite(one.__name__, REASONS[one.__name__], program, after, seconds))
    return after
