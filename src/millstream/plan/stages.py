"""Stages: runs of steps that can be partitioned by one key.

Partitions of a stage never talk to each other, so a stage can run on many workers; where
the key changes, rows change places. A step asks for its rows to be together by some
columns (a keyed fold), all together (a global one), or does not care. It may join the
stage of its inputs if that stage keeps together, or can be made to keep together, what
it asks for.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from millstream.calculus.functions import FlatMap, Join, Lookup, Merge
from millstream.calculus.graph import Operator
from millstream.calculus.types import QueueType
from millstream.plan.steps import Plan, Step

#: The columns by which rows must be together; () is all rows, None is as they come.
Key = tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class Stage:
    """Steps that run on the same partitions, and the key of each queue that enters."""

    keys: tuple[tuple[str, Key], ...]
    steps: tuple[Step, ...]

    @property
    def inputs(self) -> tuple[str, ...]:
        return tuple(queue for queue, _ in self.keys)


@dataclass
class _Draft:
    """A stage in the making."""

    key: Key
    keys: dict[str, Key]
    steps: list[Step] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Place:
    """The stage a queue is in, and its columns that are as they were when they entered."""

    stage: int
    kept: frozenset[str]


def stages_of(plan: Plan, *, is_distributed: bool = False) -> tuple[Stage, ...]:
    """The stages of a plan, in the order in which they can run.

    If partitions run in different places, items of one instant can be put back into
    their order by rank, or by their values where they come from a relation. What gives
    several items one rank, or merges streams by input, must therefore see all rows.
    """
    types = plan.program.queue_types()
    places: dict[str, _Place] = {}
    drafts: list[_Draft] = []
    for step in plan.steps:
        wanted = {q: _wanted(step, q, types, is_distributed=is_distributed) for q in step.inputs}
        stage = _joined(step, wanted, places, drafts)
        if stage is None:
            stage = len(drafts)
            drafts.append(_Draft(next(iter(wanted.values()), ()), dict(wanted)))
            entering = {q: frozenset(types[q].schema.names) for q in step.inputs}
        else:
            entering = {q: places[q].kept for q in step.inputs}
        drafts[stage].steps.append(step)
        kept = _kept(step, entering, types)
        places.update({q: _Place(stage, kept[q]) for q in step.outputs})
    return tuple(Stage(tuple(d.keys.items()), tuple(d.steps)) for d in drafts)


def side_by_side(stages: tuple[Stage, ...], plan: Plan) -> tuple[Stage, ...]:
    """Stages that do not need each other as one, for engines that run stages in a row.

    Each queue keeps the key of its own stage. If one must have all rows together, all
    queues of its stage are kept so.
    """
    levels: list[int] = []
    made: dict[str, int] = {}
    for stage in stages:
        levels.append(max((made[q] + 1 for q in stage.inputs if q in made), default=0))
        made.update({q: levels[-1] for step in stage.steps for q in step.outputs})
    order = {step: number for number, step in enumerate(plan.steps)}
    merged = []
    for level in range(max(levels, default=-1) + 1):
        together = [s for s, own in zip(stages, levels, strict=True) if own == level]
        steps = sorted((step for s in together for step in s.steps), key=order.__getitem__)
        merged.append(Stage(tuple(k for s in together for k in _kept_by(s)), tuple(steps)))
    return tuple(merged)


def _kept_by(stage: Stage) -> tuple[tuple[str, Key], ...]:
    if any(key == () for _, key in stage.keys):
        return tuple((queue, ()) for queue in stage.inputs)
    return stage.keys


def _joined(
    step: Step, wanted: dict[str, Key], places: dict[str, _Place], drafts: list[_Draft]
) -> int | None:
    """The stage that all inputs are in, if the step can run there."""
    stages = {places[q].stage if q in places else None for q in step.inputs}
    stage = next(iter(stages), None)
    if len(stages) != 1 or stage is None:
        return None
    draft = drafts[stage]
    keys = {k for k in wanted.values() if k is not None}
    if not keys or draft.key == ():
        return stage
    kept = frozenset.intersection(*(places[q].kept for q in step.inputs))
    if len(keys) > 1:
        return None  # a join of differently named keys
    (key,) = keys
    if draft.key is None and key and set(key) <= kept:
        # A stage that did not care is partitioned by what the step asks for.
        draft.key = key
        draft.keys = dict.fromkeys(draft.keys, key)
        return stage
    fits = draft.key is not None and set(draft.key) <= set(key) & kept
    return stage if fits else None


def _wanted(step: Step, queue: str, types: dict[str, QueueType], *, is_distributed: bool) -> Key:
    """What a step asks of one of its inputs, in the columns of that input."""
    if step.fallback is not None:
        return ()  # a machine sees all its rows in one order
    if is_distributed and any(_blurs_order(op, types) for op in step.operators):
        return ()
    kept: dict[str, frozenset[str]] = {queue: frozenset(types[queue].schema.names)}
    strictest: Key = None
    for op in step.operators:
        for index, name in enumerate(op.inputs):
            if name not in kept:
                continue
            facts = op.function.facts(tuple(types[q] for q in op.inputs), index)
            strictest = _stricter(strictest, facts.key, kept[name])
            for output in op.outputs:
                kept[output] = kept[name] & facts.forwards
    return strictest


def _blurs_order(op: Operator, types: dict[str, QueueType]) -> bool:
    several = isinstance(op.function, FlatMap) and len(op.function.branches) > 1
    return not types[op.inputs[0]].is_relation and (several or isinstance(op.function, Merge))


def _stricter(one: Key, other: Key, kept: frozenset[str]) -> Key:
    """The key that satisfies both: their common columns; all rows if there are none."""
    if other is None:
        return one
    if not set(other) <= kept:
        return ()  # the key is computed on the way and not known at the input
    if one is None:
        return other
    return tuple(c for c in one if c in other)


def _kept(
    step: Step, entering: dict[str, frozenset[str]], types: dict[str, QueueType]
) -> dict[str, frozenset[str]]:
    """Per queue, the columns that still are what they were when they entered the stage."""
    kept = dict(entering)
    for op in step.operators:
        inputs = tuple(types[q] for q in op.inputs)
        sets = [
            kept.get(q, frozenset()) & op.function.facts(inputs, index).forwards
            for index, q in enumerate(op.inputs)
        ]
        # A column of a join comes from one input, of all else from every input.
        is_join = isinstance(op.function, (Join, Lookup))
        both = frozenset.union if is_join else frozenset.intersection
        kept.update(dict.fromkeys(op.outputs, both(*sets)))
    return kept
