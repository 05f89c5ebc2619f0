"""What a batch tells of time: how far it is known, and which rows are late after all.

An input may be read by several tasks, each of which knows only its own part of the log.
A task tells the largest time of its part; whoever hears all of them knows the largest time
before each part, and with it which rows of a part are late: still a function of the log
before them alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from millstream.calculus.graph import Input
from millstream.plan.batch import Array

NO_INSTANTS: Array = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class SeenOfInput:
    """What has been seen of an input: its largest time, and whether more is to come."""

    largest: int | None = None
    #: Nothing that comes later holds time back: the end of the input, or it is idle.
    is_silent: bool = False


@dataclass(frozen=True, slots=True)
class Segment:
    """What one task has read of one input; segments are numbered in the order of the log."""

    input: int
    number: int
    largest: int | None
    ticks: Array
    #: Of the rows that are late by what the task itself knows.
    oldest_late: int | None = None


@dataclass(frozen=True)
class Clock:
    """The watermark, instants with rows, and what each segment must not be older than."""

    mark: int | None
    ticks: Mapping[str, Array] = field(default_factory=dict)
    bounds: Mapping[tuple[int, int], int] = field(default_factory=dict)
    known: Sequence[SeenOfInput] = ()
    #: Nothing comes any more, and something waits to be told then.
    is_over: bool = False
    #: How far rows that tasks have found late lie behind earlier segments, by input.
    behind: Mapping[str, int] = field(default_factory=dict)

    @staticmethod
    def of(
        inputs: Sequence[Input],
        before: Sequence[SeenOfInput],
        segments: Sequence[Segment],
        silent: Mapping[int, bool],
    ) -> Clock:
        """From what was known before a batch and what its tasks have told."""
        bounds: dict[tuple[int, int], int] = {}
        ticks: dict[str, Array] = {}
        known: list[SeenOfInput] = []
        behind: dict[str, int] = {}
        for number, one in enumerate(inputs):
            largest = before[number].largest
            instants: list[Array] = []
            mine = sorted((s for s in segments if s.input == number), key=lambda s: s.number)
            for segment in mine:
                some = segment.ticks
                if largest is not None:
                    bound = largest - one.slack
                    bounds[number, segment.number] = bound
                    some = np.maximum(some, largest) if one.is_early else some[some >= bound]
                    if segment.oldest_late is not None:
                        furthest = largest - segment.oldest_late
                        behind[one.name] = max(behind.get(one.name, 0), furthest)
                instants.append(some)
                largest = _larger(largest, segment.largest)
            ticks[one.name] = np.concatenate([NO_INSTANTS, *instants])
            known.append(SeenOfInput(largest, silent.get(number, before[number].is_silent)))
        mark = _mark(inputs, known)
        is_over = mark is not None and all(k.is_silent for k in known)
        return Clock(
            mark, ticks, bounds, known, is_over and any(input_.closes for input_ in inputs), behind
        )


def _larger(one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return other if one is None else one
    return max(one, other)


def _mark(inputs: Sequence[Input], known: Sequence[SeenOfInput]) -> int | None:
    """All items up to here have come."""
    if all(k.is_silent for k in known):
        times = [k.largest for k in known if k.largest is not None]
        ends = [input_.ends for input_ in inputs if input_.ends is not None]
        return max((*times, *ends), default=None)
    bounds: list[int] = []
    for one, k in zip(inputs, known, strict=True):
        if k.is_silent:
            continue
        if k.largest is None:
            return None
        bounds.append(k.largest - one.waits)
    return min(bounds) - 1


def segment_of(record: Mapping[str, Any]) -> Segment:
    ticks = instants_told(*record["ticks"])
    return Segment(
        record["input"], record["number"], record["largest"], ticks, record["oldest_late"]
    )


def told_instants(ascending: Array) -> tuple[int, Array]:
    """Instants as tasks tell them: the first, and the steps from each to the next, in few bytes."""
    if not len(ascending):
        return 0, NO_INSTANTS
    steps = np.diff(ascending, prepend=ascending[0])
    return int(ascending[0]), steps.astype(np.min_scalar_type(int(steps.max())))


def instants_told(first: int, steps: Array) -> Array:
    return first + np.cumsum(steps, dtype=np.int64)
