"""The plan: steps in the order in which they run, grouped into stages.

A *step* is a set of operators that one kernel runs. Row functions that follow each other
are one step, and so are a window and its reader where a kernel takes in both. Operators
that share a variable, and cycles, always lie inside one step,
with everything on the paths between them. A *stage* is a run of steps that can be
partitioned by one key, so that partitions need not talk to each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from millstream.calculus.functions import Duplicate, Filter, FlatMap, Fold, Map, Range
from millstream.calculus.graph import Operator, Program, in_dependency_order
from millstream.plan.lower import lower

ROW_FUNCTIONS = (Map, Filter, FlatMap, Fold, Duplicate)

#: Why a set of row functions cannot be compiled together, or None.
Capability = Callable[[Program, tuple[Operator, ...]], str | None]


@dataclass(frozen=True, slots=True)
class Step:
    """Operators that one kernel runs. `fallback` says why they have no kernel, if so."""

    operators: tuple[Operator, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    fallback: str | None = None

    @property
    def is_row_step(self) -> bool:
        return all(isinstance(op.function, ROW_FUNCTIONS) for op in self.operators)

    def makes(self, queues: frozenset[str]) -> bool:
        """Whether an operator of it writes one of these queues."""
        return any(not queues.isdisjoint(op.outputs) for op in self.operators)


@dataclass(frozen=True, slots=True)
class Plan:
    """A lowered program and its steps, producers before consumers."""

    program: Program
    steps: tuple[Step, ...]
    #: Queues whose items must carry their rank, because a step merges them with others.
    ranked: frozenset[str] = field(default=frozenset())
    #: Queues that are made in one place, so that what is in no other order can be ranked there.
    placed: frozenset[str] = field(default=frozenset())

    def inputs_behind(self) -> dict[str, frozenset[int]]:
        """For every queue, the declaration numbers of the program inputs it depends on."""
        behind = {name: frozenset((n,)) for n, name in enumerate(self.program.input_names)}
        for step in self.steps:
            all_behind = frozenset().union(*(behind[q] for q in step.inputs))
            behind.update(dict.fromkeys(step.outputs, all_behind))
        return behind


def make_plan(program: Program, why_not: Capability, *, ranks_all: bool = False) -> Plan:
    """Lower, group, fuse and order a verified program.

    With `ranks_all` every queue carries ranks, for engines on which items of one queue
    pass through several places at once.
    """
    lowered = lower(program)
    groups = _inseparable(lowered)
    fused = _fuse_windows(lowered, _fuse(lowered, groups, why_not), why_not)
    steps = tuple(_step(lowered, ops, why_not) for ops in _ordered(lowered, fused))
    ranked = frozenset(lowered.queue_types()) if ranks_all else _ranked(steps)
    return Plan(lowered, steps, ranked)


# --- grouping ---------------------------------------------------------------------------


def _inseparable(program: Program) -> list[list[Operator]]:
    """The smallest groups closed under shared variables, cycles and paths between members."""
    ops = in_dependency_order(program)
    index = {op.id: n for n, op in enumerate(ops)}
    producers = program.producers()
    after: list[set[int]] = [set() for _ in ops]
    for op in ops:
        for queue in op.inputs:
            if queue in producers:
                after[index[producers[queue].id]].add(index[op.id])
    shared = program.shared_variables()
    for variable, users in program.accessors().items():
        if variable in shared:
            # An edge both ways makes the users, and all between them, one component.
            first, *others = (index[op.id] for op in users)
            for other in others:
                after[first].add(other)
                after[other].add(first)
    return [[ops[n] for n in sorted(part)] for part in _components(after)]


def _components(after: list[set[int]]) -> list[set[int]]:
    """Strongly connected components, by reachability: programs are small."""
    reach = [_reachable(after, n) for n in range(len(after))]
    seen: set[int] = set()
    parts: list[set[int]] = []
    for n in range(len(after)):
        if n not in seen:
            part = {n} | {m for m in reach[n] if n in reach[m]}
            seen |= part
            parts.append(part)
    return parts


def _reachable(after: list[set[int]], start: int) -> set[int]:
    found: set[int] = set()
    waiting = list(after[start])
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting.extend(after[node])
    return found


def _fuse(
    program: Program, groups: list[list[Operator]], why_not: Capability
) -> list[list[Operator]]:
    """Join each row step with the row step that feeds all its inputs, where it compiles."""
    producers = program.producers()
    home: dict[str, list[Operator]] = {op.id: group for group in groups for op in group}
    for group in groups:
        if not all(isinstance(op.function, ROW_FUNCTIONS) for op in group):
            continue
        outside = {q for op in group for q in op.inputs} - {q for op in group for q in op.outputs}
        feeders = {id(home[producers[q].id]) if q in producers else None for q in outside}
        if len(feeders) != 1 or None in feeders:
            continue
        feeder = home[producers[next(iter(outside))].id]
        if not all(isinstance(op.function, ROW_FUNCTIONS) for op in feeder):
            continue
        together = _in_order(program, feeder + group)
        if why_not(program, tuple(together)) is None:
            feeder[:] = together
            home.update({op.id: feeder for op in group})
    return list({id(g): g for g in home.values()}.values())


def _fuse_windows(
    program: Program, groups: list[list[Operator]], why_not: Capability
) -> list[list[Operator]]:
    """Join each window with what reads it, where one kernel can do the work of both."""
    readers = program.consumers()
    alone = {group[0].id: group for group in groups if len(group) == 1}
    for window in [op for (op,) in alone.values() if isinstance(op.function, Range)]:
        reader = readers.get(window.outputs[0])
        if reader is None or reader[0].id not in alone:
            continue
        pair = (window, reader[0])
        if why_not(program, pair) is None:
            alone[reader[0].id][:] = pair
            groups.remove(alone.pop(window.id))
            del alone[reader[0].id]
    return groups


def _in_order(program: Program, ops: Iterable[Operator]) -> list[Operator]:
    wanted = {op.id for op in ops}
    return [op for op in in_dependency_order(program) if op.id in wanted]


def _ordered(program: Program, groups: list[list[Operator]]) -> list[list[Operator]]:
    """Groups, producers before consumers."""
    ready = set(program.input_names)
    waiting = list(groups)
    ordered: list[list[Operator]] = []
    while waiting:
        chosen = next(
            g for g in waiting
            if {q for op in g for q in op.inputs} <= ready | {q for op in g for q in op.outputs}
        )  # fmt: skip
        waiting.remove(chosen)
        ordered.append(chosen)
        ready |= {q for op in chosen for q in op.outputs}
    return ordered


def _step(program: Program, ops: list[Operator], why_not: Capability) -> Step:
    inside = {q for op in ops for q in op.outputs}
    inputs = tuple(q for op in ops for q in op.inputs if q not in inside)
    used = {q for op in ops for q in op.inputs}
    outputs = tuple(q for op in ops for q in op.outputs if q not in used)
    return Step(tuple(ops), inputs, outputs, why_not(program, tuple(ops)))


def _ranked(steps: tuple[Step, ...]) -> frozenset[str]:
    """Queues upstream of a step that merges several inputs row by row.

    A rank is handed on by whatever acts at once; what waits for time gives a new one.
    """
    ranked: set[str] = set()
    for step in reversed(steps):
        merges = len(step.inputs) > 1 and (step.is_row_step or step.fallback is not None)
        acts_at_once = all(op.function.acts_at_once for op in step.operators)
        if merges or (acts_at_once and ranked & set(step.outputs)):
            ranked |= set(step.inputs)
    return frozenset(ranked)
