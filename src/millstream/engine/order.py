"""Putting items from several places back into the one order of time and rank."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from millstream.calculus.types import QueueType
from millstream.kernels.runtime.consolidate import consolidate
from millstream.plan.batch import Array, Batch, concat_batches
from millstream.plan.ranks import has_position, is_free

#: How many ranks per item may be missing if items are put into their places one by one.
_SPARSEST = 4


def in_order(batches: Sequence[Batch], type_: QueueType) -> Batch:
    """Items by time and rank; equal ranks are told apart by values.

    Items of one rank come from one row, whose order the place they come from has kept,
    or were set free by one mark, and then the order of values is their order.
    """
    whole = concat_batches(batches, type_)
    if not len(whole) or whole.rank is None:
        return whole
    if not _is_in_order(whole.time, whole.rank):
        whole = whole.take(_order(whole.time, whole.rank))
    return _tied_by_values(whole) if len(batches) > 1 and not type_.is_relation else whole


def _order(time: Array, rank: Array) -> Array:
    least, largest = int(rank.min()), int(rank.max())
    if least == largest:
        return np.argsort(time, kind="stable")
    if largest - least < _SPARSEST * len(rank):
        order = _by_place(rank - least, largest - least + 1)
        if len(order) == len(rank) and bool((time[order[1:]] >= time[order[:-1]]).all()):
            return order
    return np.lexsort((rank, time))


def _by_place(place: Array, count: int) -> Array:
    """Items in the order of their places, those that share one left out: far less than sorting.

    Rows of one input whose time does not go back are in the order of their log.
    """
    items = np.full(count, -1, np.int64)
    items[place] = np.arange(len(place))
    return items[items >= 0]


def _is_in_order(time: Array, rank: Array) -> bool:
    later = time[1:] > time[:-1]
    return bool((later | ((time[1:] == time[:-1]) & (rank[1:] >= rank[:-1]))).all())


def _tied_by_values(batch: Batch) -> Batch:
    """What one mark has set free, in the order of values within each instant.

    What has a position of its own is in order already.
    """
    assert batch.rank is not None
    is_tied = is_free(batch.rank) & ~has_position(batch.rank)
    if not is_tied.any():
        return batch
    if is_tied.all():
        return _in_order_of_values(batch)
    free, rest = batch.take(np.flatnonzero(is_tied)), batch.take(np.flatnonzero(~is_tied))
    both = concat_batches([rest, _in_order_of_values(free)], batch.type)
    assert both.rank is not None
    return both.take(np.lexsort((both.rank, both.time)))


def _in_order_of_values(batch: Batch) -> Batch:
    """As insertions into a relation, the rows of an instant are put into canonical order."""
    assert batch.rank is not None
    insertions = Batch(batch.type, batch.time, batch.columns, np.ones(len(batch), np.int64))
    ordered = consolidate(insertions)
    return Batch(batch.type, ordered.time, ordered.columns, None, batch.rank)


def finished(batches: Sequence[Batch], type_: QueueType) -> Batch:
    """The rows of an output in the order in which they are shown."""
    if not type_.is_relation:
        return in_order(batches, type_)
    whole = concat_batches(batches, type_)
    order = np.argsort(whole.time, kind="stable")
    return consolidate(whole.take(order)) if len(whole) else whole
