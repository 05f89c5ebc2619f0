"""Batches kept for later: queues of them, and batches as plain arrays."""

from __future__ import annotations

from collections import deque

import numpy as np

from millstream.calculus.types import QueueType, Type
from millstream.kernels.runtime.interning_text import text_array, text_column
from millstream.kernels.runtime.kernel import State
from millstream.plan.batch import Array, Batch, Vector, concat_batches

#: Batches at least this long are never copied together with others.
_LARGE = 1 << 15


class Fifo:
    """Mutable. The items of a stream in order, in batches that are cut but never copied.

    Small batches are put together, else a long window fed one row at a time would be a
    long list of objects. A batch is joined to the one before it while that is not twice
    as long, so that a row is copied a logarithmic number of times.
    """

    def __init__(self, type_: QueueType) -> None:
        self.type = type_
        self._batches: deque[Batch] = deque()
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def push(self, batch: Batch) -> None:
        if not len(batch):
            return
        self._length += len(batch)
        new = Batch(self.type, batch.time, batch.columns)
        while self._batches and len(new) < _LARGE:
            if len(self._batches[-1]) >= 2 * len(new):
                break
            new = concat_batches([self._batches.pop(), new], self.type)
        self._batches.append(new)

    def pop(self, count: int) -> Batch:
        """The first `count` items, which are removed."""
        taken: list[Batch] = []
        self._length -= count
        while count:
            first = self._batches.popleft()
            if len(first) > count:
                self._batches.appendleft(first.slice(count, len(first)))
                first = first.slice(0, count)
            taken.append(first)
            count -= len(first)
        return concat_batches(taken, self.type)

    def count_until(self, time: int) -> int:
        """How many items at the front have at most this time."""
        count = 0
        for batch in self._batches:
            if batch.time[-1] > time:
                return count + int(np.searchsorted(batch.time, time, "right"))
            count += len(batch)
        return count

    def snapshot(self) -> State:
        return stored_batch(concat_batches(self._batches, self.type))

    def restore(self, state: State) -> None:
        self._batches.clear()
        self._length = 0
        self.push(restored_batch(self.type, state))


def stored_batch(batch: Batch, prefix: str = "") -> State:
    """The times and columns of a batch as plain arrays, under names with a prefix."""
    state: State = {f"{prefix}time": batch.time.copy()}
    for number, vector in enumerate(batch.columns):
        state |= stored_vector(f"{prefix}{number}.", vector)
    return state


def restored_batch(type_: QueueType, state: State, prefix: str = "") -> Batch:
    time = np.array(state[f"{prefix}time"], np.int64)
    columns = tuple(
        restored_vector(f.type, state, f"{prefix}{n}.") for n, f in enumerate(type_.schema)
    )
    return Batch(type_, time, columns)


def stored_vector(prefix: str, vector: Vector) -> State:
    """Equal vectors are stored equally, whatever is under their nulls."""
    if not vector.is_text:
        values, valid = vector.values.copy(), np.zeros(0, np.bool_)
        if vector.valid is not None and not vector.valid.all():
            values, valid = (
                np.where(vector.valid, values, values.dtype.type(0)),
                vector.valid.copy(),
            )
        return {f"{prefix}values": values, f"{prefix}valid": valid}
    offsets, data, valid = text_column(vector.to_arrow())
    return {
        f"{prefix}offsets": offsets - offsets[0],
        f"{prefix}data": data[offsets[0] : offsets[-1]].copy(),
        f"{prefix}valid": valid.copy(),
    }


def restored_vector(type_: Type, state: State, prefix: str) -> Vector:
    valid: Array = np.array(state[prefix + "valid"], np.bool_)
    if prefix + "offsets" in state:
        offsets = np.array(state[prefix + "offsets"], np.int32)
        data = np.array(state[prefix + "data"], np.uint8)
        return Vector(type_, text_array(offsets, data, valid))
    return Vector(type_, np.array(state[prefix + "values"]), valid if len(valid) else None)
