"""A program on the kernels of the local engine, given rows as they come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from millstream.broker.evaluate import Arrival, Changes, at_first, net
from millstream.calculus.graph import Program
from millstream.engine.local.run import plan_for
from millstream.kernels.rounds import StepRunner
from millstream.optimiser.optimise import optimise
from millstream.plan.batch import Array, batch_of
from millstream.plan.ranks import first_rank


class Compiled:
    """Mutable: the kernels of a plan, a round at a time."""

    def __init__(self, program: Program) -> None:
        self.program = optimise(program)
        self.runner = StepRunner(plan_for(self.program))
        ranked = self.runner.plan.ranked
        names = self.program.input_names
        self.ranks = {name: first_rank(n) for n, name in enumerate(names) if name in ranked}
        self.is_first = True

    def advance(self, mark: int, arrivals: Mapping[str, Sequence[Arrival]]) -> dict[str, Changes]:
        given = {**arrivals, **at_first(self.program, is_first=self.is_first)}
        self.is_first = False
        batches = {}
        ticks: dict[str, Array] = {}
        for one in self.program.inputs:
            items = sorted(given.get(one.name, ()), key=lambda a: a[0])
            weights = [w for _, _, w in items] if one.type.is_relation else None
            batch = batch_of(one.type, [t for t, _, _ in items], [r for _, r, _ in items], weights)
            if one.name in self.ranks:
                rank = self.ranks[one.name]
                batch = replace(batch, rank=np.arange(rank, rank + len(items)))
                self.ranks[one.name] += len(items)
            batches[one.name] = batch
            ticks |= self.runner.ticks_of(one.name, batch)
        made: dict[str, Changes] = {name: {} for name in self.program.outputs}
        for queues in self.runner.round(batches, mark, ticks):
            for name in self.program.outputs:
                batch = queues[name]
                weights = [1] * len(batch) if batch.weight is None else batch.weight.tolist()
                pairs = zip(batch.rows(), weights, strict=True)
                made[name] = net([*made[name].items(), *pairs])
        return made

    def snapshot(self) -> dict[str, Any]:
        return {"kernels": self.runner.snapshot(), "ranks": self.ranks, "is_first": self.is_first}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.runner.restore(state["kernels"])
        self.ranks, self.is_first = dict(state["ranks"]), state["is_first"]
