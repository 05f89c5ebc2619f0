"""What the kernels of `Ordered` share: rows with numbers, in groups, as they are ordered."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from millstream.calculus.functions import Ordered
from millstream.calculus.types import QueueType
from millstream.kernels.relational.pieces import Piecewise
from millstream.kernels.runtime.consolidate import order_of
from millstream.kernels.runtime.hashing import dead_ids, frozen
from millstream.kernels.runtime.interning import Interner
from millstream.kernels.runtime.kernel import Round, State
from millstream.kernels.runtime.rowstore import restored_batch, stored_batch
from millstream.kernels.windows.skip_list import Lists
from millstream.plan.batch import Array, Batch, Vector

#: How often a row is there stands first behind its words, and behind those of a group what is
#: zero when it has no rows.
COUNT = 0


class Changed(NamedTuple):
    """Changes: which row of which group comes or goes how often."""

    time: Array
    rows: Array
    groups: Array
    weight: Array


class RowsInOrder(Piecewise):
    """Mutable: the rows of all groups, as the base of kernels that keep them in order."""

    rests = True
    #: How many words are kept with each row and with each group; of a row those before its links.
    row_words = 0
    group_words = 0
    links = 0
    #: How many words are needed to look for a row.
    path_words = 0

    def __init__(
        self, function: Ordered, input_types: tuple[QueueType, ...], output_count: int
    ) -> None:
        (self.given,) = input_types
        (self.type,) = function.output_types(input_types, output_count)
        self.function = function
        schema = self.given.schema
        # What rows are ordered by comes first; the rest decides between equals.
        self.columns = (*function.on, *(n for n in schema.names if n not in function.on))
        self.signs = np.array(
            [-1 if n in function.descending else 1 for n in self.columns], np.int64
        )
        self.forget()

    def forget(self) -> None:
        schema = self.given.schema
        self.rows = Interner([schema[n] for n in self.columns], self.row_words)
        self.groups = Interner([schema[n] for n in self.function.by], self.group_words)

    def changes(self, batch: Batch) -> Changed:
        assert batch.weight is not None
        rows = self.rows.ids([batch.column(n) for n in self.columns], len(batch))
        groups = self.groups.ids([batch.column(n) for n in self.function.by], len(batch))
        return Changed(frozen(batch.time), rows, groups, frozen(batch.weight))

    def lists(self) -> Lists:
        """The lists of all groups; whose heads they are is for the loop to say."""
        is_text, texts = order_of(self.rows.codec)
        return Lists(
            self.rows.table.records, np.zeros(self.path_words, np.int64),
            self.rows.codec.width + self.links, self.signs, is_text, texts,
            np.empty(self.path_words, np.int64), self.rows.codec.columns,
        )  # fmt: skip

    def vectors(self, rows: Array) -> dict[str, Vector]:
        return dict(zip(self.columns, self.rows.vectors(rows), strict=True))

    def release(self, changes: Changed) -> None:
        """Give back the rows that are gone, and the groups that have none."""
        for interner, used in ((self.rows, changes.rows), (self.groups, changes.groups)):
            column = interner.codec.width + COUNT
            interner.release(dead_ids(used, interner.table.records, column))

    def snapshot(self) -> State:
        records = self.rows.table.records[: self.rows.table.bound]
        counts = np.maximum(records[:, self.rows.codec.width + COUNT], 0)
        ids = np.repeat(np.arange(len(records)), counts)
        by_name = self.vectors(ids)
        columns = tuple(by_name[n] for n in self.given.schema.names)
        return stored_batch(Batch(QueueType(self.given.schema), np.zeros_like(ids), columns))

    def restore(self, state: State) -> None:
        """What was told follows from the rows: it is told again, to nobody."""
        self.forget()
        held = restored_batch(QueueType(self.given.schema), state)
        if len(held):
            weight = np.ones(len(held), np.int64)
            rows = Batch(self.given, held.time, held.columns, weight)
            for _ in self.pieces((rows,), Round(0, np.zeros(0, np.int64))):
                pass
