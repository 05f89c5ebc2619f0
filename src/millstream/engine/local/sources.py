"""From readers to rounds: late rows, order, and how far time is known."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import numpy as np

from millstream.calculus.graph import Input
from millstream.connectors.chunks import Chunk, Reader
from millstream.engine.job import InputCounts
from millstream.engine.local.beside import ReadAhead
from millstream.kernels.runtime.presence import Presence
from millstream.plan.batch import Batch, concat_batches, empty_batch
from millstream.plan.lateness import accepted_of, furthest_behind, is_sorted
from millstream.plan.ranks import first_rank


class SourceState:
    """Mutable: one input, what has been read of it and not yet been released."""

    def __init__(self, input_: Input, declaration: int, reader: Reader) -> None:
        self.input = input_
        self.reader = reader
        self.chunks: Iterator[Chunk] = reader.chunks()
        self.counts = InputCounts()
        self._ahead: ReadAhead | None = None
        self.is_exhausted = False
        self.largest: int | None = None
        #: Each in order of time, and all in order of position.
        self._pending: list[Batch] = []
        self._next_rank = first_rank(declaration)
        #: Whether its rows are to carry their ranks; said before the first is read.
        self.is_ranked = False
        self._presence = Presence(input_.type) if input_.type.is_relation else None

    @property
    def known_below(self) -> int | None:
        """All items with a smaller time have been read; None if nothing is known."""
        if self.largest is None:
            return None
        # No two rows have the same number, so that none has to wait for others of its instant.
        return self.largest + 1 if self.input.is_numbered else self.largest - self.input.waits

    def read_ahead(self) -> None:
        """Let chunks be read in a thread of their own from now on."""
        self._ahead = ReadAhead(self.chunks)
        self.chunks = iter(self._ahead)

    def stop(self) -> None:
        """Nothing more is wanted."""
        if self._ahead is not None:
            self._ahead.stop()

    def look_ahead(self, most: int) -> int:
        """How many rows there are, counted until there are at least so many; none is taken."""
        seen: list[Chunk] = []
        rows = 0
        while rows < most and (chunk := next(self.chunks, None)) is not None:
            seen.append(chunk)
            rows += chunk.read
        self.chunks = chain(seen, self.chunks)
        return rows

    def read(self) -> tuple[Chunk | None, Batch]:
        """Take in the next chunk; returns it, and those of its rows that are late."""
        chunk = next(self.chunks, None)
        if chunk is None:
            self.is_exhausted = True
            self.reader.close()
            return None, empty_batch(self.input.type)
        self.counts.read += chunk.read
        batch = chunk.batch
        if self.is_ranked:
            ranks = np.arange(self._next_rank, self._next_rank + len(batch))
            batch = Batch(batch.type, batch.time, batch.columns, batch.weight, ranks)
        self._next_rank += len(batch)
        before = self.largest
        accepted, late, self.largest = accepted_of(batch, before, self.input)
        self.counts.late += len(late)
        if len(late):
            first = int(batch.time[0]) if before is None else before
            self.counts.behind = max(self.counts.behind, furthest_behind(batch.time, first))
        self.counts.waiting += len(accepted)
        if len(accepted):
            # Without slack, whatever is out of order is late.
            if self.input.waits and not is_sorted(accepted.time):
                accepted = accepted.take(np.argsort(accepted.time, kind="stable"))
            self._pending.append(accepted)
        return chunk, late

    def first_cut(self) -> int | None:
        """A time after which the next read rows begin, if older ones still wait.

        Rows of the last instant of a chunk wait for the next one. Letting them go in a
        round of their own is cheaper than copying a chunk to put them in front of it.
        """
        if len(self._pending) < 2:
            return None
        last = int(self._pending[0].time[-1])
        is_apart = all(int(batch.time[0]) > last for batch in self._pending[1:])
        return last if is_apart else None

    def release(self, mark: int) -> tuple[Batch, Batch]:
        """The waiting items up to a mark, by (time, position), and those without meaning."""
        batch = self._released(mark)
        self.counts.waiting -= len(batch)
        if self._presence is None:
            self.counts.processed += len(batch)
            return batch, empty_batch(batch.type)
        sound, rejected = self._presence.sound(batch)
        self.counts.processed += len(sound)
        return sound, rejected

    def _released(self, mark: int) -> Batch:
        if not self._pending:
            return empty_batch(self.input.type)
        if self.first_cut() == mark:
            batch, *self._pending = self._pending
            return batch
        batch = concat_batches(self._pending, self.input.type)
        if len(self._pending) > 1 and not is_sorted(batch.time):
            batch = batch.take(np.argsort(batch.time, kind="stable"))
        if len(batch) and int(batch.time[-1]) <= mark:
            self._pending = []  # a mark beyond all times would have them made into objects
            return batch
        cut = int(np.searchsorted(batch.time, mark, side="right"))
        self._pending = [batch.slice(cut, len(batch))] if cut < len(batch) else []
        return batch.slice(0, cut)
