"""The algebra as trees: what the thesis' tables 4.1 and 4.2 list, and what the calculus adds.

A tree says what is wanted; `translate` makes a program of the calculus of it. Nodes are told
apart by identity, so that what is read twice is computed once.

A *table* is a relation with a key. Its `schema` has the key first and then the values. Its
*changelog* is a stream of updates: the columns of the table, and a boolean that is true
where a row is deleted; the values of a deletion are null.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from millstream.calculus.functions import Columns, Filter, FlatMap, Function, Map, Opaque
from millstream.calculus.graph import Input
from millstream.calculus.types import BOOLEAN, Field, Row, Schema, Value
from millstream.calculus.wiring import Queue, Wiring
from millstream.languages.algebra.groups import Group
from millstream.tracing.lambdas import RowFunction

#: The column of a changelog that says that a row is deleted.
DELETED = "deleted"

Key = tuple[str, ...]


@dataclass(frozen=True, eq=False)
class StreamNode:
    """The base of what gives a stream."""

    schema: Schema


@dataclass(frozen=True, eq=False)
class TableNode:
    """The base of what gives a table."""

    schema: Schema
    key: Key

    @property
    def values(self) -> tuple[str, ...]:
        return tuple(n for n in self.schema.names if n not in self.key)

    @property
    def update_schema(self) -> Schema:
        """The columns of the changelog."""
        return Schema((*self.schema.fields, Field(DELETED, BOOLEAN)))


# --- streams -----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Source(StreamNode):
    """An input of the program."""

    input: Input


@dataclass(frozen=True, eq=False)
class Now(StreamNode):
    """Some rows at the beginning of time, and nothing after; `never` has no rows."""

    rows: tuple[Row, ...]


@dataclass(frozen=True, eq=False)
class Rowwise(StreamNode):
    """`map`, `filter` and `map_concat`: a stateless function of each row."""

    parent: StreamNode
    function: Map | Filter | FlatMap | Opaque


@dataclass(frozen=True, eq=False)
class Merged(StreamNode):
    """All rows of some streams, by (time, number of the stream, position)."""

    parents: tuple[StreamNode, ...]


@dataclass(frozen=True, eq=False)
class Changelog(StreamNode):
    """The updates of a table."""

    table: TableNode


@dataclass(frozen=True, eq=False)
class UpdateStream(StreamNode):
    """The rows that a table is updated with: its changelog without deletions."""

    table: TableNode


@dataclass(frozen=True, eq=False)
class Reduce(StreamNode):
    """All rows of a table combined, whenever that changes.

    With `each`, a column that numbers the updates of the table, after each of these.
    """

    table: TableNode
    group: Group
    each: str | None = None


@dataclass(frozen=True, eq=False)
class Settled(StreamNode):
    """Each row that no other follows (of its key) for a while, at the end of that while."""

    parent: StreamNode
    by: Key
    micros: int


@dataclass(frozen=True, eq=False)
class StreamOf(StreamNode):
    """A function of the calculus that makes a stream of streams and tables."""

    parents: tuple[StreamNode | TableNode, ...]
    function: Function


@dataclass(frozen=True, eq=False)
class Framed(StreamNode):
    """The rows of a stream with the windows of time that they lie in."""

    parent: StreamNode
    frame: Callable[[Wiring, Queue], Queue]


# --- tables ------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class RelationSource(TableNode):
    """An input of changes, whose rows have no key."""

    input: Input


@dataclass(frozen=True, eq=False)
class TableOf(TableNode):
    """A function of the calculus that makes a relation of streams and tables.

    It `is_keyed` if it has one row for each key; else it is a bag, of rows that may be alike.
    """

    parents: tuple[StreamNode | TableNode, ...]
    function: Function
    is_keyed: bool = False


@dataclass(frozen=True, eq=False)
class Sessions(TableNode):
    """The rows of a stream with the sessions that they are in so far: a bag."""

    parent: StreamNode
    frame: Callable[[Wiring, Queue], Queue]


def is_bag(node: TableNode) -> bool:
    """Whether a table has no key."""
    if isinstance(node, TableOf):
        return not node.is_keyed
    return isinstance(node, (RelationSource, Sessions))


@dataclass(frozen=True, eq=False)
class ToTable(TableNode):
    """The latest row of each key of a stream.

    `deleted` is the column of the stream that says that a row is deleted; without one
    rows are never deleted.
    """

    stream: StreamNode
    deleted: str | None


@dataclass(frozen=True, eq=False)
class MapTable(TableNode):
    """Other values for each row; the function also gives the key, unchanged."""

    parent: TableNode
    function: Map | Opaque


@dataclass(frozen=True, eq=False)
class FilterTable(TableNode):
    """The rows for which a condition holds, and only while it holds."""

    parent: TableNode
    function: Filter | Opaque


@dataclass(frozen=True, eq=False)
class InnerJoin(TableNode):
    """The rows of two tables with one key."""

    left: TableNode
    right: TableNode


@dataclass(frozen=True, eq=False)
class OuterJoin(TableNode):
    """A row for each key that one table or the other has.

    `has_left` and `has_right` are the columns that say which of them have it.
    """

    left: TableNode
    right: TableNode
    has_left: str
    has_right: str


@dataclass(frozen=True, eq=False)
class ForeignJoin(TableNode):
    """Each row of a table with the row of another that it refers to.

    `on` are the columns of the first that hold a key of the second. With `found`, a
    column that says whether there is such a row, rows that refer to nothing stay.
    """

    left: TableNode
    right: TableNode
    on: tuple[str, ...]
    found: str | None


@dataclass(frozen=True, eq=False)
class CombineUpdates(TableNode):
    """What the updates of each row have added up to since it came.

    `combine` is a function of the state so far and of the row that has come.
    """

    parent: TableNode
    fields: Schema
    initial: tuple[Value, ...]
    combine: RowFunction
    is_opaque: bool


def can_delete(node: TableNode) -> bool:
    """Whether rows are ever deleted from a table; computed tables may always do so."""
    match node:
        case ToTable():
            return node.deleted is not None
        case MapTable() | CombineUpdates():
            return can_delete(node.parent)
        case _:
            return True


__all__ = [
    "DELETED", "Changelog", "Columns", "CombineUpdates", "FilterTable", "ForeignJoin", "Framed",
    "InnerJoin", "Key", "Map", "MapTable", "Merged", "Now", "OuterJoin", "Reduce",
    "RelationSource", "Rowwise", "Sessions", "Settled", "Source", "StreamNode", "StreamOf",
    "TableNode", "TableOf", "ToTable", "UpdateStream", "can_delete", "is_bag",
]  # fmt: skip
