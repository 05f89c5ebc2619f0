"""The queues of a net: plain values of items and their times, in flat arrays."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from millstream.calculus.procedures import ArrayOf, RecordOf, Shape
from millstream.calculus.terms import Literal
from millstream.calculus.types import QueueType
from millstream.errors import RunError
from millstream.kernels.nets.edges import narrow, widen
from millstream.kernels.nets.table import (
    Q_COLUMNS,
    Q_END,
    Q_FIRST,
    Q_IS_OUTPUT,
    Q_ROOM,
    Q_START,
    Q_TAKINGS,
    Q_WIDTH_F,
    Q_WIDTH_I,
    QF,
    QI,
    QT,
)
from millstream.kernels.runtime.hashing import frozen
from millstream.kernels.runtime.kernel import State
from millstream.plan.batch import Array, Batch, Vector
from millstream.values.types import BIT, BOOLEAN, SINGLE, Type

_LEAST_ROOM = 64


def types_of(shape: Shape) -> list[Type]:
    """The plain values of an item, in the order of its columns."""
    match shape:
        case ArrayOf(element, Literal(int(size))):
            return types_of(element) * size
        case RecordOf(parts):
            return [type_ for _, part in parts for type_ in types_of(part)]
        case Type():
            return [shape]
        case _:
            raise AssertionError(f"a size is not known: {shape}")


class Buffers:
    """Mutable: what the queues of a net hold; `table` tells the driver where."""

    def __init__(
        self,
        shapes: Mapping[str, Shape],
        held: Collection[str],
        outputs: frozenset[str],
        *,
        carries: bool,
    ) -> None:
        #: Whether items have their times beside them.
        self.carries = carries
        self.number = {queue: n for n, queue in enumerate(shapes)}
        self.types = [types_of(shape) for shape in shapes.values()]
        self.table = np.zeros((len(shapes), Q_COLUMNS), np.int64)
        self.table[:, Q_TAKINGS] = -1
        self.arrays: list[tuple[Array, Array, Array]] = []
        for n, (queue, types) in enumerate(zip(shapes, self.types, strict=True)):
            singles = sum(type_ == SINGLE for type_ in types)
            self.table[n, Q_WIDTH_F], self.table[n, Q_WIDTH_I] = singles, len(types) - singles
            self.table[n, Q_IS_OUTPUT] = queue in outputs
            nothing = np.zeros(0, np.float32), np.zeros(0, np.int32), np.zeros(0, np.int64)
            self.arrays.append(nothing)
            if queue in held:
                self.resize(n, _LEAST_ROOM)

    def widths(self, n: int) -> tuple[int, int, int]:
        """How many cells an item has, of single precision, of integers, and for its time."""
        singles, integers = self.table[n, [Q_WIDTH_F, Q_WIDTH_I]].tolist()
        return singles, integers, int(self.carries)

    def size(self, n: int) -> int:
        return int(self.table[n, Q_END] - self.table[n, Q_START])

    def resize(self, n: int, room: int) -> None:
        """Room for so many items, with what is held at the front."""
        row = self.table[n]
        held, start = self.size(n), int(row[Q_START])
        new = []
        for old, width in zip(self.arrays[n], self.widths(n), strict=True):
            array = np.empty(room * width, old.dtype)
            array[: held * width] = old[start * width : (start + held) * width]
            new.append(array)
        self.arrays[n] = new[0], new[1], new[2]
        row[QF], row[QI], row[QT] = (array.ctypes.data for array in new)
        row[Q_FIRST] += start
        row[Q_START], row[Q_END], row[Q_ROOM] = 0, held, room

    def reserve(self, n: int, more: int) -> None:
        if self.table[n, Q_END] + more > self.table[n, Q_ROOM]:
            self.resize(n, 4 * (self.size(n) + more))

    # --- rows ---

    def put(self, n: int, row: tuple[Any, ...], time: int) -> None:
        """One item behind the last one."""
        self.reserve(n, 1)
        singles, integers, times = self.arrays[n]
        end = int(self.table[n, Q_END])
        f, i = (end * int(w) for w in self.table[n, [Q_WIDTH_F, Q_WIDTH_I]])
        for type_, value in zip(self.types[n], row, strict=True):
            if type_ == SINGLE:
                singles[f] = value
                f += 1
            else:
                integers[i] = value
                i += 1
        if self.carries:
            times[end] = time
        self.table[n, Q_END] += 1

    def row(self, n: int, number: int) -> tuple[Any, ...]:
        """An item that waits, by its number."""
        singles, integers, _ = self.arrays[n]
        place = int(self.table[n, Q_START]) + number
        f, i = (place * int(w) for w in self.table[n, [Q_WIDTH_F, Q_WIDTH_I]])
        row: list[Any] = []
        for type_ in self.types[n]:
            if type_ == SINGLE:
                row.append(float(singles[f]))
                f += 1
            else:
                value = int(integers[i])
                row.append(bool(value) if type_ == BOOLEAN else value)
                i += 1
        return tuple(row)

    def skip(self, n: int, count: int) -> None:
        self.table[n, Q_START] += count

    def time(self, n: int, number: int) -> int:
        """When an item came; 0 if that is calculated afterwards."""
        if not self.carries:
            return 0
        return int(self.arrays[n][2][int(self.table[n, Q_START]) + number])

    # --- batches ---

    def take(self, n: int, batch: Batch) -> None:
        """The rows of a batch behind the last item."""
        count = len(batch)
        self.reserve(n, count)
        begin = int(self.table[n, Q_END])
        for column, type_, (array, cells) in zip(
            batch.columns, self.types[n], self._columns(n, begin, begin + count), strict=True
        ):
            if column.valid is not None and not column.valid.all():
                raise RunError("an item is null: a filter takes no nulls")
            if type_ == SINGLE:
                narrow(
                    frozen(np.asarray(column.values, np.float64)), array, cells.start, cells.step
                )
            else:
                array[cells] = column.values & 1 if type_ == BIT else column.values
        if self.carries:
            self.arrays[n][2][begin : begin + count] = batch.time
        self.table[n, Q_END] += count

    def _columns(self, n: int, begin: int, end: int) -> list[tuple[Array, slice]]:
        """Where the values of each column lie, for some items."""
        singles, integers, _ = self.arrays[n]
        widths = self.table[n, [Q_WIDTH_F, Q_WIDTH_I]].tolist()
        places = [0, 0]
        columns = []
        for type_ in self.types[n]:
            which = int(type_ != SINGLE)
            width = widths[which]
            cells = slice(begin * width + places[which], end * width, width)
            columns.append(((singles, integers)[which], cells))
            places[which] += 1
        return columns

    def given(self, n: int, type_: QueueType, times: Array | None) -> Batch:
        """All items of an output, which is emptied; their times if they do not carry them."""
        begin, end = self.table[n, [Q_START, Q_END]].tolist()
        vectors = []
        for value_type, field, (array, cells) in zip(
            self.types[n], type_.schema, self._columns(n, begin, end), strict=True
        ):
            if value_type == SINGLE:
                values = np.empty(end - begin, np.float64)
                widen(array, cells.start, cells.step, values)
                vectors.append(Vector(field.type, values))
            else:
                wanted = np.bool_ if value_type == BOOLEAN else np.int64
                vectors.append(Vector(field.type, array[cells].astype(wanted)))
        if times is None:
            times = self.arrays[n][2][begin:end].copy()
        self.table[n, Q_FIRST] += end
        self.table[n, Q_START] = self.table[n, Q_END] = 0
        return Batch(type_, times, tuple(vectors))

    # --- state ---

    def snapshot(self) -> State:
        parts: tuple[list[Array], list[Array], list[Array]] = ([], [], [])
        for n, arrays in enumerate(self.arrays):
            begin, end = self.table[n, [Q_START, Q_END]].tolist()
            for part, array, width in zip(parts, arrays, self.widths(n), strict=True):
                part.append(array[begin * width : end * width])
        sizes = np.array([self.size(n) for n in range(len(self.arrays))], np.int64)
        firsts = self.table[:, Q_FIRST] + self.table[:, Q_START]
        return {"sizes": sizes, "firsts": firsts, "singles": joined(parts[0], np.float32),
                "integers": joined(parts[1], np.int32),
                "times": joined(parts[2], np.int64)}  # fmt: skip

    def restore(self, state: State) -> None:
        places = [0, 0, 0]
        for n, count in enumerate(state["sizes"].tolist()):
            self.table[n, Q_START] = self.table[n, Q_END] = 0
            self.reserve(n, count)
            for at, (name, width) in enumerate(
                zip(("singles", "integers", "times"), self.widths(n), strict=True)
            ):
                some = state[name][places[at] : places[at] + count * width]
                self.arrays[n][at][: count * width] = some
                places[at] += count * width
            self.table[n, Q_END] = count
        self.table[:, Q_FIRST] = state["firsts"]


def joined(parts: list[Array], dtype: Any) -> Array:
    return np.concatenate(parts) if parts else np.zeros(0, dtype)
