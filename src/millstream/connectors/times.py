"""The times of files and nothing else: in what order their rows stand.

Rows that will be rejected for another reason may be among them, which makes a file look less
in order than it is, never more.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from millstream.calculus.graph import Input
from millstream.calculus.types import QueueType, Schema
from millstream.connectors.location import Location
from millstream.connectors.pieces import START, Place, open_piece, rest_of
from millstream.connectors.read import file_opener
from millstream.plan.batch import Array
from millstream.plan.lateness import furthest_behind, is_sorted


@dataclass(frozen=True, slots=True)
class Spread:
    """The times of some rows in their order.

    `behind` is how far a row lies behind the largest time before it, at most.
    """

    oldest: int
    newest: int
    behind: int


def spread_of(arrays: Iterable[Array]) -> Spread | None:
    """The spread of times that come in pieces; None if there are none."""
    spread: Spread | None = None
    for times in arrays:
        if len(times):
            spread = extended(spread, times)
    return spread


def extended(before: Spread | None, times: Array) -> Spread:
    first = int(times[0])
    oldest, newest, behind = (
        (first, first, 0) if before is None else (before.oldest, before.newest, before.behind)
    )
    if is_sorted(times) and first >= newest:
        return Spread(oldest, int(times[-1]), behind)
    behind = max(behind, furthest_behind(times, newest))
    return Spread(min(oldest, int(times.min())), max(newest, int(times.max())), behind)


def spreads_of(
    location: Location, input_: Input, files: Sequence[tuple[Path, Place]]
) -> list[Spread | None]:
    """The spread of each file from a place on."""

    def spread(file: tuple[Path, Place]) -> Spread | None:
        return spread_of(_times_in(location, input_, *file))

    if len(files) == 1:
        return [spread(files[0])]
    with ThreadPoolExecutor(os.cpu_count()) as pool:  # what reads files does not hold Python up
        return list(pool.map(spread, files))


def _times_in(location: Location, input_: Input, path: Path, place: Place) -> Iterator[Array]:
    only_time = replace(input_, type=QueueType(Schema(())), keys=(), within=())
    if place == START:
        reader = file_opener(location, only_time)(path)
    else:
        rest = rest_of(location, only_time, path, place)
        if rest is None:
            return
        reader = open_piece(location, only_time, path, rest)
    with closing(reader):
        for chunk in reader.chunks():
            yield chunk.batch.time
