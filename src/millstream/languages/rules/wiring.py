"""Operators in the making: a flow may be read any number of times.

At the end every queue with several readers is duplicated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from millstream.calculus.functions import (
    Assign,
    Duplicate,
    Filter,
    Function,
    Join,
    Lookup,
    Map,
    Merge,
)
from millstream.calculus.graph import Input, Operator, Program
from millstream.calculus.terms import Call, Column, Literal, Term
from millstream.calculus.types import BOOLEAN, QueueType, Schema
from millstream.source import Span

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Flow:
    """A queue on which a stream or a relation travels."""

    queue: str
    type: QueueType

    @property
    def schema(self) -> Schema:
        return self.type.schema

    def column(self, name: str) -> Column:
        return Column(name, self.schema[name])


@dataclass
class Wiring:
    """Mutable: the inputs and operators so far."""

    span: Span | None = None
    inputs: dict[str, Input] = field(default_factory=dict)
    operators: list[Operator] = field(default_factory=list)
    names: Counter[str] = field(default_factory=Counter)

    def input(self, one: Input) -> Flow:
        self.inputs[one.name] = one
        self.names[one.name] += 1
        return Flow(one.name, one.type)

    def add(self, function: Function, *flows: Flow, name: str) -> Flow:
        queue = self.fresh(name)
        (type_,) = function.output_types(tuple(f.type for f in flows), 1)
        count = function.state_count(len(flows))
        state = tuple(f"{queue}{n or ''}" for n in range(count))
        inputs = tuple(f.queue for f in flows)
        self.operators.append(Operator(function, inputs, (queue,), state, state, self.span))
        return Flow(queue, type_)

    def fresh(self, name: str) -> str:
        self.names[name] += 1
        return name if self.names[name] == 1 else f"{name}{self.names[name]}"

    # --- what is made of several operators ---

    def columns(self, flow: Flow, names: Mapping[str, str], name: str) -> Flow:
        """Only some columns, under new names."""
        made = tuple(Assign(new, flow.column(old)) for new, old in names.items())
        return self.add(Map(made), flow, name=name)

    def left_join(
        self, left: Flow, right: Flow, on: Pairs, name: str, keep: frozenset[str]
    ) -> Flow:
        """Every row of the left with its partner, or with nulls where it has none.

        Of the columns only those in `keep` stay, and only keys are looked up: the optimiser
        would see to that, but one rewrite at a time.
        """
        joined = self.add(Join(on), left, right, name=f"{name}_pairs")
        kept = [f for f in joined.schema if f.name in keep]
        pairs = self.columns(joined, {f.name: f.name for f in kept}, f"{name}_kept")
        keys = right
        if on:
            keys = self.columns(right, {other: other for _, other in on}, f"{name}_keys")
        found = f"{name}_found"
        looked = self.add(Lookup(found, on), left, keys, name=f"{name}_lookup")
        lonely: Term = Call("not", (looked.column(found),), BOOLEAN)
        alone = self.add(Filter(lonely), looked, name=f"{name}_alone")
        padded = tuple(
            Assign(f.name, left.column(f.name) if f.name in left.schema else Literal(None, f.type))
            for f in kept
        )
        padding = self.add(Map(padded), alone, name=f"{name}_padded")
        return self.add(Merge(), pairs, padding, name=name)

    # --- the program ---

    def program(self, outputs: Mapping[str, Flow]) -> Program:
        readers: Counter[str] = Counter(q for op in self.operators for q in op.inputs)
        ends: dict[str, list[str]] = {}
        for output, flow in outputs.items():
            ends.setdefault(flow.queue, []).append(output)
        copies: dict[str, list[str]] = {}
        duplicates: list[Operator] = []
        for queue in (*self.inputs, *(q for op in self.operators for q in op.outputs)):
            wanted = ends.get(queue, [])
            if readers[queue] + len(wanted) < 2 and (not wanted or wanted == [queue]):
                continue
            copies[queue] = [f"{queue}_copy{n + 1}" for n in range(readers[queue])]
            duplicates.append(Operator(Duplicate(), (queue,), (*copies[queue], *wanted)))
        wired = []
        for op in self.operators:
            inputs = tuple(copies[q].pop(0) if q in copies else q for q in op.inputs)
            wired.append(replace(op, inputs=inputs))
        return Program(tuple(self.inputs.values()), tuple(outputs), (*wired, *duplicates))
