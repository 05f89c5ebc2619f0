"""A table of PostgreSQL: rows and the number of their batch in one transaction.

    millstream_batches(sink, job, batch)     per table: whose rows it has, up to which batch

A batch of -1 says that the job has begun, and that the rows that are there are still those
of the job before: its first batch deletes them in the transaction that brings its own.
Every transaction locks the line of its table and looks who holds it, so that of two runs on
one table the later one goes on and the earlier one stops.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import chain
from typing import Any

import psycopg
from psycopg import errors, sql

from millstream.calculus.types import Field, Kind
from millstream.connectors.address import check_name
from millstream.connectors.copy_rows import HEAD, TAIL, copy_rows
from millstream.connectors.location import Location
from millstream.connectors.shelf import new_job
from millstream.connectors.write import Shape, columns_of, fields_of
from millstream.errors import RunError, UsageError, listing
from millstream.plan.batch import Batch

BATCHES = "millstream_batches"
TYPES = {
    Kind.NUMBER: "double precision",
    Kind.INTEGER: "bigint",
    Kind.TEXT: "text",
    Kind.BOOLEAN: "boolean",
    Kind.TIME: "timestamp with time zone",
    Kind.DURATION: "interval",
}
#: After a lost connection: the batch is there with its number, or it is not there.
GO_ON = "the next run goes on after the last batch that is there"
#: For a run that holds the table; in the words of PostgreSQL.
LONGEST_WAIT = "10s"
_ALSO_TEXT = ("character varying",)
_DEFAULTS = {"connect_timeout": "10", "application_name": "millstream"}

Connection = psycopg.Connection[tuple[Any, ...]]


def connect(location: Location) -> Connection:
    assert location.database is not None
    settings: dict[str, Any] = {**_DEFAULTS, **location.database.settings}
    try:
        # Statements are not prepared: a pool between us may hand each to another server.
        return psycopg.connect(
            **settings, autocommit=True, prepare_threshold=None, client_encoding="UTF8"
        )
    except psycopg.ProgrammingError as error:
        raise UsageError(_reason(error), place=location.text) from None
    except psycopg.Error as error:
        reason = _reason(error)
        raise RunError(f"the database cannot be reached: {reason}", place=location.text) from None


@contextmanager
def told_by(location: Location, hint: str | None = None) -> Iterator[None]:
    """Errors of the database in one sentence."""
    try:
        yield
    except errors.LockNotAvailable:
        raise RunError("another run writes to this table", place=location.text) from None
    except psycopg.Error as error:
        if isinstance(error, psycopg.OperationalError) and _is_lost(error):
            message = f"the connection to the database is lost: {_reason(error)}"
            raise RunError(message, place=location.text, hint=hint) from None
        raise RunError(f"PostgreSQL says: {_reason(error)}", place=location.text) from None


def _is_lost(error: psycopg.Error) -> bool:
    """Not so a full disk, for example, which is an operational error too."""
    return error.sqlstate is None or error.sqlstate.startswith(("08", "57P"))


def _reason(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def table_of(location: Location, output: str) -> sql.Identifier:
    """The table of a location, by default named like the output."""
    assert location.database is not None
    name = location.database.table or output
    check_name(name, location.text)
    return _in_schema(location, name)


def batches_of(location: Location) -> sql.Identifier:
    """The table that knows the batches; it lies beside the tables it knows about."""
    return _in_schema(location, BATCHES)


def _in_schema(location: Location, name: str) -> sql.Identifier:
    assert location.database is not None
    schema = location.database.schema
    return sql.Identifier(schema, name) if schema else sql.Identifier(name)


def is_there(connection: Connection, table: sql.Identifier) -> bool:
    row = connection.execute("SELECT to_regclass(%s)", (table.as_string(connection),)).fetchone()
    return row is not None and row[0] is not None


class PostgresWriter:
    """Mutable: holds a connection. See `BatchWriter`.

    As a plain writer it makes the whole result appear on `close`.
    """

    def __init__(self, location: Location, output: str, shape: Shape) -> None:
        assert location.database is not None
        self._location = location
        self._output = output
        self._sink = location.database.table or output
        self._table = table_of(location, output)
        self._batches = batches_of(location)
        self._shape = shape
        self._fields = fields_of(shape)
        for field in self._fields:
            check_name(field.name, location.text)
        self._job: str | None = None
        self._next = 0
        self._is_whole = False
        self._connection = connect(location)
        try:
            with told_by(location):
                self._check_columns()
        except BaseException:
            self.abort()
            raise

    @property
    def _stored(self) -> Sequence[Field]:
        """The columns of the table."""
        return self._fields

    # --- as a sink of numbered batches ---

    def open(self, job: str, *, fresh: bool) -> int:
        # Two outputs of one job must not take one table for their own.
        mine = f"{job} {self._output}"
        with self._told():
            self._make_batches()
        with self._transaction():
            self._next = self._begin(mine, fresh=fresh)
        self._job = mine
        return self._next

    def write_batch(self, number: int, batch: Batch, more: Iterable[Batch] = ()) -> None:
        if number < self._next:
            return
        with self._transaction():
            job, there = self._locked()
            if job != self._job:
                raise RunError(
                    "another run, or another output of this one, has taken this table over",
                    place=self._location.text,
                )
            if there < number:
                if there < 0:
                    self._delete_rows()
                for one in chain((batch,), more):
                    self._copy(one)
                self._set_record(job, number)
        self._next = number + 1

    # --- as a plain writer ---

    def write(self, batch: Batch) -> None:
        if self._job is None:
            self._write_whole(batch)
        elif len(batch) or self._next == 0:
            self.write_batch(self._next, batch)

    def _write_whole(self, batch: Batch) -> None:
        with self._told():
            self._begin_whole()
            self._copy(batch)

    def _begin_whole(self) -> None:
        """One transaction for the whole run; until its end, others see what was there."""
        if self._is_whole:
            return
        self._make_batches()
        self._connection.autocommit = False
        self._is_whole = True
        self._limit_waiting()
        self._begin(new_job(), fresh=True)
        self._delete_rows()

    def close(self) -> None:
        if self._connection.closed:
            return
        try:
            if self._job is None:
                with self._told():
                    self._begin_whole()
                    job, _ = self._locked()
                    self._set_record(job, 0)
                    self._connection.commit()
        finally:
            self.abort()

    def abort(self) -> None:
        """What has not been committed, the server rolls back."""
        self._connection.close()

    # --- transactions ---

    def _told(self) -> AbstractContextManager[None]:
        return told_by(self._location, hint=None if self._is_whole else GO_ON)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._told(), self._connection.transaction():
            self._limit_waiting()
            yield

    def _limit_waiting(self) -> None:
        """Neither for other runs without end, nor to be thrown out while we compute."""
        limits = sql.SQL("SET LOCAL lock_timeout = {}").format(LONGEST_WAIT)
        self._connection.execute(limits)
        self._connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")

    def _begin(self, job: str, *, fresh: bool) -> int:
        """Take the table for a job; answers the first batch that it does not have."""
        owner, batch = self._locked()
        was_there = is_there(self._connection, self._table)
        if not was_there:
            self._make_table()
        elif owner == "":
            self._refuse_foreign_rows()
        if was_there and owner == job and not fresh:
            return batch + 1
        self._set_record(job, -1)
        return 0

    # --- tables ---

    def _make_batches(self) -> None:
        """In a transaction of its own: other outputs of this run wait for this table."""
        if is_there(self._connection, self._batches):
            return
        statement = sql.SQL("CREATE TABLE {} (sink text PRIMARY KEY, job text, batch bigint)")
        try:
            self._connection.execute(statement.format(self._batches))
        except (errors.DuplicateTable, errors.UniqueViolation):
            return  # another run was faster

    def _make_table(self) -> None:
        columns = [
            sql.SQL("{} {}").format(sql.Identifier(f.name), sql.SQL(TYPES[f.type.kind]))
            for f in self._stored
        ]
        statement = sql.SQL("CREATE TABLE {} ({})")
        self._connection.execute(statement.format(self._table, sql.SQL(", ").join(columns)))

    def _locked(self) -> tuple[str, int]:
        """Whose rows are there, up to which batch; nobody else can change it until the end."""
        insert = sql.SQL("INSERT INTO {} VALUES ({}, '', -1) ON CONFLICT DO NOTHING")
        self._connection.execute(insert.format(self._batches, self._sink))
        select = sql.SQL("SELECT job, batch FROM {} WHERE sink = {} FOR UPDATE")
        row = self._connection.execute(select.format(self._batches, self._sink)).fetchone()
        assert row is not None
        return row[0], row[1]

    def _set_record(self, job: str, batch: int) -> None:
        update = sql.SQL("UPDATE {} SET job = {}, batch = {} WHERE sink = {}")
        self._connection.execute(update.format(self._batches, job, batch, self._sink))

    def _delete_rows(self) -> None:
        """Not TRUNCATE: those who read at this moment must see all that was there."""
        self._connection.execute(sql.SQL("DELETE FROM {}").format(self._table))

    def _copy(self, batch: Batch) -> None:
        if not len(batch):
            return
        names = sql.SQL(", ").join(sql.Identifier(f.name) for f in self._fields)
        statement = sql.SQL("COPY {} ({}) FROM STDIN WITH (FORMAT BINARY)")
        with self._connection.cursor().copy(statement.format(self._table, names)) as copy:
            copy.write(HEAD)
            for piece in copy_rows(self._fields, columns_of(batch, self._shape)):
                copy.write(piece)
            copy.write(TAIL)

    # --- what is refused ---

    def _refuse_foreign_rows(self) -> None:
        select = sql.SQL("SELECT 1 FROM {} LIMIT 1").format(self._table)
        if self._connection.execute(select).fetchone() is not None:
            raise UsageError(
                "this table holds rows that are not results of Millstream",
                place=self._location.text,
                hint="choose a table that is empty or not there yet",
            )

    def _check_columns(self) -> None:
        """A table that is there must have our columns, and need no others."""
        if not is_there(self._connection, self._table):
            return
        there = self._columns_there()
        faults = []
        for field in self._stored:
            expected = TYPES[field.type.kind]
            actual, _ = there.pop(field.name, (None, False))
            if actual is None:
                faults.append(f'it has no column "{field.name}" of type {expected}')
            elif actual != expected and not (expected == "text" and actual in _ALSO_TEXT):
                faults.append(f'column "{field.name}" is {actual}, expected {expected}')
        faults += [f'column "{name}" needs a value' for name, (_, needs) in there.items() if needs]
        if faults:
            raise UsageError(
                f"this table does not fit the output: {listing(faults)}",
                place=self._location.text,
                hint="choose another table, or drop this one",
            )

    def _columns_there(self) -> dict[str, tuple[str, bool]]:
        """Per column its type, and whether every row must give it a value."""
        statement = """
            SELECT attname, format_type(atttypid, atttypmod),
                   attnotnull AND NOT atthasdef AND attidentity = ''
            FROM pg_attribute
            WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped
        """
        name = self._table.as_string(self._connection)
        rows = self._connection.execute(statement, (name,)).fetchall()
        return {row[0]: (row[1], row[2]) for row in rows}
