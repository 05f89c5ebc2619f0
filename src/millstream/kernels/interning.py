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
from millstream.kernels.interning_text import TextPool, slots_for
from millstream.kernels.interning_words import Codec
from millstream.kernels.kernel import State
from millstream.kernels.loops import (
    FREE,
    LIVE,
    TOP,
    Table,
    frozen,
    grown,
    index_keys,
    intern_rows,
    padded,
    refill_slots,
    release_rows,
)
from millstream.plan.batch import Array, Vector


class IdTable:
    """Mutable. Ids for rows of int64 words of one width."""

    def __init__(self, width: int) -> None:
        self.table = Table(
            slots=np.zeros(slots_for(0), np.int64),
            keys=np.zeros((slots_for(0) // 2, width), np.int64),
            free=np.zeros(slots_for(0) // 2, np.int64),
            counters=np.zeros(3, np.int64),
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
    def keys(self) -> Array:
        """The words of each id, with room to spare; those of free ids are zero."""
        return self.table.keys

    def ids(self, words: Array) -> Array:
        ids = np.empty(len(words), np.int64)
        start = 0
        while True:
            start = intern_rows(words, start, ids, self.table)
            if start == len(words):
                return ids
            self._grow()

    def _grow(self) -> None:
        slots, keys, free, counters = self.table
        if 2 * (self.size + 1) > len(slots):
            slots = np.zeros(2 * len(slots), np.int64)
            refill_slots(self.table.slots, slots)
        keys, free = grown(keys, self.size + 1), grown(free, self.size + 1)
        self.table = Table(slots, keys, free, counters)

    def release(self, ids: Array) -> None:
        """Give back ids, each of them once; they may be given to other rows."""
        release_rows(frozen(ids), self.table)

    def is_live(self) -> Array:
        """Which of the ids below `bound` are in use."""
        live = np.ones(self.bound, np.bool_)
        live[self.table.free[: self.table.counters[FREE]]] = False
        return live

    def snapshot(self) -> State:
        return {
            "keys": self.keys[: self.bound].copy(),
            "free": self.table.free[: self.table.counters[FREE]].copy(),
        }

    def restore(self, state: State) -> None:
        keys = np.array(state["keys"], np.int64).reshape(-1, self.keys.shape[1])
        free = np.array(state["free"], np.int64)
        top = len(keys)
        counters = np.array([top, len(free), top - len(free)], np.int64)
        slots = np.zeros(slots_for(top), np.int64)
        self.table = Table(slots, keys, padded(free, top), counters)
        index_keys(keys, frozen(self.is_live()), slots)


class Interner:
    """Mutable. Ids for rows of values of the given types."""

    def __init__(self, types: Sequence[Type], pool: TextPool | None = None) -> None:
        self.pool = TextPool() if pool is None else pool
        self._owns_pool = pool is None
        self.codec = Codec(types, self.pool)
        self.table = IdTable(self.codec.width)

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
        return self.codec.vectors(self.table.keys[ids])

    def release(self, ids: Array) -> None:
        """Give back ids, each of them once; they may be given to other rows."""
        if len(ids):
            self.table.release(ids)
            if self._owns_pool and self.codec.text_columns and self.pool.wants_sweep():
                self.sweep()

    def sweep(self) -> None:
        """Free the texts that no live row uses."""
        marks = self.pool.marks()
        self.mark(marks)
        self.pool.sweep(marks)

    def mark(self, marks: Array) -> None:
        self.codec.mark(self.table.keys[: self.bound], marks)

    def snapshot(self) -> State:
        state = {f"table.{k}": v for k, v in self.table.snapshot().items()}
        if self._owns_pool:
            state |= {f"pool.{k}": v for k, v in self.pool.snapshot().items()}
        return state

    def restore(self, state: State) -> None:
        self.table.restore(part(state, "table."))
        if self._owns_pool:
            self.pool.restore(part(state, "pool."))


def part(state: State, prefix: str) -> State:
    """The entries of a state whose names have a prefix, without it."""
    return {k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)}


def named(prefix: str, state: State) -> State:
    """The opposite of `part`."""
    return {prefix + k: v for k, v in state.items()}
