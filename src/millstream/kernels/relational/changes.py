"""Changes: what comes beside what it replaces, of the same key and at the same instant."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from millstream.calculus.functions import Changes
from millstream.calculus.terms import Column
from millstream.calculus.types import QueueType
from millstream.compiled import tight
from millstream.kernels.runtime.consolidate import consolidate
from millstream.kernels.runtime.hashing import frozen
from millstream.kernels.runtime.interning import Interner
from millstream.kernels.runtime.kernel import Round, Termless
from millstream.plan.batch import Array, Batch, Vector

_NONE = -1


@tight
def _pair(
    changes: tuple[Array, Array, Array], gone: Array, sent: Array, come: Array, replaced: Array
) -> int:
    """The rows that come and those that they replace, or _NONE; how many come.

    `gone` and `sent` have the row of a key that has last gone, and been told; both are of
    this instant only if they are not before its first row.
    """
    time, weight, keys = changes
    size, start = 0, 0
    for i in range(time.size):
        if time[i] != time[start]:
            start = i
        key = keys[i]
        if weight[i] < 0:
            # Deletions come first, so that all of them are known.
            gone[key] = i if gone[key] < start else gone[key]
        elif sent[key] < start:
            sent[key] = i
            come[size] = i
            replaced[size] = gone[key] if gone[key] >= start else _NONE
            size += 1
    return size


class ChangesKernel(Termless):
    """`input_is_net` may be set where changes come as `consolidate` gives them."""

    rests = True

    def __init__(
        self, function: Changes, input_types: tuple[QueueType, ...], output_count: int
    ) -> None:
        (self.type,) = function.output_types(input_types, output_count)
        self.by = function.by
        self.old = [c.term.name for c in function.old if isinstance(c.term, Column)]
        self.key_types = [input_types[0].schema[n] for n in function.by]
        self.input_is_net = False

    def process(self, inputs: tuple[Batch, ...], round_: Round) -> tuple[Batch, ...]:
        net = inputs[0] if self.input_is_net else consolidate(inputs[0])
        assert net.weight is not None
        keys = Interner(self.key_types)
        ids = keys.ids([net.column(n) for n in self.by], len(net))
        come, replaced = np.empty(len(net), np.int64), np.empty(len(net), np.int64)
        gone, sent = (np.full(keys.bound, _NONE) for _ in range(2))
        changes = (frozen(net.time), frozen(net.weight), ids)
        size = _pair(changes, gone, sent, come, replaced)
        come, replaced = come[:size], replaced[:size]
        columns = [c.take(come) for c in net.columns]
        columns += [_taken(net.column(n), replaced) for n in self.old]
        return (Batch(self.type, net.time[come], tuple(columns)),)


def _taken(vector: Vector, rows: Array) -> Vector:
    """Some rows of a column; null where there is none."""
    absent = rows == _NONE
    if not absent.any():
        return vector.take(rows)
    if vector.is_text:
        return Vector(vector.type, vector.values.take(pa.array(rows, mask=absent)))
    if not len(vector):
        return Vector(vector.type, np.zeros(len(rows), vector.values.dtype), ~absent)
    return Vector(vector.type, vector.values.take(rows), vector.mask().take(rows) & ~absent)
