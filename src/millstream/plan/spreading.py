"""Which inputs of a program are copied to every bucket, and whether buckets serve it at all.

Rows that change places cost about what a kernel costs, and every stage costs a batch some 0.05
to 0.1 s however few rows it has. Copies cost every bucket the work on all of them, but nothing
moves and the others stay where they are. Layouts that copy less or more are estimated by how
much there is of each input; a program that even then changes its places too often runs in one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from millstream.plan.keys import EVERYWHERE
from millstream.plan.stages import Copying, Spread, side_by_side, spread
from millstream.plan.steps import Plan

#: What changes its places more often is sooner done in one place.
LONGEST_CHAIN = 8
#: Copies of so much beside the rows that stay are looked at: a quarter, as much, or however much.
_SHARES = (0.25, 1.0, math.inf)
#: For how many buckets layouts are compared: not for those of one machine, since a checkpoint
#: may be gone on with by another.
_DEGREE = 4


def best_spread(plan: Plan, sizes: Mapping[str, float]) -> Spread | None:
    """The stages that take least, or None if that is one place."""

    def size_of(inputs: frozenset[str]) -> float:
        return sum(sizes[name] for name in inputs)

    # Of one input alone nothing could be copied beside others.
    shares = (0.0, *_SHARES) if len(plan.program.inputs) > 1 else (0.0,)
    chains = [chained(spread(plan, Copying(share, size_of))) for share in shares]
    short = [chain for chain in chains if len(chain.stages) <= LONGEST_CHAIN]
    return min(short, key=lambda chain: estimate(chain, sizes), default=None)


def chained(one: Spread) -> Spread:
    """Stages that do not need each other run side by side."""
    return replace(one, stages=side_by_side(one.stages, one.plan))


def estimate(chain: Spread, sizes: Mapping[str, float]) -> float:
    """The work of one of several buckets: what it reads, and what comes to it from others."""
    behind = {name: frozenset((name,)) for name in sizes}
    for step in chain.plan.steps:
        inputs = frozenset().union(*(behind[q] for q in step.inputs))
        behind.update(dict.fromkeys(step.outputs, inputs))
    total = 0.0
    for queue, key in (entering for stage in chain.stages for entering in stage.keys):
        is_alone = key in ((), EVERYWHERE)
        size = sum(sizes[name] for name in behind[queue] - chain.copied or behind[queue])
        total += size if is_alone else size / _DEGREE
    return total
