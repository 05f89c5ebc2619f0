"""Every interleaving of a small program: are its results unique?

A depth-first walk over all configurations, each visited once. Sound reduction: a queue
whose operator has no other input and shares no variable with others commutes with
everything else that can happen, so where one can fire only it is fired; all final
configurations are still reached (it is a persistent set of one).
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from millstream.calculus.graph import Program
from millstream.calculus.text import render_operator
from millstream.engine.reference.feed import Event, entries_of
from millstream.engine.reference.run import output_items
from millstream.errors import UsageError
from millstream.meaning.items import Entry, Item, Mark
from millstream.meaning.machine import Machine

DEFAULT_LIMIT = 1_000_000
MAX_EVENTS = 500


@dataclass(frozen=True, slots=True)
class FinalOutput:
    """What a schedule ends with, and the schedule: which queue fired at each step."""

    outputs: tuple[tuple[str, tuple[Item, ...]], ...]
    variables: tuple[tuple[str, Any], ...]
    schedule: tuple[str, ...] = dataclasses.field(compare=False)


@dataclass(frozen=True, slots=True)
class Exploration:
    """All different final outputs; `is_complete` is false if the limit was reached."""

    finals: tuple[FinalOutput, ...]
    configurations: int
    is_complete: bool

    @property
    def is_unique(self) -> bool:
        return len(self.finals) == 1


def explore(
    program: Program, events: dict[str, list[Event]], *, limit: int = DEFAULT_LIMIT
) -> Exploration:
    """Walk all interleavings. Variables count as output where there is no output queue."""
    count = sum(map(len, events.values()))
    if count > MAX_EVENTS:
        raise UsageError(
            f"{count:,} rows are too many to try every interleaving; at most {MAX_EVENTS:,}",
            hint="give it a small input: --in NAME=PATH",
        )
    start = Machine(program)
    for queue, entries in entries_of(program, events, is_dense=False).items():
        start.push(queue, entries)
    independent = _independent_queues(program)
    finals: dict[Any, FinalOutput] = {}
    seen: set[Any] = set()
    stack: list[tuple[Machine, tuple[str, ...]]] = [(start, ())]
    while stack and len(seen) < limit:
        machine, schedule = stack.pop()
        enabled = machine.enabled()
        alone = next((q for q in enabled if q in independent), None)
        if not enabled:
            final = _final(machine, schedule)
            finals.setdefault((frozen(final.outputs), frozen(final.variables)), final)
        for queue in [alone] if alone else reversed(enabled):
            successor = _copied(machine)
            successor.step(queue)
            key = _configuration(successor)
            if key not in seen:
                seen.add(key)
                stack.append((successor, (*schedule, queue)))
    return Exploration(tuple(finals.values()), len(seen) + 1, not stack)


def _independent_queues(program: Program) -> frozenset[str]:
    shared = program.shared_variables()
    return frozenset(
        op.inputs[0]
        for op in program.operators
        if len(op.inputs) == 1 and not shared & set(op.variables)
    )


def _copied(machine: Machine) -> Machine:
    """A machine with stores of its own; the values in them are never changed in place."""
    twin = copy.copy(machine)
    twin.variables = dict(machine.variables)
    twin.queues = {q: entries.copy() for q, entries in machine.queues.items()}
    return twin


def _configuration(machine: Machine) -> Any:
    queues = tuple(tuple(entries) for entries in machine.queues.values())
    return queues, tuple(frozen(v) for v in machine.variables.values())


def frozen(value: Any) -> Any:
    """A value that can be hashed and compared, equal for equal values."""
    if isinstance(value, Mapping):
        return frozenset((key, frozen(item)) for key, item in value.items())
    if isinstance(value, (tuple, list)):
        return tuple(frozen(item) for item in value)
    if isinstance(value, Item):
        return value
    if dataclasses.is_dataclass(value):
        return tuple(frozen(getattr(value, f.name)) for f in dataclasses.fields(value))
    return value


def _final(machine: Machine, schedule: tuple[str, ...]) -> FinalOutput:
    program = machine.program
    types = program.queue_types()
    outputs = tuple(
        (q, tuple(output_items(list(machine.queues[q]), types[q]))) for q in program.outputs
    )
    variables: tuple[tuple[str, Any], ...] = ()
    if not outputs:
        variables = tuple((v.name, machine.variables[v.name]) for v in program.variables)
    return FinalOutput(outputs, variables, schedule)


def replay(
    program: Program, events: dict[str, list[Event]], schedule: tuple[str, ...]
) -> list[str]:
    """A schedule told step by step: what fired, on which item, and what it sent."""
    machine = Machine(program)
    for queue, entries in entries_of(program, events, is_dense=False).items():
        machine.push(queue, entries)
    lines: list[str] = []
    for number, queue in enumerate(schedule, 1):
        before = {q: len(entries) for q, entries in machine.queues.items()}
        variables = dict(machine.variables)
        op, entry = machine.step(queue)
        effects = [
            f"{q} += {', '.join(_told(e) for e in list(machine.queues[q])[before[q] :])}"
            for q in op.outputs
            if len(machine.queues[q]) > before[q]
        ]
        effects += [
            f"${v} = {_told_value(machine.variables[v])}"
            for v in op.writes
            if v in {x.name for x in program.variables} and machine.variables[v] != variables[v]
        ]
        lines.append(f"{number:3}. {queue} pops {_told(entry)}: {'; '.join(effects) or 'nothing'}")
    return lines


def _told(entry: Entry) -> str:
    if isinstance(entry, Mark):
        return f"end of time {entry.time}"
    sign = "" if entry.weight == 1 else f" x{entry.weight}"
    return f"{entry.time}:({', '.join(map(repr, entry.row))}){sign}"


def _told_value(value: Any) -> str:
    parts = []
    for key, record in value.items():
        fields = ", ".join(f"{name}={item!r}" for name, item in record.items())
        parts.append(f"{key!r}: {fields}" if key else fields)
    return "{" + "; ".join(parts) + "}"


def operators_in_conflict(program: Program) -> list[str]:
    """The operators that share a variable, as text: the usual reason for two results."""
    shared = program.shared_variables()
    return [render_operator(op) for op in program.operators if shared & set(op.variables)]
