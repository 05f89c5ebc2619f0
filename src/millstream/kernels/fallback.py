"""Row at a time on the reference environment, for what has no kernel.

Cycles, operators that share a variable across a window, Python callables: rare enough,
and then right rather than fast. `explain` says where and why.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from millstream.calculus.graph import Input, Operator, Program, Variable
from millstream.calculus.types import QueueType
from millstream.kernels.runtime.kernel import Round, State
from millstream.meaning.items import Entry, Item, Mark
from millstream.meaning.kept import kept_of, take_up
from millstream.meaning.machine import Machine
from millstream.plan.batch import Batch, batch_of
from millstream.plan.ranks import origin_of_rank, rank_of_origin


class FallbackKernel:
    """Mutable: a machine for a part of a program, fed a round at a time."""

    rests = False

    def __init__(
        self,
        operators: tuple[Operator, ...],
        inputs: tuple[tuple[str, QueueType], ...],
        outputs: tuple[str, ...],
        variables: tuple[Variable, ...],
        declarations: Sequence[int],
        *,
        is_ranked: bool,
    ) -> None:
        used = {v for op in operators for v in op.variables}
        self.machine = Machine(
            Program(
                tuple(Input(name, type_) for name, type_ in inputs),
                outputs,
                operators,
                tuple(v for v in variables if v.name in used),
            )
        )
        self.inputs = inputs
        self.outputs = outputs
        self.types = self.machine.program.queue_types()
        self.declarations = declarations
        self.is_ranked = is_ranked
        self.waits = any(not op.function.acts_at_once for op in operators)
        self.position = 0

    def process(self, inputs: tuple[Batch, ...], round_: Round) -> tuple[Batch, ...]:
        ticks = set(round_.ticks.tolist())
        items = [self._items(number, batch) for number, batch in enumerate(inputs)]
        instants = sorted({i.time for some in items for i in some} | ticks | {round_.mark})
        for number, (queue, _) in enumerate(self.inputs):
            entries: list[Entry] = list(items[number])
            if self.waits:
                entries = self._with_marks(items[number], instants, number, ticks)
            self.machine.push(queue, entries)
        self.machine.run()
        return tuple(self._taken(queue) for queue in self.outputs)

    def _items(self, number: int, batch: Batch) -> list[Item]:
        weights = [1] * len(batch) if batch.weight is None else batch.weight.tolist()
        ranks: list[int] = (
            list(range(self.position, self.position + len(batch)))
            if batch.rank is None
            else batch.rank.tolist()
        )
        self.position += len(batch)
        return [
            Item(time, row, weight, origin_of_rank(time, rank))
            for time, row, weight, rank in zip(
                batch.time.tolist(), batch.rows(), weights, ranks, strict=True
            )
        ]

    def _with_marks(
        self, items: list[Item], instants: list[int], number: int, ticks: set[int]
    ) -> list[Entry]:
        entries: list[Entry] = []
        declaration = self.declarations[number]
        position = 0
        for instant in instants:
            entries.append(Mark(instant - 1, (), (instant - 1, 1, declaration, 0)))
            while position < len(items) and items[position].time == instant:
                entries.append(items[position])
                position += 1
            tick = (instant,) if instant in ticks else ()
            entries.append(Mark(instant, tick, (instant, 1, declaration, 0)))
        return entries

    def _taken(self, queue: str) -> Batch:
        """The items that have come out of a queue, which is emptied."""
        entries = self.machine.queues[queue]
        items = [e for e in entries if isinstance(e, Item)]
        entries.clear()
        type_ = self.types[queue]
        weights = [i.weight for i in items] if type_.is_relation else None
        batch = batch_of(type_, [i.time for i in items], [i.row for i in items], weights)
        if not self.is_ranked:
            return batch
        ranks = np.array([rank_of_origin(i.origin) for i in items], np.int64)
        return Batch(type_, batch.time, batch.columns, batch.weight, ranks)

    def snapshot(self) -> State:
        return {**kept_of(self.machine), "position": self.position}

    def restore(self, state: State) -> None:
        take_up(self.machine, state)
        self.position = state["position"]

    def faults(self) -> dict[str, int]:
        return dict(self.machine.faults)
