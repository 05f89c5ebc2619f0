"""Which rows are late: a function of the rows before them, never of the batch."""

from __future__ import annotations

import numpy as np

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
