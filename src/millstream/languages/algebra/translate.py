"""From trees of the algebra to programs of the calculus.

A table travels in one of two ways. As a *relation*, which holds its rows at every instant:
filters and maps of relations are stateless, joins are the joins of the calculus, indexed by
key on both sides. Or as the stream of its *updates*, where these are known one by one: for
`to_table`, `combine_updates` and the maps of either. So `changelog` and `to_table` name a way
to travel and add no operator; a conversion is made only where a table that is computed as a
relation is read as a stream, or the reverse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields

from millstream.calculus.functions import (
    Assign,
    Dstream,
    Filter,
    Istream,
    Join,
    Latest,
    Map,
    Merge,
    Now,
    Opaque,
    Rows,
)
from millstream.calculus.graph import Input, Program
from millstream.calculus.library.columns import is_true, kept, nothing, unlike
from millstream.calculus.terms import Call, Column, Literal
from millstream.calculus.types import (
    BOOLEAN,
    DURATION,
    INTEGER,
    TIME,
    TIME_COLUMN,
    Field,
    QueueType,
    Row,
    Schema,
)
from millstream.calculus.wiring import Queue, Wiring
from millstream.errors import UsageError
from millstream.languages.algebra import nodes
from millstream.languages.algebra.folding import combined_updates, reduced
from millstream.languages.algebra.joining import foreign_join, inner_join, outer_join
from millstream.languages.algebra.nodes import DELETED, StreamNode, TableNode
from millstream.languages.algebra.stream import Stream, Table


@dataclass(frozen=True, slots=True)
class Updates:
    """The updates of a table as a stream; if rows are never deleted it has no `deleted`."""

    queue: Queue
    can_delete: bool


def program_of(**outputs: Stream | Table) -> Program:
    """The verified program whose outputs are some streams and tables.

    A table leaves as a relation.
    """
    made = Translator()
    for one in _inputs(flow.node for flow in outputs.values()):
        made.wiring.input(one)
    made.wiring.names.update(outputs)
    queues = {
        name: made.stream(one.node) if isinstance(one, Stream) else made.relation(one.node)
        for name, one in outputs.items()
    }
    return made.wiring.program(queues)


def _inputs(roots: Iterable[StreamNode | TableNode]) -> list[Input]:
    """The inputs behind some nodes, each once and in order of first use."""
    inputs: dict[str, Input] = {}
    seen: set[int] = set()
    waiting: list[object] = []
    waiting += reversed([*roots])
    while waiting:
        node = waiting.pop()
        if isinstance(node, (nodes.Source, nodes.RelationSource)):
            if inputs.setdefault(node.input.name, node.input) != node.input:
                raise UsageError(f'there are two different inputs "{node.input.name}"')
        if isinstance(node, tuple):
            waiting += node[::-1]
        if isinstance(node, (StreamNode, TableNode)) and id(node) not in seen:
            seen.add(id(node))
            waiting += [getattr(node, f.name) for f in fields(node)][::-1]
    return list(inputs.values())


class Translator:
    """Mutable: the operators so far, and which queue each node has become."""

    def __init__(self) -> None:
        self.wiring = Wiring()
        self.streams: dict[int, Queue] = {}
        self.relations: dict[int, Queue] = {}
        self.updated: dict[int, Updates] = {}

    # --- streams -----------------------------------------------------------------------

    def stream(self, node: StreamNode) -> Queue:
        if id(node) not in self.streams:
            self.streams[id(node)] = self._stream(node)
        return self.streams[id(node)]

    def _stream(self, node: StreamNode) -> Queue:
        add = self.wiring.add
        match node:
            case nodes.Source():
                return self.wiring.input(node.input)
            case nodes.Now():
                return self._now(node)
            case nodes.Rowwise():
                name = type(node.function).__name__.lower()
                return add(node.function, self.stream(node.parent), name=name)
            case nodes.Merged():
                return add(Merge(), *map(self.stream, node.parents), name="merged")
            case nodes.Changelog():
                return self._changelog(node.table)
            case nodes.UpdateStream():
                return self._update_stream(node)
            case nodes.Reduce():
                return self._reduced(node)
            case nodes.Settled():
                return self._settled(node)
            case nodes.StreamOf():
                return self._applied(node)
            case nodes.Framed():
                return node.frame(self.wiring, self.stream(node.parent))
            case _:
                raise AssertionError(node)

    def _now(self, node: nodes.Now) -> Queue:
        """A relation that was always there, with the place of each row to keep their order."""
        place = unlike("place", node.schema)
        schema = Schema((Field(place, INTEGER), *node.schema.fields))
        name = self.wiring.fresh("now")
        rows = tuple((n, *row) for n, row in enumerate(node.rows))
        type_ = QueueType(schema, is_relation=True)
        once = self.wiring.input(Input(name, type_, is_read_once=True, values=rows))
        placed = self.wiring.add(Istream(), once, name=f"{name}_placed")
        return self.wiring.add(Map(kept(node.schema)), placed, name=f"{name}_rows")

    def _changelog(self, table: TableNode) -> Queue:
        updates = self.updates(table)
        if updates.can_delete:
            return updates.queue
        columns = (*kept(table.schema), Assign(DELETED, Literal(False, BOOLEAN)))
        return self.wiring.add(Map(columns), updates.queue, name="changelog")

    def _update_stream(self, node: nodes.UpdateStream) -> Queue:
        updates = self.updates(node.table)
        if not updates.can_delete:
            return updates.queue
        is_live = Call("not", (is_true(DELETED),), BOOLEAN)
        live = self.wiring.add(Filter(is_live), updates.queue, name="live")
        return self.wiring.add(Map(kept(node.schema)), live, name="updates")

    def _reduced(self, node: nodes.Reduce) -> Queue:
        """What the result is where it changes; or for each update, which its number tells apart."""
        add = self.wiring.add
        result = reduced(self.wiring, node, self.relation(node.table))
        if node.each is None:
            return add(Istream(), result, name="reduced")
        number = unlike("number", node.schema)
        column = Column(node.each, node.table.schema[node.each])
        given = self.updates(node.table).queue
        numbers = add(Map((Assign(number, column),)), given, name="numbers")
        present = add(Now(), numbers, name="present")
        beside = add(Join(), present, result, name="beside")
        each = add(Istream(), beside, name="each")
        return add(Map(kept(node.schema)), each, name="reduced")

    def _settled(self, node: nodes.Settled) -> Queue:
        """A window of the last row, which a row leaves untouched by others at its end."""
        add, schema = self.wiring.add, node.schema
        at = unlike("at", schema)
        stamped = (*kept(schema), Assign(at, Column(TIME_COLUMN, TIME)))
        timed = add(Map(stamped), self.stream(node.parent), name="timed")
        last = add(Rows(1, node.by, node.micros - 1), timed, name="last")
        gone = add(Dstream(), last, name="gone")
        age = Call("-", (Column(TIME_COLUMN, TIME), Column(at, TIME)), DURATION)
        is_due = Call("==", (age, Literal(node.micros, DURATION)), BOOLEAN)
        settled = add(Filter(is_due), gone, name="settled")
        return add(Map(kept(schema)), settled, name="settled")

    # --- tables as relations -------------------------------------------------------------

    def relation(self, node: TableNode) -> Queue:
        if id(node) not in self.relations:
            self.relations[id(node)] = self._relation(node)
        return self.relations[id(node)]

    def _relation(self, node: TableNode) -> Queue:
        match node:
            case nodes.ToTable() | nodes.CombineUpdates():
                return self._held(node, self.updates(node))
            case nodes.MapTable():
                return self.wiring.add(node.function, self.relation(node.parent), name="mapped")
            case nodes.FilterTable():
                return self.wiring.add(node.function, self.relation(node.parent), name="filtered")
            case nodes.InnerJoin():
                return inner_join(self.wiring, node, *self._both(node))
            case nodes.OuterJoin():
                return outer_join(self.wiring, node, *self._both(node))
            case nodes.ForeignJoin():
                return foreign_join(self.wiring, node, *self._both(node))
            case nodes.RelationSource():
                return self.wiring.input(node.input)
            case nodes.TableOf():
                return self._applied(node)
            case nodes.Sessions():
                return node.frame(self.wiring, self.stream(node.parent))
            case _:
                raise AssertionError(node)

    def _applied(self, node: nodes.StreamOf | nodes.TableOf) -> Queue:
        parents = [
            self.stream(one) if isinstance(one, StreamNode) else self.relation(one)
            for one in node.parents
        ]
        return self.wiring.add(node.function, *parents, name=node.function.name.lower())

    def _both(
        self, node: nodes.InnerJoin | nodes.OuterJoin | nodes.ForeignJoin
    ) -> tuple[Queue, Queue]:
        return self.relation(node.left), self.relation(node.right)

    def _held(self, node: TableNode, updates: Updates) -> Queue:
        """The latest update of each key, unless it is a deletion."""
        unless = DELETED if updates.can_delete else None
        table = self.wiring.add(Latest(node.key, unless), updates.queue, name="table")
        if not updates.can_delete:
            return table
        return self.wiring.add(Map(kept(node.schema)), table, name="rows")

    # --- tables as updates ---------------------------------------------------------------

    def updates(self, node: TableNode) -> Updates:
        if id(node) not in self.updated:
            self.updated[id(node)] = self._updates(node)
        return self.updated[id(node)]

    def _updates(self, node: TableNode) -> Updates:
        match node:
            case nodes.ToTable():
                return self._written(node)
            case nodes.CombineUpdates():
                given = self.updates(node.parent)
                queue = combined_updates(
                    self.wiring, node, given.queue, can_delete=given.can_delete
                )
                return Updates(queue, given.can_delete)
            case nodes.MapTable() if is_exact(node):
                given = self.updates(node.parent)
                function = update_map(node, can_delete=given.can_delete)
                queue = self.wiring.add(function, given.queue, name="mapped")
                return Updates(queue, given.can_delete)
            case _:
                return Updates(self._net(node, self.relation(node)), can_delete=True)

    def _written(self, node: nodes.ToTable) -> Updates:
        given = self.stream(node.stream)
        columns = kept(node.schema)
        if node.deleted is not None:
            columns = (*columns, Assign(DELETED, Column(node.deleted, BOOLEAN)))
        if tuple(c.name for c in columns) != given.schema.names or node.deleted not in (
            None,
            DELETED,
        ):
            given = self.wiring.add(Map(columns), given, name="updates")
        return Updates(given, node.deleted is not None)

    def _net(self, node: TableNode, relation: Queue) -> Queue:
        """At each instant the keys that are gone, then the rows that are new.

        A row that is replaced leaves its key where it was, so its key is not gone.
        """
        add = self.wiring.add
        keys = kept(Schema(tuple(f for f in node.schema if f.name in node.key)))
        only_keys = add(Map(keys or (Assign("key", Literal(0, INTEGER)),)), relation, name="keys")
        gone = add(Dstream(), only_keys, name="gone")
        nulls = nothing(Schema(tuple(f for f in node.schema if f.name not in node.key)))
        by_name = {c.name: c for c in (*keys, *nulls)}
        ordered = tuple(by_name[n] for n in node.schema.names)
        deletions = add(
            Map((*ordered, Assign(DELETED, Literal(True, BOOLEAN)))), gone, name="deletions"
        )
        come = add(Istream(), relation, name="come")
        flag = Assign(DELETED, Literal(False, BOOLEAN))
        new = add(Map((*kept(node.schema), flag)), come, name="new")
        return add(Merge(), deletions, new, name="changelog")


# --- maps of updates ---------------------------------------------------------------------------


def is_exact(node: TableNode) -> bool:
    """Whether the updates of a table are known one by one."""
    if isinstance(node, nodes.MapTable):
        return is_exact(node.parent)
    return isinstance(node, (nodes.ToTable, nodes.CombineUpdates))


def update_map(node: nodes.MapTable, *, can_delete: bool) -> Map | Opaque:
    """The map of a table on its updates: the values of a deletion stay null."""
    function = node.function
    if not can_delete:
        return function
    if isinstance(function, Opaque):
        names = node.parent.update_schema.names
        places = [names.index(n) for n in node.key]
        width = len(node.values)
        return Opaque(function.label, node.update_schema, _unless_deleted(
            function.call, places, width))  # fmt: skip
    columns = tuple(
        c if c.name in node.key else Assign(c.name, Call(
            "if", (is_true(DELETED), Literal(None, c.term.type), c.term), c.term.type))
        for c in function.columns
    )  # fmt: skip
    return Map((*columns, Assign(DELETED, Column(DELETED, BOOLEAN))))


def _unless_deleted(
    inner: Callable[[Row, int], list[Row]], places: list[int], width: int
) -> Callable[[Row, int], list[Row]]:
    def call(row: Row, time: int) -> list[Row]:
        *values, deleted = row
        if deleted:
            return [(*(row[p] for p in places), *(None,) * width, True)]
        return [(*new, deleted) for new in inner(tuple(values), time)]

    return call
