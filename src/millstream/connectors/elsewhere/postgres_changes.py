"""A table of PostgreSQL as an input: what it has, and then what changes in it.

The changes come from a logical replication slot, by SQL functions and the plugin `test_decoding`
that packages of the server bring. The slot is there before the table is read, and of what it
tells the transactions are passed over that the reading has seen: nothing is lost in between, and
nothing is told twice.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from psycopg import errors, sql

from millstream.calculus.types import TIME_COLUMN, WEIGHT_COLUMN
from millstream.connectors.elsewhere.spool import Spool
from millstream.connectors.location import Location
from millstream.connectors.postgres import connect, table_of, told_by
from millstream.errors import RunError, UsageError
from millstream.values.instants import parse_time

_PLUGIN = "test_decoding"
#: So that changes are told in one way, whatever is usual there.
_SETTINGS = "SET TimeZone = 'UTC'; SET DateStyle = 'ISO'"
_CHANGES = 20_000
_ROWS = 5_000
_REBUILD = "--rebuild takes what is there now from the beginning"
_SLOT = re.compile(r"[a-z0-9_]{1,63}", re.ASCII)

_WORD = r'(?:"(?:[^"]|"")*"|[^\[\]"\s:]+)'
_COLUMN = re.compile(
    rf"({_WORD})\[((?:[^\[\]]|\[\])*)\]:"
    r"(null|unchanged-toast-datum|B?'(?:[^']|'')*'|[^\s']+)(?: |$)"
)
_COMMIT = re.compile(r"COMMIT \d+ \(at (.+)\)")
_NUMBERS = ("smallint", "integer", "bigint", "real", "double precision", "numeric")
_UNCHANGED = object()

Row = dict[str, Any]


@dataclass
class Position:
    """Mutable: how far a table has been taken; written down with its rows."""

    #: The transactions that the first reading has seen: those before, and not those after or among.
    seen_before: int
    seen_until: int
    not_seen: list[int]
    lsn: str
    time: int
    slot: str | None

    def has_seen(self, transaction: int) -> bool:
        if _is_before(transaction, self.seen_before):
            return True
        is_known = _is_before(transaction, self.seen_until)
        return is_known and transaction not in self.not_seen


@dataclass
class Transaction:
    """Mutable: the changes of one transaction on their way."""

    number: int
    changes: list[tuple[int, Row]] = field(default_factory=list)


class PostgresBringer:
    """Mutable: a connection, and how far its table has been taken."""

    def __init__(self, location: Location, spool: Spool, text: str, *, is_following: bool) -> None:
        assert location.database is not None
        self._location = location
        self._spool = spool
        self._is_following = is_following
        self._slot = location.database.slot
        self._tells_all = _tells_all(location)
        if location.database.table is None:
            raise UsageError("this address names no table", place=text, hint="add ?table=NAME")
        if self._slot is not None and not _SLOT.fullmatch(self._slot):
            hint = "a slot has letters a to z, digits and _"
            raise UsageError(f'"{self._slot}" is no name of a slot', place=text, hint=hint)
        self._table = table_of(location, location.database.table)
        self._connection = connect(location)
        try:
            with told_by(location):
                self._begin()
        except BaseException:
            self.close()
            raise

    def _begin(self) -> None:
        self._connection.execute(_SETTINGS)
        self._name, keeps_rows = self._known_table()
        before = self._spool.position()
        self._position = None if before is None else Position(**before)
        wants_changes = self._is_following or self._slot is not None
        if wants_changes and self._tells_all and not keeps_rows:
            table = self._table.as_string(self._connection)
            raise UsageError(
                "this table does not tell which rows go", place=self._location.text,
                hint=f"ALTER TABLE {table} REPLICA IDENTITY FULL, or changes=rows for new ones",
            )  # fmt: skip
        if self._position is not None:
            self._take_up(self._position)
        else:
            slot = self._made_slot() if wants_changes else None
            self._read_table(slot)

    def _known_table(self) -> tuple[str, bool]:
        """The table as the changes name it, and whether rows that go are told whole."""
        row = self._connection.execute(
            "SELECT quote_ident(nspname) || '.' || quote_ident(relname), relreplident = 'f' "
            "FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace "
            "WHERE pg_class.oid = to_regclass(%s)",
            (self._table.as_string(self._connection),),
        ).fetchone()
        if row is None:
            database = self._location.database
            assert database is not None
            raise UsageError(f'there is no table "{database.table}"', place=self._location.text)
        return str(row[0]), bool(row[1])

    def _made_slot(self) -> str:
        """The slot that is asked for, perhaps there already; else one that goes with this run."""
        name = self._slot or f"millstream_{secrets.token_hex(6)}"
        if self._slot is None or not self._is_there(name):
            self._connection.execute(
                "SELECT pg_create_logical_replication_slot(%s, %s, %s)",
                (name, _PLUGIN, self._slot is None),
            )
        return name

    def _is_there(self, slot: str) -> bool:
        asked = "SELECT 1 FROM pg_replication_slots WHERE slot_name = %s AND plugin = %s"
        return self._connection.execute(asked, (slot, _PLUGIN)).fetchone() is not None

    def _take_up(self, position: Position) -> None:
        if self._slot is None or position.slot is None:
            raise RunError(
                "what has changed since the last run was not kept", place=self._location.text,
                hint=f"slot=NAME in the address keeps it from the first run on; {_REBUILD}",
            )  # fmt: skip
        if position.slot != self._slot or not self._is_there(self._slot):
            what = f'the slot "{position.slot}" is gone, and with it what has changed since'
            raise RunError(what, place=self._location.text, hint=_REBUILD)

    # --- what is there ---

    def _read_table(self, slot: str | None) -> None:
        """All rows in one segment: half a table would be none."""
        connection, file = self._connection, io.BytesIO()
        with connection.transaction():
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            first_row = connection.execute(
                "SELECT pg_current_snapshot()::text, "
                "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
            ).fetchone()
            assert first_row is not None
            snapshot, time = first_row
            with (
                gzip.GzipFile(fileobj=file, mode="wb", compresslevel=1, mtime=0) as lines,
                connection.cursor(name="millstream_rows") as cursor,
            ):
                cursor.itersize = _ROWS
                cursor.execute(sql.SQL("SELECT row_to_json(t)::text FROM {} t").format(self._table))
                for (row,) in cursor:
                    lines.write(self._line(1, json.loads(row), time))
        first, until, among = snapshot.split(":")
        not_seen = [_short(n) for n in among.split(",") if n]
        self._position = Position(_short(first), _short(until), not_seen, "0/0", time, slot)
        self._spool.add(file.getvalue(), vars(self._position), ending=".jsonl.gz")

    def _line(self, weight: int, row: Row, time: int) -> bytes:
        head: Row = {TIME_COLUMN: time}
        if self._tells_all:
            head[WEIGHT_COLUMN] = weight
        return json.dumps(row | head, ensure_ascii=False).encode() + b"\n"

    # --- what changes ---

    def fetch(self) -> bool:
        assert self._position is not None
        if self._position.slot is None:
            return False
        if self._connection.closed:
            self._connect_again(self._position.slot)
        # Only what has been brought is passed.
        position = replace(self._position)
        with told_by(self._location), self._slot_told():
            changes = self._connection.execute(
                "SELECT lsn::text, data FROM pg_logical_slot_peek_changes(%s, NULL, %s, "
                "'include-timestamp', 'on', 'skip-empty-xacts', 'on')",
                (position.slot, _CHANGES),
            ).fetchall()
            lines = list(self._lines(changes, position))
            if lines:
                self._spool.add_lines(b"".join(lines), vars(position))
            self._position = position
            if changes:
                self._connection.execute(
                    "SELECT pg_replication_slot_advance(%s, %s)", (position.slot, changes[-1][0])
                )
        return len(changes) >= _CHANGES

    def _connect_again(self, slot: str) -> None:
        connection = connect(self._location)
        with told_by(self._location):
            connection.execute(_SETTINGS)
        self._connection = connection
        if not self._is_there(slot):
            what = f'the slot "{slot}" is gone, and with it what has changed since'
            raise RunError(what, place=self._location.text, hint=_REBUILD)

    def _slot_told(self) -> _SlotTold:
        return _SlotTold(self._location)

    def _lines(self, changes: list[tuple[Any, ...]], position: Position) -> Iterator[bytes]:
        """The changes of whole transactions, none earlier than the one before it."""
        after = _place(position.lsn)
        current: Transaction | None = None
        for lsn, data in changes:
            if data.startswith("BEGIN "):
                current = Transaction(int(data.split()[1]))
            elif (commit := _COMMIT.fullmatch(data)) is not None:
                assert current is not None
                if _place(lsn) > after and not position.has_seen(current.number):
                    moment = parse_time(commit[1])
                    assert moment is not None, data
                    position.time = max(position.time, moment)
                    yield from (self._line(w, row, position.time) for w, row in current.changes)
                position.lsn = lsn
            elif current is not None:
                current.changes += self._changes(data)

    def _changes(self, data: str) -> list[tuple[int, Row]]:
        tables, _, what = data.removeprefix("table ").partition(": ")
        if what.startswith("TRUNCATE:") and self._name in tables.split(", "):
            raise RunError("the table has been truncated, and its rows are not told",
                           place=self._location.text, hint=_REBUILD)  # fmt: skip
        if tables != self._name:
            return []
        word, _, rest = what.partition(": ")
        old, _, new = rest.removeprefix("old-key: ").partition(" new-tuple: ")
        if word == "INSERT":
            return [(1, _row(rest))]
        if word == "DELETE":
            return [(-1, _row(rest))] if self._tells_all else []
        before = _row(old) if rest.startswith("old-key: ") else {}
        after = {n: before.get(n) if v is _UNCHANGED else v
                 for n, v in _row(new if before else rest).items()}  # fmt: skip
        return [(-1, before), (1, after)] if self._tells_all else [(1, after)]

    def close(self) -> None:
        self._connection.close()


class _SlotTold:
    """A slot that is gone, in one sentence."""

    def __init__(self, location: Location) -> None:
        self._location = location

    def __enter__(self) -> None: ...

    def __exit__(self, _: object, error: object, __: object) -> None:
        if isinstance(error, errors.UndefinedObject):
            raise RunError("the slot is gone, and with it what has changed since",
                           place=self._location.text, hint=_REBUILD) from None  # fmt: skip


def _tells_all(location: Location) -> bool:
    assert location.database is not None
    wanted = location.database.changes or "all"
    if wanted not in ("all", "rows"):
        message = f'expected changes=all or changes=rows, got "{wanted}"'
        raise UsageError(message, place=location.text)
    return wanted == "all"


def _row(text: str) -> Row:
    """The columns that a change tells: `id[integer]:1 name[text]:'it''s'`."""
    row: Row = {}
    at = 0
    while at < len(text):
        match = _COLUMN.match(text, at)
        if match is None:
            raise RunError(f"a change cannot be read: {text[at : at + 40]}")
        name, type_, value = match.groups()
        name = name[1:-1].replace('""', '"') if name.startswith('"') else name
        row[name] = _value(type_, value)
        at = match.end()
    return row


def _value(type_: str, text: str) -> Any:
    """A value as `row_to_json` would write it."""
    if text == "null":
        return None
    if text == "unchanged-toast-datum":
        return _UNCHANGED
    if type_ == "boolean":
        return text == "true"
    plain = text.lstrip("B")[1:-1].replace("''", "'") if text.endswith("'") else text
    if type_ in _NUMBERS or type_.startswith("numeric("):
        is_word = plain in ("NaN", "Infinity", "-Infinity")
        return plain if is_word else json.loads(plain)
    if type_.startswith("timestamp"):
        return plain.replace(" ", "T") + (":00" if plain.endswith("+00") else "")
    if type_ in ("json", "jsonb"):
        return json.loads(plain)
    return plain


def _short(transaction: str) -> int:
    """The number of a transaction as changes tell it, without how often they have begun anew."""
    return int(transaction) % (1 << 32)


def _is_before(position: int, other: int) -> bool:
    """Numbers of transactions go round."""
    return 0 < (other - position) % (1 << 32) < 1 << 31


def _place(lsn: str) -> int:
    high, _, low = lsn.partition("/")
    return (int(high, 16) << 32) + int(low, 16)
