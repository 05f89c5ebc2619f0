"""The rows of a table of PostgreSQL, as they were written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pyarrow as pa
from psycopg import sql

from millstream.calculus.types import TIME_COLUMN
from millstream.connectors.location import Location
from millstream.connectors.postgres import (
    batches_of,
    connect,
    is_there,
    table_of,
    told_by,
)
from millstream.connectors.results import Replaced, Tables, times_in
from millstream.errors import UsageError, listing, suggest

_ROWS = 65_536
_MICROS = sql.SQL("(EXTRACT(epoch FROM {}) * 1000000)::bigint")
_PLAIN = sql.SQL("{}")
#: How a column is asked for, and what it becomes. Python has no years after 9999.
_READ = {
    "double precision": (_PLAIN, pa.float64()),
    "bigint": (_PLAIN, pa.int64()),
    "integer": (_PLAIN, pa.int64()),
    "boolean": (_PLAIN, pa.bool_()),
    "timestamp with time zone": (_MICROS, pa.timestamp("us", "UTC")),
    "interval": (_MICROS, pa.duration("us")),
}
_AS_TEXT = (sql.SQL("{}::text"), pa.string())


class TableResults:
    """Mutable: holds a connection. What is read by one statement has no half batch.

    Rows do not carry the number of their batch, so the news are those with later times;
    late rows, which have earlier ones, cannot be followed.
    """

    def __init__(self, location: Location) -> None:
        assert location.database is not None
        if location.database.table is None:
            raise UsageError(
                "which table?", place=location.text, hint="add ?table=NAME to the address"
            )
        self._location = location
        self._name = location.database.table
        self._table = table_of(location, self._name)
        self._last: int | None = None
        self._job: str | None = None
        self._connection = connect(location)
        self._connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        try:
            with told_by(location):
                if not is_there(self._connection, self._table):
                    raise self._no_such_table()
                self._columns = self._columns_there()
                self._job = self._job_now()
        except BaseException:
            self.close()
            raise

    def count(self) -> int:
        with told_by(self._location):
            select = sql.SQL("SELECT count(*) FROM {}").format(self._table)
            row = self._connection.execute(select).fetchone()
        assert row is not None
        return int(row[0])

    def tables(self) -> Tables:
        with told_by(self._location), self._connection.transaction():
            self._job = self._job_now()
            yield from self._rows(sql.SQL(""))

    def news(self) -> Tables:
        if TIME_COLUMN not in self._columns:
            raise UsageError(
                f'a table without "{TIME_COLUMN}" cannot be followed', place=self._location.text
            )
        with told_by(self._location), self._connection.transaction():
            if self._job_now() != self._job:
                raise Replaced
            yield from self._rows(self._later())

    def _later(self) -> sql.Composable:
        if self._last is None:
            return sql.SQL("")
        time = _MICROS.format(sql.Identifier(TIME_COLUMN))
        return sql.SQL("WHERE {} > {}").format(time, self._last)

    def again(self) -> Tables:
        self._last = None
        return self.tables()

    def close(self) -> None:
        self._connection.close()

    def _rows(self, condition: sql.Composable) -> Iterator[Any]:
        asked = [_READ.get(kind, _AS_TEXT) for kind in self._columns.values()]
        names = [sql.Identifier(name) for name in self._columns]
        columns = [form.format(name) for (form, _), name in zip(asked, names, strict=True)]
        # Rows of one time in the order in which they came, as far as the table knows it.
        order = sql.SQL("ORDER BY {}, ctid").format(sql.Identifier(TIME_COLUMN))
        statement = sql.SQL("SELECT {} FROM {} {} {}").format(
            sql.SQL(", ").join(columns), self._table, condition,
            order if TIME_COLUMN in self._columns else sql.SQL(""),
        )  # fmt: skip
        with self._connection.cursor(name="millstream_read") as cursor:
            cursor.execute(statement)
            while rows := cursor.fetchmany(_ROWS):
                cells = zip(*rows, strict=True)
                arrays = [pa.array(c, type_) for c, (_, type_) in zip(cells, asked, strict=True)]
                table = pa.table(dict(zip(self._columns, arrays, strict=True)))
                times = times_in(table)
                self._last = self._last if times is None else int(times[-1])
                yield table

    def _columns_there(self) -> dict[str, str]:
        statement = """
            SELECT attname, format_type(atttypid, -1) FROM pg_attribute
            WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped ORDER BY attnum
        """
        name = self._table.as_string(self._connection)
        return dict(self._connection.execute(statement, (name,)).fetchall())

    def _job_now(self) -> str | None:
        """Whose rows are there; a job that is about to replace them changes nothing."""
        batches = batches_of(self._location)
        if not is_there(self._connection, batches):
            return self._job
        select = sql.SQL("SELECT job FROM {} WHERE sink = {} AND batch >= 0")
        row = self._connection.execute(select.format(batches, self._name)).fetchone()
        return self._job if row is None else str(row[0])

    def _no_such_table(self) -> UsageError:
        statement = "SELECT table_name FROM information_schema.tables WHERE table_schema = {}"
        assert self._location.database is not None
        schema = self._location.database.schema
        where = sql.SQL("current_schema()") if schema is None else sql.Literal(schema)
        rows = self._connection.execute(sql.SQL(statement).format(where)).fetchall()
        names = sorted(row[0] for row in rows)
        hint = suggest(self._name, names) or f"there are: {listing(names)}"
        return UsageError(f'there is no table "{self._name}"', place=self._location.text, hint=hint)
