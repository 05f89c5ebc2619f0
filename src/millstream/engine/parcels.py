"""Parcels: rows of a queue on their way to a bucket, as Arrow blobs.

Few bytes travel inside messages. Many go into one file per task, which the receiver maps
into memory, so that nothing is copied between Python and the JVM; the same file is what a
bucket that must be computed again is computed from. Neither who sends nor who receives holds
all of them at once: very many go into the file while they are made, and are taken in turns.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from millstream.calculus.types import QueueType
from millstream.engine.storage.codec import DamagedState
from millstream.engine.storage.files import Files, Growing
from millstream.engine.storage.records import missing
from millstream.plan.batch import Batch
from millstream.plan.blobs import decode_batch, encode_batch

_ALIGNMENT = 64
#: How many bytes of parcels are held before they go into a file, and how many rows are taken
#: in one turn.
_MOST_HELD = 1 << 25
_MOST_ROWS = 1 << 20
#: Late rows of input n travel as queue LATE - n.
LATE = -1000


@dataclass(frozen=True, slots=True)
class Parcel:
    """Rows for a bucket: the blob itself, or where it lies in a file of the checkpoint."""

    bucket: int
    queue: int
    rows: int
    #: The smallest time in it; of late rows, which stay as they came, the smallest rank.
    oldest: int
    blob: bytes | None
    file: str = ""
    at: int = 0
    size: int = 0
    checksum: int = 0

    def written(self) -> tuple[Any, ...]:
        """As `Parcel(*written)` reads it; `astuple` would copy the blob."""
        return (
            self.bucket, self.queue, self.rows, self.oldest, self.blob, self.file, self.at,
            self.size, self.checksum,
        )  # fmt: skip


class Packer:
    """Mutable: the parcels of a task, until they are sealed.

    If they are large they go into a file of some name. Used as a context, it leaves nothing
    behind if something goes wrong.
    """

    def __init__(self, files: Files, name: str) -> None:
        self._files = files
        self._name = name
        self._file: Growing | None = None
        self._position = 0
        self._parcels: list[Parcel] = []
        #: Those that are not in the file yet, and how many bytes they are.
        self._held: list[tuple[Parcel, Any]] = []
        self._size = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, fault: object, *_: object) -> None:
        if fault is not None and self._file is not None:
            self._file.abort()

    def add(self, bucket: int, queue: int, batch: Batch) -> None:
        if not len(batch):
            return
        blob = encode_batch(batch)
        order = batch.time if queue > LATE else batch.rank
        assert order is not None, "late rows have ranks"
        parcel = Parcel(bucket, queue, len(batch), int(order.min()), None)
        self._held.append((parcel, blob))
        self._size += len(blob)
        if self._size > _MOST_HELD:
            self._put_away()

    def _put_away(self) -> None:
        if self._file is None:
            self._file = self._files.growing(self._name)
        for parcel, blob in self._held:
            padding = -self._position % _ALIGNMENT
            self._file.write(bytes(padding))
            self._file.write(blob)
            at = self._position + padding
            self._parcels.append(
                replace(parcel, file=self._name, at=at, size=len(blob), checksum=zlib.crc32(blob))
            )
            self._position = at + len(blob)
        self._held, self._size = [], 0

    def seal(self) -> list[Parcel]:
        """The parcels, when there are no more of them."""
        if self._file is None and self._size <= self._files.small:
            return [replace(parcel, blob=blob.to_pybytes()) for parcel, blob in self._held]
        self._put_away()
        assert self._file is not None
        self._file.close()
        return self._parcels


def packed(files: Files, name: str, batches: Iterable[tuple[int, int, Batch]]) -> list[Parcel]:
    """The parcels of some rows, each with its bucket and the number of its queue."""
    with Packer(files, name) as packer:
        for bucket, queue, batch in batches:
            packer.add(bucket, queue, batch)
        return packer.seal()


def opened(files: Files, parcel: Parcel, type_: QueueType) -> Batch:
    """The rows of a parcel; `DamagedState` if its file is not what was written."""
    if parcel.blob is not None:
        return decode_batch(parcel.blob, type_)
    try:
        blob = files.part(parcel.file, parcel.at, parcel.size)
    except FileNotFoundError:
        raise DamagedState(missing(parcel.file)) from None
    if len(blob) != parcel.size or zlib.crc32(blob) != parcel.checksum:
        raise DamagedState(f"the file {parcel.file} of the checkpoint is damaged")
    return decode_batch(blob, type_)


def in_turns(parcels: Sequence[Parcel], until: int) -> Iterator[tuple[list[int], int]]:
    """The numbers of the parcels that are taken together, and up to when that is everything.

    What is made piece by piece is in order of time, and need not be there at once; the last
    turn is up to `until`.
    """
    in_time = sorted(range(len(parcels)), key=lambda n: parcels[n].oldest)
    turn: list[int] = []
    rows = 0
    for number in in_time:
        cut = parcels[number].oldest - 1
        if rows > _MOST_ROWS and parcels[turn[0]].oldest <= cut < until:
            yield sorted(turn), cut
            turn, rows = [], 0
        turn.append(number)
        rows += parcels[number].rows
    yield sorted(turn), until


def parcels_in(written: Sequence[Sequence[Any]]) -> list[Parcel]:
    return [Parcel(*one) for one in written]
