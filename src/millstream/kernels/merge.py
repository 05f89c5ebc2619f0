"""Merge and Duplicate: they only move rows."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from millstream.calculus.functions import Duplicate, Merge
from millstream.calculus.types import QueueType
from millstream.kernels.kernel import Round, State, Termless
from millstream.plan.batch import Array, Batch, concat_batches, empty_batch


class Stateless(Termless):
    """The base of kernels without state and without terms."""

    def snapshot(self) -> State:
        return {}

    def restore(self, state: State) -> None:
        pass


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


class MergeKernel(Stateless):
    def __init__(
        self, function: Merge, input_types: tuple[QueueType, ...], output_count: int
    ) -> None:
        (self.type,) = function.output_types(input_types, output_count)

    def process(self, inputs: tuple[Batch, ...], round_: Round) -> tuple[Batch, ...]:
        return (merged_by_time(list(inputs), self.type),)


class DuplicateKernel(Stateless):
    def __init__(
        self, function: Duplicate, input_types: tuple[QueueType, ...], output_count: int
    ) -> None:
        self.output_count = output_count

    def process(self, inputs: tuple[Batch, ...], round_: Round) -> tuple[Batch, ...]:
        return inputs * self.output_count
