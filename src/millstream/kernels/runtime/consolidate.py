"""What has really changed: equal rows of one instant summed, in canonical order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from millstream import cold
from millstream.calculus.types import Kind
from millstream.kernels.runtime.hashing import frozen, words_of_numbers
from millstream.kernels.runtime.interning import Interner
from millstream.kernels.runtime.interning_text import TextPool
from millstream.kernels.runtime.interning_words import Codec
from millstream.kernels.runtime.net_rows import are_net, net_changes
from millstream.kernels.runtime.row_order import find_crowded
from millstream.kernels.runtime.utf8 import Texts
from millstream.meaning.items import Item, consolidated
from millstream.plan.batch import Array, Batch, Vector, batch_of

#: More changes than a definition is asked for.
_FEW = 20_000


def consolidate(batch: Batch) -> Batch:
    """The same changes, without any that undo each other at one instant.

    Every change has weight +1 or -1. Those of one instant come in order: deletions, then
    insertions, each by the values of their columns.
    """
    assert batch.weight is not None
    if batch.is_net:
        return batch
    if cold.is_cold() and len(batch) <= _FEW:
        return _by_meaning(batch)
    time, weight = frozen(batch.time), frozen(batch.weight)
    crowded = np.empty(len(batch), np.bool_)
    find_crowded(time, weight, crowded)
    if not crowded.any():
        return batch
    picked = net_of_columns(batch.time, batch.weight, batch.columns, TextPool())
    if picked is None:
        return batch
    rows, signs = picked
    columns = tuple(c.take(rows) for c in batch.columns)
    return Batch(batch.type, time[rows], columns, signs)


def _by_meaning(batch: Batch) -> Batch:
    """The same by its definition, as long as there is no loop for it."""
    assert batch.weight is not None
    changes = zip(batch.time.tolist(), batch.rows(), batch.weight.tolist(), strict=True)
    items = consolidated(Item(time, row, weight) for time, row, weight in changes)
    columns = ([i.time for i in items], [i.row for i in items], [i.weight for i in items])
    return batch_of(batch.type, *columns)


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


def net_of_columns(
    time: Array, weight: Array, columns: Sequence[Vector | Array], pool: TextPool
) -> tuple[Array, Array] | None:
    """Which rows have really changed, and whether they have gone or come; None if all as they are.

    Of texts whose codes in the pool are known, the codes will do.
    """
    words: list[Array] = []
    is_text: list[bool] = []
    for column in columns:
        for part in _ordered(column, pool):
            words.append(part)
            is_text.append(False)
        is_text[-1] = not isinstance(column, Vector) or column.is_text
    # A row without columns is a row like any other.
    places = np.array([w.ctypes.data for w in words], np.int64)
    order = (places, np.array(is_text, np.bool_), pool.texts)
    time, weight = frozen(time), frozen(weight)
    if are_net(time, weight, order):
        return None
    most = int(np.abs(weight).sum())
    picked, signs = np.empty(most, np.int64), np.empty(most, np.int64)
    rows, spare, ends, nets = (np.empty(len(time), np.int64) for _ in range(4))
    count = net_changes(time, weight, order, (rows, spare, ends, nets), picked, signs)
    return picked[:count], signs[:count]


def _ordered(column: Vector | Array, pool: TextPool) -> list[Array]:
    """Words whose order is that of the values; before them, where there are nulls, what is none."""
    if not isinstance(column, Vector):
        return [np.ascontiguousarray(column, np.int64)]
    valid = column.valid
    if column.is_text:
        words = pool.codes(column.values)
        valid = words >= 0 if len(words) and words.min() < 0 else None
    elif column.type.kind is Kind.NUMBER:
        words = words_of_numbers(column.values)
    else:
        words = np.ascontiguousarray(column.values, np.int64)
    if valid is None or valid.all():
        return [words]
    return [valid.astype(np.int64), np.where(valid, words, 0)]


def order_of(codec: Codec) -> tuple[Array, Texts]:
    """What the loops need to know to order rows."""
    is_text = np.zeros(codec.columns, np.bool_)
    is_text[list(codec.text_columns)] = True
    return is_text, codec.pool.texts
