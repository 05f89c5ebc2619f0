"""What readers give and writers take: chunks of rows, and the rows that could not be read.

Nothing disappears: every row of a source is either in a batch or among the rejected, so
`read` is what a person would count in the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Protocol, runtime_checkable

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


@runtime_checkable
class BatchWriter(Writer, Protocol):
    """Mutable: a sink that knows which batches it has, from one run to the next.

    Rows and the number of their batch appear together, so that a batch that is delivered
    again changes nothing. Batches come in the order of their numbers; numbers may be left
    out. Used as a plain writer, without `open`, it is written anew by every run.
    """

    def open(self, job: str, *, fresh: bool) -> int | None:
        """Begin for a job; answers the number of the first batch that is not there yet.

        None if that cannot be said: then the last batch is delivered again, for which it is
        kept if the sink has `is_told_again`.

        `job` stays the same for all runs on one checkpoint. `fresh` says that the job starts
        from nothing. What an earlier job wrote here is replaced by the first batch that is
        written, never leaving a mixture to be seen.
        """
        ...

    def write_batch(self, number: int, batch: Batch, more: Iterable[Batch] = ()) -> None:
        """Write for good, with what came before; nothing happens if it is there already.

        A batch with very many rows comes in several, one after the other.
        """
        ...


class Numbered:
    """Mutable: memory, a terminal or a single file, which every run fills anew.

    It wants all batches from the first on, in every run, and takes each of them once.
    """

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._next = 0

    def open(self, job: str, *, fresh: bool) -> int:
        return self._next

    def write_batch(self, number: int, batch: Batch, more: Iterable[Batch] = ()) -> None:
        if number >= self._next:
            for one in chain((batch,), more):
                self._writer.write(one)
            self._next = number + 1

    def write(self, batch: Batch) -> None:
        self.write_batch(self._next, batch)

    def close(self) -> None:
        self._writer.close()

    def abort(self) -> None:
        self._writer.abort()


def numbered(writer: Writer) -> BatchWriter:
    """Any writer as one that takes numbered batches."""
    return writer if isinstance(writer, BatchWriter) else Numbered(writer)


def shown(raw: bytes) -> str:
    """The beginning of a raw row, with bytes that are not UTF-8 made visible."""
    start = raw[: 4 * SHOWN_CHARACTERS].rstrip(b"\r\n")
    return start.decode("utf-8", "backslashreplace")[:SHOWN_CHARACTERS]
