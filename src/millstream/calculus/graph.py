"""The program graph: operators, queues and named state variables.

Every queue is defined once and used once; every piece of state is a named variable in
an operator's signature. Operators may stand in any order and form cycles.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

from millstream.calculus.functions import Duplicate, Function, FunctionFault, RoundRobinJoin
from millstream.calculus.types import Field, QueueType, Row, Schema, Value
from millstream.calculus.work import TURN
from millstream.errors import Fault
from millstream.source import Span

#: A column, and the least and the largest value that it may have.
Bounds = tuple[str, int | float | None, int | float | None]


@dataclass(frozen=True, slots=True)
class Input:
    """A queue fed from outside. `time` names the column that is the event time.

    Without one the event time is the pseudo-column `_time` of the source. An item is
    late if it lies more than `slack` microseconds behind the largest time before it.
    A relation that is read once has no times: it is there from the beginning of time. In a
    log whose rows replace each other weights make no sense, so none must come. `values` are
    the rows of a relation that is read once and is not given from outside. `unit` is what
    integers count in its columns of times, microseconds if nobody says; `zone` is where the clock
    hangs that texts without a zone were read from, UTC if nobody says; `time_format` is how texts
    are written, ISO 8601 if nobody says. A row that has
    nothing in one of its `keys` is rejected, and so is one with a value that is not `within` the
    bounds of its column (None is no bound). The rows of one that is numbered have no times:
    the n-th line or row is at time n. When a finite input is over, time goes on to where it
    `ends`; if it `closes`, what waits for the end of inputs is told when all of them are over. The
    rows of one that `is_early` do not wait for others that may come within the slack:
    each has the largest time up to it for its own, and when it happened is in its column `time`.
    One that `reads_lines` wants nothing but lines, of any text.
    """

    name: str
    type: QueueType
    time: str | None = None
    slack: int = 0
    span: Span | None = field(default=None, compare=False)
    is_read_once: bool = False
    is_log: bool = field(default=False, compare=False)
    values: tuple[Row, ...] | None = None
    unit: str | None = field(default=None, compare=False)
    zone: str | None = field(default=None, compare=False)
    time_format: str | None = field(default=None, compare=False)
    keys: tuple[str, ...] = field(default=(), compare=False)
    within: tuple[Bounds, ...] = field(default=(), compare=False)
    is_numbered: bool = False
    ends: int | None = field(default=None, compare=False)
    closes: bool = field(default=False, compare=False)
    is_early: bool = False
    reads_lines: bool = field(default=False, compare=False)

    @property
    def waits(self) -> int:
        """How long after a row nothing is known of its time yet."""
        return 0 if self.is_early else self.slack


@dataclass(frozen=True, slots=True)
class Variable:
    """A record of named state with its initial values; one record per key in keyed folds."""

    name: str
    fields: tuple[Field, ...]
    initial: tuple[Value, ...]
    span: Span | None = field(default=None, compare=False)

    @property
    def schema(self) -> Schema:
        return Schema(self.fields)


@dataclass(frozen=True, slots=True)
class Operator:
    """`(outputs, writes) <- function(inputs, reads)`; `origin` is where it was written."""

    function: Function
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    origin: Span | None = field(default=None, compare=False)

    @property
    def id(self) -> str:
        """A name for messages and plans, unique because every queue has one definition and use."""
        if self.outputs:
            return f"{self.function.name}->{self.outputs[0]}"
        return f"{self.inputs[0]}->{self.function.name}"

    @property
    def variables(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.reads + self.writes))


@dataclass(frozen=True)
class Program:
    """A whole program. `variables` declares those that folds use; others are private.

    What follows from its operators is worked out when it is asked for, and once.
    """

    inputs: tuple[Input, ...]
    outputs: tuple[str, ...]
    operators: tuple[Operator, ...]
    variables: tuple[Variable, ...] = ()

    @property
    def input_names(self) -> tuple[str, ...]:
        return tuple(i.name for i in self.inputs)

    def __getstate__(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def following(self) -> Program:
        """The program for inputs that have no end."""
        inputs = tuple(replace(i, ends=None, closes=False) for i in self.inputs)
        operators = tuple(replace(o, function=o.function.following()) for o in self.operators)
        return replace(self, inputs=inputs, operators=operators)

    def variable(self, name: str) -> Variable:
        return self._variables[name]

    def consumers(self) -> Mapping[str, tuple[Operator, int]]:
        """Which operator reads a queue, and as which of its inputs."""
        return self._consumers

    def producers(self) -> Mapping[str, Operator]:
        return self._producers

    def accessors(self) -> Mapping[str, Sequence[Operator]]:
        """The operators that read or write each variable."""
        return self._accessors

    def shared_variables(self) -> frozenset[str]:
        """Variables that several operators use and one of them writes."""
        return self._shared_variables

    def queue_types(self) -> Mapping[str, QueueType]:
        """The type of every queue of a verified program."""
        types, faults = self._types
        assert not faults, faults
        return types

    @cached_property
    def _variables(self) -> dict[str, Variable]:
        return {v.name: v for v in self.variables}

    @cached_property
    def _consumers(self) -> dict[str, tuple[Operator, int]]:
        return {q: (op, i) for op in self.operators for i, q in enumerate(op.inputs)}

    @cached_property
    def _producers(self) -> dict[str, Operator]:
        return {q: op for op in self.operators for q in op.outputs}

    @cached_property
    def _accessors(self) -> dict[str, list[Operator]]:
        users: dict[str, list[Operator]] = {}
        for op in self.operators:
            for variable in op.variables:
                users.setdefault(variable, []).append(op)
        return users

    @cached_property
    def _shared_variables(self) -> frozenset[str]:
        return frozenset(
            variable
            for variable, ops in self._accessors.items()
            if len(ops) > 1 and any(variable in op.writes for op in ops)
        )

    @cached_property
    def _types(self) -> tuple[dict[str, QueueType], list[Fault]]:
        return _typed(self)

    @cached_property
    def _in_order(self) -> tuple[Operator, ...]:
        return _ordered(self)


def infer_types(program: Program) -> tuple[Mapping[str, QueueType], Sequence[Fault]]:
    """The queue types that can be known, and a fault for each operator that does not fit."""
    return program._types  # noqa: SLF001 - a function beside its class


def in_dependency_order(program: Program) -> tuple[Operator, ...]:
    """The operators, producers before consumers; back edges of cycles are passed over."""
    return program._in_order  # noqa: SLF001 - the same


def has_cycle(program: Program) -> bool:
    """Whether something that an operator gives comes round to it again."""
    made = {i.name for i in program.inputs}
    for op in in_dependency_order(program):
        if not made.issuperset(op.inputs):
            return True
        made.update(op.outputs)
    return False


def _typed(program: Program) -> tuple[dict[str, QueueType], list[Fault]]:
    """An operator is typed when all its inputs are.

    Of functions that may close a cycle, `RoundRobinJoin` is when one of them is, and `Work` when
    all but its turns are.
    """
    types: dict[str, QueueType] = {i.name: i.type for i in program.inputs}
    faults: list[Fault] = []
    waiting = list(in_dependency_order(program))
    while True:
        still = [op for op in waiting if not _type_operator(op, types, faults)]
        if len(still) == len(waiting):
            break
        waiting = still
    for op in program.operators:
        if isinstance(op.function, RoundRobinJoin):
            _check_closed_cycle(op, types, faults)
    return types, faults


def _type_operator(op: Operator, types: dict[str, QueueType], faults: list[Fault]) -> bool:
    if not op.function.can_begin([q in types for q in op.inputs]):
        return False
    known = [types[q] for q in op.inputs if q in types]
    unknown = known[0] if isinstance(op.function, RoundRobinJoin) else TURN
    inputs = tuple(types.get(q, unknown) for q in op.inputs)
    try:
        outputs = op.function.output_types(inputs, len(op.outputs))
    except FunctionFault as fault:
        faults.extend(Fault(m, op.origin, place=None if op.origin else op.id)
                      for m in fault.messages)  # fmt: skip
        return True
    types.update(zip(op.outputs, outputs, strict=False))
    return True


def _check_closed_cycle(op: Operator, types: dict[str, QueueType], faults: list[Fault]) -> None:
    inputs = [types[q] for q in op.inputs if q in types]
    if any(t != inputs[0] for t in inputs[1:]) and not any(f.span is op.origin for f in faults):
        faults.append(Fault(f"the inputs of {op.id} are not alike", op.origin))


def rewritten(program: Program, instead: Mapping[int, Sequence[Operator]]) -> Program:
    """The program with other operators in the places of some, which are given by identity.

    What comes instead may be replaced in turn. The same program if nothing is to be replaced.
    """
    if not instead:
        return program
    operators: list[Operator] = []
    waiting = list(reversed(program.operators))
    while waiting:
        op = waiting.pop()
        if id(op) in instead:
            waiting.extend(reversed(instead[id(op)]))
        else:
            operators.append(op)
    return replace(program, operators=tuple(operators))


def without_copies(program: Program) -> Program:
    """The program without copies to a single queue, which front ends make for names.

    A copy stays where an input is itself an output.
    """
    inputs, outputs = set(program.input_names), set(program.outputs)
    renamed: dict[str, str] = {}

    def name(queue: str) -> str:
        while queue in renamed:
            queue = renamed[queue]
        return queue

    operators: list[Operator] = []
    for op in program.operators:
        if isinstance(op.function, Duplicate) and len(op.outputs) == 1:
            old, new = name(op.inputs[0]), name(op.outputs[0])
            if old not in inputs:
                renamed[old] = new
                continue
            if new not in outputs:
                renamed[new] = old
                continue
        operators.append(op)
    if not renamed:
        return program
    return replace(program, operators=tuple(
        replace(op, inputs=tuple(map(name, op.inputs)), outputs=tuple(map(name, op.outputs)))
        for op in operators
    ))  # fmt: skip


def _ordered(program: Program) -> tuple[Operator, ...]:
    operators = program.operators
    ready = set(program.input_names)
    missing = [set(op.inputs) - ready for op in operators]
    readers: dict[str, list[int]] = {}
    for number, queues in enumerate(missing):
        for queue in queues:
            readers.setdefault(queue, []).append(number)
    waiting = dict.fromkeys(range(len(operators)))
    startable = [number for number in waiting if not missing[number]]  # a heap: it is sorted
    ordered: list[Operator] = []
    while waiting:
        chosen = heapq.heappop(startable) if startable else _in_cycle(operators, waiting, ready)
        del waiting[chosen]
        ordered.append(operators[chosen])
        ready.update(operators[chosen].outputs)
        for queue in operators[chosen].outputs:
            for number in readers.get(queue, ()):
                missing[number].discard(queue)
                if not missing[number] and number in waiting:
                    heapq.heappush(startable, number)
    return tuple(ordered)


def _in_cycle(operators: tuple[Operator, ...], waiting: Iterable[int], ready: set[str]) -> int:
    """Where to enter a cycle: at a function that need not wait for all its inputs."""
    closing = (
        number
        for number in waiting
        if operators[number].function.can_begin([q in ready for q in operators[number].inputs])
    )
    return next(closing, next(iter(waiting)))
