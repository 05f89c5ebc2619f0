"""One side of a join or a lookup: its rows, each with the number of its key."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from millstream.calculus.types import INTEGER, Schema
from millstream.kernels.relational.keyed_lists import KEY_ROWS, ROW_EXTRA, ROWS, Side
from millstream.kernels.runtime.hashing import dead_ids, frozen
from millstream.kernels.runtime.interning import Interner
from millstream.plan.batch import Array, Batch, Vector


def null_keys(batch: Batch, names: Sequence[str]) -> Array | None:
    """Which rows have a null among their keys, which equals nothing; None if no row has."""
    keys = [batch.column(n) for n in names]
    nulls = [~k.mask() for k in keys if k.may_have_nulls]
    if not nulls or not np.any(nulls):
        return None
    has_null: Array = np.logical_or.reduce(nulls)
    return has_null


def with_keys(batch: Batch, names: Sequence[str], *, nulls_match: bool) -> Batch:
    """The rows that can have partners: null has none, unless nulls match."""
    nulls = None if nulls_match else null_keys(batch, names)
    return batch if nulls is None else batch.take(np.flatnonzero(~nulls))


def release_keys(keys: Interner, used: Array) -> None:
    """Forget those keys among the used ones that have no rows any more."""
    keys.release(dead_ids(used, keys.table.records, keys.codec.width + KEY_ROWS))


class JoinSide:
    """Mutable. The rows of one side: the number of the key, then the other columns.

    Of these the columns `first` come first, even if they are among the keys. With each row
    there is room for `extra` words.
    """

    def __init__(
        self,
        number: int,
        schema: Schema,
        keys: tuple[str, ...],
        *,
        nulls_match: bool,
        first: tuple[str, ...] = (),
        extra: int = ROW_EXTRA,
    ) -> None:
        self.number = number
        self.keys = keys
        self.nulls_match = nulls_match
        self.rest = (*first, *(n for n in schema.names if n not in (*keys, *first)))
        self.rows = Interner((INTEGER, *(schema[n] for n in self.rest)), extra)

    def row_numbers(self, batch: Batch, interner: Interner) -> Array:
        numbers = Vector(INTEGER, interner.ids([batch.column(n) for n in self.keys], len(batch)))
        rest = [batch.column(n) for n in self.rest]
        return self.rows.ids([numbers, *rest], len(batch))

    def changes(self, batch: Batch, interner: Interner) -> Side:
        """What the loop needs to know of the changes; those with no partner are left out."""
        batch = with_keys(batch, self.keys, nulls_match=self.nulls_match)
        rows = self.row_numbers(batch, interner)
        assert batch.weight is not None
        return Side(
            self.number,
            frozen(batch.time),
            rows,
            frozen(batch.weight),
            np.empty(len(batch), np.int64),
            self.rows.table.records,
            self.rows.codec.width,
        )

    def columns(self, names: Sequence[str], rows: Array, interner: Interner) -> list[Vector]:
        numbers, *rest = self.rows.vectors(rows)
        by_name = dict(zip(self.rest, rest, strict=True))
        if any(name in self.keys for name in names):
            by_name |= zip(self.keys, interner.vectors(numbers.values), strict=True)
        return [by_name[name] for name in names]

    def release(self, used: Array) -> None:
        column = self.rows.codec.width + ROWS
        self.rows.release(dead_ids(used, self.rows.table.records, column))
