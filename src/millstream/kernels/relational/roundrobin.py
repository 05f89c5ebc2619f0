"""RoundRobinSplit, RoundRobinJoin and Interleave: items dealt out and taken by count."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from millstream.calculus.functions import RoundRobinJoin, RoundRobinSplit
from millstream.calculus.types import INT64_MIN, START_OF_TIME, QueueType
from millstream.calculus.work import Interleave
from millstream.compiled import compiled
from millstream.kernels.runtime.hashing import extended
from millstream.kernels.runtime.kernel import Round, State, Termless
from millstream.kernels.runtime.rowstore import Fifo
from millstream.plan.batch import Array, Batch, batch_of, concat_batches, empty_batch


def _turn_ends(weights: tuple[int, ...], queues: int) -> Array:
    """Where in one whole turn the turn of each queue ends; the last is its length."""
    return np.cumsum(weights or (1,) * queues, dtype=np.int64)


class RoundRobinSplitKernel(Termless):
    """Mutable: how far the turn has come."""

    def __init__(
        self, function: RoundRobinSplit, input_types: tuple[QueueType, ...], output_count: int
    ) -> None:
        self.ends = _turn_ends(function.weights, output_count)
        self.output_count = output_count
        self.cursor = 0

    def process(self, inputs: tuple[Batch, ...], round_: Round) -> tuple[Batch, ...]:
        (batch,) = inputs
        places = (self.cursor + np.arange(len(batch))) % self.ends[-1]
        self.cursor = (self.cursor + len(batch)) % int(self.ends[-1])
        to = np.searchsorted(self.ends, places, "right")
        return tuple(batch.take(np.flatnonzero(to == n)) for n in range(self.output_count))

    def snapshot(self) -> State:
        return {"cursor": self.cursor}

    def restore(self, state: State) -> None:
        self.cursor = int(state["cursor"])


@compiled
def _take_turns(ends: Array, cursor: int, waiting: Array) -> Array:
    """From which queue the next items come, until one's turn finds it empty."""
    left = waiting.copy()
    order = np.empty(64, np.int64)
    count = 0
    queue = np.searchsorted(ends, cursor, "right")
    while left[queue] > 0:
        if count == order.size:
            order = extended(order, count + 1)
        order[count] = queue
        count += 1
        left[queue] -= 1
        cursor += 1
        if cursor == ends[queue]:
            queue = (queue + 1) % ends.size
            cursor = cursor if queue else 0
    return order[:count].copy()


@compiled
def _take_in_order(begins: Array, repeats: Array, number: int, waiting: Array) -> Array:
    """From which queue the items from a number on come, until one's turn finds it empty."""
    left = waiting.copy()
    order = np.empty(left.sum(), np.int64)
    count = 0
    while count < order.size:
        place = number + count
        if place < begins.size:
            queue = begins[place]
        elif repeats.size == 0:
            break
        else:
            queue = repeats[(place - begins.size) % repeats.size]
        if left[queue] == 0:
            break
        left[queue] -= 1
        order[count] = queue
        count += 1
    return order[:count].copy()


class _TurnsKernel(Termless, ABC):
    """Mutable: the items that wait for their turn, and the time of the last item.

    An item that has waited leaves with the one it waited for, so times never decrease
    and all that leaves in a round belongs to it.
    """

    def __init__(self, input_types: tuple[QueueType, ...]) -> None:
        self.type = input_types[0]
        self.queues = [Fifo(t) for t in input_types]
        self.parts = {f"queue{number}": queue for number, queue in enumerate(self.queues)}
        #: How many have left, as far as that matters for whose turn it is.
        self.cursor = 0
        self.last_time = INT64_MIN

    @abstractmethod
    def order(self, waiting: Array) -> Array:
        """From which queues the next items come; moves the cursor."""

    def process(self, inputs: tuple[Batch, ...], round_: Round) -> tuple[Batch, ...]:
        for queue, batch in zip(self.queues, inputs, strict=True):
            queue.push(batch)
        order = self.order(np.array([len(q) for q in self.queues], np.int64))
        if not len(order):
            return (empty_batch(self.type),)
        counts = np.bincount(order, minlength=len(self.queues))
        taken = concat_batches(
            [q.pop(int(n)) for q, n in zip(self.queues, counts, strict=True)], self.type
        )
        # The k-th item of a queue goes to the k-th place of that queue in the order.
        places = np.empty(len(order), np.int64)
        places[np.argsort(order, kind="stable")] = np.arange(len(order))
        joined = taken.take(places)
        time = np.maximum.accumulate(np.maximum(joined.time, self.last_time))
        self.last_time = int(time[-1])
        return (Batch(self.type, time, joined.columns),)

    def snapshot(self) -> State:
        return super().snapshot() | {"cursor": self.cursor, "last_time": self.last_time}

    def restore(self, state: State) -> None:
        super().restore(state)
        self.cursor, self.last_time = int(state["cursor"]), int(state["last_time"])


class RoundRobinJoinKernel(_TurnsKernel):
    """Mutable: as many items of each input as its weight says, over and over."""

    def __init__(
        self, function: RoundRobinJoin, input_types: tuple[QueueType, ...], output_count: int
    ) -> None:
        super().__init__(input_types)
        self.ends = _turn_ends(function.weights, len(input_types))
        for queue, rows in zip(self.queues, function.enqueued, strict=False):
            queue.push(batch_of(self.type, [START_OF_TIME] * len(rows), rows))

    def order(self, waiting: Array) -> Array:
        order = _take_turns(self.ends, self.cursor, waiting)
        self.cursor = (self.cursor + len(order)) % int(self.ends[-1])
        return order


class InterleaveKernel(_TurnsKernel):
    """Mutable: items of inputs in an order that is known."""

    def __init__(
        self, function: Interleave, input_types: tuple[QueueType, ...], output_count: int
    ) -> None:
        super().__init__(input_types)
        self.begins = np.array(function.begins, np.int64)
        self.repeats = np.array(function.repeats, np.int64)

    def order(self, waiting: Array) -> Array:
        order = _take_in_order(self.begins, self.repeats, self.cursor, waiting)
        self.cursor += len(order)
        return order
