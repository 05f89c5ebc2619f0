"""Tables, kept up to date batch by batch.

Emits that agree in everything are counted first, on columns, and integers are added there; only one
of each goes to the accumulator of its index, with how often it was there, and late.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from millstream.calculus.tables import Contents, Tally
from millstream.calculus.types import QueueType
from millstream.kernels.runtime.hashing import padded
from millstream.kernels.runtime.interning import Interner
from millstream.kernels.runtime.kernel import Round, State, Termless
from millstream.plan.batch import Array, Batch, Vector, batch_of, concat_batches, vector_of
from millstream.values.records.types import INT

#: The beginning of the window, if there are windows, and the indexes.
_Key = tuple[int | None, tuple[Any, ...]]
#: So many different emits are counted on columns before accumulators are asked, and so many
#: indexes have their sums there.
_MOST, _MOST_SUMS = 1 << 18, 1 << 21


class _Counted:
    """Mutable: emits that are told at one time, counted or added, before accumulators see them."""

    def __init__(self, schema: Any, width: int, *, adds: bool) -> None:
        self.types = [f.type for f in schema][:width]
        self.width, self.adds = width, adds
        self.clear()

    def clear(self) -> None:
        self.interner = Interner(self.types)
        self.amounts = np.zeros(1, np.int64)

    @property
    def size(self) -> int:
        return self.interner.bound if self.width else 1

    def add(self, batch: Batch) -> None:
        ids = np.zeros(len(batch), np.int64)
        if self.width:
            ids = self.interner.ids(batch.columns[: self.width], len(batch))
            self.amounts = _at_least(self.amounts, self.interner.bound)
        if self.adds:
            # Integers wrap, so they can be added in any order.
            np.add.at(self.amounts, ids, batch.columns[self.width].values)
        else:
            counts = np.bincount(ids)
            self.amounts[: len(counts)] += counts

    def rows(self) -> Iterator[tuple[tuple[Any, ...], int]]:
        """Each emit once, with how often it was there; or indexes with a sum."""
        if not self.width:
            return iter([((), int(self.amounts[0]))])
        vectors = self.interner.vectors(np.arange(self.interner.bound))
        columns = [vector.to_list() for vector in vectors]
        return zip(zip(*columns, strict=True), self.amounts.tolist(), strict=False)

    def sums(self) -> tuple[tuple[Vector, ...], Array]:
        """The indexes as columns, and what was added under each."""
        if not self.width:
            return (), self.amounts[:1]
        ids = np.arange(self.interner.bound)
        return self.interner.vectors(ids), self.amounts[: len(ids)]


def _at_least(amounts: Array, count: int) -> Array:
    return amounts if len(amounts) >= count else padded(amounts, 2 * count)


class TallyKernel(Termless):
    """Mutable: accumulators of what has been told, and of what will be, by the time it is told."""

    def __init__(self, function: Tally, inputs: tuple[QueueType, ...], output_count: int) -> None:
        self.function = function
        self.contents = Contents(function)
        (self.type,) = function.output_types(inputs, output_count)
        self.schema = inputs[0].schema
        self.keeps = function.every is not None
        table = function.table
        self.adds = table.kind in ("sum", "mrcounter") and table.value == INT
        #: Whether sums are told from the columns they were added on.
        self.is_direct = self.adds and not self.keeps and self.contents.is_plain()
        self.counted: dict[tuple[int, int | None], _Counted] = {}
        self.waiting: dict[int, dict[_Key, Any]] = {}
        self.held: dict[_Key, Any] = {}
        self.told: dict[_Key, list[tuple[Any, ...]]] = {}

    def process(self, inputs: tuple[Batch, ...], round_: Round) -> tuple[Batch, ...]:
        for instant, window, part in self._by_instant(inputs[0]):
            self._count(instant, window, part)
        direct: list[Batch] = []
        for place in [place for place in self.counted if place[0] <= round_.mark]:
            if self.is_direct and place[0] not in self.waiting:
                direct.append(self._summed(place))
            else:
                self._settle(place)
        times: list[int] = []
        rows: list[tuple[Any, ...]] = []
        weights: list[int] = []
        for instant in sorted(instant for instant in self.waiting if instant <= round_.mark):
            for row, weight in self._tell(self.waiting.pop(instant)):
                times.append(instant)
                rows.append(row)
                weights.append(weight)
        if rows:
            direct.append(batch_of(self.type, times, rows, weights))
        return (concat_batches(direct, self.type),)

    def _summed(self, place: tuple[int, int | None]) -> Batch:
        """The rows of sums that no accumulator has seen."""
        instant, window = place
        vectors, amounts = self.counted.pop(place).sums()
        count = len(amounts)
        fields = list(self.type.schema)
        columns = [] if window is None else [Vector(fields[0].type, np.full(count, window))]
        columns += vectors
        ones = np.ones(count, np.int64)
        if self.function.lines:
            columns.append(Vector(fields[len(columns)].type, ones))
        columns.append(Vector(fields[len(columns)].type, amounts))
        if self.function.lines:
            keys = [vector.to_list() for vector in vectors]
            lines = self.contents.lines(keys, amounts.tolist(), window)
            columns.append(vector_of(fields[-1].type, lines))
        return Batch(self.type, np.full(count, instant), tuple(columns), ones)

    def _tell(self, gathered: dict[_Key, Any]) -> list[tuple[tuple[Any, ...], int]]:
        changes: list[tuple[tuple[Any, ...], int]] = []
        table = self.contents.table
        for key, acc in gathered.items():
            now = acc
            if self.keeps:
                now = table.merge(self.held[key], acc) if key in self.held else acc
                self.held[key] = now
            window, indexes = key
            rows = self.contents.rows(indexes, now, window)
            before = self.told.get(key, [])
            if rows == before:
                continue
            changes += [(row, -1) for row in before]
            changes += [(row, 1) for row in rows]
            if self.keeps:
                self.told[key] = rows
        return changes

    # --- gathering ---

    def _by_instant(self, batch: Batch) -> list[tuple[int, int | None, Batch]]:
        """The parts of a batch that are told at the same time."""
        function = self.function
        if not len(batch):
            return []
        if function.window is None and function.every is None:
            return [(function.told_at(0), None, batch)]
        length = function.window or function.every or 1
        starts = batch.time // length if function.window else -(-batch.time // length)
        parts = []
        for start in np.unique(starts).tolist():
            part = batch.take(np.flatnonzero(starts == start))
            window = start * length if function.window else None
            parts.append((function.told_at(int(part.time[0])), window, part))
        return parts

    def _count(self, instant: int, window: int | None, batch: Batch) -> None:
        place = (instant, window)
        if place not in self.counted:
            width = self.contents.at if self.adds else len(self.schema)
            self.counted[place] = _Counted(self.schema, width, adds=self.adds)
        counted = self.counted[place]
        counted.add(batch)
        if counted.size > (_MOST_SUMS if self.is_direct else _MOST):
            self._into_accumulators(place)

    def _settle(self, place: tuple[int, int | None]) -> None:
        self._into_accumulators(place)
        del self.counted[place]

    def _into_accumulators(self, place: tuple[int, int | None]) -> None:
        instant, window = place
        accs = self.waiting.setdefault(instant, {})
        contents, at = self.contents, self.contents.at
        if not at and not self.adds:
            key: _Key = (window, ())
            acc = accs[key] if key in accs else contents.table.empty()
            vectors, counts = self.counted[place].sums()
            accs[key] = contents.add_all(acc, [v.to_list() for v in vectors], counts.tolist())
            self.counted[place].clear()
            return
        for row, amount in self.counted[place].rows():
            key = (window, row[:at])
            acc = accs[key] if key in accs else contents.table.empty()
            if self.adds:
                accs[key] = contents.table.add(acc, amount)
            else:
                accs[key] = contents.add_times(acc, row, amount)
        self.counted[place].clear()

    # --- state ---

    def snapshot(self) -> State:
        for place in self.counted:
            self._into_accumulators(place)
        encode = self.contents.table.encode
        return {
            "waiting": tuple(
                (instant, tuple((key, encode(acc)) for key, acc in accs.items()))
                for instant, accs in self.waiting.items()
            ),
            "held": tuple((key, encode(acc)) for key, acc in self.held.items()),
            "told": tuple((key, tuple(rows)) for key, rows in self.told.items()),
        }

    def restore(self, state: State) -> None:
        decode = self.contents.table.decode
        self.counted = {}
        self.waiting = {
            instant: {_key(key): decode(raw) for key, raw in accs}
            for instant, accs in state["waiting"]
        }
        self.held = {_key(key): decode(raw) for key, raw in state["held"]}
        self.told = {_key(key): [tuple(row) for row in rows] for key, rows in state["told"]}


def _key(key: Any) -> _Key:
    window, indexes = key
    return window, tuple(indexes)
