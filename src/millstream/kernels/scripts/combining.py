"""Emits that are put together before they go to whoever keeps their table.

What was emitted often goes once, and says how often; what a table adds is added up; and what
cannot be in a table any more, because enough of lower rank was emitted in the same place, stays
behind. The table comes to the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np

from millstream.calculus.tables import (
    CHANCE,
    VALUE,
    WEIGHT,
    Tally,
    declared,
    from_queue,
    index_names,
    kind_of,
    to_queue,
)
from millstream.calculus.types import INTEGER, Type
from millstream.kernels.runtime.interning import Interner
from millstream.kernels.scripts.counting import CountedRows
from millstream.plan.batch import Array, Batch, Vector, vector_of
from millstream.values.records.types import FLOAT, INT, TIME, UINT, RecordType, resolved
from millstream.values.tables.amounts import amounts_of, exact_sums, pieces
from millstream.values.tables.kind import Table

#: What comes to more than so many of the emits that there were is not worth being put together.
_WORTH = 0.8
#: The kinds of tables that add what is emitted, and those that add its weights.
_SUMS, _WEIGHED = (
    ("sum", "mrcounter", "bootstrapsum"),
    ("top", "distinctsample", "inversehistogram"),
)
_WHOLE: tuple[RecordType, ...] = (INT, UINT, TIME)
#: Sums of weights of which no part is lost.
_MOST = 2**62


def combined(function: Tally, batch: Batch) -> Batch:
    """The emits of a batch, put together as far as that makes them fewer."""
    if len(batch) < 2:
        return batch
    fewer = _Combining(function, batch).made()
    return _Combining(function, fewer).of_low_ranks()


class _Combining:
    """The emits of one batch to a table."""

    def __init__(self, function: Tally, batch: Batch) -> None:
        self.batch = batch
        self.function = function
        self.table: Table = kind_of(function.table).table(declared(function.table))
        self.names = batch.schema.names
        self.instants = _instants(function, batch.time)

    def made(self) -> Batch:
        added = self.added()
        if added is not None and not self.is_constant(added):
            type_ = self.type_of(added)
            if type_ == FLOAT:
                return self.with_floats(added)
            if type_ in _WHOLE and (added == VALUE or self.adds_up(added)):
                return self.with_sums(added)
            if added == VALUE:
                return self.with_parts()
        # What chance decides on is hardly ever emitted twice.
        return self.batch if CHANCE in self.names else self.counted()

    def added(self) -> str | None:
        """The column that is added up, if there is one."""
        table = self.function.table
        if table.kind in _SUMS:
            return VALUE
        return WEIGHT if table.kind in _WEIGHED and table.weight is not None else None

    def type_of(self, name: str) -> RecordType:
        table = self.function.table
        type_ = table.value if name == VALUE else table.weight
        assert type_ is not None
        return resolved(type_)

    def column(self, name: str) -> Vector:
        return self.batch.columns[self.names.index(name)]

    def is_constant(self, name: str) -> bool:
        """Whether weights are one number: how often values came says all, and adds up better."""
        values = self.column(name).values
        return name == WEIGHT and not bool((values != values[0]).any())

    def adds_up(self, name: str) -> bool:
        """Whether no sum of these weights can be too large."""
        if self.type_of(name) != INT:
            return False
        values = self.column(name).values
        return max(abs(int(values.min())), abs(int(values.max()))) * len(values) < _MOST

    # --- what is told apart ---

    def keys(self, but: AbstractSet[str] = frozenset()) -> tuple[list[Type], list[Vector]]:
        """The columns of emits but some, and when they are told if that is not the same for all."""
        types, columns = [], []
        for field, column in zip(self.batch.schema, self.batch.columns, strict=True):
            if field.name not in but:
                types.append(field.type)
                columns.append(column)
        if self.instants is not None:
            types.append(INTEGER)
            columns.append(Vector(INTEGER, self.instants))
        return types, columns

    def groups(self, but: AbstractSet[str]) -> tuple[Array, tuple[Vector, ...]]:
        """Numbers of emits that agree in all but some columns, and what they agree in."""
        types, columns = self.keys(but)
        if not types:
            return np.zeros(len(self.batch), np.int64), ()
        interner = Interner(types)
        ids = interner.ids(columns, len(self.batch))
        return ids, interner.vectors(np.arange(interner.bound))

    def sent(
        self, columns: Sequence[Vector], count: int, *, but: str | None = None,
        added: Vector | None = None, times: Array | None = None,
    ) -> Batch:  # fmt: skip
        """So many emits instead; columns are those of `keys`, what was added apart."""
        others = [n for n in self.names if n != but]
        of_names = dict(zip(others, columns, strict=self.instants is None))
        if but is not None:
            assert added is not None
            of_names[but] = added
        batch = self.batch
        time, order = np.full(count, batch.time[-1]), None
        if self.instants is not None:
            time = self.when(np.asarray(columns[-1].values))
            order = np.argsort(time, kind="stable")
        rank = None if batch.rank is None else np.full(count, batch.rank.max())
        made = Batch(batch.type, time, tuple(of_names[n] for n in self.names), times, rank)
        return made if order is None else made.take(order)

    def when(self, instants: Array) -> Array:
        """A time that is told at each of the instants, and is not after the last one here."""
        length = self.function.window or self.function.every or 1
        times: Array = np.minimum(instants * length, self.batch.time[-1])
        return times

    # --- ways of putting together ---

    def counted(self) -> Batch:
        """Equal emits as one, with how often they were."""
        types, columns = self.keys()
        rows = CountedRows(types)
        rows.add(columns, len(self.batch), None)
        vectors, times = rows.sums()
        if len(times) > _WORTH * len(self.batch):
            return self.batch
        return self.sent(vectors, len(times), times=times)

    def with_sums(self, name: str) -> Batch:
        """Integers added up; they wrap, so they can be added in any order."""
        types, columns = self.keys({name})
        rows = CountedRows(types)
        rows.add(columns, len(self.batch), self.column(name).values)
        vectors, amounts = rows.sums()
        if len(amounts) > _WORTH * len(self.batch):
            return self.batch
        added = Vector(self.column(name).type, amounts)
        return self.sent(vectors, len(amounts), but=name, added=added)

    def with_floats(self, name: str) -> Batch:
        """Floats added up exactly: a sum is sent as the floats of which it is the sum."""
        ids, vectors = self.groups({name})
        count = int(ids.max()) + 1
        if count > _WORTH * len(self.batch):
            return self.batch
        sums = exact_sums(ids, np.asarray(self.column(name).values), count)
        return self.with_pieces(name, vectors, [pieces(total) for total in sums])

    def with_parts(self) -> Batch:
        """Tuples and maps of numbers, added up element by element."""
        type_ = self.function.table.value
        amounts = amounts_of(type_)
        assert amounts is not None
        ids, vectors = self.groups({VALUE})
        count = int(ids.max()) + 1
        if count > _WORTH * len(self.batch):
            return self.batch
        sums: list[Any] = [amounts.zero] * count
        read, write = from_queue(type_), to_queue(type_)
        for group, value in zip(ids.tolist(), self.column(VALUE).to_list(), strict=True):
            sums[group] = amounts.plus(sums[group], amounts.of(read(value)))
        made = [[write(piece) for piece in amounts.pieces(total)] for total in sums]
        return self.with_pieces(VALUE, vectors, made)

    def with_pieces(self, name: str, vectors: Sequence[Vector], made: list[list[Any]]) -> Batch:
        sizes = np.array(list(map(len, made)))
        if int(sizes.sum()) > _WORTH * len(self.batch):
            return self.batch
        again = np.repeat(np.arange(len(made)), sizes)
        added = vector_of(self.column(name).type, [piece for some in made for piece in some])
        return self.sent([v.take(again) for v in vectors], len(again), but=name, added=added)

    def of_low_ranks(self) -> Batch:
        """Without emits that cannot be in the table any more."""
        lowest, batch = self.table.lowest, self.batch
        if not lowest or len(batch) <= 2 * lowest:
            return batch
        groups, _ = self.groups({*self.names} - {*index_names(self.function.table)})
        if len(batch) <= 2 * lowest * (int(groups.max()) + 1):
            return batch
        ranks = self.ranks()
        if ranks is None:
            return batch
        stays = _are_low(groups, ranks, lowest)
        return batch if stays.all() else batch.take(np.flatnonzero(stays))

    def ranks(self) -> Array | None:
        function, batch = self.function, self.batch
        values = list(map(from_queue(function.table.value), self.column(VALUE).to_list()))
        chances = self.column(CHANCE).values.tolist() if CHANCE in self.names else [0] * len(batch)
        weights = None
        if function.table.weight is not None:
            column, type_ = self.column(WEIGHT), self.type_of(WEIGHT)
            if column.is_text or column.valid is not None:
                return None
            weights = column.values.view(np.uint64) if type_ == UINT else column.values
        return self.table.ranks(values, weights, chances)


def _are_low(groups: Array, ranks: Array, lowest: int) -> Array:
    """Which are among so many lowest different ranks of their group."""
    order = np.lexsort((ranks, groups))
    of, ranked = groups[order], ranks[order]
    is_first = np.diff(of, prepend=-1) != 0
    is_other = is_first.copy()
    is_other[1:] |= ranked[1:] != ranked[:-1]
    place = np.cumsum(is_other)
    starts = np.flatnonzero(is_first)
    sizes = np.diff(np.append(starts, len(order)))
    stays = np.empty(len(order), np.bool_)
    stays[order] = place - np.repeat(place[starts], sizes) < lowest
    return stays


def _instants(function: Tally, times: Array) -> Array | None:
    """Equal numbers for what is told together; None if all is."""
    length = function.window or function.every
    if length is None:
        return None
    instants: Array = times // length if function.window else -(-times // length)
    return instants
