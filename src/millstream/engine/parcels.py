"""Parcels: rows of a queue on their way to a bucket, as Arrow blobs.

Few bytes travel inside messages. Many go into one file per task, which the receiver maps
into memory, so that nothing is copied between Python and the JVM; the same file is what a
bucket that must be computed again is computed from.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from millstream.calculus.types import QueueType
from millstream.engine.storage.codec import DamagedState
from millstream.engine.storage.files import Files
from millstream.engine.storage.records import missing
from millstream.plan.batch import Batch
from millstream.plan.blobs import decode_batch, encode_batch

_ALIGNMENT = 64
#: Late rows of input n travel as queue LATE - n.
LATE = -1000


@dataclass(frozen=True, slots=True)
class Parcel:
    """Rows for a bucket: the blob itself, or where it lies in a file of the checkpoint."""

    bucket: int
    queue: int
    rows: int
    #: The smallest time in it.
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
    """Mutable: the parcels of a task, until they are sealed."""

    def __init__(self) -> None:
        self._batches: list[tuple[int, int, Batch]] = []

    def add(self, bucket: int, queue: int, batch: Batch) -> None:
        if len(batch):
            self._batches.append((bucket, queue, batch))

    def seal(self, files: Files, name: str) -> list[Parcel]:
        """The parcels; a file of that name is written if they are large."""
        blobs = [encode_batch(batch) for _, _, batch in self._batches]
        if sum(map(len, blobs)) <= files.small:
            return [
                Parcel(bucket, queue, len(batch), int(batch.time.min()), blob.to_pybytes())
                for (bucket, queue, batch), blob in zip(self._batches, blobs, strict=True)
            ]
        parcels: list[Parcel] = []
        parts: list[Any] = []
        position = 0
        for (bucket, queue, batch), blob in zip(self._batches, blobs, strict=True):
            padding = -position % _ALIGNMENT
            parts += [bytes(padding), blob]
            position += padding
            parcels.append(
                Parcel(
                    bucket, queue, len(batch), int(batch.time.min()), None, name, position,
                    len(blob), zlib.crc32(blob),
                )
            )  # fmt: skip
            position += len(blob)
        files.write_parts(name, parts)
        return parcels


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


def parcels_in(written: Sequence[Sequence[Any]]) -> list[Parcel]:
    return [Parcel(*one) for one in written]
