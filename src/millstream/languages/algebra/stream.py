"""Streams and tables, with the operators of the algebra as methods.

A method only builds a tree (`nodes`). Lambdas are traced into terms, so that they compile;
what cannot be traced is kept as it is, runs row by row, and `explain` says so. Wherever a
lambda is wanted, the terms themselves are accepted too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from millstream.calculus import functions
from millstream.calculus.functions import Columns
from millstream.calculus.graph import Input
from millstream.calculus.terms import Term, fitted
from millstream.calculus.types import BOOLEAN, Field, QueueType, Schema, Value
from millstream.errors import UsageError, listing, suggest
from millstream.languages.algebra import nodes
from millstream.languages.algebra.groups import Group, recorded
from millstream.languages.algebra.groups import product as product_of
from millstream.languages.algebra.nodes import DELETED
from millstream.languages.algebra.reducing import State, combine_node, result_schema
from millstream.languages.algebra.tables import table_map_function
from millstream.languages.algebra.windows import (
    Aggregated,
    Length,
    aggregated,
    bag,
    framed,
    in_sessions,
    names_of,
    required,
    stream_of,
)
from millstream.tracing.lambdas import VALUE, RowFunction
from millstream.tracing.rows import (
    concat_function,
    filter_function,
    map_function,
    micros,
    schema_of_names,
    schema_of_values,
)


@dataclass(frozen=True, eq=False)
class Stream:
    """Rows as they come. In lambdas `r._time` is the event time of a row.

    A window (`range`, `rows`, `now`, `unbounded`, `tumble`...) makes a table of a stream.
    """

    builder: ClassVar[str] = "millstream.languages.algebra.translate:program_of"

    node: nodes.StreamNode

    @property
    def schema(self) -> Schema:
        return self.node.schema

    def map(self, function: RowFunction | Columns, **columns: str) -> Stream:
        """One row for each row: `xs.map(lambda r: {"ukc": r.depth - r.draught})`.

        A lambda that gives a value gives a column `value`. `columns` are only needed for what
        cannot be traced.
        """
        made = map_function(function, self.schema, columns, has_time=True)
        return Stream(nodes.Rowwise(made.schema, self.node, made.function))

    def map_concat(self, function: RowFunction, **columns: str) -> Stream:
        """A list of rows for each row: `xs.map_concat(lambda r: [{"x": r.a}, {"x": r.b}])`.

        `when(condition, row)` stands for a row that is only sometimes there. `columns`
        are only needed for what cannot be traced.
        """
        made = concat_function(function, self.schema, columns, has_time=True)
        return Stream(nodes.Rowwise(made.schema, self.node, made.function))

    def flat_map(self, function: RowFunction, **columns: str) -> Stream:
        """Another name for `map_concat`."""
        return self.map_concat(function, **columns)

    def filter(self, condition: RowFunction | Term) -> Stream:
        """The rows for which a condition is true."""
        made = filter_function(condition, self.schema, has_time=True)
        return Stream(nodes.Rowwise(self.schema, self.node, made))

    def merge(self, *others: Stream) -> Stream:
        """All rows of all streams by time; of one time, those of earlier streams first."""
        for number, other in enumerate(others, 2):
            if other.schema != self.schema:
                raise UsageError(
                    f"cannot merge streams of different columns: the first has {self.schema}, "
                    f"number {number} has {other.schema}",
                    hint="make them alike with map",
                )
        parents = (self.node, *(other.node for other in others))
        return Stream(nodes.Merged(self.schema, parents))

    def to_table(self, key: str | Iterable[str], *, deleted: str | None = DELETED) -> Table:
        """The table whose updates this stream has; it costs nothing.

        `deleted` names the boolean column that is true where a row is deleted; it is not
        a column of the table. With `deleted=None` every row is an update.
        """
        names = names_of(key)
        if isinstance(self.node, nodes.Changelog) and deleted == DELETED:
            if names == self.node.table.key:
                return Table(self.node.table)
        required(names, self.schema, "the key of a table")
        if deleted is not None:
            required((deleted,), self.schema, "the column of deletions")
            if self.schema[deleted] != BOOLEAN:
                raise UsageError(
                    f'"{deleted}" says which rows are deleted, so it must be a boolean, '
                    f"got {self.schema[deleted]}"
                )
            if deleted != DELETED and DELETED in self.schema:
                raise UsageError(
                    f'"{deleted}" says which rows are deleted, but the stream also has a column '
                    f'"{DELETED}"',
                    hint="rename one of them with map",
                )
        schema = _keys_first(self.schema, names, without=deleted)
        return Table(nodes.ToTable(schema, names, self.node, deleted))

    # --- windows ---------------------------------------------------------------------

    def now(self) -> Table:
        """The rows of this very instant."""
        return Table(bag(functions.Now(), self.node))

    def range(self, length: Length, *, slide: Length | None = None) -> Table:
        """The rows of the last while: `range("5 min")`, or `range(timedelta(minutes=5))`.

        With a `slide` the window moves only at multiples of that.
        """
        step = None if slide is None else micros(slide)
        return Table(bag(functions.Range(micros(length), step), self.node))

    def unbounded(self) -> Table:
        """All rows that ever came."""
        return Table(bag(functions.Range(None), self.node))

    def rows(
        self, count: int, by: str | Iterable[str] = (), *, within: Length | None = None
    ) -> Table:
        """The last rows, of each key if `by` is given, and not older than `within`."""
        length = None if within is None else micros(within)
        return Table(bag(functions.Rows(count, names_of(by), length), self.node))

    def latest(self, *by: str) -> Table:
        """The latest row of each key."""
        return self.to_table(by, deleted=None)

    def tumble(self, size: Length, *, offset: Length = "0 s") -> Stream:
        """Each row with its `window_start` and `window_end`; windows follow each other.

        trades.tumble("1 min").unbounded().aggregate(
            by=("window_start", "symbol"), volume=("sum", "volume"))
        """
        return Stream(framed(self.node, None, size, offset))

    def hop(self, slide: Length, size: Length, *, offset: Length = "0 s") -> Stream:
        """Each row once for each window that it lies in; one begins at each multiple of `slide`."""
        return Stream(framed(self.node, slide, size, offset))

    def session(self, gap: Length, by: str | Iterable[str] = ()) -> Table:
        """All rows with the session that they are in so far, of each key if `by` is given."""
        return Table(in_sessions(self.node, gap, by))


@dataclass(frozen=True, eq=False)
class Table:
    """Rows that come, change and go. It leaves a program as a relation, with `_weight`.

    A table that `is_keyed` has one row for each key; `key` and `values` are the names of its
    columns. A window, a `join` or a `union` gives one without a key, which may hold rows that are
    alike; `aggregate` gives it one.
    """

    builder: ClassVar[str] = "millstream.languages.algebra.translate:program_of"

    node: nodes.TableNode

    @property
    def schema(self) -> Schema:
        return self.node.schema

    @property
    def is_keyed(self) -> bool:
        """Whether there is one row for each key."""
        return not nodes.is_bag(self.node)

    @property
    def key(self) -> tuple[str, ...]:
        return self.node.key

    @property
    def values(self) -> tuple[str, ...]:
        return self.node.values

    def changelog(self) -> Stream:
        """The stream of updates: the table's columns and `deleted`; it costs nothing.

        The updates of a table made by `to_table` are those of its stream. A table that is
        computed says at each instant which rows have changed: first the keys that are gone,
        then the rows that are new or other than before, each in the order of their values.
        """
        node = self.node
        self._require_key("changelog")
        refuse_deleted(node)
        if isinstance(node, nodes.ToTable) and node.deleted == DELETED:
            if node.stream.schema == node.update_schema:
                return Stream(node.stream)
        return Stream(nodes.Changelog(node.update_schema, node))

    def map(self, function: RowFunction | Columns, **columns: str) -> Table:
        """Other values for each row: `t.map(lambda v: {"ukc": v.depth - v.draught})`.

        A lambda that gives a value gives a column `value`. It is the `map` of the changelog:
        keys stay as they are.
        """
        if not self.is_keyed:
            return Table(bag(map_function(function, self.schema, columns).function, self.node))
        made = table_map_function(function, self.node, columns)
        return Table(nodes.MapTable(made.schema, self.key, self.node, made.function))

    def filter(self, condition: RowFunction | Term) -> Table:
        """The rows for which a condition is true, and only while it is true."""
        made = filter_function(condition, self.schema)
        if not self.is_keyed:
            return Table(bag(made, self.node))
        return Table(nodes.FilterTable(self.schema, self.key, self.node, made))

    def inner_join(self, other: Table) -> Table:
        """The rows of both tables with one key, as rows with the values of both."""
        self._require_same_key(other)
        schema = self._with_values(other)
        return Table(nodes.InnerJoin(schema, self.key, self.node, other.node))

    def outer_join(
        self, other: Table, *, has_left: str = "has_left", has_right: str = "has_right"
    ) -> Table:
        """A row for each key that one table has, or the other, or both.

        The values of a table that does not have the key are null; the columns `has_left`
        and `has_right` say which tables have it.
        """
        self._require_same_key(other)
        schema = self._with_values(other, has_left, has_right)
        return Table(nodes.OuterJoin(schema, self.key, self.node, other.node, has_left, has_right))

    def foreign_join(
        self, other: Table, on: str | Iterable[str], *, found: str | None = None
    ) -> Table:
        """Each row with the values of the row of another table that it refers to.

        `on` names the columns that hold a key of the other table; null refers to nothing.
        Rows that refer to nothing are left out, unless `found` names a boolean column that
        says whether there is something. A change of either table is one lookup.
        """
        names = names_of(on)
        for one in (self, other):
            one._require_key("foreign_join")  # noqa: SLF001 - of the same class
        required(names, self.schema, "a foreign key")
        wanted = [other.schema[n] for n in other.key]
        if [self.schema[n] for n in names] != wanted:
            raise UsageError(
                f"the foreign key ({_typed(self.schema, names)}) does not fit the key of the "
                f"other table ({_typed(other.schema, other.key)})"
            )
        schema = self._with_values(other, *(() if found is None else (found,)))
        return Table(nodes.ForeignJoin(schema, self.key, self.node, other.node, names, found))

    def reduce(self, group: Group | None = None, /, **groups: Group) -> Stream:
        """All rows combined: `t.reduce(total=total(lambda r: r.speed), n=count())`.

        The stream speaks at each instant at which the result changes.
        """
        if (group is None) == (not groups):
            raise UsageError("reduce takes one group, or several by name")
        chosen = recorded(group) if group is not None else product_of(**groups)
        return Stream(nodes.Reduce(result_schema(chosen, self.node), self.node, chosen))

    def combine_updates(self, initial: State, combine: RowFunction, **columns: str) -> Table:
        """What the updates of each row have added up to.

            visits.combine_updates({"n": 0}, lambda state, row: {"n": state.n + 1})
            visits.combine_updates(0, lambda n, row: n + 1)   # the column is called `value`

        The state is kept for each key, from `initial` on; a deletion forgets it. A null
        in `initial` needs its type in `columns`.
        """
        self._require_key("combine_updates")
        return Table(combine_node(self.node, initial, combine, columns))

    # --- as bags of rows -------------------------------------------------------------

    def flat_map(self, function: RowFunction, **columns: str) -> Table:
        """A list of rows for each row, as `map_concat` of a stream."""
        return Table(bag(concat_function(function, self.schema, columns).function, self.node))

    def join(
        self,
        other: Table,
        on: str | Iterable[str] = (),
        *,
        where: RowFunction | Term | None = None,
    ) -> Table:
        """Every pair of rows with equal columns `on`, for which `where` holds."""
        names = names_of(on)
        required(names, self.schema, "join on")
        required(names, other.schema, "join on")
        pairs = tuple((name, name) for name in names)
        joined = Table(bag(functions.Join(pairs), self.node, other.node))
        return joined if where is None else joined.filter(where)

    def union(self, *others: Table) -> Table:
        """The rows of several tables, as often as all of them together have them."""
        return Table(bag(functions.Merge(), self.node, *(other.node for other in others)))

    def aggregate(self, by: str | Iterable[str] = (), **aggregates: Aggregated) -> Table:
        """A row for each group, which is its key.

        t.aggregate(by="symbol", total=("sum", lambda r: r.price * r.volume),
                    high=("max", "price"), n="count")
        """
        return Table(aggregated(self.node, by, aggregates))

    def distinct(self) -> Table:
        """Each row once."""
        return Table(bag(functions.Distinct(), self.node))

    def except_(self, other: Table) -> Table:
        """Each row as often as this table has it more often than another."""
        return Table(bag(functions.Except(), self.node, other.node))

    def top(
        self, count: int, by: str | Iterable[str], *, descending: str | Iterable[str] = ()
    ) -> Table:
        """The first rows in the order of some columns, of which some go downwards."""
        function = functions.Top(count, names_of(by), names_of(descending))
        return Table(bag(function, self.node))

    def istream(self) -> Stream:
        """What comes into the table, at each instant."""
        return Stream(stream_of(functions.Istream(), self.node))

    def dstream(self) -> Stream:
        """What leaves the table, at each instant."""
        return Stream(stream_of(functions.Dstream(), self.node))

    def rstream(self) -> Stream:
        """The whole table, at each instant at which an input has a row."""
        return Stream(stream_of(functions.Rstream(), self.node))

    # --- checks ----------------------------------------------------------------------

    def _require_key(self, what: str) -> None:
        if not self.is_keyed:
            hint = "aggregate it by one, take latest(key) of a stream, or join"
            raise UsageError(f"{what} is of a table with a key, which this has not", hint=hint)

    def _require_same_key(self, other: Table) -> None:
        for table in (self, other):
            table._require_key("this join")  # noqa: SLF001 - of the same class
        ours, theirs = ([t.schema[n] for n in t.key] for t in (self, other))
        if ours != theirs:
            raise UsageError(
                f"cannot join tables of different keys: one has ({_typed(self.schema, self.key)}),"
                f" the other ({_typed(other.schema, other.key)})",
                hint="use foreign_join where one table holds keys of the other",
            )

    def _with_values(self, other: Table, *flags: str) -> Schema:
        """The columns of this table, the values of the other, and some booleans."""
        fields = list(self.schema.fields)
        fields += [Field(n, other.schema[n]) for n in other.values]
        fields += [Field(n, BOOLEAN) for n in flags]
        names = [f.name for f in fields]
        for name in names:
            if names.count(name) > 1:
                raise UsageError(
                    f'both tables of the join have a column "{name}"',
                    hint="rename one of them with map",
                )
        return Schema(tuple(fields))


# --- where streams and tables come from ---------------------------------------------------


def stream(
    name: str,
    columns: Mapping[str, str] | None = None,
    /,
    *,
    time: str | None = None,
    slack: Length = "0 s",
    **more: str,
) -> Stream:
    """An input: its columns by name, or as a dictionary where a name is taken."""
    schema = schema_of_names({**(columns or {}), **more})
    input_ = Input(name, QueueType(schema), time, micros(slack))
    return Stream(nodes.Source(schema, input_))


def table(
    name: str,
    columns: Mapping[str, str] | None = None,
    /,
    *,
    key: str | Iterable[str],
    deleted: str | None = None,
    time: str | None = None,
    slack: Length = "0 s",
    **more: str,
) -> Table:
    """An input whose rows are updates of a table: the latest row of each key counts.

    `deleted` names a boolean column that says that a row is deleted.
    """
    rows = stream(name, columns, time=time, slack=slack, **more)
    return rows.to_table(key, deleted=deleted)


def relation(
    name: str,
    columns: Mapping[str, str] | None = None,
    /,
    *,
    time: str | None = None,
    slack: Length = "0 s",
    **more: str,
) -> Table:
    """An input of changes: rows with `_weight` +1 or -1; without it a row comes."""
    schema = schema_of_names({**(columns or {}), **more})
    input_ = Input(name, QueueType(schema, is_relation=True), time, micros(slack))
    return Table(nodes.RelationSource(schema, (), input_))


def now(*rows: State, **columns: str) -> Stream:
    """Some rows at the beginning of time: `now({"height": 0.0})`.

    `columns` gives types where the first row does not show them. A plain value is a row
    with a column `value`.
    """
    if not rows:
        return never(**columns)
    named = [r if isinstance(r, Mapping) else {VALUE: r} for r in rows]
    schema = schema_of_values(named[0], columns)
    return Stream(nodes.Now(schema, tuple(_row(r, schema) for r in named)))


def never(**columns: str) -> Stream:
    """A stream on which nothing ever comes: `never(height="number")`."""
    return Stream(nodes.Now(schema_of_names(columns), ()))


def _row(row: Mapping[str, Value], schema: Schema) -> tuple[Value, ...]:
    strange = [n for n in row if n not in schema]
    if strange or len(row) != len(schema):
        raise UsageError(
            f"the rows of now must be alike: expected {listing(schema.names)}, got {listing(row)}",
            hint=suggest(strange[0], schema.names) if strange else None,
        )
    try:
        return tuple(fitted(row[f.name], f.type) for f in schema)
    except TypeError as error:
        raise UsageError(f"the rows of now must be alike: {error}") from error


def refuse_deleted(node: nodes.TableNode) -> None:
    """A changelog has a column that its table must not have."""
    if DELETED in node.schema:
        raise UsageError(
            f'the table has a column "{DELETED}", and so would its changelog',
            hint="rename it with map",
        )


def _typed(schema: Schema, names: Iterable[str]) -> str:
    return ", ".join(f"{n} {schema[n]}" for n in names)


def _keys_first(schema: Schema, key: tuple[str, ...], without: str | None) -> Schema:
    rest = tuple(f for f in schema if f.name not in key and f.name != without)
    return Schema((*(Field(n, schema[n]) for n in key), *rest))
