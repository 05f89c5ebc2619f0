"""What readers give and writers take: chunks of rows, and the rows that could not be read.

Nothing disappears: every row of a source is either in a batch or among the rejected, so
`read` is what a person would count in the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from millstream.plan.batch import Batch

SHOWN_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class Rejected:
    """A row that could not be read.

    `position` is the line of a text file as an editor counts it, or the row of a Parquet
    file; both from 1. `text` is the beginning of the raw row.
    """

    source: str
    position: int
    reason: str
    text: str


@dataclass(frozen=True, slots=True)
class Chunk:
    """Rows in the order of their source; their times need not be sorted."""

    batch: Batch
    rejected: tuple[Rejected, ...] = ()

    @property
    def read(self) -> int:
        return len(self.batch) + len(self.rejected)


class Reader(Protocol):
    """Mutable: holds open files. Chunks can be read once."""

    def chunks(self) -> Iterator[Chunk]: ...

    def close(self) -> None: ...


class Writer(Protocol):
    """Mutable: holds an open file. What is written is seen by others after `close`."""

    def write(self, batch: Batch) -> None: ...

    def close(self) -> None: ...

    def abort(self) -> None:
        """Leave nothing behind. Does nothing after `close`."""
        ...


def shown(raw: bytes) -> str:
    """The beginning of a raw row, with bytes that are not UTF-8 made visible."""
    start = raw[: 4 * SHOWN_CHARACTERS].rstrip(b"\r\n")
    return start.decode("utf-8", "backslashreplace")[:SHOWN_CHARACTERS]
