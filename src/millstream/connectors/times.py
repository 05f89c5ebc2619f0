"""The times of files and nothing else: in what order their rows stand.

Rows that will be rejected for another reason may be among them, which makes a file look less
in order than it is, never more.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from millstream.calculus.graph import Input
from millstream.calculus.types import QueueType, Schema
from millstream.connectors.location import Location
from millstream.connectors.pieces import (
    START,
    Piece,
    Place,
    is_counted_in_rows,
    next_piece,
    open_piece,
    rest_of,
)
from millstream.connectors.read import file_opener
from millstream.plan.batch import Array
from millstream.plan.lateness import furthest_behind, is_sorted

#: Of fewer bytes for each core, a file is looked at as a whole.
_LEAST_BYTES = 4 << 20


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


def together(one: Spread | None, other: Spread | None) -> Spread | None:
    """The spread of some rows and those behind them."""
    if one is None or other is None:
        return other if one is None else one
    behind = max(one.behind, other.behind, one.newest - other.oldest)
    return Spread(min(one.oldest, other.oldest), max(one.newest, other.newest), behind)


def spreads_of(
    location: Location, input_: Input, files: Sequence[tuple[Path, Place]]
) -> list[Spread | None]:
    """The spread of each file from a place on.

    Each has a thread, for what reads files does not hold Python up; a large one has several where
    it can be cut without being read.
    """
    only_time = replace(input_, type=QueueType(Schema(())), keys=(), within=())

    def spread(piece: Piece | None, path: Path) -> Spread | None:
        return spread_of(_times_in(location, only_time, path, piece))

    pieces = [_pieces_of(location, only_time, *file) for file in files]
    if sum(map(len, pieces)) == 1:
        return [spread(some[0], path) for some, (path, _) in zip(pieces, files, strict=True)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        spreads = [
            [pool.submit(spread, piece, path) for piece in some]
            for some, (path, _) in zip(pieces, files, strict=True)
        ]
        return [
            functools.reduce(together, (one.result() for one in parts), None) for parts in spreads
        ]


def _pieces_of(
    location: Location, input_: Input, path: Path, place: Place
) -> Sequence[Piece | None]:
    """What a file holds from a place on, in as many pieces as are worth it; None is all of it."""
    share = path.stat().st_size // (os.cpu_count() or 1)
    if share < _LEAST_BYTES or not is_counted_in_rows(location, path):
        return [None] if place == START else _some(rest_of(location, input_, path, place))
    pieces: list[Piece] = []
    while piece := next_piece(location, input_, path, *place, share + 1, final=True):
        pieces.append(piece)
        place = (piece.last, piece.next_line)
    return pieces


def _some(piece: Piece | None) -> list[Piece]:
    return [] if piece is None else [piece]


def _times_in(
    location: Location, only_time: Input, path: Path, piece: Piece | None
) -> Iterator[Array]:
    whole = file_opener(location, only_time)
    reader = whole(path) if piece is None else open_piece(location, only_time, path, piece)
    with closing(reader):
        for chunk in reader.chunks():
            yield chunk.batch.time
