"""All functions that a row kernel runs, generated but not yet compiled."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field

from millstream.kernels.loop.emit import LoopSource, emit
from millstream.kernels.loop.ir import Function, Memory, params_of
from millstream.kernels.loop.passes import CAREFUL, HOPEFUL, PLAIN, Pass, through
from millstream.kernels.loop.passes.assume_sound import can_assume
from millstream.kernels.loop.rows_layout import Gathered, GatheredBySlot, LoopLayout
from millstream.kernels.loop.rows_lower import lower_columns, lower_rows
from millstream.kernels.loop.rows_nodes import Apply, Node
from millstream.kernels.loop.rows_trace import Trace
from millstream.kernels.loop.rows_values import Leaves


@dataclass(frozen=True, slots=True)
class Columns:
    """Columns of arithmetic that text functions or keys need before the loop."""

    nodes: list[Apply]
    loop: LoopSource


@functools.lru_cache(maxsize=1024)
def written(passes: tuple[Pass, ...], function: Function) -> LoopSource:
    """By content: the same programs are built over and over."""
    return emit(through(passes, function))


@dataclass
class Functions:
    """The loop in its versions, written when they are asked for, and loops that run before it.

    The plain version is for rows in which no column that is read has a null, so that such
    data pays nothing for those that might. The hopeful one is for such rows in which nothing
    fails either, and stops where something does.
    """

    lowered: Function
    before: dict[Apply, Columns] = field(default_factory=dict)

    @functools.cached_property
    def plain(self) -> LoopSource:
        return written(PLAIN, self.lowered)

    @functools.cached_property
    def hopeful(self) -> LoopSource | None:
        """The plain version if nothing fails; None if nothing can, or not be done again."""
        return written(HOPEFUL, self.lowered) if can_assume(self.lowered) else None

    @functools.cached_property
    def masked(self) -> LoopSource:
        return written(CAREFUL, self.lowered)

    @functools.cached_property
    def columns(self) -> tuple[Memory, ...]:
        """What may have nulls, or faults."""
        params = params_of(self.lowered.body)
        kinds = ("column", "faults")
        return tuple(p for p in params if isinstance(p, Memory) and p.kind in kinds)


def generate(trace: Trace, layout: LoopLayout, leaves: Leaves) -> Functions:
    functions = Functions(lower_rows(trace, layout, leaves))
    wanted: list[Node] = [*leaves.columns, *(n for key in trace.keys for n in key.nodes)]
    for output in layout.outputs:
        for column in output.columns:
            if isinstance(column, Gathered):
                wanted.append(column.node)
            elif isinstance(column, GatheredBySlot):
                wanted += column.nodes
    for nodes in _grouped(_arithmetic(wanted, trace)):
        columns = Columns(nodes, written(CAREFUL, lower_columns(nodes, leaves)))
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
