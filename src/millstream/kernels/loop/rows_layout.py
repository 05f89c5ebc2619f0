"""Where the columns of outputs come from, and where the fields of variables lie.

A column that merely passes through is not touched by the loop: it is gathered afterwards
by the numbers of the rows that have left, or handed on as it is if all have.
"""

from __future__ import annotations

from dataclasses import dataclass

from millstream.calculus.graph import Variable
from millstream.calculus.types import Kind, QueueType
from millstream.kernels.loop.ir import Rep
from millstream.kernels.loop.operations import rep_of
from millstream.kernels.loop.rows_nodes import Apply, Constant, Node, Source, is_row_only
from millstream.kernels.loop.rows_trace import Output, Trace


@dataclass(frozen=True, slots=True)
class Gathered:
    """The column of a node that exists before the loop, or one text."""

    node: Node


@dataclass(frozen=True, slots=True)
class GatheredBySlot:
    """Texts that come from a different column for each slot."""

    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class ComputedColumn:
    """Computed by the loop, a node for each slot; texts as codes."""

    nodes: tuple[Node, ...]


OutputColumn = Gathered | GatheredBySlot | ComputedColumn


@dataclass(frozen=True, slots=True)
class OutputLayout:
    input: int
    type: QueueType
    slot_count: int
    is_every_row: bool
    columns: tuple[OutputColumn, ...]

    @property
    def wants_slots(self) -> bool:
        return any(isinstance(c, GatheredBySlot) for c in self.columns)


@dataclass(frozen=True, slots=True)
class FieldPlace:
    variable: int
    field: int
    rep: Rep


@dataclass(frozen=True, slots=True)
class LoopLayout:
    outputs: tuple[OutputLayout, ...]
    variables: tuple[Variable, ...]

    def field(self, variable: str, name: str) -> FieldPlace:
        number = next(n for n, v in enumerate(self.variables) if v.name == variable)
        schema = self.variables[number].schema
        return FieldPlace(number, schema.index(name), rep_of(schema[name]))


def lay_out(trace: Trace, variables: tuple[Variable, ...]) -> LoopLayout:
    used = tuple(v for v in variables if v.name in trace.spaces)
    return LoopLayout(tuple(_output(o) for o in trace.outputs), used)


def _output(output: Output) -> OutputLayout:
    columns = tuple(_column(output.nodes(name)) for name in output.type.schema.names)
    return OutputLayout(output.input, output.type, len(output.slots), output.is_every_row, columns)


def _column(nodes: tuple[Node, ...]) -> OutputColumn:
    if all(n is nodes[0] for n in nodes) and _is_column(nodes[0]):
        return Gathered(nodes[0])
    if nodes[0].type.kind is Kind.TEXT and all(map(is_row_only, nodes)):
        return GatheredBySlot(nodes)
    return ComputedColumn(nodes)


def _is_column(node: Node) -> bool:
    if isinstance(node, Constant):
        return node.type.kind is Kind.TEXT
    return isinstance(node, Source) or (isinstance(node, Apply) and node.is_before_loop)
