"""Cubify: from a stream to the relations of a lattice of groups, over a window of partitions.

Time is cut into partitions by a grain; with k the partition of now and m the size of the
window, the cube holds partitions k-m to k, of which the last is active. An output is one
vertex of the lattice: a row for every group (its attributes, the `time` at which its part
of time begins, and the measures) that has rows in the partitions k-m to k-1. It moves when a
partition is over; if the cube is live the active partition counts too, at every instant.

`kept` are the vertices that are materialised, the finest one first. They have no say in what
comes out, only in what it costs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from millstream.calculus.aggregation import Aggregation
from millstream.calculus.base import (
    Facts,
    Function,
    FunctionFault,
    columns_read_by,
    require_columns,
    require_kind,
)
from millstream.calculus.cube_parts import part_columns
from millstream.calculus.grains import Grain
from millstream.calculus.lattice import Levels, is_as_fine
from millstream.calculus.terms import Column, Term
from millstream.calculus.types import TEXT, TIME, Field, QueueType, Schema

#: The column of every cell that says when its part of time begins.
TIME_OF_CELL = "time"


@dataclass(frozen=True, slots=True)
class Vertex:
    """A level, or none, of every dimension, and a grain of time."""

    attributes: tuple[str, ...]
    grain: Grain


@dataclass(frozen=True, slots=True)
class Moving:
    """Levels of a dimension that cells do not have: versions of its members have them, by key.

    `names` are all levels of the dimension, as they are asked for.
    """

    dimension: int
    key: str
    levels: tuple[Field, ...]
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Cubify(Function):
    """The groups of some vertices; the levels of a dimension go from fine to coarse."""

    dimensions: tuple[tuple[str, ...], ...]
    measures: tuple[Aggregation, ...]
    grain: Grain
    window: int
    kept: tuple[Vertex, ...]
    outputs: tuple[Vertex, ...]
    is_live: bool = False
    #: For how many partitions before the window a server can still say what was.
    history: int = 0
    #: The bytes that a server may spend on vertices which it chooses by what is asked for.
    memory: int = 0
    #: What whoever asks knows it by.
    called: str = field(default="", compare=False)
    #: What whoever asks can ask for beyond what the cells have.
    moving: tuple[Moving, ...] = field(default=(), compare=False)
    #: Whether parts of cells leave, made of the rows of one place: see `cube_parts`.
    is_in_parts: bool = False
    output_count: ClassVar[int | None] = None

    @property
    def attributes(self) -> tuple[str, ...]:
        return tuple(a for levels in self.dimensions for a in levels)

    @property
    def finest(self) -> Vertex:
        return Vertex(tuple(levels[0] for levels in self.dimensions), self.grain)

    def state_count(self, inputs: int) -> int:
        return len(self.kept)

    def terms(self) -> tuple[Term, ...]:
        return tuple(m.term for m in self.measures if m.term is not None)

    def levels(self, vertex: Vertex) -> Levels:
        """Which level of each dimension a vertex has."""
        chosen = set(vertex.attributes)
        return tuple(
            next((n for n, a in enumerate(levels) if a in chosen), None)
            for levels in self.dimensions
        )

    def answers(self, vertex: Vertex, asked: Vertex) -> bool:
        """Is a vertex as fine as another one in every dimension, and in grain?"""
        is_within = vertex.grain.is_within(asked.grain)
        return is_within and is_as_fine(self.levels(vertex), self.levels(asked))

    def schema_of(self, vertex: Vertex, schema: Schema) -> Schema:
        """The columns of the cells of a vertex."""
        groups = tuple(Field(a, schema[a]) for a in vertex.attributes)
        if self.is_in_parts:
            parts = tuple(Field(c.name, c.type) for c in part_columns(self.measures))
            return Schema((*groups, Field(TIME_OF_CELL, TIME), *parts))
        measures = tuple(Field(m.name, m.result_type()) for m in self.measures)
        return Schema((*groups, Field(TIME_OF_CELL, TIME), *measures))

    def output_types(self, inputs: tuple[QueueType, ...], outputs: int) -> tuple[QueueType, ...]:
        require_kind(inputs, "Cubify", is_relation=False)
        schema = inputs[0].schema
        require_columns(
            (*self.attributes, *sorted(columns_read_by(self.terms()))), schema, "Cubify"
        )
        faults = [*self._misfits(), *self._measures_at_fault()]
        if outputs != len(self.outputs):
            faults.append(f"Cubify has {len(self.outputs)} output vertices and {outputs} queues")
        if faults:
            raise FunctionFault(*faults)
        return tuple(QueueType(self.schema_of(v, schema), is_relation=True) for v in self.outputs)

    def _misfits(self) -> Iterator[str]:
        for name, count in Counter(self.attributes).items():
            if count > 1:
                yield f'Cubify: "{name}" is in two dimensions'
        if TIME_OF_CELL in self.attributes:
            yield f'Cubify: "{TIME_OF_CELL}" is the time of a cell and cannot be an attribute'
        if not all(self.dimensions):
            yield "Cubify: a dimension needs at least one level"
        if self.window < 1 or self.grain.longest < 1:
            yield "Cubify: the window and its grain must be longer than nothing"
            return
        if self.finest not in self.kept[:1]:
            yield "Cubify: the finest vertex comes first among those that are kept"
        for vertex in (*self.kept, *self.outputs):
            yield from self._misfits_of(vertex)

    def _misfits_of(self, vertex: Vertex) -> Iterator[str]:
        chosen = tuple(
            levels[level]
            for levels, level in zip(self.dimensions, self.levels(vertex), strict=True)
            if level is not None
        )
        if chosen != vertex.attributes:
            yield f"Cubify: {vertex.attributes} takes no level, or one, of each dimension in order"
        if not self.grain.is_within(vertex.grain):
            yield f"Cubify: a grain of {vertex.grain} is not made of grains of {self.grain}"
        elif vertex.grain.longest > self.window * self.grain.longest:
            yield f"Cubify: a grain of {vertex.grain} is longer than the window"

    def _measures_at_fault(self) -> Iterator[str]:
        names = Counter((*self.attributes, TIME_OF_CELL, *(m.name for m in self.measures)))
        yield from (f'Cubify: two columns are named "{n}"' for n, c in names.items() if c > 1)
        for measure in self.measures:
            try:
                measure.result_type()
            except FunctionFault as fault:
                yield from fault.messages
                continue
            if (measure.function == "quantile") != (measure.at is not None):
                yield f'Cubify: the measure "{measure.name}" needs a quantile, or has one too many'
            if measure.function in ("min", "max") and measure.term and measure.term.type == TEXT:
                yield f"Cubify: {measure.function} cannot aggregate a text"
            if measure.term is not None and not isinstance(measure.term, Column):
                yield f'Cubify: the measure "{measure.name}" is of a column, not of an expression'

    def facts(self, inputs: tuple[QueueType, ...], index: int) -> Facts:
        # Rows that lie in one cell of an output must meet; together they are by what all share.
        shared = [a for a in self.attributes if all(a in v.attributes for v in self.outputs)]
        names = {n for v in self.outputs for n in self.schema_of(v, inputs[index].schema).names}
        return Facts(
            reads=columns_read_by(self.terms()) | frozenset(self.attributes),
            forwards=frozenset(shared),
            writes=frozenset(names) - frozenset(shared),
            is_stateless=False,
            # Of parts none must meet; but the more rows of a cell do, the fewer there are.
            key=self.finest.attributes if self.is_in_parts else tuple(shared),
            is_commutative=True,
        )
