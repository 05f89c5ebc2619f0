"""Rows kept with their keys: one place in memory for a key and all that is known of it."""

from __future__ import annotations

import numpy as np

from millstream.calculus.types import Schema
from millstream.kernels.runtime.interning import Interner
from millstream.kernels.runtime.interning_text import TextPool
from millstream.kernels.runtime.interning_words import Codec
from millstream.kernels.runtime.kernel import Composed
from millstream.plan.batch import Array, Batch, Vector


class KeyedRows(Composed):
    """Mutable: keys, each with `extra` words of the owner and the other columns of its row."""

    def __init__(
        self, schema: Schema, key: tuple[str, ...], names: tuple[str, ...], extra: int
    ) -> None:
        self.key = key
        self.rest = tuple(n for n in names if n not in key)
        self.codec = Codec([schema[n] for n in self.rest], TextPool())
        self.keys = Interner([schema[n] for n in key], extra + self.codec.width)
        #: Where in a record the words of the row begin.
        self.start = self.keys.codec.width + extra
        self.parts = {"keys": self.keys, "pool": self.codec.pool}

    @property
    def records(self) -> Array:
        return self.keys.table.records

    def ids(self, batch: Batch) -> Array:
        return self.keys.ids([batch.column(n) for n in self.key], len(batch))

    def words(self, batch: Batch) -> Array:
        return self.codec.words([batch.column(n) for n in self.rest], len(batch))

    def vectors(self, words: Array) -> dict[str, Vector]:
        """The columns of rows of which there are the words of the key, then of the others."""
        width = self.keys.codec.width
        of_key = dict(zip(self.key, self.keys.codec.vectors(words[:, :width]), strict=True))
        return of_key | dict(zip(self.rest, self.codec.vectors(words[:, width:]), strict=True))

    def sweep(self) -> None:
        """Free the texts that no row has."""
        if self.codec.wants_sweep():
            self.codec.sweep(np.ascontiguousarray(self.records[: self.keys.bound, self.start :]))
