"""The small-step machine: rule E-FireQueue of the paper, and nothing else.

A configuration is the pair of a store of variables and a store of queues. A step chooses
a non-empty queue that some operator reads, pops its head, calls the operator's function,
pushes what it returns and updates the variables.
"""

from __future__ import annotations

import heapq
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import millstream.meaning.cube
import millstream.meaning.each
import millstream.meaning.judging
import millstream.meaning.matching
import millstream.meaning.ordered
import millstream.meaning.relations  # the meanings register themselves on import
import millstream.meaning.rows
import millstream.meaning.sheets
import millstream.meaning.tables
import millstream.meaning.work  # noqa: F401  (as above)
from millstream.calculus.ending import entering, has_end
from millstream.calculus.functions import Fold
from millstream.calculus.graph import Operator, Program, in_dependency_order
from millstream.calculus.tables import END_OF_TIME
from millstream.meaning.firing import Context, fire, initial_state
from millstream.meaning.items import Entry, Mark, Origin


def contexts_of(program: Program, faults: Counter[str]) -> dict[str, Context]:
    """What is known about each operator before it fires."""
    types = program.queue_types()
    initial = {v.name: dict(zip(v.schema.names, v.initial, strict=True)) for v in program.variables}
    return {
        op.id: Context(op, tuple(types[q] for q in op.inputs), initial, faults)
        for op in program.operators
    }


def initial_variables(program: Program) -> dict[str, Any]:
    variables: dict[str, Any] = {v.name: {} for v in program.variables}
    for op in program.operators:
        private = initial_state(op.function, len(op.inputs))
        variables.update(zip(op.reads, private, strict=False))
    return variables


def fired(
    op: Operator, index: int, entry: Entry, variables: Mapping[str, Any], context: Context
) -> tuple[dict[str, Any], list[tuple[str, Entry]]]:
    """What an operator makes of an entry: new values of variables, and entries of queues.

    What a firing sends comes from where its cause came from, at its own time.
    """
    names = op.variables if isinstance(op.function, Fold) else op.reads
    result = fire(op.function, entry, index, tuple(variables[v] for v in names), context)
    sent = [
        (output, replace(made, origin=(made.time, *entry.origin[1:])))
        for output, entries in zip(op.outputs, result.outputs, strict=True)
        for made in entries
    ]
    return dict(zip(op.writes, result.state, strict=True)), sent


def last_marks(program: Program) -> dict[str, Mark]:
    """What is put on queues inside of a program when all inputs of a finite run are over."""
    queues = entering(program) if has_end(program) else ()
    return {q: Mark(END_OF_TIME, (), (END_OF_TIME, 1, 0, n)) for n, q in enumerate(queues)}


class Machine:
    """Mutable: the configuration <V, Q> of a program, and how to make a step."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.consumers = program.consumers()
        self.faults: Counter[str] = Counter()
        self.contexts = contexts_of(program, self.faults)
        # The place of a queue in the default schedule is that of the operator it feeds.
        order = {op.id: n for n, op in enumerate(in_dependency_order(program))}
        self.queue_order = {q: (order[op.id], i) for q, (op, i) in self.consumers.items()}
        self.variables = initial_variables(program)
        self.queues: dict[str, deque[Entry]] = {q: deque() for q in program.queue_types()}

    def push(self, queue: str, entries: Iterable[Entry]) -> None:
        self.queues[queue].extend(entries)

    def end(self) -> None:
        """All inputs are over: let time go on for what waits for that, and for nothing else."""
        for queue, mark in last_marks(self.program).items():
            self.push(queue, [mark])

    def enabled(self) -> list[str]:
        """The queues that may fire: not empty, and read by an operator."""
        return [q for q in self.consumers if self.queues[q]]

    def step(self, queue: str) -> tuple[Operator, Entry]:
        """Fire a queue; returns the operator that fired and the item it popped."""
        op, index = self.consumers[queue]
        entry = self.queues[queue].popleft()
        changed, sent = fired(op, index, entry, self.variables, self.contexts[op.id])
        self.variables.update(changed)
        for output, made in sent:
            self.queues[output].append(made)
        return op, entry

    def schedule_key(self, queue: str) -> tuple[Origin, tuple[int, int]]:
        return self.queues[queue][0].origin, self.queue_order[queue]

    def run(self, gives_up: Callable[[], bool] | None = None) -> bool:
        """Fire by the default schedule until no queue can fire; tells whether it came so far.

        Whoever counts the cost is asked now and then whether to give up.
        """
        # The heads of all queues that may fire, the next one first.
        heads = [(*self.schedule_key(queue), queue) for queue in self.enabled()]
        heapq.heapify(heads)
        firings = 0
        while heads:
            *_, queue = heapq.heappop(heads)
            op, _ = self.consumers[queue]
            were_empty = [q for q in op.outputs if q in self.consumers and not self.queues[q]]
            self.step(queue)
            if self.queues[queue]:
                heapq.heappush(heads, (*self.schedule_key(queue), queue))
            for made in were_empty:
                if self.queues[made]:
                    heapq.heappush(heads, (*self.schedule_key(made), made))
            firings += 1
            if gives_up is not None and firings % 64 == 0 and gives_up():
                return False
        return True
