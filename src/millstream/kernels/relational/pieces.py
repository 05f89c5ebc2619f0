"""Products in pieces: no kernel holds at once what its inputs make of each other.

A join can give far more than it is given. So its loop fills a room and stops, what is in
the room is handed on, and the loop goes on where it has stopped. A piece may end within an
instant; with it comes up to when everything has been given.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

from millstream.kernels.runtime.kernel import Round, Termless
from millstream.plan.batch import Array, Batch, concat_batches

_LEAST_ROOM, _MOST_ROOM = 1 << 16, 1 << 18


class Piece(NamedTuple):
    """Some of what a kernel gives; all that is not later than `until` has now been given."""

    batch: Batch
    until: int


class Piecewise(Termless, ABC):
    """The base of kernels whose output is given in pieces; only the last is up to the mark."""

    def room(self, rows: int) -> int:
        """For how much there is room, if so many rows come in: what is usual fits at once."""
        return min(2 * rows + _LEAST_ROOM, _MOST_ROOM)

    @abstractmethod
    def pieces(self, inputs: tuple[Batch, ...], round_: Round) -> Iterator[Piece]: ...

    def process(self, inputs: tuple[Batch, ...], round_: Round) -> tuple[Batch, ...]:
        """All pieces at once."""
        batches = [piece.batch for piece in self.pieces(inputs, round_)]
        return (concat_batches(batches, batches[0].type),)


T = TypeVar("T", bound=tuple[Any, ...])


class LoopCursor(NamedTuple):
    """Where a loop stands; `size` and `now` say where in it the size and the instant are."""

    places: Array
    size: int
    now: int


def roomfuls(
    tell: Callable[[], bool], cursor: LoopCursor, room: T, mark: int
) -> Iterator[tuple[T, int]]:
    """What a loop tells: what is in the room whenever it is full, and up to when that is all."""
    is_done = False
    while not is_done:
        is_done = tell()
        size = int(cursor.places[cursor.size])
        cursor.places[cursor.size] = 0
        parts = (a[:size] if is_done else a[:size].copy() for a in room)
        filled = type(room)(*parts)
        yield filled, mark if is_done else int(cursor.places[cursor.now]) - 1
