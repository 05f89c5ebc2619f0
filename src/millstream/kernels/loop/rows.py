"""The row kernel: fused row functions as one compiled loop.

    kernel = RowKernel(operators, inputs, outputs, variables)
    (out,) = kernel.process((batch,), round_)

`rows_trace` unrolls the operators into what happens to one row, `rows_lower` makes a loop of
that, the `passes` improve it, `emit` writes it down and `cache` compiles it. What touches text
is computed on whole columns before the loop (`rows_lanes`); columns that pass through are
gathered after it (`rows_outputs`).
"""

from __future__ import annotations

import functools
from collections import Counter

import numpy as np
import pyarrow as pa

from millstream.calculus.graph import Operator, Variable
from millstream.calculus.types import QueueType
from millstream.kernels.loop.rows_arguments import Arguments
from millstream.kernels.loop.rows_generated import Functions, generate
from millstream.kernels.loop.rows_lanes import Lane, Lanes
from millstream.kernels.loop.rows_layout import LoopLayout, lay_out
from millstream.kernels.loop.rows_nodes import Apply, Node, UnsupportedError
from millstream.kernels.loop.rows_outputs import Outputs
from millstream.kernels.loop.rows_parts import LoopCall, RowParts
from millstream.kernels.loop.rows_trace import Trace, trace
from millstream.kernels.loop.rows_values import Leaves
from millstream.kernels.runtime.kernel import Round, State
from millstream.kernels.runtime.same import Same
from millstream.plan.batch import Array, Batch, Vector, empty_batch

#: With so many rows at once, code that hopes for the best is worth compiling.
_MANY = 4096


def why_not(
    operators: tuple[Operator, ...],
    inputs: tuple[tuple[str, QueueType], ...],
    variables: tuple[Variable, ...],
) -> str | None:
    """Why these operators cannot be compiled together, or None if they can."""
    try:
        trace(operators, inputs, (), variables)
    except UnsupportedError as reason:
        return str(reason)
    return None


@functools.lru_cache(maxsize=1024)
def _generated(
    operators: Same[tuple[Operator, ...]],
    inputs: tuple[tuple[str, QueueType], ...],
    outputs: tuple[str, ...],
    variables: Same[tuple[Variable, ...]],
) -> tuple[Trace, LoopLayout, Leaves, Functions]:
    """What a kernel never changes: a program that runs again finds it here."""
    traced = trace(operators.it, inputs, outputs, variables.it)
    layout, leaves = lay_out(traced, variables.it), Leaves()
    return traced, layout, leaves, generate(traced, layout, leaves)


class RowKernel:
    """Mutable: the state of its folds, and how often each fault has occurred."""

    rests = True

    def __init__(
        self,
        operators: tuple[Operator, ...],
        inputs: tuple[tuple[str, QueueType], ...],
        outputs: tuple[str, ...],
        variables: tuple[Variable, ...],
    ) -> None:
        self.trace, self.layout, self.leaves, self.functions = _generated(
            Same(operators), inputs, outputs, Same(variables)
        )
        #: Whether code for the best case is worth compiling; not decided before there are rows.
        self.is_hopeful: bool | None = None
        self._reset()

    def _reset(self) -> None:
        # Numba is loaded only when a kernel is built.
        from millstream.kernels.loop.rows_state import Variables
        from millstream.kernels.runtime.interning_text import TextPool

        self.pool = TextPool()
        types = {key.space: key.types for key in self.trace.keys}
        self.variables = Variables(
            self.layout.variables,
            self.trace.spaces,
            [types[space] for space in sorted(types)],
            self.pool,
        )
        self.texts: Array = np.zeros(0, np.int64)
        if self.leaves.texts:
            self.texts = self.pool.codes(pa.array(self.leaves.texts))
        self.counters: Array = np.zeros(self.trace.fault_count, np.int64)

    @property
    def source(self) -> str:
        """The generated loop, for batches without nulls."""
        return (self.functions.hopeful or self.functions.plain).source

    def process(self, inputs: tuple[Batch, ...], round_: Round) -> tuple[Batch, ...]:
        if not any(map(len, inputs)):
            return tuple(self._empty(o.input, o.type, inputs) for o in self.layout.outputs)
        lanes = [Lanes(batch, self._columns) for batch in inputs]
        outputs = Outputs(self.layout, inputs)
        arguments = self._arguments(lanes, outputs)
        self._run(arguments)
        made = outputs.batches(lanes, self.pool)
        self.variables.tidy(self.texts)
        return made

    def _run(self, arguments: Arguments) -> None:
        """Plain code first, careful code only where that does not do."""
        if self.is_hopeful is None:
            self.is_hopeful = arguments.row_count >= _MANY
        if self.is_hopeful and len(self.trace.inputs) == 1:
            RowParts(self.functions, arguments).run()
        elif arguments.with_nulls(self.functions.columns):
            LoopCall(self.functions.masked, arguments)()
        else:
            LoopCall(self.functions.plain, arguments)()

    def _arguments(self, lanes: list[Lanes], outputs: Outputs | None) -> Arguments:
        return Arguments(
            self.leaves,
            self.trace.keys if outputs is not None else [],
            lanes,
            self.pool,
            self.texts,
            self.variables,
            self.counters,
            outputs,
        )

    @staticmethod
    def _empty(number: int, type_: QueueType, inputs: tuple[Batch, ...]) -> Batch:
        nothing = empty_batch(type_)
        rank = inputs[number].rank
        return Batch(type_, nothing.time, nothing.columns, nothing.weight, rank)

    def _columns(self, lanes: Lanes, node: Apply) -> dict[Node, Lane]:
        """Arithmetic that is needed as columns."""
        columns = self.functions.before[node]
        arguments = self._arguments([lanes] * len(self.trace.inputs), None)
        LoopCall(columns.loop, arguments)()
        computed: dict[Node, Lane] = {}
        for number, one in enumerate(columns.nodes):
            values, valid, faults = (
                arguments.made[kind, number]
                for kind in ("made_column", "made_valid", "made_faults")
            )
            vector = Vector(one.type, values, None if valid.all() else valid)
            computed[one] = Lane(vector, faults if faults.any() else None)
        return computed

    def snapshot(self) -> State:
        return {**self.variables.snapshot(), "faults": self.counters.copy()}

    def restore(self, state: State) -> None:
        self._reset()
        self.variables.restore(state)
        self.counters = np.array(state["faults"], np.int64)

    def faults(self) -> dict[str, int]:
        counted: Counter[str] = Counter()
        for root in self.trace.roots:
            for bit in range(len(root.places)):
                if self.counters[root.base + bit]:
                    counted[root.label(bit)] += int(self.counters[root.base + bit])
        return dict(counted)
