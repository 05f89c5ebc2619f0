"""Files of our own that hold rows as they are in memory, a block after another.

    block, block, ..., where each block lies, how many bytes that takes, "MSB1"

Any run of rows can be read on its own: the file is mapped into memory, and a block is checked
when it is read. A `.rows` file has the rows of an input, a `.rejected` file those that could
not be read.
"""

from __future__ import annotations

import json
import os
import zlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

import pyarrow as pa

from millstream.calculus.graph import Input
from millstream.calculus.types import QueueType
from millstream.connectors.chunks import Chunk, Rejected
from millstream.connectors.sink import told
from millstream.connectors.window import shorter
from millstream.errors import RunError
from millstream.plan.batch import Batch, concat_batches, empty_batch
from millstream.plan.blobs import decode_batch, encode_batch

#: No file of anybody else ends so.
ROWS, REJECTED = ".millstream-rows", ".millstream-rejected"
BLOCK_ROWS = 65_536
_MAGIC = b"MSB1"
_ALIGNMENT = 64


def is_ours(path: Path) -> bool:
    return path.suffix in (ROWS, REJECTED)


def write_rows(path: Path, type_: QueueType, batches: Iterable[Batch]) -> int:
    """Make a file appear when it is complete; answers how many rows it has."""
    return _write(path, ((len(b), encode_batch(b)) for b in in_blocks(batches, type_)))


def write_rejected(path: Path, rejected: Iterable[Rejected]) -> int:
    rows = [(r.source, r.position, r.reason, r.text) for r in rejected]
    blocks = (rows[at : at + BLOCK_ROWS] for at in range(0, len(rows), BLOCK_ROWS))
    return _write(path, ((len(some), json.dumps(some).encode()) for some in blocks))


def _write(path: Path, blocks: Iterable[tuple[int, Any]]) -> int:
    draft = path.with_name(f".{path.name}.tmp")
    index: list[tuple[int, int, int, int]] = []
    try:
        with told(str(path)), draft.open("wb") as file:
            for rows, blob in blocks:
                file.write(bytes(-file.tell() % _ALIGNMENT))
                index.append((rows, file.tell(), len(blob), zlib.crc32(blob)))
                file.write(blob)
            tail = json.dumps(index).encode()
            file.write(tail + len(tail).to_bytes(8, "little") + _MAGIC)
            file.flush()
            os.fsync(file.fileno())
            draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    return sum(rows for rows, _, _, _ in index)


def in_blocks(batches: Iterable[Batch], type_: QueueType) -> Iterator[Batch]:
    """The same rows in batches that are neither large nor, but for the last, small."""
    held: list[Batch] = []
    for batch in batches:
        held.append(batch)
        count = sum(map(len, held))
        if count >= BLOCK_ROWS:
            whole = concat_batches(held, type_)
            for first in range(0, count, BLOCK_ROWS):
                yield whole.slice(first, min(first + BLOCK_ROWS, count))
            held = []
    rest = concat_batches(held, type_)
    if len(rest):
        yield rest


class Blocks:
    """Mutable: an open file, which may be deleted while it is read."""

    def __init__(self, path: Path, name: str | None = None) -> None:
        self._name = name or str(path)
        with told(self._name):
            self._file = pa.memory_map(str(path))
            size = int(self._file.size())
            end = self._bytes(max(0, size - 12), 12)
            length = int.from_bytes(end[:8], "little")
            if end[8:] != _MAGIC or length > size - 12:
                raise self._damaged()
            self._index = json.loads(self._bytes(size - 12 - length, length))
        #: The number of rows before each block, and of all.
        self._starts: list[int] = [0, *accumulate(block[0] for block in self._index)]

    def __len__(self) -> int:
        return self._starts[-1]

    def _bytes(self, start: int, size: int) -> bytes:
        return bytes(self._file.read_at(size, start))

    def _damaged(self) -> RunError:
        return RunError("this file of rows is damaged", place=self._name)

    def blobs(self, first: int, last: int) -> Iterator[tuple[Any, int, int]]:
        """Where the rows [first, last) lie: blobs, and which rows of each."""
        number = bisect_right(self._starts, first) - 1
        while first < last:
            _, at, size, checksum = self._index[number]
            self._file.seek(at)
            blob = self._file.read_buffer(size)
            if zlib.crc32(blob) != checksum:
                raise self._damaged()
            start, end = self._starts[number], min(last, self._starts[number + 1])
            yield blob, first - start, end - start
            first, number = end, number + 1

    def batches(self, type_: QueueType, first: int, last: int) -> Iterator[Batch]:
        for blob, start, end in self.blobs(first, last):
            yield decode_batch(blob, type_).slice(start, end)


class BlocksReader:
    """Mutable: reads the rows [first, last) of a file of ours as an input has them."""

    def __init__(self, path: Path, name: str, input_: Input, first: int, last: int) -> None:
        self._blocks = Blocks(path, name)
        if len(self._blocks) < last:
            raise shorter(name)
        self._is_rejected = path.suffix == REJECTED
        self._type = input_.type
        self._range = first, last

    def chunks(self) -> Iterator[Chunk]:
        if self._is_rejected:
            for blob, start, end in self._blocks.blobs(*self._range):
                rows = json.loads(blob.to_pybytes())[start:end]
                yield Chunk(empty_batch(self._type), tuple(Rejected(*row) for row in rows))
        else:
            for batch in self._blocks.batches(self._type, *self._range):
                yield Chunk(batch)

    def close(self) -> None:
        """The file is unmapped with its last rows."""
