"""Rows put in the order of their times: in memory if they are few, else on disk.

Many rows are sorted in parts that fit into memory; the parts are written out and merged. Rows
of one time stay in the order in which they came.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from millstream.calculus.types import QueueType
from millstream.connectors.blocks import Blocks, in_blocks, write_rows
from millstream.connectors.times import Spread, extended
from millstream.plan.batch import Batch, concat_batches
from millstream.plan.lateness import is_sorted

#: About what is held in memory; sorting takes as much again.
HELD_BYTES = 128 << 20


class Sorter:
    """Mutable: takes rows in, then gives them in order.

    Rows that lie no more than the slack behind those before them are in order: whoever has
    asked for the slack looks after them.
    """

    def __init__(self, type_: QueueType, slack: int, held_bytes: int = HELD_BYTES) -> None:
        self._type = type_
        self._slack = slack
        self._most = held_bytes
        self._held: list[Batch] = []
        self._bytes = 0
        self._spread: Spread | None = None
        self._parts: list[Blocks] = []

    def add(self, batch: Batch) -> None:
        if not len(batch):
            return
        self._spread = extended(self._spread, batch.time)
        self._held.append(batch)
        self._bytes += size_of(batch)
        if self._bytes > self._most:
            self._write_out()

    def batches(self) -> Iterator[Batch]:
        """All rows in order; to be asked for once."""
        if not self._parts and (self._spread is None or self._spread.behind <= self._slack):
            yield from self._held
        elif not self._parts:
            yield from in_blocks([self._sorted()], self._type)
        else:
            self._write_out()
            yield from in_blocks(_merged([_Part(p, self._type) for p in self._parts]), self._type)

    def _sorted(self) -> Batch:
        batch = concat_batches(self._held, self._type)
        self._held, self._bytes = [], 0
        if is_sorted(batch.time):
            return batch
        return batch.take(np.argsort(batch.time, kind="stable"))

    def _write_out(self) -> None:
        if not self._held:
            return
        # Mapped and then deleted, the file is gone when this process is, however that ends.
        with tempfile.TemporaryDirectory(prefix="millstream-sort-") as folder:
            path = Path(folder) / "part"
            write_rows(path, self._type, [self._sorted()])
            self._parts.append(Blocks(path))


def size_of(batch: Batch) -> int:
    columns: list[Any] = [c.values for c in batch.columns]
    return batch.time.nbytes + sum(int(values.nbytes) for values in columns)


class _Part:
    """Mutable: a sorted part, of which the first block of rows is at hand."""

    def __init__(self, blocks: Blocks, type_: QueueType) -> None:
        self._batches = blocks.batches(type_, 0, len(blocks))
        self.here = next(self._batches, None)

    @property
    def newest(self) -> int:
        """The largest time at hand."""
        assert self.here is not None
        return int(self.here.time[-1])

    def take_before(self, time: int) -> Batch | None:
        """The rows at hand that are older than a time at hand in some part."""
        if self.here is None:
            return None
        cut = int(np.searchsorted(self.here.time, time, side="left"))
        taken, self.here = self.here.slice(0, cut), self.here.slice(cut, len(self.here))
        return taken

    def take_at(self, time: int) -> Iterator[Batch]:
        """All rows of a time, the oldest that there is."""
        while self.here is not None:
            cut = int(np.searchsorted(self.here.time, time, side="right"))
            yield self.here.slice(0, cut)
            if cut < len(self.here):
                self.here = self.here.slice(cut, len(self.here))
                return
            self.here = next(self._batches, None)


def _merged(parts: list[_Part]) -> Iterator[Batch]:
    """The rows of all parts in order, those of one time in the order of the parts."""
    while live := [p for p in parts if p.here is not None]:
        # Up to here no part can have rows that are not at hand.
        bound = min(p.newest for p in live)
        taken = [b for p in live if (b := p.take_before(bound)) is not None and len(b)]
        if taken:
            whole = concat_batches(taken, taken[0].type)
            yield whole if len(taken) == 1 else whole.take(np.argsort(whole.time, kind="stable"))
        for part in live:
            yield from part.take_at(bound)
