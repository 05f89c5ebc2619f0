"""Ordered, where it follows from the size of a group which of its rows anybody asks for.

So it is for medians and other quantiles, the first or the last value, and texts that are joined
in an order. The rows of a group are a skip list that knows who is at a place. What is asked for is
worked out first, for all groups of all instants at once, as it needs only how many rows there
are; then the rows that are there are looked up, and told if they are others than before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.calculus.functions import Ordered
from millstream.calculus.ordering import JOINED, Placed
from millstream.calculus.terms import Call, Column, Literal, Term
from millstream.calculus.types import INTEGER, TEXT, QueueType
from millstream.compiled import inlined, tight
from millstream.kernels.relational.in_order import COUNT, Changed, RowsInOrder
from millstream.kernels.relational.pieces import Piece
from millstream.kernels.runtime.hashing import frozen
from millstream.kernels.runtime.kernel import Round
from millstream.kernels.windows.counted_list import WORDS, change_copies, row_at
from millstream.kernels.windows.skip_list import LEVELS, Lists
from millstream.plan.batch import Array, Batch, Vector, empty_batch

#: What is kept with each row behind how often it is there: how often it counts in its list, whose
#: links follow.
_LISTED = 1
_LINKS = 2

#: What is kept with each group behind how many rows it has when all changes are in: how many it has
#: at the instant where the loop stands, the last event of the group, and the text that was told.
#: Its list follows, then what it counts, what it had counted when rows were told, and for each
#: place that is asked for the row that was told (plus one), and where it stood.
_NOW, _EVENT, _TEXT = 1, 2, 3
_HEADS = 4
_COUNTS = _HEADS + WORDS

#: Where the loop stands: at which change and which event, and how much is told; how many rows of
#: texts and how many texts there are, of this piece and of all.
_AT, _NEXT, _SIZE, _WALKED, _TEXTS, _FIRST_TEXT = range(6)

#: So many rows of texts are held at once, if no text has more.
_WALK = 1 << 20


class Events(NamedTuple):
    """Groups that change at an instant, what they then count, and where its changes end."""

    time: Array
    group: Array
    end: Array
    counts: Array


class Chosen(NamedTuple):
    """What is told: rows with their places, what their group counts, and the number of its text."""

    time: Array
    rows: Array
    place: Array
    weight: Array
    text: Array
    counts: Array


class Walked(NamedTuple):
    """The rows of texts, one text after the other, and where each ends."""

    rows: Array
    ends: Array


class ChosenShape(NamedTuple):
    """Where in records what is kept with rows and groups begins; are whole groups to be joined?"""

    row: int
    group: int
    is_joined: bool


@tight
def count_changes(
    changes: Changed,
    counted: Array,
    shape: ChosenShape,
    lists: Lists,
    groups: Array,
    events: Events,
) -> int:
    """What groups count at each instant at which they change; how many such events there are.

    A column that is counted is given by its number, or all rows by -1.
    """
    records, own, size, at = lists.records, shape.group, 0, 0
    while at < changes.time.size:
        first, now, end = size, changes.time[at], at
        while end < changes.time.size and changes.time[end] == now:
            row, group, weight = changes.rows[end], changes.groups[end], changes.weight[end]
            event = groups[group, own + _EVENT]
            if not (first < event <= size and events.group[event - 1] == group):
                events.time[size], events.group[size] = now, group
                size += 1
                groups[group, own + _EVENT] = size
            groups[group, own + COUNT] += weight
            for k in range(counted.size):
                column = counted[k]
                word, bit = lists.nulls + max(column, 0) // 63, max(column, 0) % 63
                if column < 0 or not (records[row, word] >> bit) & 1:
                    groups[group, own + _COUNTS + k] += weight
            end += 1
        for event in range(first, size):
            events.end[event] = end
            group = events.group[event]
            events.counts[event, 0] = groups[group, own + COUNT]
            for k in range(counted.size):
                events.counts[event, k + 1] = groups[group, own + _COUNTS + k]
        at = end
    return size


@inlined
def _list_of(group: Any, groups: Array, shape: ChosenShape, lists: Lists) -> Lists:
    start = shape.group + _HEADS
    return Lists(
        lists.records, groups[group, start : start + WORDS], lists.links, lists.signs,
        lists.is_text, lists.texts, lists.path, lists.nulls,
    )  # fmt: skip


@inlined
def _settle(row: Any, group: Any, shape: ChosenShape, groups: Array, lists: Lists) -> None:
    """Let a row count as often as it is there."""
    records, kept = lists.records, shape.row
    there, wanted = records[row, kept + _LISTED], max(records[row, kept + COUNT], 0)
    if there == wanted:
        return
    if groups[group, shape.group + _NOW] != 0:
        change_copies(row, there, wanted, _list_of(group, groups, shape, lists))
    elif groups[group, shape.group + _HEADS] != 0:
        # All rows are gone: nobody will look at their links.
        for k in range(WORDS):
            groups[group, shape.group + _HEADS + k] = 0
    records[row, kept + _LISTED] = wanted


@inlined
def _apply(
    changes: Changed, start: Any, end: Any, shape: ChosenShape, groups: Array, lists: Lists
) -> None:
    """All changes of an instant. A row may come before it goes."""
    for i in range(start, end):
        lists.records[changes.rows[i], shape.row + COUNT] += changes.weight[i]
        groups[changes.groups[i], shape.group + _NOW] += changes.weight[i]
    for i in range(start, end):
        _settle(changes.rows[i], changes.groups[i], shape, groups, lists)


@inlined
def _is_same(
    event: Any, places: Array, rows: Array, shape: ChosenShape, groups: Array, events: Events
) -> Any:
    """Whether all that is told of a group is as it was."""
    group, asked = events.group[event], places.shape[1]
    counts = shape.group + _COUNTS + events.counts.shape[1] - 1
    chosen = counts + events.counts.shape[1] - 1
    for k in range(asked):
        if groups[group, chosen + 2 * k] != rows[k] + 1:
            return False
        if rows[k] >= 0 and groups[group, chosen + 2 * k + 1] != places[event, k]:
            return False
    for k in range(events.counts.shape[1] - 1):
        if groups[group, counts + k] != events.counts[event, k + 1]:
            return False
    return True


@inlined
def _walk(
    event: Any, shape: ChosenShape, groups: Array, lists: Lists, walked: Walked, work: Any
) -> None:
    """Note all rows of a group, as a text is made of them."""
    cursor, events = work
    size = cursor[_WALKED]
    link = groups[events.group[event], shape.group + _HEADS]
    while link != 0:
        for _ in range(lists.records[link - 1, shape.row + COUNT]):
            walked.rows[size] = link - 1
            size += 1
        link = lists.records[link - 1, lists.links]
    walked.ends[cursor[_TEXTS]] = size
    cursor[_WALKED] = size
    cursor[_TEXTS] += 1


@inlined
def _retell(
    event: Any,
    places: Array,
    rows: Array,
    shape: ChosenShape,
    groups: Array,
    work: Any,
    out: Chosen,
) -> None:
    """Take back what was told of a group, and tell what is chosen now."""
    cursor, events = work
    group, size, counted = events.group[event], cursor[_SIZE], events.counts.shape[1] - 1
    counts = shape.group + _COUNTS + counted
    chosen = counts + counted
    for k in range(places.shape[1]):
        row = groups[group, chosen + 2 * k] - 1
        if row >= 0:
            out.time[size], out.rows[size], out.weight[size] = events.time[event], row, -1
            out.place[size] = groups[group, chosen + 2 * k + 1]
            out.text[size] = groups[group, shape.group + _TEXT]
            for m in range(counted):
                out.counts[size, m] = groups[group, counts + m]
            size += 1
    groups[group, shape.group + _TEXT] = cursor[_FIRST_TEXT] + cursor[_TEXTS] - 1
    for k in range(places.shape[1]):
        groups[group, chosen + 2 * k] = rows[k] + 1
        groups[group, chosen + 2 * k + 1] = places[event, k]
        if rows[k] >= 0:
            out.time[size], out.rows[size], out.weight[size] = events.time[event], rows[k], 1
            out.place[size] = places[event, k]
            out.text[size] = groups[group, shape.group + _TEXT]
            for m in range(counted):
                out.counts[size, m] = events.counts[event, m + 1]
            size += 1
    for m in range(counted):
        groups[group, counts + m] = events.counts[event, m + 1]
    cursor[_SIZE] = size


@tight
def choose_rows(
    changes: Changed, events: Events, places: Array, rows: Array, shape: ChosenShape,
    groups: Array, lists: Lists, cursor: Array, out: Chosen, walked: Walked,
) -> bool:  # fmt: skip
    """Tell the rows at the places that are asked for; False if there is no more room for it.

    `rows` is room for a row of each place.
    """
    asked = places.shape[1]
    while cursor[_NEXT] < events.time.size:
        event = cursor[_NEXT]
        if cursor[_AT] < events.end[event]:
            _apply(changes, cursor[_AT], events.end[event], shape, groups, lists)
            cursor[_AT] = events.end[event]
        own = _list_of(events.group[event], groups, shape, lists)
        is_any = False
        for k in range(asked):
            place = places[event, k]
            rows[k] = row_at(place, own) if place > 0 else -1
            is_any = is_any or place > 0
        if shape.is_joined or not _is_same(event, places, rows, shape, groups, events):
            if out.time.size - cursor[_SIZE] < 2 * asked:
                return False
            if shape.is_joined and is_any:
                if walked.rows.size - cursor[_WALKED] < events.counts[event, 0]:
                    return False
                _walk(event, shape, groups, lists, walked, (cursor, events))
            _retell(event, places, rows, shape, groups, (cursor, events), out)
        cursor[_NEXT] += 1
    return True


class ChosenKernel(RowsInOrder):
    """Mutable: the rows of all groups in order, which of them were told, and in which texts."""

    row_words = _LINKS + WORDS
    links = _LINKS
    path_words = WORDS

    def __init__(
        self,
        function: Ordered,
        input_types: tuple[QueueType, ...],
        output_count: int,
        asked: tuple[Term, ...],
    ) -> None:
        """Numbers of rows are `asked` for, as terms of what is counted."""
        self.asked = asked
        self.counted = [column for column in function.columns if column.function == "count"]
        self.joined = [one for one in function.columns if one.function == JOINED]
        self.group_words = _COUNTS + 2 * len(self.counted) + 2 * len(asked)
        super().__init__(function, input_types, output_count)
        places = [-1 if c.column is None else self.columns.index(c.column) for c in self.counted]
        self.counts = np.array(places, np.int64)

    def forget(self) -> None:
        super().forget()
        self.shape = ChosenShape(self.rows.codec.width, self.groups.codec.width, bool(self.joined))
        #: Of each joined column the texts that groups were told, by number.
        self.texts: list[Any] = [pa.array([], pa.string()) for _ in self.joined]

    def pieces(self, inputs: tuple[Batch, ...], round_: Round) -> Iterator[Piece]:
        (batch,) = inputs
        if not len(batch):
            yield Piece(empty_batch(self.type), round_.mark)
            return
        changes = self.changes(batch)
        lists = self.lists()
        events = self._events(changes, lists)
        cursor = np.zeros(_FIRST_TEXT + 1, np.int64)
        size = max(self.room(len(batch)), 2 * len(self.asked))
        out = _room(size, len(self.counted))
        walked = Walked(np.empty(_WALK if self.joined else 0, np.int64), np.empty(size, np.int64))
        places, found = self._places(events), np.zeros(len(self.asked), np.int64)
        groups, is_done = self.groups.table.records, False
        while not is_done:
            cursor[[_SIZE, _WALKED, _TEXTS]] = 0
            cursor[_FIRST_TEXT] = len(self.texts[0]) if self.joined else 0
            is_done = choose_rows(
                changes, events, places, found, self.shape, groups, lists, cursor, out, walked
            )
            if not is_done and not cursor[_SIZE]:  # one text has more rows than there is room for
                asked = int(events.counts[cursor[_NEXT], 0])
                walked = Walked(np.empty(asked, np.int64), walked.ends)
                continue
            made = self._batch(out, walked, cursor)
            if is_done:
                self.release(changes)
                yield Piece(made, round_.mark)
            else:
                yield Piece(made, int(events.time[cursor[_NEXT]]) - 1)

    def _events(self, changes: Changed, lists: Lists) -> Events:
        size = len(changes.time)
        counts = np.empty((size, 1 + len(self.counts)), np.int64)
        time, group, end = (np.empty(size, np.int64) for _ in range(3))
        events = Events(time, group, end, counts)
        groups = self.groups.table.records
        size = count_changes(changes, self.counts, self.shape, lists, groups, events)
        return Events(*(frozen(a[:size]) for a in events))

    def _places(self, events: Events) -> Array:
        """The places that are asked for at each event, zero where there is none."""
        size = events.counts[:, 0]
        most = size if self.function.count is None else np.minimum(size, self.function.count)
        counts = {c.name: events.counts[:, k + 1] for k, c in enumerate(self.counted)}
        places = np.zeros((len(size), len(self.asked)), np.int64)
        for k, term in enumerate(self.asked):
            asked = np.broadcast_to(_number(term, counts), size.shape).astype(np.int64)
            is_there = (asked >= 1) & (asked <= most)
            for before in range(k):
                is_there &= places[:, before] != asked
            places[:, k] = np.where(is_there, asked, 0)
        return places

    def _batch(self, out: Chosen, walked: Walked, cursor: Array) -> Batch:
        size = int(cursor[_SIZE])
        chosen = Chosen(*(a[:size].copy() for a in out))
        by_name = self.vectors(chosen.rows)
        for k, one in enumerate(self.counted):
            by_name[one.name] = Vector(INTEGER, chosen.counts[:, k].copy())
        self._keep_texts(walked, int(cursor[_WALKED]), int(cursor[_TEXTS]))
        for one, texts in zip(self.joined, self.texts, strict=True):
            by_name[one.name] = Vector(TEXT, texts.take(pa.array(chosen.text)))
        for column in self.function.columns:
            by_name.setdefault(column.name, Vector(INTEGER, chosen.place))
        columns = tuple(by_name[n] for n in self.type.schema.names)
        if self.joined:
            self._let_go_of_texts()
        return Batch(self.type, chosen.time, columns, chosen.weight)

    def _keep_texts(self, walked: Walked, size: int, count: int) -> None:
        """Join the texts of what has been walked."""
        if not count:
            return
        vectors = self.vectors(walked.rows[:size])
        ends = walked.ends[:count]
        for k, one in enumerate(self.joined):
            joined = _joined(one, vectors, ends)
            self.texts[k] = pa.concat_arrays([self.texts[k], joined])

    def _let_go_of_texts(self) -> None:
        """Forget the texts that no group was told last, when they are many."""
        records = self.groups.table.records[: self.groups.bound]
        if len(self.texts[0]) < 2 * self.groups.size + LEVELS:
            return
        # A group that is told nothing has no text, but a number of one.
        chosen = self.shape.group + _COUNTS + 2 * len(self.counted)
        has_text = (records[:, chosen::2][:, : len(self.asked)] > 0).any(axis=1)
        column = records[:, self.shape.group + _TEXT]
        kept = pa.array(column[has_text].copy())
        self.texts = [texts.take(kept) for texts in self.texts]
        column[has_text] = np.arange(len(kept))


def _room(size: int, counted: int) -> Chosen:
    time, rows, place, weight, text = (np.empty(size, np.int64) for _ in range(5))
    return Chosen(time, rows, place, weight, text, np.empty((size, counted), np.int64))


def _joined(one: Placed, vectors: Mapping[str, Vector], ends: Array) -> Any:
    """The texts of groups one after the other; those that are null are passed over."""
    assert one.column is not None
    values = vectors[one.column]
    is_there = values.mask()
    passed = np.zeros(len(is_there) + 1, np.int64)
    passed[1:] = np.cumsum(is_there)
    bounds = np.concatenate([[0], passed[ends]])
    texts = values.to_arrow().filter(pa.array(is_there))
    lists = pa.LargeListArray.from_arrays(pa.array(bounds), texts)
    joined = pc.binary_join(lists, one.between)
    return pc.if_else(pa.array(np.diff(bounds) > 0), joined, pa.scalar(None, pa.string()))


def _number(term: Term, counts: Mapping[str, Array]) -> Any:
    """What a term of counts comes to, at many events at once; see `plan/places_asked`."""
    match term:
        case Column(name=name):
            return counts[name]
        case Literal(value=value):
            return value
        case Call(function=function, args=args):
            return _NUMBERS[function](*(_number(arg, counts) for arg in args))
    raise AssertionError(term)


def _least(*given: Any) -> Any:
    return np.minimum.reduce(np.broadcast_arrays(*given))


def _greatest(*given: Any) -> Any:
    return np.maximum.reduce(np.broadcast_arrays(*given))


_NUMBERS: Mapping[str, Any] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "number": lambda a: np.asarray(a, np.float64),
    "integer": lambda a: np.asarray(a).astype(np.int64),
    "floor": np.floor,
    "ceil": np.ceil,
    "greatest": _greatest,
    "least": _least,
}
