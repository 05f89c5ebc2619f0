"""Stages: runs of steps that can be partitioned by one key.

Partitions of a stage never talk to each other, so a stage can run on many workers; where
the key changes, rows change places. A step asks for its rows to be together by some
columns (a keyed fold), all together (a global one), or does not care. It may join the
stage of its inputs if that stage keeps together, or can be made to keep together, what
it asks for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from millstream.calculus.functions import (
    Duplicate,
    Filter,
    FlatMap,
    Istream,
    Join,
    Lookup,
    Map,
    Merge,
    Range,
)
from millstream.calculus.graph import Operator
from millstream.calculus.types import QueueType
from millstream.plan.order import lost_by
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
    #: By their numbers in the plan.
    steps: dict[int, Step] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Place:
    """The stage a queue is in, and its columns that are as they were when they entered."""

    stage: int
    kept: frozenset[str]


def stages_of(plan: Plan, *, is_distributed: bool = False) -> tuple[Stage, ...]:
    """The stages of a plan, in the order in which they can run."""
    return spread(plan)[1] if is_distributed else _stages(plan, frozenset(), is_distributed=False)


def spread(plan: Plan) -> tuple[Plan, tuple[Stage, ...]]:
    """The stages of a plan whose partitions run in different places.

    Items of one instant can be put back into their order by rank, or by their values where they
    come from a relation. Whatever else leaves its place for one where its order is seen is made
    in one place, and ranked there: the plan says what that is.
    """
    placed: frozenset[str] = frozenset()
    while True:
        stages = _stages(plan, placed, is_distributed=True)
        more = lost_by(plan.program, _leaving(plan, stages), placed) - placed
        if not more:
            return replace(plan, placed=placed), stages
        placed |= more


def _leaving(plan: Plan, stages: tuple[Stage, ...]) -> set[str]:
    """The queues that one stage writes and another reads, and the outputs."""
    leaving = set(plan.program.outputs)
    for stage in stages:
        leaving |= {q for q in stage.inputs if q not in plan.program.input_names}
    return leaving


def _stages(plan: Plan, placed: frozenset[str], *, is_distributed: bool) -> tuple[Stage, ...]:
    """The stages of a plan, if some queues must be made in one place."""
    types = plan.program.queue_types()
    growing = _growing(plan)
    # The rows of a constant have an order, which they keep only if they stay together.
    constant = {one.name for one in plan.program.inputs if one.values is not None}
    places: dict[str, _Place] = {}
    drafts: list[_Draft] = []
    for number, step in enumerate(plan.steps):
        wanted: dict[str, Key] = {
            q: ()
            if is_distributed and (q in constant or step.makes(placed))
            else _wanted(step, q, types, growing, is_distributed=is_distributed)
            for q in step.inputs
        }
        entering = {q: frozenset(types[q].schema.names) for q in step.inputs}
        stage = _joined(step, wanted, places, drafts)
        if stage is None:
            stage = len(drafts)
            drafts.append(_Draft(next(iter(wanted.values()), ()), dict(wanted)))
        else:
            entering |= {q: places[q].kept for q in step.inputs if q in places}
        drafts[stage].steps[number] = step
        kept = _kept(step, entering, types)
        places.update({q: _Place(stage, kept[q]) for q in step.outputs})
    return tuple(
        Stage(tuple(d.keys.items()), tuple(step for _, step in sorted(d.steps.items())))
        for d in drafts
        if d.steps
    )


def _growing(plan: Plan) -> frozenset[str]:
    """Relations that rows are only ever added to."""
    growing = {one.name for one in plan.program.inputs if one.is_read_once}
    for op in (op for step in plan.steps for op in step.operators):
        never_lets_go = isinstance(op.function, Range) and op.function.length is None
        hands_on = isinstance(op.function, (Map, Filter, Duplicate, Merge, Join))
        if never_lets_go or (hands_on and growing.issuperset(op.inputs)):
            growing.update(op.outputs)
    return frozenset(growing)


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


def all_together(stages: tuple[Stage, ...], plan: Plan) -> Stage:
    """All stages as one that sees all rows in one place."""
    made = {q for stage in stages for step in stage.steps for q in step.outputs}
    entering = [q for stage in stages for q in stage.inputs if q not in made]
    order = {step: number for number, step in enumerate(plan.steps)}
    steps = sorted((step for s in stages for step in s.steps), key=order.__getitem__)
    return Stage(tuple((q, ()) for q in dict.fromkeys(entering)), tuple(steps))


def _kept_by(stage: Stage) -> tuple[tuple[str, Key], ...]:
    if any(key == () for _, key in stage.keys):
        return tuple((queue, ()) for queue in stage.inputs)
    return stage.keys


def _joined(
    step: Step, wanted: dict[str, Key], places: dict[str, _Place], drafts: list[_Draft]
) -> int | None:
    """The stage that all inputs are in, or can be in, if the step can run there."""
    stages = {places[q].stage for q in step.inputs if q in places}
    if not stages:
        return None
    if len(stages) > 1 or any(q not in places for q in step.inputs):
        return _gathered(step, wanted, places, drafts)
    (stage,) = stages
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


def _gathered(
    step: Step, wanted: dict[str, Key], places: dict[str, _Place], drafts: list[_Draft]
) -> int | None:
    """Several stages as one, and with it inputs of the program, if one key fits all of them.

    Only stages that read nothing but inputs of the program become one: no other stage can
    lie between them. Columns of the key must have the same names everywhere.
    """
    there = [places[q] for q in step.inputs if q in places]
    stages = sorted({place.stage for place in there})
    stage_keys = {drafts[s].key for s in stages if drafts[s].key is not None}
    keys = set(wanted.values())
    if len(keys) != 1 or len(stage_keys) > 1:
        return None
    (asked,) = keys
    key = stage_keys.pop() if stage_keys else asked
    if not key or not asked or not set(key) <= set(asked):
        return None
    if any(not set(key) <= place.kept for place in there):
        return None
    if len(stages) > 1 and any(q in places for s in stages for q in drafts[s].keys):
        return None
    first = drafts[stages[0]]
    for draft in (drafts[s] for s in stages):
        if draft.key is None:
            draft.key, draft.keys = key, dict.fromkeys(draft.keys, key)
    for number in stages[1:]:
        first.keys |= drafts[number].keys
        first.steps |= drafts[number].steps
        drafts[number].steps = {}
        for queue, place in places.items():
            if place.stage == number:
                places[queue] = _Place(stages[0], place.kept)
    first.keys |= {q: key for q in step.inputs if q not in places}
    return stages[0]


def _wanted(
    step: Step,
    queue: str,
    types: Mapping[str, QueueType],
    growing: frozenset[str],
    *,
    is_distributed: bool,
) -> Key:
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
            # What is only added to is a stream already: nothing must meet to cancel out.
            is_free = isinstance(op.function, Istream) and name in growing
            strictest = _stricter(strictest, None if is_free else facts.key, kept[name])
            for output in op.outputs:
                kept[output] = kept[name] & facts.forwards
    return strictest


def _blurs_order(op: Operator, types: Mapping[str, QueueType]) -> bool:
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
    step: Step, entering: dict[str, frozenset[str]], types: Mapping[str, QueueType]
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
