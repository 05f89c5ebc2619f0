"""Dense ids for rows of values, so that state can live in plain arrays.

    keys = Interner((TEXT, INTEGER))
    ids = keys.ids(vectors, count)      # equal rows have equal ids, below keys.bound
    keys.vectors(ids)                   # the rows again
    keys.release(dead)                  # these ids will be given to other rows

Null equals null, NaN equals NaN and -0.0 equals 0.0.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from millstream.calculus.types import Type
from millstream.kernels.runtime.hashing import (
    FREE,
    LIVE,
    TOP,
    HashTable,
    frozen,
    gather_columns,
    grown,
    hash_rows,
    index_keys,
    intern_rows,
    padded,
    refill_slots,
    release_rows,
)
from millstream.kernels.runtime.interning_text import TextPool, slots_for
from millstream.kernels.runtime.interning_words import Codec
from millstream.kernels.runtime.kernel import Composed, State
from millstream.plan.batch import Array, Vector


def _whole_lines(words: int) -> int:
    """The width of records that do not needlessly straddle cache lines of eight words."""
    return -(-words // 8) * 8 if words > 4 else 1 << (words - 1).bit_length()


class IdTable:
    """Mutable. Ids for rows of int64 words of one width.

    With each id the owner may keep `extra` words of its own; they start as zero, and are
    zero again when the id is released.
    """

    def __init__(self, width: int, extra: int = 0) -> None:
        self.width = width
        self.table = HashTable(
            slots=np.zeros(slots_for(0), np.int64),
            records=padded(np.zeros((0, _whole_lines(width + extra)), np.int64), slots_for(0) // 2),
            free=np.zeros(slots_for(0) // 2, np.int64),
            counters=np.array([0, 0, 0, width], np.int64),
        )

    @property
    def size(self) -> int:
        """How many ids are in use."""
        return int(self.table.counters[LIVE])

    @property
    def bound(self) -> int:
        """All ids ever given are below this."""
        return int(self.table.counters[TOP])

    @property
    def records(self) -> Array:
        """The words of each id, with room to spare; those of free ids are zero.

        It is another array after new ids have been given.
        """
        return self.table.records

    def ids(self, words: Array) -> Array:
        ids, hashes = np.empty(len(words), np.int64), np.empty(len(words), np.int64)
        hash_rows(words, hashes)
        start, size = 0, self.size
        while True:
            start = intern_rows(words, hashes, start, ids, self.table)
            if start == len(words):
                return ids
            # As many of the rows to come will be new as of those that have come.
            fresh = self.size - size
            self._grow(self.size + 1 + fresh * (len(words) - start) // max(start, 1))

    def _grow(self, wanted: int) -> None:
        """Room for so many ids, which may be a guess, and for twice as many as there are."""
        slots, records, free, counters = self.table
        if 2 * (self.size + 1) > len(slots):
            slots = np.zeros(max(2 * len(slots), slots_for(wanted)), np.int64)
            refill_slots(self.table.slots, slots)
        records, free = grown(records, wanted), grown(free, wanted)
        self.table = HashTable(slots, records, free, counters)

    def release(self, ids: Array) -> None:
        """Give back ids, each of them once; they may be given to other rows."""
        release_rows(frozen(ids), self.table)

    def clear(self) -> None:
        """Forget all ids, and keep the room for as many."""
        self.table.records[: self.bound] = 0
        self.table.slots[:] = 0
        self.table.counters[[TOP, FREE, LIVE]] = 0

    def is_live(self) -> Array:
        """Which of the ids below `bound` are in use."""
        live = np.ones(self.bound, np.bool_)
        live[self.table.free[: self.table.counters[FREE]]] = False
        return live

    def snapshot(self) -> State:
        return {
            "records": self.records[: self.bound].copy(),
            "free": self.table.free[: self.table.counters[FREE]].copy(),
        }

    def restore(self, state: State) -> None:
        records = np.array(state["records"], np.int64).reshape(-1, self.records.shape[1])
        free = np.array(state["free"], np.int64)
        top = len(records)
        counters = np.array([top, len(free), top - len(free), self.width], np.int64)
        slots = np.zeros(slots_for(top), np.int64)
        self.table = HashTable(slots, padded(records, top), padded(free, top), counters)
        index_keys(self.table, frozen(self.is_live()))


class Interner(Composed):
    """Mutable. Ids for rows of values of the given types; `extra` as in `IdTable`."""

    def __init__(self, types: Sequence[Type], extra: int = 0) -> None:
        self.pool = TextPool()
        self.codec = Codec(types, self.pool)
        self.table = IdTable(self.codec.width, extra)
        self.parts = {"table": self.table, "pool": self.pool}

    @property
    def size(self) -> int:
        """How many ids are in use."""
        return self.table.size

    @property
    def bound(self) -> int:
        """All ids ever given are below this."""
        return self.table.bound

    def ids(self, vectors: Sequence[Vector], count: int) -> Array:
        """The ids of rows, given as columns of `count` values; new rows get new ids."""
        return self.table.ids(self.codec.words(vectors, count))

    def vectors(self, ids: Array) -> tuple[Vector, ...]:
        codec, records = self.codec, self.table.records
        columns = np.empty((codec.columns, len(ids)), np.int64)
        nulls = np.zeros(codec.width - codec.columns, np.int64)
        gather_columns(records, frozen(ids), columns, nulls)
        masks = [records[:, codec.columns + n].take(ids) if bits else None
                 for n, bits in enumerate(nulls.tolist())]  # fmt: skip
        return codec.vectors_of(tuple(columns), masks)

    def release(self, ids: Array) -> None:
        """Give back ids, each of them once; they may be given to other rows."""
        if len(ids):
            self.table.release(ids)
            if self.codec.wants_sweep():
                self.codec.sweep(self.table.records[: self.bound])
