"""Operators in the making: flows, which know more of a queue than its type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from millstream.calculus.functions import Function, FunctionFault, Map
from millstream.calculus.graph import Input, Program
from millstream.calculus.types import QueueType, Schema
from millstream.calculus.wiring import Queue, Wiring
from millstream.errors import Fault
from millstream.queries import ast
from millstream.queries.tokens import Stop
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

    @property
    def wired(self) -> Queue:
        return Queue(self.queue, self.type)


@dataclass(frozen=True, slots=True)
class KnownSource:
    """A stream, relation or view that queries can name; `flow` is None if it is at fault."""

    word: ast.Word
    flow: Flow | None
    is_declared: bool
    #: Of a view: how it is written, the names that it could see, and whether it is told early.
    view: ast.View | None = None
    scope: Mapping[str, KnownSource] = field(default_factory=dict)
    is_early: bool = False


class Builder:
    """Mutable: the operators so far, and what is wrong with them."""

    def __init__(self, faults: list[Fault]) -> None:
        self.faults = faults
        self.wiring = Wiring()
        self.hidden_columns = 0

    def hidden(self, word: str) -> str:
        """A name for a column that no query sees, unlike any other of its statement."""
        self.hidden_columns += 1
        return f"{word}.{self.hidden_columns}"

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
            queue = self.wiring.add(function, *(i.wired for i in inputs), name=name, origin=span)
        except FunctionFault as fault:
            self.faults += [Fault(message, span) for message in fault.messages]
            raise Stop from None
        if is_monotone is None:
            is_monotone = all(i.is_monotone for i in inputs)
        beats = frozenset[int]().union(*(i.beats for i in inputs))
        is_same = len(inputs) == 1 and inputs[0].schema == queue.schema
        untyped = inputs[0].untyped if is_same and not isinstance(function, Map) else frozenset()
        return Flow(queue.name, queue.type, is_monotone, beats, untyped)

    def columns(self, flow: Flow, names: Mapping[str, str], name: str, span: Span | None) -> Flow:
        """The columns that are keys of `names`, each from its value."""
        queue = self.wiring.columns(flow.wired, names, name, span)
        untyped = frozenset(new for new, old in names.items() if old in flow.untyped)
        return replace(flow, queue=queue.name, type=queue.type, untyped=untyped)

    def program(self, inputs: tuple[Input, ...], outputs: Mapping[str, Flow]) -> Program:
        """The program of the operators behind some outputs."""
        for input_ in inputs:
            self.wiring.input(input_)
        return self.wiring.program({name: flow.wired for name, flow in outputs.items()})
