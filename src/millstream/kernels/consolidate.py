"""What has really changed: equal rows of one instant summed, in canonical order."""

from __future__ import annotations

import numpy as np

from millstream.kernels.interning import Interner
from millstream.kernels.interning_text import TextPool
from millstream.kernels.interning_words import Codec
from millstream.kernels.loops import frozen
from millstream.kernels.loops_order import find_crowded, net_changes
from millstream.kernels.loops_text import Texts
from millstream.plan.batch import Array, Batch


def consolidate(batch: Batch) -> Batch:
    """The same changes, without any that undo each other at one instant.

    Every change has weight +1 or -1. Those of one instant come in order: deletions, then
    insertions, each by the values of their columns.
    """
    assert batch.weight is not None
    time, weight = frozen(batch.time), frozen(batch.weight)
    crowded = np.empty(len(batch), np.bool_)
    find_crowded(time, weight, crowded)
    if not crowded.any():
        return batch
    if crowded.all():
        rows, signs = _net(batch)
    else:
        alone, among = np.flatnonzero(~crowded), np.flatnonzero(crowded)
        picked, signs = _net(batch.take(among))
        rows = np.concatenate([alone, among[picked]])
        signs = np.concatenate([weight[alone], signs])
        in_time = np.argsort(time[rows], kind="stable")
        rows, signs = rows[in_time], signs[in_time]
    columns = tuple(c.take(rows) for c in batch.columns)
    return Batch(batch.type, time[rows], columns, signs)


def summed(batch: Batch) -> Batch:
    """The same changes of one instant, those of equal rows as one, in no order."""
    assert batch.weight is not None
    rows = Interner([f.type for f in batch.schema])
    ids = rows.ids(batch.columns, len(batch))
    weights = np.zeros(rows.bound, np.int64)
    np.add.at(weights, ids, batch.weight)
    kept, firsts = np.unique(ids, return_index=True)
    first = firsts[weights[kept] != 0]
    columns = tuple(c.take(first) for c in batch.columns)
    rank = None if batch.rank is None else batch.rank[first]
    return Batch(batch.type, batch.time[first], columns, weights[ids[first]], rank)


def _net(batch: Batch) -> tuple[Array, Array]:
    assert batch.weight is not None
    codec = Codec([f.type for f in batch.schema], TextPool())
    words = codec.words(batch.columns, len(batch))
    return net_of_words(batch.time, batch.weight, words, codec)


def net_of_words(time: Array, weight: Array, words: Array, codec: Codec) -> tuple[Array, Array]:
    """Which rows have really changed, and whether they have gone or come."""
    most = int(np.abs(weight).sum())
    picked, signs = np.empty(most, np.int64), np.empty(most, np.int64)
    rows, spare, nets = (np.empty(len(time), np.int64) for _ in range(3))
    changes = (frozen(time), frozen(weight), words)
    count = net_changes(changes, order_of(codec), (rows, spare, nets), picked, signs)
    return picked[:count], signs[:count]


def order_of(codec: Codec) -> tuple[Array, Texts]:
    """What the loops need to know to order rows."""
    is_text = np.zeros(codec.columns, np.bool_)
    is_text[list(codec.text_columns)] = True
    return is_text, codec.pool.texts
