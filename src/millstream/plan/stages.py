"""Stages: runs of steps that can be partitioned by one key.

Partitions of a stage never talk to each other, so a stage can run on many workers; where
the key changes, rows change places. A step asks for its rows to be together by some
columns (a keyed fold), all together (a global one), or does not care. It may join the
stage of its inputs if that stage already keeps together what it asks for.
"""

from __future__ import annotations

from dataclasses import dataclass

from millstream.calculus.graph import Operator
from millstream.calculus.types import QueueType
from millstream.plan.steps import Plan, Step

#: The columns by which rows must be together; () is all rows, None is as they come.
Key = tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class Stage:
    """Steps that run on the same partitions; `key` in the columns of its inputs."""

    key: Key
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class _Placement:
    """The stage a queue is in, and the names its key columns have on this queue."""

    stage: int
    columns: Key


def stages_of(plan: Plan) -> tuple[Stage, ...]:
    """The stages of a plan, in the order in which they can run."""
    types = plan.program.queue_types()
    places: dict[str, _Placement] = {}
    keys: list[Key] = []
    members: list[list[Step]] = []
    for step in plan.steps:
        wanted = [_wanted(step, q, types) for q in step.inputs]
        stage = _joinable(step, wanted, places)
        if stage is None:
            stage = len(members)
            keys.append(next((w for w in wanted if w is not None), None))
            members.append([])
        members[stage].append(step)
        _place_outputs(step, stage, wanted, places, types)
    return tuple(Stage(k, tuple(m)) for k, m in zip(keys, members, strict=True))


def _joinable(step: Step, wanted: list[Key], places: dict[str, _Placement]) -> int | None:
    """The stage that all inputs are in, if it keeps together what the step wants."""
    here = [places.get(q) for q in step.inputs]
    stages = {p.stage for p in here if p is not None}
    if len(stages) != 1 or None in here:
        return None
    for place, key in zip(here, wanted, strict=True):
        assert place is not None
        if key is None or place.columns == ():
            continue
        if place.columns is None or not set(place.columns) <= set(key):
            return None
    return stages.pop()


def _wanted(step: Step, queue: str, types: dict[str, QueueType]) -> Key:
    """What a step asks of one of its inputs, in the columns of that input."""
    if step.fallback is not None:
        return ()  # a machine sees all its rows in one order
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


def _stricter(one: Key, other: Key, kept: frozenset[str]) -> Key:
    """The key that satisfies both: their common columns; all rows if there are none."""
    if other is None:
        return one
    if not set(other) <= kept:
        return ()  # the key is computed on the way and not known at the input
    if one is None:
        return other
    return tuple(c for c in one if c in other)


def _place_outputs(
    step: Step,
    stage: int,
    wanted: list[Key],
    places: dict[str, _Placement],
    types: dict[str, QueueType],
) -> None:
    columns: dict[str, Key] = {}
    for queue, key in zip(step.inputs, wanted, strict=True):
        place = places.get(queue)
        columns[queue] = place.columns if place and place.stage == stage else key
    for op in step.operators:
        for output in op.outputs:
            columns[output] = _forwarded(op, columns, types)
    for output in step.outputs:
        places[output] = _Placement(stage, columns[output])


def _forwarded(op: Operator, columns: dict[str, Key], types: dict[str, QueueType]) -> Key:
    """The key columns that an operator hands on under their names, if it does."""
    key = columns[op.inputs[0]]
    facts = op.function.facts(tuple(types[q] for q in op.inputs), 0)
    return key if key is not None and set(key) <= facts.forwards else (() if key == () else None)
