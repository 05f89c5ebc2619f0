"""Emits that are put together before they go to whoever keeps their table.

Sums are added up, weights of the same value too, and what is only asked whether it was there goes
once. So a place sends each index once a batch, however often it was emitted to; the table
comes to the same.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from millstream.calculus.tables import Tally, emitted_schema, index_names
from millstream.kernels.runtime.interning import Interner
from millstream.plan.batch import Array, Batch, Vector
from millstream.values.records.types import INT, resolved

#: What is emitted at least so much more often than there are different emits is put together.
_WORTH = 0.8
_ADDED, _ONCE = ("sum", "mrcounter"), ("unique", "set")
_MOST = 2**62


def combined(function: Tally, batch: Batch) -> Batch:
    """The emits of a batch, put together where the kind of the table allows it."""
    table = function.table
    width = len(index_names(table))
    added: int | None = None
    if table.kind in _ADDED and resolved(table.value) == INT:
        added = width
    elif table.kind == "top" and table.weight is not None and resolved(table.weight) == INT:
        added, width = width + 1, width + 1
        if not _adds_up(batch.columns[added]):
            return batch
    elif table.kind in _ONCE:
        width += 1
    else:
        return batch
    assert len(emitted_schema(table)) == max(width, (added or 0) + 1), "nothing else is emitted"
    return _grouped(function, batch, width, added)


def _adds_up(weights: Vector) -> bool:
    """Whether no sum of these weights can be too large."""
    values = weights.values
    if weights.valid is not None or not len(values):
        return False
    return max(abs(int(values.min())), abs(int(values.max()))) * len(values) < _MOST


def _grouped(function: Tally, batch: Batch, width: int, added: int | None) -> Batch:
    if len(batch) < 2:
        return batch
    keys = Interner([batch.schema[n] for n in batch.schema.names[:width]])
    ids = keys.ids(batch.columns[:width], len(batch)) if width else np.zeros(len(batch), np.int64)
    instants = _instants(function, batch.time)
    if instants is not None:
        ids = ids * (int(instants.max()) + 1) + instants
    _, first, groups = np.unique(ids, return_index=True, return_inverse=True)
    if len(first) > _WORTH * len(batch):
        return batch
    order = np.argsort(first, kind="stable")
    made = batch.take(first[order])
    if added is None:
        return made
    amounts = np.zeros(len(first), np.int64)
    np.add.at(amounts, groups, batch.columns[added].values)
    column = Vector(batch.columns[added].type, amounts[order])
    columns = (*made.columns[:added], column, *made.columns[added + 1 :])
    return replace(made, columns=columns)


def _instants(function: Tally, times: Array) -> Array | None:
    """Numbers from 0 on, equal for what is told together; None if all is."""
    length = function.window or function.every
    if length is None:
        return None
    starts = times // length if function.window else -(-times // length)
    numbers: Array = starts - starts.min()
    return numbers if int(numbers.max()) < 1 << 20 else np.unique(starts, return_inverse=True)[1]
