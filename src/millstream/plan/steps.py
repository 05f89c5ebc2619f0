"""The plan: steps in the order in which they run, grouped into stages.

A *step* is a set of operators that one kernel runs. Row functions that follow each other
are one step, and so are a window and its reader where a kernel takes in both. Operators
that share a variable, and cycles, always lie inside one step,
with everything on the paths between them. A *stage* is a run of steps that can be
partitioned by one key, so that partitions need not talk to each other.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field

from millstream.calculus.functions import (
    Duplicate,
    Filter,
    FlatMap,
    Fold,
    Map,
    Range,
    RoundRobinJoin,
    RoundRobinSplit,
    Rstream,
)
from millstream.calculus.graph import Operator, Program, in_dependency_order
from millstream.calculus.work import Work
from millstream.plan.lower import lower

ROW_FUNCTIONS = (Map, Filter, FlatMap, Fold, Duplicate)
#: What counts items, and runs with `Work` on buffers.
NET_FUNCTIONS = (Work, RoundRobinSplit, RoundRobinJoin, Duplicate)
#: More row functions are not made one loop: to compile 60 in a row takes 4 s, 300 take 37 s.
MOST_FUSED = 128

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

    @property
    def is_net(self) -> bool:
        return any(isinstance(op.function, Work) for op in self.operators)

    @property
    def looks_at_instants(self) -> bool:
        """Whether it tells something at every instant of its inputs, changed or not."""
        return any(isinstance(op.function, Rstream) for op in self.operators)

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
    groups = _nets(lowered, _inseparable(lowered))
    fused = _fuse_windows(lowered, _Fusing(lowered, groups, why_not).fuse(), why_not)
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


def _nets(program: Program, groups: list[list[Operator]]) -> list[list[Operator]]:
    """Join what counts items around `Work`, so that a net of filters is one step."""
    ends = {q: n for n, group in enumerate(groups) for op in group for q in op.outputs}
    counts = [all(isinstance(op.function, NET_FUNCTIONS) for op in group) for group in groups]
    home = list(range(len(groups)))

    def home_of(number: int) -> int:
        while home[number] != number:
            home[number] = home[home[number]]
            number = home[number]
        return number

    for number, group in enumerate(groups):
        for queue in {q for op in group for q in op.inputs} & ends.keys():
            if counts[number] and counts[ends[queue]]:
                ours, theirs = home_of(number), home_of(ends[queue])
                home[max(ours, theirs)] = min(ours, theirs)
    joined: dict[int, list[Operator]] = {}
    for number, group in enumerate(groups):
        joined.setdefault(home_of(number), []).extend(group)
    nets = {n for n, ops in joined.items() if any(isinstance(o.function, Work) for o in ops)}
    if not nets or _is_tangled(list(joined.values())):
        return groups
    order = {op.id: n for n, op in enumerate(in_dependency_order(program))}
    alone = [group for n, group in enumerate(groups) if home_of(n) not in nets]
    return [*alone, *(sorted(joined[net], key=lambda op: order[op.id]) for net in sorted(nets))]


def _is_tangled(groups: list[list[Operator]]) -> bool:
    """Whether a way leads out of a group and back into it."""
    ends = {q: n for n, group in enumerate(groups) for op in group for q in op.outputs}
    after: list[set[int]] = [set() for _ in groups]
    for number, group in enumerate(groups):
        for queue in {q for op in group for q in op.inputs} & ends.keys():
            if ends[queue] != number:
                after[ends[queue]].add(number)
    return len(_components(after)) < len(groups)


def _components(after: list[set[int]]) -> list[set[int]]:
    """Strongly connected components, in the order of their first members (Tarjan)."""
    index: dict[int, int] = {}
    lowest: dict[int, int] = {}
    path: list[int] = []
    on_path: set[int] = set()
    parts: list[set[int]] = []
    for start in range(len(after)):
        # What is looked at, each with its neighbours that are still to be looked at.
        waiting = [] if start in index else [(start, iter(after[start]))]
        while waiting:
            node, others = waiting[-1]
            if node not in index:
                index[node] = lowest[node] = len(index)
                path.append(node)
                on_path.add(node)
            other = next(others, None)
            if other is not None:
                if other not in index:
                    waiting.append((other, iter(after[other])))
                elif other in on_path:
                    lowest[node] = min(lowest[node], index[other])
                continue
            waiting.pop()
            if waiting:
                before = waiting[-1][0]
                lowest[before] = min(lowest[before], lowest[node])
            if lowest[node] == index[node]:
                parts.append({path.pop()})
                while node not in parts[-1]:
                    parts[-1].add(path.pop())
                on_path -= parts[-1]
    return sorted(parts, key=min)


class _Fusing:
    """Mutable: groups of row functions while each is joined with the one that feeds it."""

    def __init__(self, program: Program, groups: list[list[Operator]], why_not: Capability) -> None:
        self.program = program
        self.why_not = why_not
        self.number = {op.id: n for n, op in enumerate(in_dependency_order(program))}
        #: The group of an operator, and what a group has become part of.
        self.home = {op.id: group for group in groups for op in group}
        self.groups = groups
        self.joined: dict[int, list[Operator]] = {}

    def fuse(self) -> list[list[Operator]]:
        rows = [g for g in self.groups if all(isinstance(o.function, ROW_FUNCTIONS) for o in g)]
        self.is_row = {id(g) for g in rows}
        self.join(rows)
        return [g for g in self.groups if id(g) not in self.joined]

    def join(self, some: list[list[Operator]]) -> None:
        """Join all of them if that compiles, else one half after the other.

        What follows from each other is so tried a few times, not once for each operator.
        """
        grown: dict[int, list[list[Operator]]] = {}
        for group in some:
            feeder = self.feeder(group)
            if feeder is not None:
                self.joined[id(group)] = feeder
                grown.setdefault(id(feeder), [feeder]).append(group)
        together = [[op for group in groups for op in group] for groups in grown.values()]
        if all(map(self.fits, together)):
            for groups, ops in zip(grown.values(), together, strict=True):
                groups[0][:] = ops
            return
        for groups in grown.values():
            for group in groups[1:]:
                del self.joined[id(group)]
        if len(some) > 1:
            middle = len(some) // 2
            self.join(some[:middle])
            self.join(some[middle:])

    def fits(self, ops: list[Operator]) -> bool:
        if len(ops) > MOST_FUSED:
            return False
        ops.sort(key=lambda op: self.number[op.id])
        return self.why_not(self.program, tuple(ops)) is None

    def feeder(self, group: list[Operator]) -> list[Operator] | None:
        """The group of row functions that all inputs of a group come from, if there is one."""
        producers = self.program.producers()
        outside = {q for op in group for q in op.inputs} - {q for op in group for q in op.outputs}
        if not all(q in producers for q in outside):
            return None
        feeders = {id(f): f for q in outside for f in [self.now(producers[q])]}
        (feeder, *others) = feeders.values()
        return feeder if not others and id(feeder) in self.is_row else None

    def now(self, op: Operator) -> list[Operator]:
        """The group that an operator is in by now."""
        group = self.home[op.id]
        while id(group) in self.joined:
            group = self.joined[id(group)]
        return group


def _fuse_windows(
    program: Program, groups: list[list[Operator]], why_not: Capability
) -> list[list[Operator]]:
    """Join each window with what reads it, where one kernel can do the work of both."""
    readers = program.consumers()
    alone = {group[0].id: group for group in groups if len(group) == 1}
    gone: set[int] = set()
    for window in [op for (op,) in alone.values() if isinstance(op.function, Range)]:
        reader = readers.get(window.outputs[0])
        if reader is None or reader[0].id not in alone:
            continue
        pair = (window, reader[0])
        if why_not(program, pair) is None:
            alone.pop(reader[0].id)[:] = pair
            gone.add(id(alone.pop(window.id)))
    return [group for group in groups if id(group) not in gone]


def _ordered(program: Program, groups: list[list[Operator]]) -> list[list[Operator]]:
    """Groups, producers before consumers, and else as they are."""
    home = {q: n for n, group in enumerate(groups) for op in group for q in op.outputs}
    needs = [
        {home[q] for op in group for q in op.inputs if q in home} - {n}
        for n, group in enumerate(groups)
    ]
    users: dict[int, list[int]] = {}
    for number, some in enumerate(needs):
        for other in some:
            users.setdefault(other, []).append(number)
    ready = [number for number, some in enumerate(needs) if not some]  # a heap: it is sorted
    ordered: list[list[Operator]] = []
    while ready:
        chosen = heapq.heappop(ready)
        ordered.append(groups[chosen])
        for user in users.get(chosen, ()):
            needs[user].discard(chosen)
            if not needs[user]:
                heapq.heappush(ready, user)
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
