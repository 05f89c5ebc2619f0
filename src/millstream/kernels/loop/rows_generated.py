"""All functions that a row kernel runs, generated but not yet compiled."""

from __future__ import annotations

from dataclasses import dataclass, field

from millstream.kernels.loop.codegen_loop import Generated, generate_columns, generate_loop
from millstream.kernels.loop.codegen_values import Leaves
from millstream.kernels.loop.rows_layout import Gathered, GatheredBySlot, LoopLayout
from millstream.kernels.loop.rows_nodes import Apply, Node
from millstream.kernels.loop.rows_trace import Trace


@dataclass(frozen=True, slots=True)
class Columns:
    """Columns of arithmetic that text functions or keys need before the loop."""

    nodes: list[Apply]
    generated: Generated


@dataclass(slots=True)
class Functions:
    """The loop in two versions, and loops that run before it.

    The plain version is for batches in which no column that it reads has a null, so that
    such data pays nothing for those that might.
    """

    plain: Generated
    masked: Generated
    before: dict[Apply, Columns] = field(default_factory=dict)


def generate(trace: Trace, layout: LoopLayout, leaves: Leaves) -> Functions:
    plain = generate_loop(trace, layout, leaves, is_masked=False)
    masked = generate_loop(trace, layout, leaves, is_masked=True)
    functions = Functions(plain, masked)
    wanted: list[Node] = [*leaves.columns, *(n for key in trace.keys for n in key.nodes)]
    for output in layout.outputs:
        for column in output.columns:
            if isinstance(column, Gathered):
                wanted.append(column.node)
            elif isinstance(column, GatheredBySlot):
                wanted += column.nodes
    for nodes in _grouped(_arithmetic(wanted, trace)):
        columns = Columns(nodes, generate_columns(nodes, leaves))
        functions.before.update(dict.fromkeys(nodes, columns))
    return functions


def _arithmetic(wanted: list[Node], trace: Trace) -> dict[Apply, int]:
    """The nodes that are computed by loops although they are wanted as columns.

    With each its level: those of one level need only columns of lower ones.
    """
    keys = {n for key in trace.keys for n in key.nodes}
    levels: dict[Node, int] = {}
    computed: dict[Apply, int] = {}

    def level(node: Node, *, is_wanted: bool) -> int:
        if not isinstance(node, Apply):
            return 0
        if node not in levels:
            is_column = node.is_before_loop
            levels[node] = max((level(a, is_wanted=is_column) for a in node.args), default=0)
        if not is_wanted or node.is_before_loop:
            return levels[node]
        computed[node] = levels[node]
        return levels[node] + 1

    for node in wanted:
        level(node, is_wanted=node in keys)
    return computed


def _grouped(levels: dict[Apply, int]) -> list[list[Apply]]:
    groups: dict[tuple[int, int], list[Apply]] = {}
    for node, level in levels.items():
        groups.setdefault((node.input, level), []).append(node)
    return list(groups.values())
