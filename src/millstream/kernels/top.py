"""Top: the first rows in some order, kept up to date at every instant."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from millstream.calculus.functions import Top
from millstream.calculus.types import QueueType
from millstream.compiled import inlined, tight
from millstream.kernels.consolidate import order_of
from millstream.kernels.interning import Interner, named, part
from millstream.kernels.kernel import Round, State
from millstream.kernels.loops import dead_ids, frozen, padded
from millstream.kernels.loops_skip import LEVELS, Lists, compare_rows, insert_row, remove_row
from millstream.plan.batch import Array, Batch, Vector, empty_batch

#: What is kept with each row: how often it is present, how often it is among the first,
#: and whether this instant has looked at it. Its links follow.
_COUNT, _SHOWN, _IS_SEEN = range(3)
_LINKS = 3

#: Where the loop stands: at which change, how many changes are told, how many rows are
#: among the first (each once).
_AT, _SIZE, _FIRST = range(3)


class Told(NamedTuple):
    time: Array
    rows: Array
    weight: Array


@inlined
def _tell(told: Told, cursor: Array, time: Any, row: Any, weight: Any) -> None:
    size = cursor[_SIZE]
    told.time[size], told.rows[size], told.weight[size] = time, row, weight
    cursor[_SIZE] = size + 1


@inlined
def _apply(changes: Any, i: Any, extra: Any, lists: Lists) -> None:
    _, rows, weight = changes
    row = rows[i]
    records = lists.records
    was_there = records[row, extra + _COUNT] > 0
    records[row, extra + _COUNT] += weight[i]
    is_there = records[row, extra + _COUNT] > 0
    if is_there and not was_there:
        insert_row(row, lists)
    elif was_there and not is_there:
        remove_row(row, lists)


@inlined
def _is_beyond(row: Any, first: Array, cursor: Array, is_full: Any, lists: Lists) -> Any:
    """Whether a change of this row cannot matter: it comes after all of enough first rows."""
    return is_full and compare_rows(first[cursor[_FIRST] - 1], row, lists) < 0


@inlined
def _retell(
    now: Any, most: Any, extra: Any, lists: Lists, first: Array, cursor: Array, told: Told
) -> None:
    """Walk along the first rows, tell what is new about them, and who is no longer one."""
    records = lists.records
    left, link, size = most, lists.heads[0], 0
    old = cursor[_FIRST]
    while link != 0 and left > 0:
        row = link - 1
        count = min(records[row, extra + _COUNT], left)
        change = count - records[row, extra + _SHOWN]
        if change != 0:
            _tell(told, cursor, now, row, change)
        records[row, extra + _SHOWN] = count
        records[row, extra + _IS_SEEN] = 1
        first[most + size] = row
        size += 1
        left -= count
        link = records[row, lists.links]
    for k in range(old):
        row = first[k]
        if records[row, extra + _IS_SEEN] == 0:
            _tell(told, cursor, now, row, -records[row, extra + _SHOWN])
            records[row, extra + _SHOWN] = 0
    for k in range(size):
        first[k] = first[most + k]
        records[first[k], extra + _IS_SEEN] = 0
    cursor[_FIRST] = size


@tight
def _top_changes(
    changes: tuple[Array, Array, Array],
    shape: tuple[int, int],
    lists: Lists,
    first: Array,
    cursor: Array,
    told: Told,
) -> bool:
    """Tell how the first rows change; False if there is no more room: to be called again.

    `first` has room for twice as many rows as are wanted: those of before and of now.
    """
    time = changes[0]
    most, extra = shape
    while cursor[_AT] < time.size:
        if told.time.size - cursor[_SIZE] < 2 * most:
            return False
        now = time[cursor[_AT]]
        shown = 0
        for k in range(cursor[_FIRST]):
            shown += lists.records[first[k], extra + _SHOWN]
        is_touched = False
        while cursor[_AT] < time.size and time[cursor[_AT]] == now:
            i = cursor[_AT]
            if not _is_beyond(changes[1][i], first, cursor, shown == most, lists):
                is_touched = True
            _apply(changes, i, extra, lists)
            cursor[_AT] += 1
        if is_touched:
            _retell(now, most, extra, lists, first, cursor, told)
    return True


class TopKernel:
    """Mutable: all rows in order, and which of them are the first."""

    def __init__(
        self, function: Top, input_types: tuple[QueueType, ...], output_count: int
    ) -> None:
        (self.type,) = function.output_types(input_types, output_count)
        schema = self.type.schema
        self.count = function.count
        # What rows are ordered by comes first; the rest decides between equals.
        self.columns = (*function.by, *(n for n in schema.names if n not in function.by))
        self.signs = np.array(
            [-1 if n in function.descending else 1 for n in self.columns], np.int64
        )
        self.rows = Interner([schema[n] for n in self.columns], _LINKS + LEVELS)
        self.heads = np.zeros(LEVELS, np.int64)
        self.first = np.zeros(0, np.int64)

    def process(self, inputs: tuple[Batch, ...], round_: Round) -> tuple[Batch, ...]:
        (batch,) = inputs
        if not len(batch):
            return (empty_batch(self.type),)
        assert batch.weight is not None
        rows = self.rows.ids([batch.column(n) for n in self.columns], len(batch))
        told, size = self._loop((frozen(batch.time), rows, frozen(batch.weight)))
        columns = self._vectors(told.rows[:size])
        column = self.rows.codec.width + _COUNT
        self.rows.release(dead_ids(rows, self.rows.table.records, column))
        return (Batch(self.type, told.time[:size], columns, told.weight[:size]),)

    def _loop(self, changes: tuple[Array, Array, Array]) -> tuple[Told, int]:
        extra = self.rows.codec.width
        is_text, texts = order_of(self.rows.codec)
        lists = Lists(
            self.rows.table.records, self.heads, extra + _LINKS, self.signs, is_text, texts,
            np.empty(LEVELS, np.int64),
        )  # fmt: skip
        # There are no more first rows than rows, however many are wanted.
        most = min(self.count, int(np.abs(changes[2]).sum()) + self._shown())
        first = padded(self.first, 2 * most + len(self.first))
        cursor = np.array([0, 0, len(self.first)], np.int64)
        room = 2 * len(changes[0]) + 2 * most + 64
        told = Told(*(np.empty(room, np.int64) for _ in Told._fields))
        while not _top_changes(changes, (most, extra), lists, first, cursor, told):
            room *= 2
            told = Told(*(padded(a, room) for a in told))
        self.first = first[: cursor[_FIRST]].copy()
        return told, int(cursor[_SIZE])

    def _shown(self) -> int:
        shown = self.rows.table.records[self.first, self.rows.codec.width + _SHOWN]
        return int(shown.sum())

    def _vectors(self, rows: Array) -> tuple[Vector, ...]:
        found = dict(zip(self.columns, self.rows.vectors(rows), strict=True))
        return tuple(found[n] for n in self.type.schema.names)

    def snapshot(self) -> State:
        return named("rows.", self.rows.snapshot()) | {
            "heads": self.heads.copy(),
            "first": self.first.copy(),
        }

    def restore(self, state: State) -> None:
        self.rows.restore(part(state, "rows."))
        self.heads = np.array(state["heads"], np.int64)
        self.first = np.array(state["first"], np.int64)

    def faults(self) -> dict[str, int]:
        return {}
