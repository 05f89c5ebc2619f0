"""The pipeline, and the driver that records every rewrite."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from millstream.calculus.graph import Program
from millstream.calculus.verify import verify
from millstream.optimiser.hoist_select import hoist_select
from millstream.optimiser.merge_selects import merge_selects

Pass = Callable[[Program], Program]

#: Run in turn until nothing changes. A pass returns the same object if it does not apply.
PASSES: tuple[Pass, ...] = (
    hoist_select,  # first: what never enters needs no work
    merge_selects,  # after: selections that have met at the same place
)

MAX_REWRITES = 10_000


@dataclass(frozen=True, slots=True)
class Rewrite:
    """One application of a pass."""

    name: str
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
            trace(Rewrite(one.__name__, program, after, time.perf_counter() - start))
    return after
