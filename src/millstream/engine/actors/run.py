"""From trees of the algebra to a system of actors, and its results instant by instant.

The translation is the one of the thesis' figure 7.1: a tree and the address that its results
go to become actors. All events of one instant are sent at once; the next instant begins when
no message is on its way any more. Those who wait are woken at their instants, up to the last
event: there time ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from millstream.calculus.functions import Columns, Filter, FlatMap, Map, Opaque
from millstream.calculus.types import START_OF_TIME, TIME_COLUMN, Row, Schema, Value
from millstream.engine.actors import behaviours as acting
from millstream.engine.actors.behaviours import LEFT, RIGHT, JoinShape, Shape
from millstream.engine.actors.system import Address, System
from millstream.languages.algebra import (
    Group,
    Stream,
    Table,
    average,
    maximum,
    minimum,
    nodes,
    product,
    total,
)
from millstream.languages.algebra.nodes import StreamNode, TableNode
from millstream.languages.algebra.reducing import combine_terms
from millstream.meaning.items import Item
from millstream.meaning.scalars import evaluate
from millstream.tracing.lambdas import Record, RowFunction, Untraceable, trace_row, trace_term
from millstream.tracing.rows import given_row

#: For each input its events: times and rows, in order of time.
Events = Mapping[str, list[tuple[int, Row]]]


def run_actors(
    outputs: Mapping[str, Stream | Table], events: Events, seed: int = 0
) -> dict[str, list[tuple[int, Row]]]:
    """What comes out at every instant, in the order in which it comes out.

    The rows of a table are its updates, with a last column that is true for deletions.
    """
    made = _Actors(seed)
    results: dict[str, list[tuple[int, Row]]] = {name: [] for name in outputs}
    for name, one in outputs.items():
        made.collect(one, results[name])
    times = sorted({t for some in events.values() for t, _ in some} | {START_OF_TIME})
    for instant in made.instants(times):
        if instant == START_OF_TIME:
            made.begin()
        made.system.wake(instant)
        for name, some in events.items():
            for row in (row for time, row in some if time == instant):
                made.feed(name, Item(instant, row))
        made.system.run()
    return results


class _Actors:
    """Mutable: the system, and where the inputs go."""

    def __init__(self, seed: int) -> None:
        self.system = System(seed)
        self.readers: dict[str, list[Address]] = {}
        self.first: list[tuple[Address, Row]] = []

    def collect(self, one: Stream | Table, rows: list[tuple[int, Row]]) -> None:
        out = self.system.create(acting.collected(lambda m: rows.append((m.time, m.row))))
        if isinstance(one, Stream):
            self.stream(one.node, out)
        else:
            self.table(one.node, out)

    def instants(self, times: list[int]) -> Iterator[int]:
        """The instants at which something comes or somebody wakes, until time ends."""
        for time in times:
            while (waking := self.system.next_waking()) is not None and waking < time:
                yield waking
            yield time

    def begin(self) -> None:
        for address, row in self.first:
            self.system.send(address, Item(START_OF_TIME, row))

    def feed(self, name: str, item: Item) -> None:
        for address in self.readers.get(name, ()):
            self.system.send(address, item)

    # --- streams -----------------------------------------------------------------------

    def stream(self, node: StreamNode, out: Address) -> None:
        create = self.system.create
        match node:
            case nodes.Source():
                self.readers.setdefault(node.input.name, []).append(out)
            case nodes.Now():
                self.first += [(out, row) for row in node.rows]
            case nodes.Rowwise():
                rows = row_function(node.function, node.parent.schema)
                self.stream(node.parent, create(acting.rows_of(rows, out)))
            case nodes.Merged():
                merged = create(acting.rows_of(lambda item: [item.row], out))
                for parent in node.parents:
                    self.stream(parent, merged)
            case nodes.Changelog():
                self.table(node.table, out)
            case nodes.UpdateStream():
                live = create(acting.rows_of(_live, out))
                self.table(node.table, live)
            case nodes.Reduce():
                self._reduce(node, out)
            case nodes.Settled():
                places = [node.schema.index(n) for n in node.by]
                key = partial(_columns, places)
                self.stream(node.parent, create(acting.settled(key, node.micros, out)))
            case _:
                raise AssertionError(node)

    def _reduce(self, node: nodes.Reduce, out: Address) -> None:
        schema, names = node.table.schema, node.schema.names
        group = on_values(node.group, schema)

        def lift(row: Row) -> Any:
            return group.lifted(given_row(schema, row[:-1]))

        def finish(value: Any) -> Row:
            result = group.finished(value)
            return tuple(result[n] for n in names)

        behaviour = acting.reduced(shape_of(node.table), group, lift, finish, out)
        self.table(node.table, self.system.create(behaviour))

    # --- tables ------------------------------------------------------------------------

    def table(self, node: TableNode, out: Address) -> None:
        create = self.system.create
        match node:
            case nodes.ToTable():
                self.stream(node.stream, create(acting.rows_of(_as_updates(node), out)))
            case nodes.MapTable():
                rows = _on_values(node)
                self.table(node.parent, create(acting.rows_of(rows, out)))
            case nodes.FilterTable():
                kept = row_function(node.function, node.schema)
                behaviour = acting.filtered(
                    shape_of(node), lambda i: bool(kept(Item(i.time, i.row[:-1]))), out
                )
                self.table(node.parent, create(behaviour))
            case nodes.CombineUpdates():
                self.table(node.parent, create(_combined(node, out)))
            case nodes.InnerJoin() | nodes.OuterJoin() | nodes.ForeignJoin():
                self._join(node, out)
            case _:
                raise AssertionError(node)

    def _join(
        self, node: nodes.InnerJoin | nodes.OuterJoin | nodes.ForeignJoin, out: Address
    ) -> None:
        shape = join_shape(node)
        if isinstance(node, nodes.ForeignJoin):
            behaviour = acting.foreign_joined(shape, _refers(node), out)
        else:
            behaviour = acting.joined(shape, out)
        join = self.system.create(behaviour)
        self.table(node.left, self.system.create(acting.tagged(LEFT, join)))
        self.table(node.right, self.system.create(acting.tagged(RIGHT, join)))


# --- groups on rows, where nulls are what they are to terms -------------------------------

_READY = {"sum": total, "avg": average, "min": minimum, "max": maximum}


def on_values(group: Group, schema: Schema) -> Group:
    """A group whose callables of a row are evaluated as terms, if they can be traced."""
    if group.parts is not None:
        return product(**{n: on_values(one, schema) for n, one in group.parts.items()})
    for measure in group.measures:
        if measure.of is not None:
            return _READY[measure.function](_evaluated(measure.of, schema))
    if group.lift is None or group.measures:
        return group
    try:
        columns = trace_row(group.lift, schema)
    except Untraceable:
        return group
    return replace(group, lift=lambda row: {
        c.name: evaluate(c.term, vars(row)) for c in columns})  # fmt: skip


def _evaluated(function: RowFunction, schema: Schema) -> Callable[[Record], Value]:
    term = trace_term(function, schema)
    return lambda row: evaluate(term, vars(row))


# --- functions of rows -----------------------------------------------------------------------


def row_function(
    function: Map | Filter | FlatMap | Opaque, schema: Schema
) -> Callable[[Item], list[Row]]:
    """The rows that a function makes of a row."""

    def names(item: Item) -> dict[str, Value]:
        return {TIME_COLUMN: item.time} | dict(zip(schema.names, item.row, strict=True))

    match function:
        case Map(columns):
            return lambda item: [_row(columns, names(item))]
        case Filter(condition):
            return lambda item: [item.row] if evaluate(condition, names(item)) is True else []
        case FlatMap(branches):
            return lambda item: [
                _row(b.columns, names(item))
                for b in branches
                if b.when is None or evaluate(b.when, names(item)) is True
            ]
        case Opaque():
            return lambda item: function.call(item.row, item.time)


def _row(columns: Columns, names: dict[str, Value]) -> Row:
    return tuple(evaluate(c.term, names) for c in columns)


def _columns(places: list[int], row: Row) -> Row:
    return tuple(row[p] for p in places)


def _live(item: Item) -> list[Row]:
    return [] if item.row[-1] is True else [item.row[:-1]]


def _as_updates(node: nodes.ToTable) -> Callable[[Item], list[Row]]:
    given = node.stream.schema
    places = [given.index(n) for n in node.schema.names]
    deleted = None if node.deleted is None else given.index(node.deleted)

    def rows(item: Item) -> list[Row]:
        # What is not known to be deleted is not, and the changelog says what was said.
        is_deleted = False if deleted is None else item.row[deleted]
        return [(*(item.row[p] for p in places), is_deleted)]

    return rows


def _on_values(node: nodes.MapTable) -> Callable[[Item], list[Row]]:
    function = row_function(node.function, node.parent.schema)
    given, made = shape_of(node.parent), shape_of(node)

    def rows(item: Item) -> list[Row]:
        if not given.is_update(item.row):
            return [made.delete(given.key_of(item.row))]
        return [(*row, False) for row in function(Item(item.time, item.row[:-1]))]

    return rows


def _combined(node: nodes.CombineUpdates, out: Address) -> Any:
    names = node.parent.schema
    terms = {} if node.is_opaque else combine_terms(node.combine, "state", node.fields, names)

    def combine(state: Row, row: Row) -> Row:
        before = dict(zip(node.fields.names, state, strict=True))
        given = row[: len(names)]
        if node.is_opaque:
            result: Any = node.combine(Record(before), given_row(names, given))
        else:
            columns = dict(zip(names.names, given, strict=True))
            result = {n: evaluate(t, columns, {"state": before}) for n, t in terms.items()}
        return tuple((before | dict(result))[n] for n in node.fields.names)

    return acting.combined(shape_of(node.parent), shape_of(node), node.initial, combine, out)


# --- shapes ------------------------------------------------------------------------------------


def shape_of(node: TableNode) -> Shape:
    names = node.schema.names
    key = tuple(names.index(n) for n in node.key)
    return Shape(key, tuple(i for i in range(len(names)) if i not in key), len(names))


def join_shape(node: nodes.InnerJoin | nodes.OuterJoin | nodes.ForeignJoin) -> JoinShape:
    nulls_left, nulls_right = (None,) * len(node.left.values), (None,) * len(node.right.values)

    def paired(one: Row, other: Row) -> Row:
        match node:
            case nodes.OuterJoin():
                return (*one, *other, True, True)
            case nodes.ForeignJoin(found=str()):
                return (*one, *other, True)
            case _:
                return one + other

    def alone(side: str, values: Row) -> Row | None:
        match node:
            case nodes.OuterJoin() if side == LEFT:
                return (*values, *nulls_right, True, False)
            case nodes.OuterJoin():
                return (*nulls_left, *values, False, True)
            case nodes.ForeignJoin(found=str()) if side == LEFT:
                return (*values, *nulls_right, False)
            case _:
                return None

    shapes = (shape_of(node.left), shape_of(node.right), shape_of(node))
    return JoinShape(*shapes, paired, alone)


def _refers(node: nodes.ForeignJoin) -> Callable[[Row, Row], Row]:
    shape, names = shape_of(node.left), node.left.schema.names
    places = [names.index(n) for n in node.on]

    def refers(key: Row, values: Row) -> Row:
        row = shape.update(key, values)
        return tuple(row[p] for p in places)

    return refers
