"""How a program is laid out: stages, where each queue goes, numbers for queues.

Every process works it out from the same description, so nothing but the description
travels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from millstream.calculus.graph import Program
from millstream.calculus.tables import Tally
from millstream.kernels.build import why_not
from millstream.plan.ahead import Ahead, run_ahead
from millstream.plan.cube_parts import cubes_in_parts
from millstream.plan.first_parts import ALL, firsts_in_parts
from millstream.plan.keys import EVERYWHERE, Key
from millstream.plan.net_blocks import nets_in_blocks
from millstream.plan.spreading import best_spread, chained, estimate
from millstream.plan.stages import NEWEST_RULES, Spread, Stage, all_together, spread
from millstream.plan.steps import Plan, Step, make_plan

#: Every bucket has kernels of its own, which take their time for few rows too; with two for each
#: worker, twice as many workers can take up a checkpoint.
BUCKETS_OF_A_WORKER = 2


@dataclass(frozen=True)
class Choice:
    """What is decided when a checkpoint is begun, and then is as it is."""

    #: Whether what could be several stages is one, in one place.
    is_together: bool = False
    #: The inputs that every bucket has all of.
    copied: frozenset[str] = frozenset()
    #: Whether tasks that read run what needs no other rows.
    runs_ahead: bool = False
    #: What of all rows is made of that of each bucket.
    cuts: frozenset[str] = frozenset()
    #: The rules by which stages are made.
    generation: int = NEWEST_RULES

    def written(self) -> dict[str, Any]:
        written = {"together": self.is_together, "copied": sorted(self.copied)}
        written |= {"ahead": True} if self.runs_ahead else {}
        written |= {"generation": self.generation} if self.generation else {}
        return written | ({"cuts": sorted(self.cuts)} if self.cuts else {})

    @staticmethod
    def read(record: Mapping[str, Any]) -> Choice:
        copied = frozenset(record["copied"])
        # Once only first rows were, which was written in another way.
        cuts = record.get("cuts", ["tops"] if record.get("tops") else [])
        is_ahead, generation = record.get("ahead", False), record.get("generation", 0)
        return Choice(record["together"], copied, is_ahead, frozenset(cuts), generation)


@dataclass(frozen=True)
class Description:
    """All that a worker must know; pickled by Spark on its way there."""

    program: Program
    checkpoint: str
    buckets: int
    partitions: int
    #: Tells one run from the next, so that no worker remembers what another run has done.
    run: str
    choice: Choice = Choice()
    #: Whether somebody may take the checkpoint up again.
    is_lasting: bool = True
    #: The folder of the state in the checkpoint.
    state: str = "state"

    def layout(self) -> Layout:
        return layout_as(self.program, self.choice)


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
    choice: Choice = Choice()
    #: The queues that every bucket has all of: the first one speaks for all.
    everywhere: frozenset[str] = frozenset()
    #: What is done where inputs are read.
    ahead: tuple[Ahead, ...] = ()

    @property
    def is_together(self) -> bool:
        return self.choice.is_together

    @property
    def shape(self) -> str:
        """What must not change, beside the program, if a checkpoint is to be continued."""
        return str([stage.keys for stage in self.stages])

    @property
    def driver(self) -> int:
        """Where results go: the number after the last stage."""
        return len(self.stages)

    def has_one_bucket(self, stage: int) -> bool:
        """Whether a stage must see all rows in one place, or makes the same in all."""
        return all(key in ((), EVERYWHERE) for _, key in self.stages[stage].keys)

    def is_everywhere(self, step: Step) -> bool:
        """Whether every bucket of its stage does the same."""
        return bool(step.inputs) and self.everywhere.issuperset(step.inputs)

    def instants(self) -> tuple[frozenset[int], ...]:
        """For each stage the inputs whose instants it looks at, by declaration."""
        behind = self.plan.inputs_behind()
        looking = [
            [q for step in stage.steps if step.looks_at_instants for q in step.inputs]
            for stage in self.stages
        ]
        return tuple(frozenset().union(*(behind[q] for q in queues)) for queues in looking)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The order in which results are numbered: the same in all layouts of a program."""
        return tuple(sorted(self.plan.program.outputs))

    def target(self, queue: str) -> Target:
        """Where what leaves a stage goes."""
        if queue in self.plan.program.outputs:
            return Target(self.driver, None)
        return self.targets[queue]

    def table_of(self, queue: str) -> Tally | None:
        """The table that all of a queue goes to, and nothing else with it."""
        functions = [step.operators[0].function for step in self.plan.steps if queue in step.inputs]
        only = functions[0] if len(functions) == 1 else None
        return only if isinstance(only, Tally) else None

    def number(self, queue: str) -> int:
        return self.queues.index(queue)


def in_parts(program: Program, cuts: frozenset[str] = ALL) -> Program:
    """The program with what would need all rows in one place by parts of them, where it can be."""
    return nets_in_blocks(cubes_in_parts(firsts_in_parts(program, cuts)), why_not)


def layout_for(
    program: Program, sizes: Mapping[str, float], *, is_together: bool = False
) -> Layout:
    """The layout that suits the sizes of the inputs."""
    if is_together:
        return layout_as(program, Choice(is_together=True))
    parted = in_parts(program)
    best = best_spread(make_plan(parted, why_not, ranks_all=True), sizes)
    if best is None:
        return layout_as(program, Choice(is_together=True))
    return _laid_out(best, Choice(copied=best.copied, cuts=ALL))


def with_ahead(layout: Layout) -> Layout:
    """The layout in which tasks that read run what needs no other rows, if there is such."""
    if layout.is_together:
        return layout
    made = layout_as(layout.plan.program, replace(layout.choice, runs_ahead=True))
    return made if made.ahead else layout


def layout_if_spread(program: Program, sizes: Mapping[str, float]) -> Layout | None:
    """The layout on several buckets, if one of them then has less to do than one place has."""
    plan = make_plan(in_parts(program), why_not, ranks_all=True)
    best = best_spread(plan, sizes)
    if best is None or estimate(best, sizes) >= sum(sizes.values()):
        return None
    layout = _laid_out(best, Choice(copied=best.copied, cuts=ALL))
    is_shared = not all(map(layout.has_one_bucket, range(layout.driver)))
    return layout if is_shared else None


def layout_as(program: Program, choice: Choice) -> Layout:
    """The layout that has been chosen."""
    if not choice.is_together:
        parted = in_parts(program, choice.cuts)
        plan = make_plan(parted, why_not, ranks_all=True)
        chain = spread(plan, copied=choice.copied, generation=choice.generation)
        return _laid_out(chained(chain), choice)
    # In one place nothing need be by parts.
    unspread = spread(make_plan(program, why_not, ranks_all=True))
    together = Spread(unspread.plan, (all_together(unspread.stages, unspread.plan),))
    return _laid_out(together, choice)


def _laid_out(chain: Spread, choice: Choice) -> Layout:
    chain, ahead = run_ahead(chain) if choice.runs_ahead else (chain, ())
    plan, stages = chain.plan, chain.stages
    straight = tuple(q for q in plan.program.outputs if q in plan.program.input_names)
    if straight:
        # An input that is itself an output still has to wait for its time.
        key: Key = () if choice.is_together else None
        stages = _with_straight(stages, tuple((q, key) for q in straight))
    targets: dict[str, Target] = {}
    for number, stage in enumerate(stages):
        for queue, key in stage.keys:
            targets[queue] = Target(number, key)
    for one in plan.program.inputs:
        if one.type.is_relation and targets[one.name].key is None:
            # Equal rows must meet, so that a deletion finds what it deletes.
            targets[one.name] = Target(targets[one.name].stage, one.type.schema.names)
    queues = tuple(sorted(plan.program.queue_types()))
    return Layout(plan, stages, queues, targets, choice, chain.everywhere, ahead)


def _with_straight(
    stages: tuple[Stage, ...], keys: tuple[tuple[str, Key], ...]
) -> tuple[Stage, ...]:
    """Queues that nothing is done to enter the first stage."""
    if not stages:
        return (Stage(keys, ()),)
    return (Stage((*stages[0].keys, *keys), stages[0].steps), *stages[1:])
