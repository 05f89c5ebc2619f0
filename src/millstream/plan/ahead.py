"""Steps that run where rows are read: those that need no other row, no time and no memory.

What they make travels instead of what was read, so that a program that looks at one record at a
time sends only what it has made of it. Whether a row is late must be known there: the rows of a
numbered input come in the order of their times, and never are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from millstream.calculus.graph import Input, Operator
from millstream.plan.stages import Spread, Stage
from millstream.plan.steps import Plan, Step


@dataclass(frozen=True, slots=True)
class Ahead:
    """What is done with the rows of an input before they travel."""

    input: str
    steps: tuple[Step, ...]
    #: The queues that travel.
    leaving: tuple[str, ...]


def run_ahead(chain: Spread) -> tuple[Spread, tuple[Ahead, ...]]:
    """The stages without what can be done where rows are read, and that."""
    stages, ahead = chain.stages, []
    for input_ in chain.plan.program.inputs:
        # An input enters one stage only, so the stages after one that has changed are as they were.
        for number, stage in enumerate(stages):
            before = _ahead_of(input_, stage, chain)
            if before is not None:
                stages = (*stages[:number], _without(before, stage, chain), *stages[number + 1 :])
                ahead.append(before)
    left = tuple(stage for stage in stages if stage.keys)
    return replace(chain, stages=left), tuple(ahead)


def _ahead_of(one: Input, stage: Stage, chain: Spread) -> Ahead | None:
    """What a stage does with an input that can be done before it enters."""
    if not one.is_numbered or one.values is not None or one.name in chain.plan.program.outputs:
        return None
    # Rows that enter by a key, or in one place, are asked for together.
    if (one.name, None) not in stage.keys:
        return None
    steps = tuple(_following(one.name, stage, chain.plan))
    taken = {q for step in steps for q in step.inputs}
    leaving = tuple(q for step in steps for q in step.outputs if q not in taken)
    return Ahead(one.name, steps, leaving) if steps else None


def _following(name: str, stage: Stage, plan: Plan) -> Iterator[Step]:
    """The steps that do with the rows of an input, and with what comes of them, alone."""
    there = {name}
    for step in stage.steps:
        if there.issuperset(step.inputs) and len(step.inputs) == 1 and _needs_nothing(step, plan):
            there.update(step.outputs)
            yield step


def _needs_nothing(step: Step, plan: Plan) -> bool:
    return (
        step.fallback is None
        and not step.makes(plan.placed)
        and all(_is_stateless(op, plan) for op in step.operators)
    )


def _is_stateless(op: Operator, plan: Plan) -> bool:
    types = plan.program.queue_types()
    facts = op.function.facts(tuple(types[q] for q in op.inputs), 0)
    return facts.is_stateless and not op.reads and not op.writes


def _without(ahead: Ahead, stage: Stage, chain: Spread) -> Stage:
    """A stage that others have done a part of: what they have made enters instead of the input."""
    steps = tuple(step for step in stage.steps if step not in ahead.steps)
    here = {q for step in steps for q in step.inputs} | set(chain.plan.program.outputs)
    keys = tuple((q, key) for q, key in stage.keys if q != ahead.input)
    return Stage((*keys, *((q, None) for q in ahead.leaving if q in here)), steps)
