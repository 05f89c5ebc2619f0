"""What the actors of each operator do: one constructor of behaviours per operator.

Tables are persistent: a behaviour makes new ones and never changes one. An update that
changes nothing is sent on nonetheless, as in the thesis; two things are done otherwise than
there. A deletion is sent only for a row that was there; and a row whose foreign key comes to
refer to nothing is deleted, where the thesis lets it stand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from millstream.calculus.types import Row
from millstream.engine.actors.system import (
    Action,
    Address,
    Awake,
    Become,
    Behaviour,
    Message,
    Send,
    Wake,
)
from millstream.languages.algebra.groups import Group
from millstream.meaning.items import Item

#: The values of a table by key.
Contents = Mapping[Row, Row]
LEFT, RIGHT = "left", "right"


@dataclass(frozen=True, slots=True)
class Shape:
    """Where the key and the values of an update are; its last column is `deleted`."""

    key: tuple[int, ...]
    values: tuple[int, ...]
    width: int

    def key_of(self, row: Row) -> Row:
        return tuple(row[i] for i in self.key)

    def value_of(self, row: Row) -> Row:
        return tuple(row[i] for i in self.values)

    def is_update(self, row: Row) -> bool:
        return row[-1] is not True

    def update(self, key: Row, values: Row) -> Row:
        return (*self._columns(key, values), False)

    def delete(self, key: Row) -> Row:
        return (*self._columns(key, (None,) * len(self.values)), True)

    def _columns(self, key: Row, values: Row) -> Row:
        placed = dict(zip(self.key, key, strict=True)) | dict(zip(self.values, values, strict=True))
        return tuple(placed[i] for i in range(self.width))


def _with(table: Contents, key: Row, values: Row) -> Contents:
    return {**table, key: values}


def _without(table: Contents, key: Row) -> Contents:
    return {k: v for k, v in table.items() if k != key}


def _sent(out: Address, item: Item, row: Row) -> Send:
    return Send(out, Item(item.time, row))


# --- streams -----------------------------------------------------------------------------


def rows_of(function: Callable[[Item], list[Row]], out: Address) -> Behaviour:
    """`map`, `filter` and `map_concat`; `merge` is this with a function that changes nothing."""

    def behaviour(message: Message) -> tuple[Action, ...]:
        assert isinstance(message, Item)
        sent = (_sent(out, message, row) for row in function(message))
        return (Become(behaviour), *sent)

    return behaviour


def tagged(side: str, out: Address) -> Behaviour:
    def behaviour(message: Message) -> tuple[Action, ...]:
        assert isinstance(message, Item)
        return Become(behaviour), Send(out, (side, message))

    return behaviour


def collected(keep: Callable[[Item], None]) -> Behaviour:
    """Where results leave the system."""

    def behaviour(message: Message) -> tuple[Action, ...]:
        assert isinstance(message, Item)
        keep(message)
        return (Become(behaviour),)

    return behaviour


def settled(by: Callable[[Row], Row], micros: int, out: Address) -> Behaviour:
    """`debounce`: rows wait, each key its latest, until nothing has come for a while.

    Of a row and the end of a wait at one instant either may be heard of first: the one
    that waited is sent by whichever it is.
    """

    def sent(waited: Item) -> Send:
        return Send(out, Item(waited.time + micros, waited.row))

    def state(waiting: Mapping[Row, Item]) -> Behaviour:
        def behaviour(message: Message) -> tuple[Action, ...]:
            if isinstance(message, Awake):
                due = {k: w for k, w in waiting.items() if w.time + micros == message.at}
                others = {k: w for k, w in waiting.items() if k not in due}
                return (Become(state(others)), *map(sent, due.values()))
            assert isinstance(message, Item)
            key = by(message.row)
            before = waiting.get(key)
            is_due = before is not None and message.time - before.time == micros
            told = (sent(before),) if before is not None and is_due else ()
            later = Wake(message.time + micros)
            return (Become(state({**waiting, key: message})), later, *told)

        return behaviour

    return state({})


# --- tables of one input -----------------------------------------------------------------


def filtered(shape: Shape, holds: Callable[[Item], bool], out: Address) -> Behaviour:
    def state(there: frozenset[Row]) -> Behaviour:
        def behaviour(message: Message) -> tuple[Action, ...]:
            assert isinstance(message, Item)
            key = shape.key_of(message.row)
            if shape.is_update(message.row) and holds(message):
                return Become(state(there | {key})), Send(out, message)
            if key in there:
                gone = _sent(out, message, shape.delete(key))
                return Become(state(there - {key})), gone
            return (Become(behaviour),)

        return behaviour

    return state(frozenset())


def combined(
    given: Shape, made: Shape, initial: Row, combine: Callable[[Row, Row], Row], out: Address
) -> Behaviour:
    def state(table: Contents) -> Behaviour:
        def behaviour(message: Message) -> tuple[Action, ...]:
            assert isinstance(message, Item)
            key = given.key_of(message.row)
            if given.is_update(message.row):
                new = combine(table.get(key, initial), message.row)
                sent = _sent(out, message, made.update(key, new))
                return Become(state(_with(table, key, new))), sent
            if key in table:
                gone = _sent(out, message, made.delete(key))
                return Become(state(_without(table, key))), gone
            return (Become(behaviour),)

        return behaviour

    return state({})


def reduced(
    shape: Shape,
    group: Group,
    lift: Callable[[Row], Any],
    finish: Callable[[Any], Row],
    out: Address,
) -> Behaviour:
    def state(table: Contents, result: Any) -> Behaviour:
        def behaviour(message: Message) -> tuple[Action, ...]:
            assert isinstance(message, Item)
            key = shape.key_of(message.row)
            is_update = shape.is_update(message.row)
            if not is_update and key not in table:
                return (Become(behaviour),)
            new = result
            if key in table:
                new = group.combined(new, group.inverted(lift(table[key])))
            if is_update:
                new = group.combined(new, lift(message.row))
            after = _with(table, key, message.row) if is_update else _without(table, key)
            return Become(state(after, new)), _sent(out, message, finish(new))

        return behaviour

    return state({}, group.empty)


# --- joins -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class JoinShape:
    """The shapes of a join's inputs and output, and the row of a key that only one has.

    `alone` makes the values of a key that only the given side has, or None if such keys
    are left out; `paired` the values of a key that both have.
    """

    left: Shape
    right: Shape
    made: Shape
    paired: Callable[[Row, Row], Row]
    alone: Callable[[str, Row], Row | None]

    def joined(self, one: Row | None, other: Row | None) -> Row | None:
        """The values for what the two sides have, or None if there is to be no row."""
        if one is not None and other is not None:
            return self.paired(one, other)
        if one is not None:
            return self.alone(LEFT, one)
        return None if other is None else self.alone(RIGHT, other)

    def told(
        self, out: Address, item: Item, key: Row, before: Row | None, after: Row | None
    ) -> tuple[Action, ...]:
        if after is not None:
            return (_sent(out, item, self.made.update(key, after)),)
        if before is not None:
            return (_sent(out, item, self.made.delete(key)),)
        return ()


def _changed(shape: Shape, table: Contents, item: Item) -> tuple[Row, Contents]:
    """The key of an update, and the table after it."""
    key = shape.key_of(item.row)
    if shape.is_update(item.row):
        return key, _with(table, key, shape.value_of(item.row))
    return key, _without(table, key)


def joined(shape: JoinShape, out: Address) -> Behaviour:
    """Inner and outer joins: one row for each key that the shape wants."""

    def state(left: Contents, right: Contents) -> Behaviour:
        def behaviour(message: Message) -> tuple[Action, ...]:
            assert isinstance(message, tuple)
            side, item = message
            new_left, new_right = left, right
            if side == LEFT:
                key, new_left = _changed(shape.left, left, item)
            else:
                key, new_right = _changed(shape.right, right, item)
            before = shape.joined(left.get(key), right.get(key))
            after = shape.joined(new_left.get(key), new_right.get(key))
            told = shape.told(out, item, key, before, after)
            return (Become(state(new_left, new_right)), *told)

        return behaviour

    return state({}, {})


def foreign_joined(shape: JoinShape, refers: Callable[[Row, Row], Row], out: Address) -> Behaviour:
    """`refers` gives the foreign key of a row, from its key and its values.

    An update of the second table looks at every row of the first, as in the thesis.
    """

    def found(right: Contents, key: Row, values: Row | None) -> Row | None:
        if values is None:
            return None
        foreign = refers(key, values)
        return None if None in foreign else right.get(foreign)

    def state(left: Contents, right: Contents) -> Behaviour:
        def row(one: Contents, other: Contents, key: Row) -> Row | None:
            values = one.get(key)
            return None if values is None else shape.joined(values, found(other, key, values))

        def behaviour(message: Message) -> tuple[Action, ...]:
            assert isinstance(message, tuple)
            side, item = message
            if side == LEFT:
                key, after = _changed(shape.left, left, item)
                told = shape.told(out, item, key, row(left, right, key), row(after, right, key))
                return (Become(state(after, right)), *told)
            foreign, after = _changed(shape.right, right, item)
            concerned = [k for k, v in left.items() if refers(k, v) == foreign]
            all_told: tuple[Action, ...] = ()
            for key in concerned:
                before = row(left, right, key)
                all_told += shape.told(out, item, key, before, row(left, after, key))
            return (Become(state(left, after)), *all_told)

        return behaviour

    return state({}, {})
