"""Dimensions as numbers: of every member, and of what it becomes at a coarser level.

A member is a tuple of levels, from its own to the coarsest: what is stored at a level can be
put together by any coarser one, and a child with two parents is two members. What comes out
is grouped by the value of a level alone, its *plain* number.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from millstream.calculus.types import Schema
from millstream.kernels.runtime.consolidate import order_of
from millstream.kernels.runtime.interning import Interner
from millstream.kernels.runtime.kernel import Composed, State
from millstream.kernels.runtime.row_order import sort_rows
from millstream.plan.batch import Array, Batch, Vector

#: How many rows there must be for a member to be worth the search for distinct ones.
_FEW = 4


class Hierarchy(Composed):
    """Mutable: the members of a dimension, at each of its levels. Numbers are never given back."""

    def __init__(self, levels: Sequence[str], schema: Schema) -> None:
        self.names = tuple(levels)
        types = [schema[name] for name in levels]
        self.members = [Interner(types[level:]) for level in range(len(types))]
        # Of the coarsest level a member is its value.
        self.values = [Interner([t]) for t in types[:-1]] + self.members[-1:]
        self.parts = {f"members.{n}": one for n, one in enumerate(self.members)} | {
            f"values.{n}": one for n, one in enumerate(self.values[:-1])
        }
        self._maps: dict[tuple[int, int, bool], Array] = {}
        self._ranks: dict[int, Array] = {}

    def finest(self, batch: Batch) -> Array:
        """The members that rows have."""
        members = self.members[0]
        vectors = [batch.column(n) for n in self.names]
        is_text = len(vectors) == 1 and vectors[0].is_text
        if is_text and len(batch) > _FEW * max(members.bound, 1):
            # Few texts that come often: each is looked for once.
            texts = vectors[0].values
            if not pa.types.is_dictionary(texts.type) and not texts.null_count:
                encoded = texts.dictionary_encode()
                distinct = Vector(vectors[0].type, encoded.dictionary)
                numbers = members.ids([distinct], len(distinct))
                taken: Array = np.take(numbers, encoded.indices.to_numpy())
                return taken
        return members.ids(vectors, len(batch))

    def coarser(self, numbers: Array, level: int, wanted: int, *, is_plain: bool) -> Array:
        """What members of a level are at another one, or what their values are there."""
        if level == wanted and not is_plain:
            return numbers
        if is_plain and level == wanted == len(self.names) - 1:
            return numbers
        return self._map(level, wanted, is_plain=is_plain)[numbers]

    def _map(self, level: int, wanted: int, *, is_plain: bool) -> Array:
        """From the numbers of a level to those of another, for all that there are."""
        key = (level, wanted, is_plain)
        known = self._maps.get(key, np.zeros(0, np.int64))
        bound = self.members[level].bound
        if len(known) < bound:
            new = np.arange(len(known), bound)
            vectors = self.members[level].vectors(new)[wanted - level :]
            target = self.values[wanted] if is_plain else self.members[wanted]
            ids = target.ids(vectors[:1] if is_plain else vectors, len(new))
            known = self._maps[key] = np.concatenate([known, ids])
        return known

    def plain_numbers(self, level: int, wanted: int) -> Array:
        """For all members of a level, the numbers of their values at it or a coarser one.

        The array is never changed: later there is another one.
        """
        if level == wanted == len(self.names) - 1:
            return np.arange(self.members[level].bound)
        return self._map(level, wanted, is_plain=True)

    def vector(self, level: int, numbers: Array) -> Vector:
        """The values of plain numbers of a level."""
        return self.values[level].vectors(numbers)[0]

    def ranks(self, level: int) -> Array:
        """The places of plain numbers of a level in the order of their values."""
        values = self.values[level]
        known = self._ranks.get(level)
        if known is None or len(known) < values.bound:
            count = values.bound
            order = np.arange(count)
            spare = np.empty(count, np.int64)
            sort_rows(order, spare, values.table.records, order_of(values.codec))
            known = np.empty(count, np.int64)
            known[order] = np.arange(count)
            self._ranks[level] = known
        return known

    def restore(self, state: State) -> None:
        super().restore(state)
        self._maps.clear()
        self._ranks.clear()
