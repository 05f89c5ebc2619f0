"""Which rows are late: a function of the rows before them, never of the batch."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from millstream.calculus.graph import Input
from millstream.calculus.types import INT64_MIN
from millstream.plan.batch import Array, Batch, empty_batch


def without_late(batch: Batch, largest: int | None, slack: int) -> tuple[Batch, Batch, int | None]:
    """The accepted rows, the late ones, and the largest time so far.

    A row is late if it lies more than the slack behind the largest time at an earlier
    position of its source.
    """
    none = empty_batch(batch.type)
    if not len(batch):
        return batch, none, largest
    before = int(batch.time[0]) if largest is None else largest
    if is_sorted(batch.time) and batch.time[0] >= before:
        return batch, none, int(batch.time[-1])
    seen = np.maximum.accumulate(np.concatenate(([before], batch.time)))
    oldest = np.where(seen[:-1] >= INT64_MIN + slack, seen[:-1] - slack, INT64_MIN)
    is_late = batch.time < oldest
    if not is_late.any():
        return batch, none, int(seen[-1])
    accepted = batch.take(np.flatnonzero(~is_late))
    return accepted, batch.take(np.flatnonzero(is_late)), int(seen[-1])


def accepted_of(batch: Batch, largest: int | None, one: Input) -> tuple[Batch, Batch, int | None]:
    """The rows of an input that are not late, the late ones, and the largest time so far.

    Those of an early input have the largest time up to them for their own; numbered rows come in
    the order of their numbers.
    """
    if one.is_numbered and len(batch):
        return batch, empty_batch(batch.type), int(batch.time[-1])
    accepted, late, now_largest = without_late(batch, largest, one.slack)
    return (moved(accepted, largest) if one.is_early else accepted), late, now_largest


def moved(batch: Batch, largest: int | None) -> Batch:
    """The same rows at the times at which they came: late ones move no time, as they are behind."""
    if not len(batch) or (is_sorted(batch.time) and (largest is None or batch.time[0] >= largest)):
        return batch
    first = INT64_MIN if largest is None else largest
    return replace(batch, time=np.maximum(np.maximum.accumulate(batch.time), first))


def happened(batch: Batch, one: Input) -> Array:
    """When the rows of an input happened, be they moved or not."""
    if not one.is_early:
        return batch.time
    assert one.time is not None, "an early input has a column of times"
    values: Array = batch.column(one.time).values
    return values


def furthest_behind(times: Array, largest: int) -> int:
    """How far a row lies behind the largest time before it, at most."""
    seen = np.maximum.accumulate(np.concatenate(([largest], times)))[:-1]
    is_behind = times < seen
    if not is_behind.any():
        return 0
    # Without signs, as the distance of two times may be larger than any time.
    return int((seen.view(np.uint64) - times.view(np.uint64))[is_behind].max())


def is_sorted(times: Array) -> bool:
    return bool((times[1:] >= times[:-1]).all())
