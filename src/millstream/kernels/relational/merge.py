"""Merge: it only moves rows."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from millstream.calculus.functions import Merge
from millstream.calculus.types import QueueType
from millstream.kernels.runtime.kernel import Round, Termless
from millstream.plan.batch import Array, Batch, concat_batches, empty_batch


def without_rank(batch: Batch) -> Batch:
    return Batch(batch.type, batch.time, batch.columns, batch.weight)


def merged_by_time(batches: list[Batch], type_: QueueType) -> Batch:
    """All rows by time; of one time, those of earlier batches first."""
    parts = [without_rank(b) for b in batches if len(b)]
    if not parts:
        return empty_batch(type_)
    together = concat_batches(parts, type_)
    if all(a.time[-1] <= b.time[0] for a, b in pairwise(parts)):
        return together
    # A stable sort of a few sorted runs is a merge.
    in_time: Array = np.argsort(together.time, kind="stable")
    return together.take(in_time)


class MergeKernel(Termless):
    rests = True

    def __init__(
        self, function: Merge, input_types: tuple[QueueType, ...], output_count: int
    ) -> None:
        (self.type,) = function.output_types(input_types, output_count)

    def process(self, inputs: tuple[Batch, ...], round_: Round) -> tuple[Batch, ...]:
        return (merged_by_time(list(inputs), self.type),)
