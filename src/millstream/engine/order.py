"""Putting items from several places back into the one order of time and rank."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from millstream.calculus.types import QueueType
from millstream.kernels.runtime.consolidate import consolidate
from millstream.kernels.runtime.merge_runs import MOST_RUNS, merge_runs
from millstream.plan.batch import Array, Batch, Vector, concat_batches, concat_vectors, weights_of
from millstream.plan.ranks import has_position, is_free

#: How many ranks per item may be missing if items are put into their places one by one.
_SPARSEST = 4


#: The same work on several things, in turn or each in a thread.
Each = Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]


def in_turn(work: Callable[[Any], Any], some: Sequence[Any]) -> list[Any]:
    return [work(one) for one in some]


def in_order(batches: Sequence[Batch], type_: QueueType, each: Each = in_turn) -> Batch:
    """Items by time and rank; equal ranks are told apart by values.

    Items of one rank come from one row, whose order the place they come from has kept,
    or were set free by one mark, and then the order of values is their order.
    """
    some = [batch for batch in batches if len(batch)]
    if len(some) < 2 or any(batch.rank is None for batch in some):
        whole = concat_batches(some, type_)
        if len(whole) and whole.rank is not None and not _is_in_order(whole.time, whole.rank):
            whole = whole.take(_order(whole.time, whole.rank))
    else:
        whole = _merged(some, type_, each)
    is_ranked = len(whole) > 0 and whole.rank is not None
    if is_ranked and len(batches) > 1 and not type_.is_relation:
        return _tied_by_values(whole)
    return whole


def _merged(batches: Sequence[Batch], type_: QueueType, each: Each) -> Batch:
    """Several batches with ranks as one; each column is made wherever there is room."""
    time = np.concatenate([batch.time for batch in batches])
    rank = np.concatenate([batch.rank for batch in batches])
    order = None if _is_in_order(time, rank) else _order_of_runs(time, rank, batches)

    def placed(values: Array) -> Array:
        return values if order is None else values.take(order)

    def column(index: int) -> Vector:
        whole = concat_vectors([batch.columns[index] for batch in batches])
        return whole if order is None else whole.take(order)

    def array(number: int) -> Array | None:
        if number == 0:
            return placed(time)
        if number == 1:
            return placed(rank)
        weights = weights_of(batches)
        return None if weights is None else placed(weights)

    width = len(type_.schema)
    parts = each(lambda n: column(n) if n < width else array(n - width), range(width + 3))
    times, ranks, weight = parts[width:]
    return Batch(type_, times, tuple(parts[:width]), weight, ranks)


def _order_of_runs(time: Array, rank: Array, batches: Sequence[Batch]) -> Array:
    if len(batches) <= MOST_RUNS:
        ends = np.cumsum([len(batch) for batch in batches])
        order = np.empty(len(time), np.int64)
        if merge_runs(time, rank, ends - [len(b) for b in batches], ends, order):
            return order
    return _order(time, rank)


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
