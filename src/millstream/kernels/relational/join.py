"""Join: pairs of rows with equal keys, kept up to date at every instant.

At one instant both sides may change. Let L and R be how often a row is present after it,
and l and r before: a pair changes by LR - lr. Pairs of a changed left row are told with
its list of right rows, pairs of a changed right row with those left rows that have not
changed. So each pair is told once, and nothing that undoes itself is told.

Where pairs leave as they are, those of an instant that touches one key are told in the order in
which they will leave: what is gone first, by the rows of the leading side and then of the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from millstream.calculus.functions import Join
from millstream.calculus.types import INTEGER, Kind, QueueType, Schema
from millstream.compiled import inlined, tight
from millstream.kernels.relational.keyed_lists import (
    AT_LEFT,
    AT_RIGHT,
    CURSOR,
    FIRST,
    IS_BEGUN,
    IS_ENTERED,
    IS_NET,
    KEY_EXTRA,
    KEY_ROWS,
    LINK,
    NEXT,
    NOW,
    ROW_EXTRA,
    ROWS,
    SIZE,
    TELLING,
    TOUCHED_LEFT,
    TOUCHED_RIGHT,
    InOrder,
    ListKeys,
    Side,
    apply_changes,
    comes_before,
    count_before,
    is_touched,
    next_instant,
    note_counts,
    settle,
)
from millstream.kernels.relational.pieces import LoopCursor, Piece, Piecewise, roomfuls
from millstream.kernels.runtime.hashing import dead_ids, frozen
from millstream.kernels.runtime.interning import Interner
from millstream.kernels.runtime.kernel import Round, State
from millstream.plan.batch import Array, Batch, Vector, empty_batch
from millstream.plan.net import NO_ORDER, Leaving

# --- the loop ---------------------------------------------------------------------------


class Pairs(NamedTuple):
    time: Array
    left: Array
    right: Array
    weight: Array


@inlined
def _tell_row(row: Any, one: Side, other: Side, cursor: Array, pairs: Pairs) -> Any:
    """Tell the pairs of a touched row from LINK on; False if there is no more room."""
    records, extra = other.records, other.extra
    before, after = count_before(one, row), one.records[row, one.extra + ROWS]
    # What changes at every pair is kept out of memory.
    link, size = cursor[LINK], cursor[SIZE]
    while link != 0:
        match = link - 1
        if one.number == 0 or not is_touched(other, match):
            change = after * records[match, extra + ROWS] - before * count_before(other, match)
            if change != 0:
                if size == pairs.time.size:
                    cursor[LINK], cursor[SIZE] = link, size
                    return False
                pairs.time[size], pairs.weight[size] = cursor[NOW], change
                pairs.left[size] = row if one.number == 0 else match
                pairs.right[size] = match if one.number == 0 else row
                size += 1
        link = records[match, extra + NEXT]
    cursor[LINK], cursor[SIZE] = link, size
    return True


@inlined
def _begin(left: Side, right: Side, keys: ListKeys, cursor: Array) -> Any:
    """Apply the changes of the next instant; False if there is none."""
    if not next_instant(left.time, right.time, cursor):
        return False
    i, j, now = cursor[AT_LEFT], cursor[AT_RIGHT], cursor[NOW]
    cursor[AT_LEFT], cursor[TOUCHED_LEFT] = apply_changes(left, right, i, now, keys, None)
    cursor[AT_RIGHT], cursor[TOUCHED_RIGHT] = apply_changes(right, left, j, now, keys, None)
    return True


@inlined
def _tell(k: Any, one: Side, other: Side, keys: ListKeys, work: tuple[Array, Pairs]) -> Any:
    """Tell the pairs of the k-th touched row of a side; False if there is no more room."""
    cursor, pairs = work
    row = one.touched[k]
    if not cursor[IS_ENTERED]:
        key = one.records[row, 0]
        cursor[LINK] = keys.records[key, keys.extra + FIRST + other.number]
        cursor[IS_ENTERED] = 1
    if not _tell_row(row, one, other, cursor, pairs):
        return False
    cursor[IS_ENTERED] = 0
    return True


@inlined
def _most_pairs(side: Side, count: Any, keys: ListKeys) -> Any:
    """No more pairs than this are told of the touched rows of a side."""
    most = 0
    for k in range(count):
        most += keys.records[side.records[side.touched[k], 0], keys.extra + KEY_ROWS]
    return most


@inlined
def _have_key(side: Side, count: Any, key: Any) -> Any:
    for k in range(count):  # noqa: SIM110  numba does not compile all()
        if side.records[side.touched[k], 0] != key:
            return False
    return True


@inlined
def _turns(side: Side, count: Any, sign: Any) -> Any:
    """Whether there is more of a touched row than before, or less if the sign says so."""
    for k in range(count):
        row = side.touched[k]
        if sign * (side.records[row, side.extra + ROWS] - count_before(side, row)) > 0:
            return True
    return False


@inlined
def _tell_sign(sign: Any, one: Side, other: Side, counts: Any, first: Any, work: Any) -> Any:
    """Tell the pairs of one key that are gone, or those that are new, in order."""
    now, size, times, rows, partners, weights = work
    touched, others = counts
    k, link = 0, first[one.number]
    while (k < touched) if others == 0 else (link != 0):
        row = one.touched[k] if others == 0 else link - 1
        k, link = k + 1, one.records[row, one.extra + NEXT]
        after, before = one.records[row, one.extra + ROWS], count_before(one, row)
        is_changed = is_touched(one, row)
        if (after if sign > 0 else before) == 0:
            continue  # what has just come loses no pairs, and what is gone gains none
        # A row that stays meets the others that come and go, one that does not all of them.
        m, partner = 0, first[other.number]
        while (partner != 0) if is_changed else (m < others):
            match = partner - 1 if is_changed else other.touched[m]
            m, partner = m + 1, other.records[match, other.extra + NEXT]
            count = other.records[match, other.extra + ROWS]
            change = after * count - before * count_before(other, match)
            if sign * change > 0:
                times[size], weights[size] = now, change
                rows[size], partners[size] = row, match
                size += 1
    return size


@inlined
def _are_in_order(side: Side, count: Any, sign: Any) -> Any:
    """Whether touched rows that come, or go, are in the order of the list of their key.

    They are as their changes came: those of one instant may have come in any order.
    """
    last = -1
    for k in range(count):
        row = side.touched[k]
        if sign * (side.records[row, side.extra + ROWS] - count_before(side, row)) > 0:
            if last >= 0 and not comes_before(last, row, side):
                return False
            last = row
    return True


@inlined
def _tell_in_order(
    key: Any, one: Side, other: Side, keys: ListKeys, cursor: Array, pairs: Pairs
) -> None:
    """Tell all pairs of an instant that touches one key; there is room for them."""
    first = (keys.records[key, keys.extra + FIRST], keys.records[key, keys.extra + FIRST + 1])
    counts = (cursor[TOUCHED_LEFT + one.number], cursor[TOUCHED_LEFT + other.number])
    rows, partners = (pairs.left, pairs.right) if one.number == 0 else (pairs.right, pairs.left)
    size = cursor[SIZE]
    for sign in (-1, 1):
        if _turns(one, counts[0], sign) or _turns(other, counts[1], sign):
            # These are taken as they were touched, all others as they lie in lists.
            met, count = (other, counts[1]) if counts[1] else (one, counts[0])
            if not _are_in_order(met, count, sign):
                cursor[IS_NET] = 0
            work = (cursor[NOW], size, pairs.time, rows, partners, pairs.weight)
            size = _tell_sign(sign, one, other, counts, first, work)
    one.order.patience[0] += size - cursor[SIZE]
    other.order.patience[0] += size - cursor[SIZE]
    cursor[SIZE], cursor[TELLING] = size, counts[0] + counts[1]


@inlined
def _is_in_time(
    left: Side, right: Side, keys: ListKeys, work: tuple[Array, Pairs], lead: Any
) -> Any:
    """Tell an instant in order if that can be; False if it is better told from an empty room."""
    cursor, pairs = work
    lefts, rights = cursor[TOUCHED_LEFT], cursor[TOUCHED_RIGHT]
    most = _most_pairs(left, lefts, keys) + _most_pairs(right, rights, keys)
    if most > pairs.time.size - cursor[SIZE]:
        return cursor[SIZE] <= pairs.time.size // 2
    if lead >= 0:
        key = left.records[left.touched[0], 0] if lefts else right.records[right.touched[0], 0]
        if _have_key(left, lefts, key) and _have_key(right, rights, key):
            if lead == 0:
                _tell_in_order(key, left, right, keys, cursor, pairs)
            else:
                _tell_in_order(key, right, left, keys, cursor, pairs)
    return True


@tight
def join_changes(
    left: Side, right: Side, keys: ListKeys, cursor: Array, pairs: Pairs, lead: int
) -> bool:
    """Tell the pairs that change; False if there is no more room: to be called again.

    The side that leads the order of the pairs is `lead`, or less than zero if there is none.
    """
    work = (cursor, pairs)
    while True:
        if not cursor[IS_BEGUN] and not _begin(left, right, keys, cursor):
            return True
        is_new = cursor[TELLING] == 0 and not cursor[IS_ENTERED]
        if is_new and lead >= 0:
            note_counts(left, cursor[TOUCHED_LEFT])
            note_counts(right, cursor[TOUCHED_RIGHT])
        if is_new and not _is_in_time(left, right, keys, work, lead):
            return False
        if cursor[TELLING] < cursor[TOUCHED_LEFT] + cursor[TOUCHED_RIGHT]:
            cursor[IS_NET] = 0
        while cursor[TELLING] < cursor[TOUCHED_LEFT]:
            if not _tell(cursor[TELLING], left, right, keys, work):
                return False
            cursor[TELLING] += 1
        while cursor[TELLING] < cursor[TOUCHED_LEFT] + cursor[TOUCHED_RIGHT]:
            if not _tell(cursor[TELLING] - cursor[TOUCHED_LEFT], right, left, keys, work):
                return False
            cursor[TELLING] += 1
        settle(left, cursor[TOUCHED_LEFT], keys, None)
        settle(right, cursor[TOUCHED_RIGHT], keys, None)
        cursor[IS_BEGUN] = 0


# --- the kernel -------------------------------------------------------------------------

#: So many rows are looked at to keep others in order before any pair has been told; after that,
#: as many as pairs.
_PATIENCE = 1 << 12


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
    there is room for `extra` words. The rows of a key are kept in the first `ordered` of them.
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
        ordered: int = 0,
    ) -> None:
        self.number = number
        self.keys = keys
        self.nulls_match = nulls_match
        self.rest = (*first, *(n for n in schema.names if n not in (*keys, *first)))
        self.rows = Interner((INTEGER, *(schema[n] for n in self.rest)), extra)
        kinds = [schema[n].kind for n in self.rest[:ordered]]
        self.is_text = np.array([kind is Kind.TEXT for kind in kinds], np.bool_)
        self.patience = np.full(1, _PATIENCE, np.int64)
        self.is_strict = np.ones(1, np.int64)

    def changes(self, batch: Batch, interner: Interner) -> Side:
        """What the loop needs to know of the changes; those with no partner are left out."""
        batch = with_keys(batch, self.keys, nulls_match=self.nulls_match)
        keys = [batch.column(n) for n in self.keys]
        numbers = Vector(INTEGER, interner.ids(keys, len(batch)))
        rest = [batch.column(n) for n in self.rest]
        rows = self.rows.ids([numbers, *rest], len(batch))
        assert batch.weight is not None
        return Side(
            self.number,
            frozen(batch.time),
            rows,
            frozen(batch.weight),
            np.empty(len(batch), np.int64),
            self.rows.table.records,
            self.rows.codec.width,
            InOrder(
                self.is_text,
                self.rows.pool.texts,
                self.patience,
                self.is_strict,
                self.rows.codec.columns,
            ),
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


class JoinKernel(Piecewise):
    """Mutable: the rows of both sides, listed by key. Conditions are put behind it by the plan."""

    rests = True

    def __init__(
        self,
        function: Join,
        input_types: tuple[QueueType, ...],
        output_count: int,
        leaves_by: Leaving = NO_ORDER,
    ) -> None:
        """Pairs will leave in the order of the columns `leaves_by`, if there are any."""
        assert function.where is None, function
        (self.type,) = function.output_types(input_types, output_count)
        left, right = (t.schema for t in input_types)
        self.keys = Interner([left[name] for name, _ in function.on], KEY_EXTRA)
        nulls_match = function.nulls_match
        ours, theirs = (tuple(pair[n] for pair in function.on) for n in (0, 1))
        left_first, right_first = (
            tuple(n for n in leaves_by.columns if n in schema.names and n not in keys)
            for schema, keys in ((left, ours), (right, theirs))
        )
        self.left = JoinSide(
            0, left, ours, nulls_match=nulls_match, first=left_first, ordered=len(left_first)
        )
        self.right = JoinSide(
            1, right, theirs, nulls_match=nulls_match, first=right_first, ordered=len(right_first)
        )
        others = [n for n in leaves_by.columns if n not in (*ours, *theirs)]
        leads = [0 if n in left_first else 1 for n in others]
        self.lead = leads[0] if leads else -1
        #: Whether pairs are in order where they leave, if both sides are: by one side, then the
        #: other, before anything else.
        self.leave_in_order = (
            bool(left_first)
            and bool(right_first)
            and leads == sorted(leads, reverse=self.lead == 1)
            and set(others) <= set(leaves_by.leading)
        )
        self.cursor = np.zeros(CURSOR, np.int64)
        self.kept = (left.names, function.right_kept(right))
        self.parts = {"keys": self.keys, "left": self.left.rows, "right": self.right.rows}

    def pieces(self, inputs: tuple[Batch, ...], round_: Round) -> Iterator[Piece]:
        if not any(len(b) for b in inputs):
            yield Piece(empty_batch(self.type), round_.mark)
            return
        left = self.left.changes(inputs[0], self.keys)
        right = self.right.changes(inputs[1], self.keys)
        for pairs, until in self._told(left, right, round_.mark):
            batch = replace(self._batch(pairs), is_net=self._is_net())
            if until == round_.mark:
                self._release(left, right)
            yield Piece(batch, until)

    def _told(self, left: Side, right: Side, mark: int) -> Iterator[tuple[Pairs, int]]:
        cursor = self.cursor = np.zeros(CURSOR, np.int64)
        keys = ListKeys(self.keys.table.records, self.keys.codec.width)
        size = self.room(len(left.time) + len(right.time))
        pairs = Pairs(*(np.empty(size, np.int64) for _ in Pairs._fields))

        def tell() -> bool:
            cursor[IS_NET] = 1
            return join_changes(left, right, keys, cursor, pairs, self.lead)

        return roomfuls(tell, LoopCursor(cursor, SIZE, NOW), pairs, mark)

    def _is_net(self) -> bool:
        """Whether the pairs that were told last need not be consolidated where they leave."""
        is_strict = self.left.is_strict[0] and self.right.is_strict[0]
        return bool(self.leave_in_order and is_strict and self.cursor[IS_NET])

    def restore(self, state: State) -> None:
        super().restore(state)
        self.left.is_strict[0] = self.right.is_strict[0] = 0

    def _batch(self, pairs: Pairs) -> Batch:
        columns = self.left.columns(self.kept[0], pairs.left, self.keys)
        # Keys that have met are equal: those of the right side are those of the left.
        known = dict(zip(self.kept[0], columns, strict=True))
        equal = {b: known[a] for a, b in zip(self.left.keys, self.right.keys, strict=True)}
        own = [n for n in self.kept[1] if n not in equal]
        theirs = equal | dict(
            zip(own, self.right.columns(own, pairs.right, self.keys), strict=True)
        )
        columns += [theirs[n] for n in self.kept[1]]
        return Batch(self.type, pairs.time, tuple(columns), pairs.weight)

    def _release(self, left: Side, right: Side) -> None:
        used = np.concatenate([left.records[left.rows, 0], right.records[right.rows, 0]])
        self.left.release(left.rows)
        self.right.release(right.rows)
        release_keys(self.keys, used)
