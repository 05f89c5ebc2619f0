"""Aggregate: one row per group, kept up to date at every instant."""

from __future__ import annotations

import numpy as np

from millstream.calculus.functions import Aggregate
from millstream.calculus.types import QueueType
from millstream.kernels.relational.accumulators import EXTREME, Accumulators, lay_out, values_of
from millstream.kernels.relational.aggregate_loop import (
    SIZE,
    Changes,
    GroupChanges,
    Kept,
    Recipe,
    Work,
    aggregate_changes,
)
from millstream.kernels.relational.extremes import Extremes
from millstream.kernels.relational.sketched import Sketches
from millstream.kernels.runtime.hashing import frozen
from millstream.kernels.runtime.interning import Interner
from millstream.kernels.runtime.kernel import Composed, Round, State
from millstream.plan.batch import DTYPES, Array, Batch, Vector, empty_batch


class AggregateKernel(Composed):
    """Mutable: the groups, what is kept of each, and the values of their extremes."""

    rests = True

    def __init__(
        self, function: Aggregate, input_types: tuple[QueueType, ...], output_count: int
    ) -> None:
        (self.type,) = function.output_types(input_types, output_count)
        self.function = function
        self.schema = input_types[0].schema
        self.layout = lay_out(function.aggregations, has_given=True)
        self.keys = Interner([self.schema[name] for name in function.by])
        self.accumulators = Accumulators(self.layout, self.keys)
        self.extremes = Extremes([(f, t) for f, _, t in self.layout.extremes])
        self.sketches = Sketches(
            function.aggregations, [cell for _, cell, _ in self.layout.outputs]
        )
        self.parts = {
            "keys": self.keys, "kept": self.accumulators, "extremes": self.extremes,
            "sketches": self.sketches,
        }  # fmt: skip
        self.overflows = np.zeros(len(function.aggregations), np.int64)
        self.recipe = Recipe(
            np.array(self.layout.sums, np.int64),
            np.array(self.layout.outputs, np.int64).reshape(-1, 3),
            keeps_empty=not function.by,
            tells_old=True,
        )

    def tell_only_news(self) -> None:
        """Say what comes and not what goes, where nobody looks at what goes."""
        self.recipe = self.recipe._replace(tells_old=False)

    def process(self, inputs: tuple[Batch, ...], round_: Round) -> tuple[Batch, ...]:
        (batch,) = inputs
        if not len(batch):
            return (empty_batch(self.type),)
        assert batch.weight is not None
        groups = self.keys.ids([batch.column(n) for n in self.function.by], len(batch))
        looked_at = [batch.column(name) for _, name, _ in self.layout.extremes]
        nodes = self.extremes.node_ids(groups, looked_at)
        values = values_of(batch, self.schema, self.layout)
        self.sketches.give(batch, groups, values.words)
        changes = Changes(frozen(batch.time), groups, frozen(batch.weight), values, nodes)
        return (self._told_of(changes),)

    def _told_of(self, changes: Changes) -> Batch:
        out = self._empty_told((1 + self.recipe.tells_old) * len(changes.time))
        size = self._loop(changes, out)
        batch = self._batch(out, size)
        self._release(changes.groups, changes.nodes)
        return batch

    def _loop(self, changes: Changes, out: GroupChanges) -> int:
        """Run the changes through the loop; how many are told."""
        work = Work(
            np.zeros(4, np.int64),
            np.empty(len(changes.time), np.int64),
            np.empty(changes.nodes.size, np.int64),
        )
        groups = self.accumulators.groups()
        heaps = self.extremes.heaps(self.keys.bound)
        while not aggregate_changes(
            changes, self.recipe, Kept(groups, heaps, self.accumulators.wides), out, work
        ):
            self.accumulators.make_room()
        return int(work.cursor[SIZE])

    def _empty_told(self, size: int) -> GroupChanges:
        words = np.empty((size + 1, len(self.layout.outputs)), np.int64)
        return GroupChanges(
            groups=np.empty(size, np.int64),
            time=np.empty(size, np.int64),
            weight=np.empty(size, np.int64),
            words=words,
            floats=words.view(np.float64),
            valid=np.empty(words.shape, np.bool_),
            faults=self.overflows,
        )

    def _batch(self, out: GroupChanges, size: int) -> Batch:
        columns = self.keys.vectors(out.groups[:size])
        columns += tuple(
            self._output(number, out.words[:size, number], out.valid[:size, number])
            for number in range(len(self.layout.outputs))
        )
        return Batch(self.type, out.time[:size], columns, out.weight[:size])

    def _output(self, number: int, words: Array, valid: Array) -> Vector:
        how, which, _ = self.layout.outputs[number]
        if how == EXTREME:
            return self.extremes.vector(which, words, valid)
        type_ = self.function.aggregations[number].result_type()
        values = np.ascontiguousarray(words).view(DTYPES[type_.kind])
        return Vector(type_, values, None if valid.all() else np.ascontiguousarray(valid))

    def _release(self, groups: Array, nodes: Array) -> None:
        if self.layout.extremes:
            self.extremes.release(nodes)
        if self.function.by:
            self.keys.release(self.accumulators.release(groups))

    def snapshot(self) -> State:
        return super().snapshot() | {"overflows": self.overflows.copy()}

    def restore(self, state: State) -> None:
        super().restore(state)
        self.overflows = np.array(state["overflows"], np.int64)

    def faults(self) -> dict[str, int]:
        """As the reference names them; counted once for each row that is told."""
        counts: dict[str, int] = {}
        for one, count in zip(self.function.aggregations, self.overflows.tolist(), strict=True):
            if count and one.term is not None:
                name = f"{one.term.type} overflow in {one.name}"
                counts[name] = counts.get(name, 0) + count
        return counts
