"""Tables, kept up to date batch by batch.

Emits that agree in everything are counted first, on columns, and integers are added there; only one
of each goes to the accumulator of its index, with how often it was there, and late.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.calculus.tables import END_OF_TIME, Contents, Tally
from millstream.calculus.types import Kind, QueueType, Type
from millstream.kernels.runtime.interning_text import text_array, text_column
from millstream.kernels.runtime.kernel import Round, State, Termless
from millstream.kernels.scripts.counting import CountedRows
from millstream.plan.batch import (
    Array,
    Batch,
    Vector,
    batch_of,
    concat_batches,
    empty_batch,
    vector_of,
)
from millstream.values.records.types import INT, STRING, resolved

#: The beginning of the window, if there are windows, and the indexes.
_Key = tuple[int | None, tuple[Any, ...]]
#: So many different emits are counted on columns before accumulators are asked, and so many
#: indexes have their sums there.
_MOST, _MOST_SUMS = 1 << 18, 1 << 21


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
        self.counted: dict[tuple[int, int | None], CountedRows] = {}
        self.waiting: dict[int, dict[_Key, Any]] = {}
        self.held: dict[_Key, Any] = {}
        self.told: dict[_Key, list[tuple[Any, ...]]] = {}
        #: The end has come: what is counted and what waits has been told, and is kept for another
        #: run that may go on from here.
        self.is_over = False

    def process(self, inputs: tuple[Batch, ...], round_: Round) -> tuple[Batch, ...]:
        if self.is_over and not len(inputs[0]):
            return (empty_batch(self.type),)
        if self.is_over:
            self._go_on()
        for instant, window, part in self._by_instant(inputs[0]):
            self._count(instant, window, part)
        self.is_over = round_.mark >= END_OF_TIME
        direct: list[Batch] = []
        for place in [place for place in self.counted if place[0] <= round_.mark]:
            batch = None
            if place[0] not in self.waiting and not self.keeps:
                batch = self._from_columns(place)
            if batch is None:
                self._settle(place)
            else:
                direct.append(batch)
        times: list[int] = []
        rows: list[tuple[Any, ...]] = []
        weights: list[int] = []
        for instant in sorted(instant for instant in self.waiting if instant <= round_.mark):
            for row, weight in self._tell(self.waiting[instant]):
                times.append(instant)
                rows.append(row)
                weights.append(weight)
            if self.keeps or not self.is_over:
                del self.waiting[instant]
        if rows:
            direct.append(batch_of(self.type, times, rows, weights))
        return (concat_batches(direct, self.type),)

    def _go_on(self) -> None:
        """More has come after the end: from now on changes are told."""
        for place in list(self.counted):
            self._settle(place)
        for accs in self.waiting.values():
            for (window, indexes), acc in accs.items():
                self.held[window, indexes] = acc
                self.told[window, indexes] = self.contents.rows(indexes, acc, window)
        self.waiting = {}
        self.keeps = True

    def _from_columns(self, place: tuple[int, int | None]) -> Batch | None:
        """What has been counted for one instant, if no accumulator needs to see it."""
        if self.is_direct:
            batch = self._summed(place)
        elif (rows := self._at_once(place)) is not None:
            batch = batch_of(self.type, [place[0]] * len(rows), rows, [1] * len(rows))
        else:
            return None
        if not self.is_over:
            del self.counted[place]
        return batch

    def _summed(self, place: tuple[int, int | None]) -> Batch:
        """The rows of sums that no accumulator has seen."""
        instant, window = place
        vectors, amounts = self.counted[place].sums()
        count = len(amounts)
        fields = list(self.type.schema)
        columns = [] if window is None else [Vector(fields[0].type, np.full(count, window))]
        columns += vectors
        ones = np.ones(count, np.int64)
        if self.function.lines:
            columns.append(Vector(fields[len(columns)].type, ones))
        columns.append(Vector(fields[len(columns)].type, amounts))
        if self.function.lines:
            columns.append(self._lines(vectors, amounts, window, fields[-1].type))
        return Batch(self.type, np.full(count, instant), tuple(columns), ones)

    def _at_once(self, place: tuple[int, int | None]) -> list[tuple[Any, ...]] | None:
        """The rows of a table without indexes, if its kind can tell them from columns."""
        contents = self.contents
        if contents.at or self.adds or contents.chance is not None:
            return None
        (vector, *heavy), times = self.counted[place].sums()
        if contents.weight is not None and heavy[0].valid is not None:
            return None

        def values(numbers: Array) -> list[Any]:
            return list(map(contents.value, vector.take(numbers).to_list()))

        weights = heavy[0].values if heavy else None
        results = contents.table.results_at_once(times, weights, values)
        return None if results is None else contents.told((), results, place[1])

    def _lines(
        self, vectors: tuple[Vector, ...], amounts: Array, window: int | None, type_: Type
    ) -> Vector:
        """Sums as lines of text; integers and texts are put together on columns."""
        kinds = {resolved(t) for _, t in self.function.table.indexes}
        if window is not None or not kinds or kinds - {INT, STRING}:
            keys = [vector.to_list() for vector in vectors]
            return vector_of(type_, self.contents.lines(keys, amounts.tolist(), window))
        parts: list[Any] = [f"{self.function.table.name}["]
        for vector in vectors:
            parts += [vector.to_arrow().cast(pa.string()), "]["]
        parts[-1:] = ["] = ", pa.array(amounts).cast(pa.string()), "\n", ""]
        return Vector(type_, pc.binary_join_element_wise(*parts))

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
            self.counted[place] = CountedRows(self._counted_types())
        counted = self.counted[place]
        width = len(counted.types)
        # An emit may stand for several.
        values = batch.columns[width].values if self.adds else batch.weight
        counted.add(batch.columns[:width], len(batch), values)
        if counted.size > (_MOST_SUMS if self.is_direct else _MOST):
            self._into_accumulators(place)

    def _counted_types(self) -> list[Type]:
        width = self.contents.at if self.adds else len(self.schema)
        return [f.type for f in self.schema][:width]

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
        encode = self.contents.table.encode
        return {
            "counted": tuple(
                (instant, window, *_kept(counted))
                for (instant, window), counted in self.counted.items()
            ),
            "waiting": tuple(
                (instant, tuple((key, encode(acc)) for key, acc in accs.items()))
                for instant, accs in self.waiting.items()
            ),
            "held": tuple((key, encode(acc)) for key, acc in self.held.items()),
            "told": tuple((key, tuple(rows)) for key, rows in self.told.items()),
            "over": self.is_over,
        }

    def restore(self, state: State) -> None:
        decode = self.contents.table.decode
        self.counted = {}
        for instant, window, columns, amounts in state.get("counted", ()):
            counted = self.counted[instant, window] = CountedRows(self._counted_types())
            counted.add(_vectors(counted.types, columns), len(amounts), amounts)
        self.waiting = {
            instant: {_key(key): decode(raw) for key, raw in accs}
            for instant, accs in state["waiting"]
        }
        self.held = {_key(key): decode(raw) for key, raw in state["held"]}
        self.told = {_key(key): [tuple(row) for row in rows] for key, rows in state["told"]}
        self.is_over = state.get("over", False)
        self.keeps = self.function.every is not None or bool(self.held)


def _key(key: Any) -> _Key:
    window, indexes = key
    return window, tuple(indexes)


def _kept(counted: CountedRows) -> tuple[tuple[tuple[Array, ...], ...], Array]:
    """What was counted, as plain arrays."""
    vectors, amounts = counted.sums()
    return tuple(map(_arrays, vectors)), np.array(amounts, np.int64)


def _arrays(vector: Vector) -> tuple[Array, ...]:
    valid = np.zeros(0, np.bool_) if vector.valid is None else vector.valid
    if not vector.is_text:
        return np.array(vector.values), np.array(valid)
    offsets, data, valid = text_column(vector.to_arrow())
    return offsets - offsets[0], np.array(data[offsets[0] : offsets[-1]]), np.array(valid)


def _vectors(types: Sequence[Type], columns: Sequence[tuple[Array, ...]]) -> list[Vector]:
    vectors = []
    for type_, arrays in zip(types, columns, strict=True):
        if type_.kind is Kind.TEXT:
            offsets, data, valid = arrays
            vectors.append(Vector(type_, text_array(offsets, data, valid)))
        else:
            values, valid = arrays
            vectors.append(Vector(type_, values, valid if len(valid) else None))
    return vectors
