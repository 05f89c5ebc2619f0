"""Rows without times: the n-th of a source is at time n."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from millstream.calculus.graph import Input
from millstream.connectors.chunks import Chunk, Reader


class NumberedReader:
    """Mutable: counts the rows of another reader, those that are rejected too."""

    def __init__(self, reader: Reader, first: int = 1) -> None:
        self._reader = reader
        self._next = first

    def chunks(self) -> Iterator[Chunk]:
        for chunk in self._reader.chunks():
            times = np.arange(self._next, self._next + len(chunk.batch), dtype=np.int64)
            self._next += chunk.read
            yield replace(chunk, batch=replace(chunk.batch, time=times))

    def close(self) -> None:
        self._reader.close()


def numbered(reader: Reader, input_: Input, first: int = 1) -> Reader:
    """The reader itself, unless its input has no times."""
    return NumberedReader(reader, first) if input_.is_numbered else reader
