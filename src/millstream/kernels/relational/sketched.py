"""What an aggregate counts by hidden keys: how often each group has each of them.

The rows of an instant are counted, and then what the groups that they touch come to is told from
all keys that these have; each row brings it to the loop of the aggregate as something given.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from millstream.calculus.aggregation import Aggregation
from millstream.calculus.types import Type
from millstream.compiled import tight
from millstream.kernels.relational.hidden_keys import CountedKeys, HiddenKeys, hidden_keys_of
from millstream.kernels.runtime.hashing import dead_ids, frozen, grown
from millstream.kernels.runtime.interning import IdTable
from millstream.kernels.runtime.kernel import Composed, State
from millstream.plan.batch import Array, Batch

#: What is kept with a group and a key: how many rows have it, and its neighbours in the list of
#: the group (number plus one, or zero).
_GROUP, _KEY, _ROWS, _NEXT, _PREVIOUS = range(5)
_WIDTH, _EXTRA = 2, 3


@tight
def count_keys(ids: Array, weights: Array, records: Array, firsts: Array) -> None:
    """Count rows; keys that have some are in the list of their group."""
    for i in range(ids.size):
        node = ids[i]
        before = records[node, _ROWS]
        records[node, _ROWS] += weights[i]
        group = records[node, _GROUP]
        if before == 0 and weights[i] != 0:
            following = firsts[group]
            records[node, _NEXT], records[node, _PREVIOUS] = following, 0
            if following != 0:
                records[following - 1, _PREVIOUS] = node + 1
            firsts[group] = node + 1
        elif before != 0 and records[node, _ROWS] == 0:
            following, previous = records[node, _NEXT], records[node, _PREVIOUS]
            if following != 0:
                records[following - 1, _PREVIOUS] = previous
            if previous != 0:
                records[previous - 1, _NEXT] = following
            else:
                firsts[group] = following


@tight
def list_keys(groups: Array, records: Array, firsts: Array, out: Array) -> int:
    """Put (place of the group, key, rows) of all keys of groups into columns; how many there are.

    If there is no room for all, only the number is told.
    """
    size = 0
    for place in range(groups.size):
        link = firsts[groups[place]]
        while link != 0:
            if size < out.shape[1]:
                out[0, size] = place
                out[1, size] = records[link - 1, _KEY]
                out[2, size] = records[link - 1, _ROWS]
            size += 1
            link = records[link - 1, _NEXT]
    return size


class _Sketch(HiddenKeys):
    """Mutable: the keys of a column, and how often each group has them."""

    beside = 1

    def __init__(self, function: str, column: str, type_: Type) -> None:
        super().__init__(function, column, type_)
        self.table = IdTable(_WIDTH, _EXTRA)
        self.firsts = np.zeros(0, np.int64)
        self.parts = {**self.parts, "table": self.table}
        self._room = np.empty((3, 64), np.int64)

    def give(self, batch: Batch, groups: Array, words: Array, cells: Array) -> None:
        """Count the rows of a batch, and put what each makes of its group into its words."""
        assert batch.weight is not None
        keys, is_there = self.keys(batch)
        rows = np.flatnonzero(is_there)
        ids = self.table.ids(np.column_stack([groups[rows], keys[rows]]))
        self.firsts = grown(self.firsts, int(groups.max()) + 1)
        time, weight = batch.time[rows], frozen(batch.weight[rows])
        edges = [0, *(np.flatnonzero(np.diff(time)) + 1).tolist(), len(rows)]
        for a, b in pairwise(edges):
            count_keys(frozen(ids[a:b]), frozen(weight[a:b]), self.table.records, self.firsts)
            touched, places = np.unique(groups[rows[a:b]], return_inverse=True)
            told = self._told(touched, len(cells))
            for n, (place, _) in enumerate(self.wanted):
                words[rows[a:b], cells[place]] = told[places, n]
        self._forget(ids, keys[rows], weight)

    def _told(self, groups: Array, outputs: int) -> Array:
        """What groups come to, a column for each that is wanted."""
        while True:
            size = list_keys(frozen(groups), self.table.records, self.firsts, self._room)
            if size <= self._room.shape[1]:
                break
            self._room = np.empty((3, 2 * size), np.int64)
        words = np.zeros((len(groups), outputs), np.int64)
        self.tell(CountedKeys(*self._room[:, :size]), words, np.ones(words.shape, np.bool_))
        return words[:, [place for place, _ in self.wanted]]

    def _forget(self, ids: Array, keys: Array, weight: Array) -> None:
        """Give back what no row has any longer."""
        self.table.release(dead_ids(ids, self.table.records, _ROWS))
        if self.values is not None:
            records, uses = self.values.table.records, self.values.codec.width
            np.add.at(records[:, uses], keys, weight)
            self.values.release(dead_ids(keys, records, uses))

    def snapshot(self) -> State:
        return super().snapshot() | {"firsts": np.trim_zeros(self.firsts, "b")}

    def restore(self, state: State) -> None:
        super().restore(state)
        self.firsts = np.array(state["firsts"], np.int64)


class Sketches(Composed):
    """Mutable: all that an aggregate counts by hidden keys."""

    def __init__(self, aggregations: Sequence[Aggregation], cells: Sequence[int]) -> None:
        """`cells` has for each aggregation the number of its cell."""
        self.sketches = hidden_keys_of(aggregations, _Sketch)
        self.cells = np.array(cells, np.int64)
        self.parts = {str(n): sketch for n, sketch in enumerate(self.sketches)}

    def give(self, batch: Batch, groups: Array, words: Array) -> None:
        for sketch in self.sketches:
            sketch.give(batch, groups, words, self.cells)
