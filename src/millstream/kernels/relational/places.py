"""Ordered, where only places are asked for: numbers of rows in their groups, and ranks.

The rows of a group are a skip list. At the end of an instant those at the front of the groups that
have changed are walked along, as many as are wanted, and what is told of them otherwise than
before is told; a change behind the last that is wanted costs no more than finding its place.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from millstream.calculus.ordering import PLACES
from millstream.calculus.types import INTEGER
from millstream.compiled import inlined, tight
from millstream.kernels.relational.in_order import Changed, RowsInOrder
from millstream.kernels.relational.pieces import Piece
from millstream.kernels.runtime.kernel import Round
from millstream.kernels.windows.skip_list import (
    LEVELS,
    Lists,
    compare_rows,
    insert_row,
    remove_row,
)
from millstream.plan.batch import Array, Batch, Vector, empty_batch

#: What is kept with each row: how often it is there; how often it was told and with which first
#: number and ranks. Its links follow.
_COUNT, _SHOWN, _NUMBER, _RANK, _DENSE = range(5)
_LINKS = 5

#: What is kept with each group: how many different rows it has, how many of them are told and how
#: many in all, the last of them (plus one), whether it is to be looked at. Its list follows.
_ROWS, _TOLD, _COPIES, _LAST, _IS_CHANGED = range(5)
_HEADS = 5

#: Where the loop stands: behind the last instant that was taken in, at which of its changes those
#: who are gone are told and groups are looked at, how much is told, how much room is needed.
_END, _GONE, _NEXT, _SIZE, _NEED = range(5)

#: No group has as many rows.
_ALL = 1 << 62


class Places(NamedTuple):
    """What is told: rows with their places."""

    time: Array
    rows: Array
    number: Array
    rank: Array
    dense: Array
    weight: Array


class PlacesShape(NamedTuple):
    """What is asked for, and where it is kept.

    How many rows of a group are wanted, by how many columns they are ordered, where in records what
    is kept with rows and groups begins, and which places are told.
    """

    most: int
    on: int
    row: int
    group: int
    has_number: bool
    has_rank: bool
    has_dense: bool


@inlined
def _tell(
    out: Places, cursor: Array, time: Any, row: Any, number: Any, rank: Any, dense: Any, weight: Any
) -> None:
    size = cursor[_SIZE]
    out.time[size], out.rows[size], out.weight[size] = time, row, weight
    out.number[size], out.rank[size], out.dense[size] = number, rank, dense
    cursor[_SIZE] = size + 1


@inlined
def _list_of(group: Any, groups: Array, shape: PlacesShape, lists: Lists) -> Lists:
    start = shape.group + _HEADS
    return Lists(
        lists.records, groups[group, start : start + LEVELS], lists.links, lists.signs,
        lists.is_text, lists.texts, lists.path, lists.nulls,
    )  # fmt: skip


@inlined
def _apply(changes: Changed, i: Any, shape: PlacesShape, groups: Array, lists: Lists) -> None:
    row, group = changes.rows[i], changes.groups[i]
    kept, records = shape.row, lists.records
    own = shape.group
    is_full = groups[group, own + _COPIES] == shape.most
    is_beyond = (
        is_full
        and records[row, kept + _SHOWN] == 0
        and compare_rows(groups[group, own + _LAST] - 1, row, lists) < 0
    )
    if not is_beyond:
        groups[group, own + _IS_CHANGED] = 1
    was_there = records[row, kept + _COUNT] > 0
    records[row, kept + _COUNT] += changes.weight[i]
    is_there = records[row, kept + _COUNT] > 0
    if is_there and not was_there:
        insert_row(row, _list_of(group, groups, shape, lists))
        groups[group, own + _ROWS] += 1
    elif was_there and not is_there:
        remove_row(row, _list_of(group, groups, shape, lists))
        groups[group, own + _ROWS] -= 1


@inlined
def _tell_gone(
    now: Any, row: Any, shape: PlacesShape, records: Array, out: Places, cursor: Array
) -> None:
    """Take back all that was told of a row."""
    kept = shape.row
    shown, number = records[row, kept + _SHOWN], records[row, kept + _NUMBER]
    rank, dense = records[row, kept + _RANK], records[row, kept + _DENSE]
    if shape.has_number:
        for k in range(shown):
            _tell(out, cursor, now, row, number + k, rank, dense, -1)
    elif shown != 0:
        _tell(out, cursor, now, row, number, rank, dense, -shown)
    records[row, kept + _SHOWN] = 0


@inlined
def _tell_placed(
    now: Any, row: Any, copies: Any, place: Any, shape: PlacesShape, records: Array, out: Places,
    cursor: Array,
) -> None:  # fmt: skip
    """What is told of a row that has a place, if it is not what was told before."""
    number, rank, dense = place
    kept = shape.row
    shown, first = records[row, kept + _SHOWN], records[row, kept + _NUMBER]
    was_rank, was_dense = records[row, kept + _RANK], records[row, kept + _DENSE]
    is_same = (not shape.has_rank or was_rank == rank) and (
        not shape.has_dense or was_dense == dense
    )
    if shape.has_number:
        for k in range(shown):
            if not (is_same and number <= first + k < number + copies):
                _tell(out, cursor, now, row, first + k, was_rank, was_dense, -1)
        for k in range(copies):
            if not (is_same and first <= number + k < first + shown):
                _tell(out, cursor, now, row, number + k, rank, dense, 1)
    elif is_same:
        if copies != shown:
            _tell(out, cursor, now, row, number, rank, dense, copies - shown)
    else:
        if shown != 0:
            _tell(out, cursor, now, row, first, was_rank, was_dense, -shown)
        _tell(out, cursor, now, row, number, rank, dense, copies)
    records[row, kept + _SHOWN], records[row, kept + _NUMBER] = copies, number
    records[row, kept + _RANK], records[row, kept + _DENSE] = rank, dense


@inlined
def _are_peers(one: Any, other: Any, shape: PlacesShape, lists: Lists) -> Any:
    """Whether rows are alike in what they are ordered by."""
    words = lists.records
    are_alike = True
    for j in range(shape.on):
        null_word, bit = lists.nulls + j // 63, j % 63
        if (
            words[one, j] != words[other, j]
            or ((words[one, null_word] ^ words[other, null_word]) >> bit) & 1
        ):
            are_alike = False
    return are_alike


@inlined
def _retell(
    now: Any,
    group: Any,
    shape: PlacesShape,
    groups: Array,
    lists: Lists,
    out: Places,
    cursor: Array,
) -> None:
    """Walk along the first rows of a group, then along those that were told and are behind them."""
    records, own, kept = lists.records, shape.group, shape.row
    left, link = shape.most, groups[group, own + _HEADS]
    number, rank, dense, before = 1, 1, 0, -1
    met, told, copies_told, last = 0, 0, 0, 0
    while link != 0 and left > 0:
        row = link - 1
        if before < 0 or not _are_peers(before, row, shape, lists):
            rank = number
            dense += 1
        copies = min(records[row, kept + _COUNT], left)
        met += records[row, kept + _SHOWN] > 0
        _tell_placed(now, row, copies, (number, rank, dense), shape, records, out, cursor)
        told += 1
        copies_told += copies
        left -= copies
        number += copies
        before, last = row, link
        link = records[row, lists.links]
    while link != 0 and met < groups[group, own + _TOLD]:
        row = link - 1
        if records[row, kept + _SHOWN] > 0:
            met += 1
            _tell_gone(now, row, shape, records, out, cursor)
        link = records[row, lists.links]
    groups[group, own + _TOLD], groups[group, own + _COPIES] = told, copies_told
    groups[group, own + _LAST] = last


@inlined
def _most_told(group: Any, shape: PlacesShape, groups: Array, lists: Lists) -> Any:
    """How much there can be to tell of a group: all that was, and all that will be told."""
    left, link = shape.most, groups[group, shape.group + _HEADS]
    while link != 0 and left > 0:
        left -= min(lists.records[link - 1, shape.row + _COUNT], left)
        link = lists.records[link - 1, lists.links]
    return shape.most - left + groups[group, shape.group + _COPIES]


@tight
def place_changes(
    changes: Changed, shape: PlacesShape, groups: Array, lists: Lists, out: Places, cursor: Array
) -> bool:
    """Tell how places change; False if there is not the room that is needed: to be called again."""
    records, own = lists.records, shape.group
    while True:
        if cursor[_NEXT] == cursor[_END]:
            if cursor[_END] == changes.time.size:
                return True
            end, now = cursor[_END], changes.time[cursor[_END]]
            while end < changes.time.size and changes.time[end] == now:
                _apply(changes, end, shape, groups, lists)
                end += 1
            cursor[_END] = end
        now = changes.time[cursor[_NEXT]]
        while cursor[_GONE] < cursor[_END]:
            row, group = changes.rows[cursor[_GONE]], changes.groups[cursor[_GONE]]
            shown = records[row, shape.row + _SHOWN]
            if shown > 0 and records[row, shape.row + _COUNT] <= 0:
                if out.time.size - cursor[_SIZE] < shown:
                    cursor[_NEED] = shown
                    return False
                _tell_gone(now, row, shape, records, out, cursor)
                groups[group, own + _TOLD] -= 1
                groups[group, own + _COPIES] -= shown
            cursor[_GONE] += 1
        while cursor[_NEXT] < cursor[_END]:
            group = changes.groups[cursor[_NEXT]]
            if groups[group, own + _IS_CHANGED]:
                cursor[_NEED] = _most_told(group, shape, groups, lists)
                if out.time.size - cursor[_SIZE] < cursor[_NEED]:
                    return False
                groups[group, own + _IS_CHANGED] = 0
                _retell(now, group, shape, groups, lists, out, cursor)
            cursor[_NEXT] += 1


class PlacesKernel(RowsInOrder):
    """Mutable: the rows of all groups in order, and what was told of them."""

    row_words = _LINKS + LEVELS
    group_words = _HEADS + LEVELS
    links = _LINKS
    path_words = LEVELS

    def forget(self) -> None:
        super().forget()
        asked = {column.function for column in self.function.columns}
        count = self.function.count
        self.shape = PlacesShape(
            _ALL if count is None else count, len(self.function.on),
            self.rows.codec.width, self.groups.codec.width, *(name in asked for name in PLACES),
        )  # fmt: skip

    def pieces(self, inputs: tuple[Batch, ...], round_: Round) -> Iterator[Piece]:
        (batch,) = inputs
        if not len(batch):
            yield Piece(empty_batch(self.type), round_.mark)
            return
        changes, lists = self.changes(batch), self.lists()
        cursor = np.zeros(5, np.int64)
        room = self.room(len(batch))
        out = Places(*(np.empty(room, np.int64) for _ in Places._fields))
        groups, is_done = self.groups.table.records, False
        while not is_done:
            cursor[_SIZE] = 0
            is_done = place_changes(changes, self.shape, groups, lists, out, cursor)
            filled = Places(*(a[: cursor[_SIZE]] for a in out))
            if not is_done and cursor[_NEED] > len(out.time):
                out = Places(*(np.empty(int(cursor[_NEED]), np.int64) for _ in out))
            made = self._batch(filled)
            if is_done:
                self.release(changes)
                yield Piece(made, round_.mark)
            else:
                yield Piece(made, int(changes.time[cursor[_NEXT]]) - 1)

    def _batch(self, placed: Places) -> Batch:
        placed = Places(*(a.copy() for a in placed))
        by_name = self.vectors(placed.rows)
        places = dict(zip(PLACES, (placed.number, placed.rank, placed.dense), strict=True))
        columns = [by_name[n] for n in self.given.schema.names]
        columns += [Vector(INTEGER, places[c.function]) for c in self.function.columns]
        return Batch(self.type, placed.time, tuple(columns), placed.weight)
