"""Operators in the making: flows, and what makes a program of them.

While a query is translated a flow may be read any number of times; at the end every
queue that has several readers is duplicated, what nobody reads is left out, and outputs
get their names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from millstream.calculus.functions import Assign, Duplicate, Function, FunctionFault, Map
from millstream.calculus.graph import Input, Operator, Program
from millstream.calculus.terms import Column
from millstream.calculus.types import QueueType, Schema
from millstream.errors import Fault
from millstream.languages.cql.tokens import Stop
from millstream.source import Span


@dataclass(frozen=True, slots=True)
class Flow:
    """A queue on which a stream or a relation travels.

    A relation is `is_monotone` if rows only ever come into it. `beats` are the heartbeats
    of the inputs behind it. Columns that are nothing but NULL are `untyped`: they are texts
    until they meet another type.
    """

    queue: str
    type: QueueType
    is_monotone: bool = False
    beats: frozenset[int] = frozenset()
    untyped: frozenset[str] = frozenset()

    @property
    def schema(self) -> Schema:
        return self.type.schema


class Builder:
    """Mutable: the operators so far."""

    def __init__(self, faults: list[Fault]) -> None:
        self.faults = faults
        self.operators: list[Operator] = []
        self.names: set[str] = set()
        self.variables: set[str] = set()
        self.hidden_columns = 0

    def hidden(self, word: str) -> str:
        """A name for a column that no query sees, unlike any other of its statement."""
        self.hidden_columns += 1
        return f"{word}.{self.hidden_columns}"

    def fresh(self, wanted: str) -> str:
        """A name for a queue that no other has."""
        return _fresh(wanted, self.names)

    def add(
        self,
        function: Function,
        *inputs: Flow,
        name: str,
        span: Span | None,
        is_monotone: bool | None = None,
    ) -> Flow:
        """One operator more; a function that does not fit is a fault at the span.

        Unless told otherwise the result is monotone if all inputs are.
        """
        try:
            (type_,) = function.output_types(tuple(i.type for i in inputs), 1)
        except FunctionFault as fault:
            self.faults += [Fault(message, span) for message in fault.messages]
            raise Stop from None
        queue = self.fresh(name)
        count = function.state_count(len(inputs))
        state = tuple(_fresh(queue, self.variables) for _ in range(count))
        self.operators.append(
            Operator(function, tuple(i.queue for i in inputs), (queue,), state, state, span)
        )
        if is_monotone is None:
            is_monotone = all(i.is_monotone for i in inputs)
        beats = frozenset[int]().union(*(i.beats for i in inputs))
        is_same = len(inputs) == 1 and inputs[0].schema == type_.schema
        untyped = inputs[0].untyped if is_same and not isinstance(function, Map) else frozenset()
        return Flow(queue, type_, is_monotone, beats, untyped)

    def columns(self, flow: Flow, names: Mapping[str, str], name: str, span: Span | None) -> Flow:
        """The flow with only the columns that are keys of `names`, each from its value.

        Nothing is added if that is what the flow already is.
        """
        if tuple(names.items()) == tuple((n, n) for n in flow.schema.names):
            return flow
        columns = tuple(Assign(new, Column(old, flow.schema[old])) for new, old in names.items())
        mapped = self.add(Map(columns), flow, name=name, span=span)
        untyped = frozenset(new for new, old in names.items() if old in flow.untyped)
        return replace(mapped, untyped=untyped)

    def program(self, inputs: tuple[Input, ...], outputs: Mapping[str, Flow]) -> Program:
        """The program of the operators behind some outputs."""
        operators = _needed(self.operators, {flow.queue for flow in outputs.values()})
        read = Counter(q for op in operators for q in op.inputs)
        used = tuple(i for i in inputs if read[i.name] or _is_output(i.name, outputs))
        names, copies = self._named(operators, used, outputs)
        placed = _Places(names)
        wired = [
            replace(
                op,
                inputs=tuple(placed.next_reader(q) for q in op.inputs),
                outputs=tuple(placed.name(q) for q in op.outputs),
            )
            for op in operators
        ]
        return Program(used, tuple(outputs), tuple(wired + copies))

    def _named(
        self, operators: list[Operator], inputs: tuple[Input, ...], outputs: Mapping[str, Flow]
    ) -> tuple[dict[str, list[str]], list[Operator]]:
        """For every queue the names its readers know it by, and the copying that needs."""
        readers: dict[str, list[str]] = {}
        for op in operators:
            for queue in op.inputs:
                readers.setdefault(queue, []).append("")
        for output, flow in outputs.items():
            readers.setdefault(flow.queue, []).append(output)
        known = {i.name for i in inputs}
        names: dict[str, list[str]] = {}
        copies: list[Operator] = []
        for queue, ends in readers.items():
            if len(ends) == 1 and (queue not in known or not ends[0]):
                names[queue] = [ends[0] or queue] * 2
                continue
            given = [end or self.fresh(f"{queue}_{n}") for n, end in enumerate(ends, 1)]
            copies.append(Operator(Duplicate(), (queue,), tuple(given)))
            names[queue] = [queue, *given]
        return names, copies


def _fresh(wanted: str, taken: set[str]) -> str:
    name, number = wanted, 1
    while name in taken:
        number += 1
        name = f"{wanted}{number}"
    taken.add(name)
    return name


def _is_output(queue: str, outputs: Mapping[str, Flow]) -> bool:
    return any(flow.queue == queue for flow in outputs.values())


def _needed(operators: list[Operator], wanted: set[str]) -> list[Operator]:
    """The operators that some queues depend on, in their order."""
    needed = set(wanted)
    kept: list[Operator] = []
    for op in reversed(operators):
        if needed & set(op.outputs):
            needed |= set(op.inputs)
            kept.append(op)
    return kept[::-1]


@dataclass
class _Places:
    """Mutable: hands each reader of a queue its own copy. The first name is the writer's."""

    names: dict[str, list[str]]

    def name(self, queue: str) -> str:
        return self.names[queue][0]

    def next_reader(self, queue: str) -> str:
        return self.names[queue].pop(1)
