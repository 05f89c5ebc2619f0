"""Operators in the making: any queue may be read any number of times, and at the end is copied."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from millstream.calculus.functions import Duplicate, Fold, Function
from millstream.calculus.graph import Input, Operator, Program, Variable, without_copies
from millstream.calculus.terms import Column
from millstream.calculus.types import QueueType, Schema
from millstream.calculus.verify import verified
from millstream.source import Span


@dataclass(frozen=True, slots=True)
class Queue:
    """What an operator has written or an input brings."""

    name: str
    type: QueueType

    @property
    def schema(self) -> Schema:
        return self.type.schema

    def column(self, name: str) -> Column:
        return Column(name, self.schema[name])


class Wiring:
    """Mutable: the inputs, operators and variables so far; all are from one place in a text."""

    def __init__(self, origin: Span | None = None) -> None:
        self.origin = origin
        self.inputs: dict[str, Input] = {}
        self.operators: list[Operator] = []
        self.variables: list[Variable] = []
        self.taken: set[str] = set()

    def fresh(self, wanted: str) -> str:
        """A name that nothing else has."""
        name, number = wanted, 1
        while name in self.taken:
            number += 1
            name = f"{wanted}{number}"
        self.taken.add(name)
        return name

    def input(self, one: Input) -> Queue:
        if one.name not in self.inputs:
            self.inputs[one.name] = one
            self.taken.add(one.name)
        return Queue(one.name, one.type)

    def add(self, function: Function, *inputs: Queue, name: str) -> Queue:
        """One operator more, with private variables as it needs them."""
        (type_,) = function.output_types(tuple(i.type for i in inputs), 1)
        output = self.fresh(name)
        state = tuple(self.fresh(output) for _ in range(function.state_count(len(inputs))))
        queues = tuple(i.name for i in inputs)
        self.operators.append(Operator(function, queues, (output,), state, state, self.origin))
        return Queue(output, type_)

    def fold(self, function: Fold, given: Queue, variable: Variable, name: str) -> Queue:
        """A fold over one declared variable."""
        (type_,) = function.output_types((given.type,), 1)
        output = self.fresh(name)
        self.variables.append(variable)
        state = (variable.name,)
        self.operators.append(
            Operator(function, (given.name,), (output,), state, state, self.origin)
        )
        return Queue(output, type_)

    def program(self, outputs: Mapping[str, Queue]) -> Program:
        """The verified program of all that was added."""
        counts = Counter(q for op in self.operators for q in op.inputs)
        counts.update(queue.name for queue in outputs.values())
        readers: dict[str, list[str]] = {}

        def reader(queue: str) -> str:
            """The queue itself for its only reader, else a copy for each."""
            if counts[queue] == 1:
                return queue
            some = readers.setdefault(queue, [])
            some.append(self.fresh(f"{queue}_{len(some) + 1}"))
            return some[-1]

        wired = [replace(op, inputs=tuple(reader(q) for q in op.inputs)) for op in self.operators]
        for output, queue in outputs.items():
            readers.setdefault(queue.name, []).append(output)
        copying = [Operator(Duplicate(), (q,), tuple(some)) for q, some in readers.items()]
        program = Program(
            tuple(self.inputs.values()), tuple(outputs), (*copying, *wired), tuple(self.variables)
        )
        return verified(without_copies(program))
