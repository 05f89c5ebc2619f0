"""Top: the first rows in some order, kept up to date at every instant.

Only a part of the rows is kept in order: those that are near the first, a sixteenth or
so. All others come after the last of these, so a change among them costs one comparison.
When rows leave and too few are in order, the next ones are found among the others; when
too many are in order, the last of them are let go. Either costs a look at all rows, once
in as many changes as a sixteenth of them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from millstream.calculus.functions import Top
from millstream.calculus.types import QueueType
from millstream.compiled import inlined, tight
from millstream.kernels.runtime.consolidate import order_of
from millstream.kernels.runtime.hashing import dead_ids, frozen, padded
from millstream.kernels.runtime.interning import Interner
from millstream.kernels.runtime.kernel import Round, State, Termless
from millstream.kernels.windows.skip_list import (
    LEVELS,
    Lists,
    compare_rows,
    insert_row,
    remove_row,
    sort_numbers,
)
from millstream.plan.batch import Array, Batch, Vector, empty_batch

#: What is kept with each row: how often it is present, how often it is among the first,
#: whether this instant has looked at it, and whether it is in order. Its links follow.
_COUNT, _SHOWN, _IS_SEEN, _IS_LISTED = range(4)
_LINKS = 4

#: Where the loop stands: at which change, how many changes are told.
_AT, _SIZE = range(2)

#: What is kept beside the rows: how many are among the first (each once), how many are in
#: order and how many are not, and a link to the last that is.
_FIRST, _LISTED, _OTHERS, _TAIL = range(4)
_KEPT = 4

#: At least so many rows are in order, if there are so many; and so many are looked at to
#: guess where the next ones end.
_FEW = 1024
_SAMPLE = 512


class TopChanges(NamedTuple):
    time: Array
    rows: Array
    weight: Array


@inlined
def _tell(out: TopChanges, cursor: Array, time: Any, row: Any, weight: Any) -> None:
    size = cursor[_SIZE]
    out.time[size], out.rows[size], out.weight[size] = time, row, weight
    cursor[_SIZE] = size + 1


@inlined
def _list(row: Any, extra: Any, lists: Lists, kept: Array) -> None:
    """Put a row in order."""
    insert_row(row, lists)
    lists.records[row, extra + _IS_LISTED] = 1
    kept[_LISTED] += 1
    if lists.records[row, lists.links] == 0:
        kept[_TAIL] = row + 1


@inlined
def _unlist(row: Any, extra: Any, lists: Lists, kept: Array) -> None:
    remove_row(row, lists)
    lists.records[row, extra + _IS_LISTED] = 0
    kept[_LISTED] -= 1
    if kept[_TAIL] == row + 1:
        kept[_TAIL] = lists.path[0] + 1


@inlined
def _apply(changes: Any, i: Any, extra: Any, lists: Lists, kept: Array) -> None:
    _, rows, weight = changes
    row = rows[i]
    records = lists.records
    was_there = records[row, extra + _COUNT] > 0
    records[row, extra + _COUNT] += weight[i]
    is_there = records[row, extra + _COUNT] > 0
    if is_there and not was_there:
        if kept[_OTHERS] == 0 or (
            kept[_TAIL] != 0 and compare_rows(row, kept[_TAIL] - 1, lists) < 0
        ):
            _list(row, extra, lists, kept)
        else:
            kept[_OTHERS] += 1
    elif was_there and not is_there:
        if records[row, extra + _IS_LISTED]:
            _unlist(row, extra, lists, kept)
        else:
            kept[_OTHERS] -= 1


@inlined
def _enough(shape: Any, kept: Array) -> Any:
    """How many rows should be in order."""
    most, _, few = shape
    return max(few, 8 * most, (kept[_LISTED] + kept[_OTHERS]) // 16)


@inlined
def _bound(wanted: Any, extra: Any, lists: Lists, kept: Array, sample: Array) -> Any:
    """A row that comes after about so many of those that are not in order."""
    records = lists.records
    stride = max(1, kept[_OTHERS] // sample.size)
    size, seen = 0, 0
    for row in range(records.shape[0]):
        if records[row, extra + _COUNT] > 0 and not records[row, extra + _IS_LISTED]:
            if seen % stride == 0 and size < sample.size:
                sample[size] = row
                size += 1
            seen += 1
    sort_numbers(sample[:size], lists)
    return sample[min(size - 1, wanted * size // kept[_OTHERS])]


@tight
def _refill(shape: tuple[int, int, int], lists: Lists, kept: Array, sample: Array) -> None:
    """Put the next of the rows that are not in order in order."""
    records = lists.records
    wanted, extra = _enough(shape, kept), shape[1]
    takes_all = kept[_OTHERS] <= 2 * wanted
    bound = 0 if takes_all else _bound(wanted, extra, lists, kept, sample)
    for row in range(records.shape[0]):
        if records[row, extra + _COUNT] > 0 and not records[row, extra + _IS_LISTED]:
            if takes_all or compare_rows(row, bound, lists) <= 0:
                _list(row, extra, lists, kept)
                kept[_OTHERS] -= 1


@tight
def _let_go(shape: tuple[int, int, int], lists: Lists, kept: Array) -> None:
    """Take the last rows out of order, so that as many are left as are enough."""
    records, extra = lists.records, shape[1]
    link = lists.heads[0]
    for _ in range(_enough(shape, kept) - 1):
        link = records[link - 1, lists.links]
    kept[_TAIL] = link
    # The lists of all levels end at the tail; what was behind it is not in any.
    for level in range(LEVELS):
        before = -1
        following = lists.heads[level]
        while following != 0 and compare_rows(following - 1, link - 1, lists) <= 0:
            before = following - 1
            following = records[before, lists.links + level]
        while following != 0:
            row = following - 1
            following = records[row, lists.links + level]
            records[row, lists.links + level] = 0
            if level == 0:
                records[row, extra + _IS_LISTED] = 0
                kept[_LISTED] -= 1
                kept[_OTHERS] += 1
        if before < 0:
            lists.heads[level] = 0
        else:
            records[before, lists.links + level] = 0


@inlined
def _is_beyond(row: Any, first: Array, kept: Array, is_full: Any, lists: Lists) -> Any:
    """Whether a change of this row cannot matter: it comes after all of enough first rows."""
    return is_full and compare_rows(first[kept[_FIRST] - 1], row, lists) < 0


@inlined
def _retell(now: Any, shape: Any, lists: Lists, first: Array, kept: Array, work: Any) -> None:
    """Walk along the first rows, tell what is new about them, and who is no longer one."""
    most, extra, _ = shape
    cursor, out = work
    records = lists.records
    left, link, size = most, lists.heads[0], 0
    while link != 0 and left > 0:
        row = link - 1
        count = min(records[row, extra + _COUNT], left)
        change = count - records[row, extra + _SHOWN]
        if change != 0:
            _tell(out, cursor, now, row, change)
        records[row, extra + _SHOWN] = count
        records[row, extra + _IS_SEEN] = 1
        first[most + size] = row
        size += 1
        left -= count
        link = records[row, lists.links]
    for k in range(kept[_FIRST]):
        row = first[k]
        if records[row, extra + _IS_SEEN] == 0:
            _tell(out, cursor, now, row, -records[row, extra + _SHOWN])
            records[row, extra + _SHOWN] = 0
    for k in range(size):
        first[k] = first[most + k]
        records[first[k], extra + _IS_SEEN] = 0
    kept[_FIRST] = size


@inlined
def _has_enough(most: Any, extra: Any, lists: Lists) -> Any:
    """Whether the rows in order are as many as are wanted, counted as often as they are there."""
    left, link = most, lists.heads[0]
    while link != 0 and left > 0:
        left -= lists.records[link - 1, extra + _COUNT]
        link = lists.records[link - 1, lists.links]
    return left <= 0


@tight
def _top_changes(
    changes: tuple[Array, Array, Array],
    shape: tuple[int, int, int],
    lists: Lists,
    state: tuple[Array, Array, Array],
    work: tuple[Array, TopChanges],
) -> bool:
    """Tell how the first rows change; False if there is no more room: to be called again.

    The shape is how many rows are wanted, where in a record what is kept with a row begins,
    and how many rows are at least in order. The state is the first rows (with room for twice
    as many as are wanted: those of before and of now), what is kept beside the rows, and
    room for a sample.
    """
    time = changes[0]
    most, extra, _ = shape
    first, kept, sample = state
    cursor, out = work
    while cursor[_AT] < time.size:
        if out.time.size - cursor[_SIZE] < 2 * most:
            return False
        now = time[cursor[_AT]]
        shown = 0
        for k in range(kept[_FIRST]):
            shown += lists.records[first[k], extra + _SHOWN]
        is_touched = False
        while cursor[_AT] < time.size and time[cursor[_AT]] == now:
            i = cursor[_AT]
            if not _is_beyond(changes[1][i], first, kept, shown == most, lists):
                is_touched = True
            _apply(changes, i, extra, lists, kept)
            cursor[_AT] += 1
        if kept[_LISTED] > 2 * _enough(shape, kept):
            _let_go(shape, lists, kept)
        if is_touched:
            while kept[_OTHERS] > 0 and not _has_enough(most, extra, lists):
                _refill(shape, lists, kept, sample)
            _retell(now, shape, lists, first, kept, work)
    return True


class TopKernel(Termless):
    """Mutable: all rows in order, and which of them are the first."""

    rests = True

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
        self.parts = {"rows": self.rows}
        self.heads = np.zeros(LEVELS, np.int64)
        self.first = np.zeros(0, np.int64)
        self.kept = np.zeros(_KEPT, np.int64)
        self.few = _FEW

    def process(self, inputs: tuple[Batch, ...], round_: Round) -> tuple[Batch, ...]:
        (batch,) = inputs
        if not len(batch):
            return (empty_batch(self.type),)
        assert batch.weight is not None
        rows = self.rows.ids([batch.column(n) for n in self.columns], len(batch))
        out, size = self._loop((frozen(batch.time), rows, frozen(batch.weight)))
        columns = self._vectors(out.rows[:size])
        column = self.rows.codec.width + _COUNT
        self.rows.release(dead_ids(rows, self.rows.table.records, column))
        return (Batch(self.type, out.time[:size], columns, out.weight[:size]),)

    def _loop(self, changes: tuple[Array, Array, Array]) -> tuple[TopChanges, int]:
        extra = self.rows.codec.width
        is_text, texts = order_of(self.rows.codec)
        lists = Lists(
            self.rows.table.records, self.heads, extra + _LINKS, self.signs, is_text, texts,
            np.empty(LEVELS, np.int64), self.rows.codec.columns,
        )  # fmt: skip
        # There are no more first rows than rows, however many are wanted.
        most = min(self.count, int(np.abs(changes[2]).sum()) + self._shown())
        first = padded(self.first, 2 * most + len(self.first))
        shape = (most, extra, self.few)
        cursor = np.zeros(2, np.int64)
        state = (first, self.kept, np.empty(_SAMPLE, np.int64))
        room = 2 * len(changes[0]) + 2 * most + 64
        out = TopChanges(*(np.empty(room, np.int64) for _ in TopChanges._fields))
        while not _top_changes(changes, shape, lists, state, (cursor, out)):
            room *= 2
            out = TopChanges(*(padded(a, room) for a in out))
        self.first = first[: self.kept[_FIRST]].copy()
        return out, int(cursor[_SIZE])

    def _shown(self) -> int:
        shown = self.rows.table.records[self.first, self.rows.codec.width + _SHOWN]
        return int(shown.sum())

    def _vectors(self, rows: Array) -> tuple[Vector, ...]:
        by_name = dict(zip(self.columns, self.rows.vectors(rows), strict=True))
        return tuple(by_name[n] for n in self.type.schema.names)

    def snapshot(self) -> State:
        return super().snapshot() | {
            "heads": self.heads.copy(),
            "first": self.first.copy(),
            "kept": self.kept.copy(),
        }

    def restore(self, state: State) -> None:
        super().restore(state)
        self.heads = np.array(state["heads"], np.int64)
        self.first = np.array(state["first"], np.int64)
        self.kept = np.array(state["kept"], np.int64)
