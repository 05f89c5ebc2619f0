"""A program as a system of actors, after the thesis: `create`, `send` and `become`.

Every operator is an actor; operators that share a variable are one. A behaviour is a pure
function from a message to actions: what an actor knows is in its behaviour, and changes only by
becoming another. Messages take their time: which of those on their way arrives next is drawn by
lot, except that messages from one actor to another keep their order. What operators compute is
what they mean; that no more than this is needed to run a program is what this engine shows.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from millstream.calculus.graph import Operator, Program
from millstream.engine.job import Job, Progress, Report, no_progress
from millstream.engine.reference.feed import entries_of, read_events
from millstream.engine.reference.run import write_outputs
from millstream.meaning.firing import Context
from millstream.meaning.items import Entry
from millstream.meaning.machine import contexts_of, fired, initial_variables, last_marks

Address = int


@dataclass(frozen=True, slots=True)
class QueueEntry:
    """An entry of a queue, to the one who reads that queue."""

    queue: str
    entry: Entry


@dataclass(frozen=True, slots=True)
class Send:
    message: QueueEntry


@dataclass(frozen=True, slots=True)
class Become:
    behaviour: Behaviour


Action = Send | Become
Behaviour = Callable[[QueueEntry], Iterator[Action]]


class System:
    """Mutable: the actors, and the messages on their way."""

    def __init__(self, seed: int) -> None:
        self.generator = random.Random(seed)
        self.behaviours: list[Behaviour] = []
        #: Who reads a queue.
        self.readers: dict[str, Address] = {}
        self.channels: dict[tuple[Address, Address], deque[QueueEntry]] = {}

    def create(self, behaviour: Behaviour, reads: Iterator[str]) -> None:
        self.readers.update(dict.fromkeys(reads, len(self.behaviours)))
        self.behaviours.append(behaviour)

    def send(self, message: QueueEntry, sender: Address) -> None:
        channel = sender, self.readers[message.queue]
        self.channels.setdefault(channel, deque()).append(message)

    def run(self) -> None:
        """Deliver messages until none is on its way."""
        while waiting := [channel for channel, some in self.channels.items() if some]:
            channel = self.generator.choice(waiting)
            receiver = channel[1]
            for action in self.behaviours[receiver](self.channels[channel].popleft()):
                match action:
                    case Send(sent):
                        self.send(sent, receiver)
                    case Become(behaviour):
                        self.behaviours[receiver] = behaviour


def acting(
    readers: Mapping[str, tuple[Operator, int]],
    contexts: Mapping[str, Context],
    variables: Mapping[str, Any],
) -> Behaviour:
    """Operators that know the values of their variables."""

    def behaviour(message: QueueEntry) -> Iterator[Action]:
        op, index = readers[message.queue]
        changed, sent = fired(op, index, message.entry, variables, contexts[op.id])
        yield Become(acting(readers, contexts, {**variables, **changed}))
        for queue, entry in sent:
            yield Send(QueueEntry(queue, entry))

    return behaviour


def collecting(entries: list[Entry]) -> Behaviour:
    """Where results leave the system."""

    def behaviour(message: QueueEntry) -> Iterator[Action]:
        entries.append(message.entry)
        yield Become(behaviour)

    return behaviour


def sharing(program: Program) -> list[list[Operator]]:
    """The operators, those together that share a variable."""
    groups: list[list[Operator]] = []
    for op in program.operators:
        mine = {*op.reads, *op.writes}
        friends = [g for g in groups if any(mine & {*o.reads, *o.writes} for o in g)]
        groups = [g for g in groups if g not in friends]
        groups.append([*(o for g in friends for o in g), op])
    return groups


def run(job: Job, *, seed: int = 0, progress: Progress = no_progress) -> Report:
    """Read all inputs, deliver messages until none is on its way, write the outputs."""
    program, report, system = job.program, Report.for_program(job.program), System(seed)
    faults: Counter[str] = Counter()
    contexts, variables = contexts_of(program, faults), initial_variables(program)
    consumers = program.consumers()
    for group in sharing(program):
        known = {v: variables[v] for op in group for v in (*op.reads, *op.writes)}
        system.create(acting(consumers, contexts, known), (q for op in group for q in op.inputs))
    results: dict[str, list[Entry]] = {name: [] for name in program.outputs}
    for name, entries in results.items():
        system.create(collecting(entries), iter((name,)))
    events = read_events(job, report)
    given = entries_of(program, events, end=report.mark)
    for number, (queue, entries) in enumerate(given.items()):
        for entry in entries:
            system.send(QueueEntry(queue, entry), -1 - number)
    system.run()
    if report.mark is not None:
        for queue, mark in last_marks(program).items():
            system.send(QueueEntry(queue, mark), -1)
        system.run()
    report.take_faults(faults, job)
    write_outputs(job, report, results)
    progress(report)
    return report
