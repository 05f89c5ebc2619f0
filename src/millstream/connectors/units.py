"""What numbers count in columns of times: microseconds, unless somebody says otherwise.

Seconds and milliseconds since 1970 would all lie in its first weeks if they were taken for
microseconds. Times that evidently are such are not taken; somebody must say what they count.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np

from millstream.calculus.graph import Input
from millstream.calculus.types import TIME_COLUMN, QueueType, Schema
from millstream.connectors.chunks import Chunk, Reader
from millstream.connectors.location import Location, files_now
from millstream.connectors.read import file_opener
from millstream.connectors.values import TIME_UNITS
from millstream.errors import CheckError, MillstreamError, UsageError, listing, suggest
from millstream.values.instants import render_time

#: The years 2000 to 2100, in seconds.
_PLAUSIBLE = (946_684_800, 4_102_444_800)
_SUSPECTED = {"s": 1, "ms": 1_000, "ns": 1_000_000_000}
_SAMPLED_ROWS = 20
_SAMPLED_FILES = 5


def check_unit(unit: str) -> str:
    if unit not in TIME_UNITS:
        hint = f"units are: {listing(TIME_UNITS)}. {suggest(unit, TIME_UNITS) or ''}".strip()
        raise UsageError(f'unknown unit of times "{unit}"', hint=hint)
    return unit


def question_files(location: Location, input_: Input) -> None:
    """Raise a `CheckError` if the first rows evidently count another unit."""
    if input_.unit is not None or input_.is_read_once or input_.is_numbered:
        return
    for path in files_now(location)[:_SAMPLED_FILES]:
        counts = _counts_in(location, input_, path)
        if len(counts):
            _question(counts, input_, location.name_of(path))
            return


def _counts_in(location: Location, input_: Input, path: Path) -> Sequence[int]:
    """The first times that are numbers: those that depend on what numbers count."""
    try:
        micros, other = (_first_times(location, input_, path, unit) for unit in (None, "ns"))
    except MillstreamError:
        return []  # told by whoever reads the file
    if len(micros) != len(other):
        return []
    counts: list[int] = micros[micros != other].tolist()
    return counts


def _first_times(
    location: Location, input_: Input, path: Path, unit: str | None
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    only_time = replace(input_, type=QueueType(Schema(())), unit=unit, keys=(), within=())
    with closing(file_opener(location, only_time, _SAMPLED_ROWS)(path)) as reader:
        chunk = next(iter(reader.chunks()), None)
    return np.zeros(0, np.int64) if chunk is None else chunk.batch.time


def _question(counts: Sequence[int], input_: Input, place: str) -> None:
    low, high = _PLAUSIBLE
    for unit, scale in _SUSPECTED.items():
        if all(low * scale <= count < high * scale for count in counts):
            micros, parts = TIME_UNITS[unit]
            taken = render_time(counts[0]) or "far in the future"
            meant = render_time(counts[0] * micros // parts)
            column = input_.time or TIME_COLUMN
            raise CheckError(
                f'the times of input "{input_.name}", such as {counts[0]}, are {taken} '
                f"if they count microseconds, but {meant} if they count {unit}",
                place=place,
                hint=f"say what they count: --unit {input_.name}={unit} (or us), "
                f'in a project time = {{ column = "{column}", unit = "{unit}" }}',
            )


class QuestionedReader:
    """Mutable: rows that come once, of which the first are looked at as they come."""

    def __init__(self, reader: Reader, input_: Input, place: str) -> None:
        self._reader = reader
        self._input = input_
        self._place = place

    def chunks(self) -> Iterator[Chunk]:
        input_ = self._input
        is_known = input_.unit is not None or input_.is_read_once or input_.is_numbered
        for chunk in self._reader.chunks():
            if not is_known and len(chunk.batch):
                _question(chunk.batch.time[:_SAMPLED_ROWS].tolist(), self._input, self._place)
                is_known = True
            yield chunk

    def close(self) -> None:
        self._reader.close()
