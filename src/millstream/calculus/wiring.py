"""Operators in the making, and what makes a program of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from millstream.calculus.functions import Assign, Duplicate, Fold, Function, Map
from millstream.calculus.graph import Input, Operator, Program, Variable
from millstream.calculus.terms import Column
from millstream.calculus.types import QueueType, Schema
from millstream.calculus.verify import verified
from millstream.errors import UsageError
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
    """Mutable: the only builder of programs; the inputs, operators and variables so far.

    Whoever builds may read a queue any number of times. At the end every queue with several
    readers is duplicated, what nobody reads is left out, and outputs get their names.
    """

    def __init__(self, origin: Span | None = None, reserved: Iterable[str] = ()) -> None:
        self.origin = origin
        self.inputs: dict[str, Input] = {}
        self.operators: list[Operator] = []
        self.variables: list[Variable] = []
        #: Names of queues; those that are reserved are given to none that is made here.
        self.names: set[str] = set(reserved)
        self._variable_names: set[str] = set()
        #: The last number behind a name, so that many that want the same are named quickly.
        self._numbers: dict[str, int] = {}
        self._variable_numbers: dict[str, int] = {}

    def fresh(self, wanted: str) -> str:
        """A name that no other queue has."""
        return _fresh(wanted, self.names, self._numbers)

    def fresh_variable(self, wanted: str) -> str:
        return _fresh(wanted, self._variable_names, self._variable_numbers)

    def input(self, input_: Input) -> Queue:
        if self.inputs.setdefault(input_.name, input_) != input_:
            raise UsageError(f'two inputs that differ are named "{input_.name}"')
        self.names.add(input_.name)
        return Queue(input_.name, input_.type)

    def add(
        self, function: Function, *inputs: Queue, name: str, origin: Span | None = None
    ) -> Queue:
        """One operator more, with private variables as it needs them."""
        (type_,) = function.output_types(tuple(i.type for i in inputs), 1)
        output = Queue(self.fresh(name), type_)
        self.connect(function, inputs, (output,), origin)
        return output

    def connect(
        self, function: Function, inputs: tuple[Queue, ...], outputs: tuple[Queue, ...],
        origin: Span | None = None, state: tuple[str, ...] = (), shared: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        """An operator between queues that may be connected elsewhere later, as in a cycle.

        `state` are names for its first private variables, and `shared` those of its last ones,
        which others have too; the rest get one of their own.
        """
        count = function.state_count(len(inputs)) - len(state) - len(shared)
        base = outputs[0].name if outputs else function.name
        named = tuple(self.fresh_variable(name) for name in state)
        named += tuple(self.fresh_variable(base) for _ in range(count))
        self._place(function, inputs, tuple(q.name for q in outputs), named + shared, origin)

    def add_several(
        self, function: Function, given: Queue, names: Iterable[str], origin: Span | None = None
    ) -> tuple[Queue, ...]:
        """One operator more, of one input and several outputs."""
        wanted = tuple(names)
        types = function.output_types((given.type,), len(wanted))
        pairs = zip(wanted, types, strict=True)
        outputs = tuple(Queue(self.fresh(name), type_) for name, type_ in pairs)
        self.connect(function, (given,), outputs, origin)
        return outputs

    def fold(self, function: Fold, given: Queue, variable: Variable, name: str) -> Queue:
        """A fold over one declared variable."""
        (type_,) = function.output_types((given.type,), 1)
        output = self.fresh(name)
        self.variables.append(variable)
        self._place(function, (given,), (output,), (variable.name,), None)
        return Queue(output, type_)

    def _place(
        self,
        function: Function,
        inputs: tuple[Queue, ...],
        outputs: tuple[str, ...],
        state: tuple[str, ...],
        origin: Span | None,
    ) -> None:
        queues = tuple(i.name for i in inputs)
        origin = origin or self.origin
        self.operators.append(Operator(function, queues, outputs, state, state, origin))

    def columns(
        self, flow: Queue, names: Mapping[str, str], name: str, origin: Span | None = None
    ) -> Queue:
        """The columns that are keys of `names`, each from its value; the flow if it is that."""
        if tuple(names.items()) == tuple((n, n) for n in flow.schema.names):
            return flow
        made = tuple(Assign(new, flow.column(old)) for new, old in names.items())
        return self.add(Map(made), flow, name=name, origin=origin)

    # --- the program ---

    def program(self, outputs: Mapping[str, Queue]) -> Program:
        """The verified program of what some outputs need."""
        for name in outputs:
            if name in self.inputs:
                raise UsageError(
                    f'"{name}" is the name of an input and of an output',
                    hint="give the output another name",
                )
        operators = needed_for(self.operators, {queue.name for queue in outputs.values()})
        read = {q for op in operators for q in op.inputs} | {q.name for q in outputs.values()}
        used = tuple(i for i in self.inputs.values() if i.name in read)
        names, copies = self._named(operators, outputs)
        wired = [
            replace(
                op,
                inputs=tuple(names[q].pop(1) for q in op.inputs),
                outputs=tuple(names[q][0] if q in names else q for q in op.outputs),
            )
            for op in operators
        ]
        kept = {name for op in operators for name in (*op.reads, *op.writes)}
        variables = tuple(v for v in self.variables if v.name in kept)
        return verified(Program(used, tuple(outputs), (*wired, *copies), variables))

    def _named(
        self, operators: list[Operator], outputs: Mapping[str, Queue]
    ) -> tuple[dict[str, list[str]], list[Operator]]:
        """For every queue its writer's name and then its readers', and the copying that needs."""
        readers: dict[str, list[str]] = {}
        for op in operators:
            for queue in op.inputs:
                readers.setdefault(queue, []).append("")
        for output, flow in outputs.items():
            readers.setdefault(flow.name, []).append(output)
        names: dict[str, list[str]] = {}
        copies: list[Operator] = []
        for queue, ends in readers.items():
            if len(ends) == 1 and (queue not in self.inputs or not ends[0]):
                names[queue] = [ends[0] or queue] * 2
                continue
            given = [end or self.fresh(f"{queue}_{n}") for n, end in enumerate(ends, 1)]
            copies.append(Operator(Duplicate(), (queue,), tuple(given)))
            names[queue] = [queue, *given]
        return names, copies


def _fresh(wanted: str, taken: set[str], numbers: dict[str, int]) -> str:
    name, number = wanted, numbers.get(wanted, 1)
    while name in taken:
        number += 1
        name = f"{wanted}{number}"
    numbers[wanted] = number
    taken.add(name)
    return name


def needed_for(operators: list[Operator], wanted: set[str]) -> list[Operator]:
    """The operators that some queues depend on, in their order; there may be cycles.

    What gives out nothing is there for what it keeps.
    """
    makers = {queue: op for op in operators for queue in op.outputs}
    needed: set[str] = set()
    waiting = [*wanted, *(queue for op in operators if not op.outputs for queue in op.inputs)]
    while waiting:
        queue = waiting.pop()
        if queue in needed:
            continue
        needed.add(queue)
        if queue in makers:
            waiting += makers[queue].inputs
    return [op for op in operators if not op.outputs or needed.intersection(op.outputs)]
