"""A program for every key, on the kernels of one: what each key keeps is put in and taken out.

Rows are grouped by key, and those of a key run as a round of their own. Their times are their
numbers, so that what leaves tells which row it has waited for: in that order it leaves, at the
time of that row. A net never looks at times but to hand the latest on.
"""

from __future__ import annotations

import numpy as np

from millstream.calculus.each import PerKey
from millstream.calculus.types import QueueType
from millstream.errors import RunError
from millstream.kernels.rounds import StepRunner
from millstream.kernels.runtime.interning import Interner
from millstream.kernels.runtime.kernel import Round, State
from millstream.plan.batch import Array, Batch, concat_batches, empty_batch
from millstream.plan.steps import Plan


def why_not(function: PerKey, inner: Plan) -> str | None:
    """Why the program of a key is walked, or None if kernels run it."""
    others = [s for s in inner.steps if not s.is_net]
    if others:
        names = ", ".join(dict.fromkeys(op.function.name for s in others for op in s.operators))
        return f"{function.name} runs filters on kernels, but no {names}"
    return next((s.fallback for s in inner.steps if s.fallback is not None), None)


class PerKeyKernel:
    """Mutable: the keys, and what the program of each has kept."""

    rests = False

    def __init__(self, function: PerKey, inner: Plan, input_type: QueueType) -> None:
        schema = input_type.schema
        self.function = function
        self.keys = [schema.index(name) for name in function.by]
        self.rest = [n for n, name in enumerate(schema.names) if name not in function.by]
        (given,) = function.program.outputs
        self.input, self.output = function.program.inputs[0], given
        self.inner_type = inner.program.queue_types()[given]
        (self.type,) = function.output_types((input_type,), 1)
        self.runner = StepRunner(inner)
        self.begin = self.runner.snapshot()
        self.interner = Interner([schema.fields[n].type for n in self.keys])
        self.states: dict[int, list[State]] = {}
        #: How many items each key may still give, if that is limited.
        self.left: dict[int, int] = {}
        #: How many rows have come before this round.
        self.came = 0

    def process(self, inputs: tuple[Batch, ...], round_: Round) -> tuple[Batch, ...]:
        (batch,) = inputs
        if not len(batch):
            return (empty_batch(self.type),)
        ids = self.interner.ids([batch.columns[n] for n in self.keys], len(batch))
        order = np.argsort(ids, kind="stable")
        columns = tuple(batch.columns[n].take(order) for n in self.rest)
        rows = Batch(self.input.type, self.came + order, columns)
        starts = np.flatnonzero(np.diff(ids[order], prepend=-1)).tolist()
        made = []
        for start, stop in zip(starts, [*starts[1:], len(batch)], strict=True):
            key = int(ids[order[start]])
            if self.left.get(key) == 0:
                continue
            try:
                given = self._of_key(key, rows.slice(start, stop))
            except RunError as error:
                (row,) = batch.take(order[start : start + 1]).rows()
                raise self.function.failed(error, tuple(row[n] for n in self.keys)) from None
            made.append(self._limited(key, given))
        whole = self._in_order(concat_batches(made, self.inner_type), batch)
        self.came += len(batch)
        return (whole,)

    def _of_key(self, key: int, rows: Batch) -> Batch:
        self.runner.restore(self.states.get(key, self.begin))
        mark = self.came + int(rows.time[-1])
        parts = [one[self.output] for one in self.runner.round({self.input.name: rows}, mark, {})]
        self.states[key] = self.runner.snapshot()
        return concat_batches(parts, self.inner_type)

    def _limited(self, key: int, made: Batch) -> Batch:
        """What may leave; a key that has given all it may keeps nothing any more."""
        if self.function.first is None:
            return made
        left = self.left.get(key, self.function.first)
        made = made.slice(0, min(left, len(made)))
        self.left[key] = left - len(made)
        if not self.left[key]:
            del self.states[key]
        return made

    def _in_order(self, made: Batch, batch: Batch) -> Batch:
        """What all keys have made, in the order of the rows that it has waited for."""
        order = np.argsort(made.time, kind="stable")
        made = made.take(order)
        rows: Array = made.time - self.came
        keys = tuple(batch.columns[n].take(rows) for n in self.keys)
        rank = None if batch.rank is None else batch.rank.take(rows)
        return Batch(self.type, batch.time.take(rows), keys + made.columns, rank=rank)

    def snapshot(self) -> State:
        keys = {f"keys.{name}": part for name, part in self.interner.snapshot().items()}
        return keys | {"states": dict(self.states), "came": self.came, "left": dict(self.left)}

    def restore(self, state: State) -> None:
        start = "keys."
        self.interner.restore(
            {k.removeprefix(start): v for k, v in state.items() if k.startswith(start)}
        )
        self.states, self.came = dict(state["states"]), int(state["came"])
        self.left = dict(state["left"])

    def faults(self) -> dict[str, int]:
        return {}
