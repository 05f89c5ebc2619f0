"""A relation as it stands, as a table of PostgreSQL: each row once, with how often it stands.

    columns..., _count, _row      `_row` tells equal rows, nulls included

A batch of changes is added in the transaction that writes down its number, so the table always is
the relation after a whole batch, and a batch that comes twice changes nothing.
"""

from __future__ import annotations

from psycopg import sql

from millstream.calculus.types import INTEGER, TEXT, Field, QueueType
from millstream.connectors.copy_rows import HEAD, TAIL, copy_rows
from millstream.connectors.location import Location
from millstream.connectors.postgres import TYPES, PostgresWriter
from millstream.connectors.write import Shape, columns_of
from millstream.errors import UsageError
from millstream.plan.batch import Batch

COUNT, ROW = "_count", "_row"
_CHANGES = sql.Identifier("millstream_changes")


class PostgresStateWriter(PostgresWriter):
    """Mutable: holds a connection. See `BatchWriter`."""

    def __init__(self, location: Location, output: str, shape: Shape) -> None:
        if not isinstance(shape, QueueType) or not shape.is_relation:
            raise UsageError(f'"{output}" is a stream, which has no state', place=location.text,
                             hint="leave state out: its rows are never taken back")  # fmt: skip
        self._columns = tuple(shape.schema)
        super().__init__(location, output, shape)

    @property
    def _stored(self) -> tuple[Field, ...]:
        return (*self._columns, Field(COUNT, INTEGER), Field(ROW, TEXT))

    def _make_table(self) -> None:
        super()._make_table()
        key = sql.SQL("ALTER TABLE {} ADD PRIMARY KEY ({})")
        self._connection.execute(key.format(self._table, sql.Identifier(ROW)))

    def _copy(self, batch: Batch) -> None:
        if not len(batch):
            return
        self._begin_changes()
        names = sql.SQL(", ").join(sql.Identifier(f.name) for f in self._fields)
        copying = sql.SQL("COPY {} ({}) FROM STDIN WITH (FORMAT BINARY)")
        with self._connection.cursor().copy(copying.format(_CHANGES, names)) as copy:
            copy.write(HEAD)
            for piece in copy_rows(self._fields, columns_of(batch, self._shape)):
                copy.write(piece)
            copy.write(TAIL)
        self._apply()

    def _begin_changes(self) -> None:
        """A table of this session for changes, and settings in which equal rows have one text."""
        self._connection.execute("SET LOCAL TimeZone = 'UTC'")
        self._connection.execute("SET LOCAL IntervalStyle = 'postgres'")
        self._connection.execute("SET LOCAL extra_float_digits = 3")
        self._connection.execute("SET LOCAL DateStyle = 'ISO'")
        columns = sql.SQL(", ").join(
            sql.SQL("{} {}").format(sql.Identifier(f.name), sql.SQL(TYPES[f.type.kind]))
            for f in self._fields
        )
        # Of this transaction only: a pool may give the next one to another session.
        making = sql.SQL("CREATE TEMPORARY TABLE IF NOT EXISTS {} ({}) ON COMMIT DROP")
        self._connection.execute(making.format(_CHANGES, columns))
        self._connection.execute(sql.SQL("DELETE FROM {}").format(_CHANGES))

    def _apply(self) -> None:
        names = sql.SQL(", ").join(sql.Identifier(f.name) for f in self._columns)
        parts = {
            "table": self._table, "changes": _CHANGES, "names": names,
            "count": sql.Identifier(COUNT), "row": sql.Identifier(ROW),
            "key": sql.SQL("md5(ROW({})::text)").format(names),
        }  # fmt: skip
        add = sql.SQL("""
            INSERT INTO {table} AS t ({names}, {count}, {row})
            SELECT {names}, sum(_weight), {row}
            FROM (SELECT {names}, _weight, {key} AS {row} FROM {changes}) AS c
            GROUP BY {names}, {row} HAVING sum(_weight) <> 0
            ON CONFLICT ({row}) DO UPDATE SET {count} = t.{count} + EXCLUDED.{count}
        """)
        self._connection.execute(add.format(**parts))
        drop = sql.SQL(
            "DELETE FROM {table} WHERE {count} <= 0 AND {row} IN (SELECT {key} FROM {changes})"
        )
        self._connection.execute(drop.format(**parts))
