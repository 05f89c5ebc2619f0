"""How a program is laid out: stages, where each queue goes, numbers for queues.

Every process works it out from the same description, so nothing but the description
travels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from millstream.calculus.graph import Program
from millstream.kernels.build import why_not
from millstream.plan.cube_parts import cubes_in_parts
from millstream.plan.stages import Key, Stage, all_together, side_by_side, spread
from millstream.plan.steps import Plan, make_plan

#: A stage costs each batch some 0.05 to 0.1 s, however few rows it has, and every row that goes
#: on to the next one about what a kernel costs. What changes its key more often than this (rules
#: about a port: thirty times), or more often than there are cores to share the work, is sooner
#: done in one place.
LONGEST_CHAIN = 8
DEFAULT_BUCKETS = 16


@dataclass(frozen=True)
class Description:
    """All that a worker must know; pickled by Spark on its way there."""

    program: Program
    checkpoint: str
    buckets: int
    partitions: int
    #: Tells one run from the next, so that no worker remembers what another run has done.
    run: str
    is_together: bool = False

    def layout(self) -> Layout:
        return together_of(self.program) if self.is_together else layout_of(self.program)


@dataclass(frozen=True)
class Target:
    """Where the items of a queue go: a stage (or the driver) and the key they are kept by."""

    stage: int
    key: Key


@dataclass(frozen=True)
class Layout:
    """Stages in order, and where queues go."""

    plan: Plan
    stages: tuple[Stage, ...]
    queues: tuple[str, ...]
    #: Where each queue enters a stage.
    targets: dict[str, Target]
    #: Whether what could be several stages is one, in one place.
    is_together: bool = False

    @property
    def shape(self) -> str:
        """What must not change, beside the program, if a checkpoint is to be continued."""
        return str([stage.keys for stage in self.stages])

    def together(self) -> Layout:
        """The same in one place."""
        one = _laid_out(self.plan, (all_together(self.stages, self.plan),))
        return replace(one, is_together=True)

    @property
    def driver(self) -> int:
        """Where results go: the number after the last stage."""
        return len(self.stages)

    def has_one_bucket(self, stage: int) -> bool:
        """Whether a stage must see all rows in one place."""
        return all(key == () for _, key in self.stages[stage].keys)

    def target(self, queue: str) -> Target:
        """Where what leaves a stage goes."""
        if queue in self.plan.program.outputs:
            return Target(self.driver, None)
        return self.targets[queue]

    def number(self, queue: str) -> int:
        return self.queues.index(queue)


def layout_of(program: Program) -> Layout:
    """The program as a chain of stages."""
    return _chain(cubes_in_parts(program))


def together_of(program: Program) -> Layout:
    """The program in one place, where nothing need be by parts."""
    return _chain(program).together()


def _chain(program: Program) -> Layout:
    plan, stages = spread(make_plan(program, why_not, ranks_all=True))
    straight = tuple(q for q in program.outputs if q in program.input_names)
    if straight:
        # An input that is itself an output still has to wait for its time.
        stages = (*stages, Stage(tuple((q, None) for q in straight), ()))
    return _laid_out(plan, side_by_side(stages, plan))


def _laid_out(plan: Plan, stages: tuple[Stage, ...]) -> Layout:
    targets: dict[str, Target] = {}
    for number, stage in enumerate(stages):
        for queue, key in stage.keys:
            targets[queue] = Target(number, key)
    for one in plan.program.inputs:
        if one.type.is_relation and targets[one.name].key is None:
            # Equal rows must meet, so that a deletion finds what it deletes.
            targets[one.name] = Target(targets[one.name].stage, one.type.schema.names)
    return Layout(plan, stages, tuple(sorted(plan.program.queue_types())), targets)


def layout_for(
    program: Program, partitions: int, shape: str | None, *, is_together: bool = False
) -> Layout:
    """The layout that suits the number of cores, or the one that a checkpoint was made by."""
    chain = layout_of(program)
    together = together_of(program)
    is_too_long = len(chain.stages) > min(LONGEST_CHAIN, partitions)
    layouts = (together, chain) if is_together or is_too_long else (chain, together)
    return next((one for one in layouts if one.shape == shape), layouts[0])
