"""PostgreSQL: rows and the number of their batch appear together."""

from __future__ import annotations

import datetime as dt
import itertools
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from millstream.calculus.types import INTEGER, TEXT, TIME, QueueType, Schema
from millstream.cli.main import main
from millstream.connectors.address import masked
from millstream.connectors.location import Location, files_now, parse_location
from millstream.connectors.write import open_rejected_writer
from millstream.errors import MillstreamError, RunError, UsageError
from millstream.plan.batch import Batch, batch_of, empty_batch
from tests.connectors.database import server
from tests.connectors.inputs import EVERYTHING
from tests.connectors.killed import NEW, TYPE, deliver, expected_rows

postgres = pytest.importorskip("millstream.connectors.postgres")
ONE = QueueType(Schema.of(x=INTEGER))
NAMES = itertools.count()


def rows(*values: int) -> Batch:
    return batch_of(ONE, list(values), [(v,) for v in values])


class Place:
    """A table that is not there yet, and a second connection that looks at it."""

    def __init__(self) -> None:
        self.table = f"results_{next(NAMES)}"
        self.location = located(self.table)
        self.connection = postgres.connect(self.location)

    def writer(self, type_: QueueType = ONE, output: str = "out", **options: bool) -> Any:
        return postgres.PostgresWriter(self.location, output, type_, **options)

    def ask(self, statement: str) -> list[tuple[Any, ...]]:
        done = self.connection.execute(statement.format(table=self.table))
        found: list[tuple[Any, ...]] = done.fetchall() if done.description else []
        return found

    def values(self) -> list[int]:
        return [row[0] for row in self.ask("SELECT x FROM {table} ORDER BY _time, x")]

    def failure(self, type_: QueueType = ONE) -> str:
        with pytest.raises(MillstreamError) as caught:
            self.writer(type_)
        return str(caught.value).replace(self.location.text, "URL")


def located(table: str) -> Location:
    return parse_location(f"{server()}&table={table}", Path())


@pytest.fixture
def place() -> Iterator[Place]:
    one = Place()
    yield one
    one.connection.close()


# --- addresses ---


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("postgresql://u:pw@h/db?table=t", "postgresql://u:***@h/db?table=t"),
        ("postgres://u:p@w:/?#@h/db", "postgres://u:***@h/db"),
        ("postgresql://u@h/db?password=pw&table=t", "postgresql://u@h/db?password=***&table=t"),
        ("out=postgresql://u:pw@h/db", "out=postgresql://u:***@h/db"),
        ("postgresql://u@h:5432/db", "postgresql://u@h:5432/db"),
        ("trades.csv", "trades.csv"),
    ],
)
def test_passwords_are_never_shown(text: str, expected: str) -> None:
    assert expected == masked(text)


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://u:s3cret@localhost:1/db",
        "postgresql://u:s3cret/x@localhost/db",
        "postgresql://u:s3cret@localhost/db?tabel=x",
        "postgresql://u:s3cret@localhost/db?table=a.b.c",
        "Postgresql://u:s3cret@localhost/db",
        "mysql://u:s3cret@localhost/db.csv",
    ],
)
def test_no_error_shows_a_password(text: str) -> None:
    with pytest.raises(MillstreamError) as caught:
        postgres.PostgresWriter(parse_location(text, Path()), "out", ONE)
    assert "s3cret" not in str(caught.value)


def test_an_address_is_taken_apart() -> None:
    text = "postgres://me:p%40ss@example.org:5433/shop?table=a.b&sslmode=require"
    location = parse_location(text, Path())
    assert location.database is not None
    assert {
        "user": "me", "password": "p@ss", "host": "example.org", "port": "5433",
        "dbname": "shop", "sslmode": "require",
    } == location.database.settings  # fmt: skip
    assert ("a", "b") == (location.database.schema, location.database.table)
    assert "p@ss" not in repr(location)
    assert "p%40ss" not in repr(location)


def test_a_database_is_no_input_and_takes_no_rejected_rows() -> None:
    location = parse_location("postgresql://u:pw@h/db?table=t", Path())
    with pytest.raises(UsageError, match="only a run brings the rows of this database"):
        files_now(location)
    with pytest.raises(UsageError, match="rejected rows cannot go to a database"):
        open_rejected_writer(location)


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "s.cql", "--in", "s={}"],
        ["run", "s.cql", "--out", "query1={}"],
        ["run", "s.cql", "--out", "query1={}&state"],
        ["read", "{}"],
    ],
)
def test_without_psycopg_it_is_told_how_to_install_it(
    arguments: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.cql").write_text("CREATE RELATION s (x INTEGER); SELECT COUNT(*) AS n FROM s;")
    Path("s.csv").write_text("_time,x\n1,1\n")
    loaded = [m for m in sys.modules if m.startswith("millstream.") and "postgres" in m]
    for module in loaded:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    place = "postgresql://me:secret@127.0.0.1:1/db?table=t"
    engine = ["--engine", "local"] * (arguments[0] == "run")
    assert main([*(a.format(place) for a in arguments), *engine]) == 2
    assert "pip install 'millstream[postgres]'" in capsys.readouterr().err


def test_a_server_that_is_not_there_is_told(tmp_path: Path) -> None:
    location = parse_location(f"postgresql://u:pw@/db?host={tmp_path}", Path())
    with pytest.raises(RunError) as caught:
        postgres.PostgresWriter(location, "out", ONE)
    assert "u:***@/db" in str(caught.value)
    assert "the database cannot be reached: " in str(caught.value)
    assert "No such file or directory" in str(caught.value)


# --- values ---


def test_every_type_arrives_as_users_expect(place: Place) -> None:
    type_ = QueueType(EVERYTHING, is_relation=True)
    given: list[Any] = [
        (0.1, 7, 'a,b"\n\\.é', True, 1_700_000_000_000_001, 90_000_000),
        (float("nan"), None, "", False, None, None),
        (float("-inf"), -(2**63), None, None, -1, -1),
        (1e300, 2**63 - 1, "\\.", True, 253_402_300_799_999_999, 0),
    ]
    writer = place.writer(type_)
    writer.write(batch_of(type_, [1, 2, 3, 4], given, [1, -1, 1, -1]))
    writer.close()
    types = place.ask(
        "SELECT attname, format_type(atttypid, -1) FROM pg_attribute "
        "WHERE attrelid = '{table}'::regclass AND attnum > 0 ORDER BY attnum"
    )
    assert [
        ("_time", "timestamp with time zone"), ("_weight", "bigint"), ("n", "double precision"),
        ("i", "bigint"), ("t", "text"), ("b", "boolean"), ("at", "timestamp with time zone"),
        ("d", "interval"),
    ] == types  # fmt: skip
    found = place.ask("SELECT _weight, n::text, i, t, b, at, d FROM {table} ORDER BY _time")
    second = dt.timedelta(seconds=1)
    at = dt.datetime(2023, 11, 14, 22, 13, 20, 1, dt.UTC)
    assert (1, "0.1", 7, 'a,b"\n\\.é', True, at, 90 * second) == found[0]
    assert (-1, "NaN", None, "", False, None, None) == found[1]
    early = dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, dt.UTC)
    assert (1, "-Infinity", -(2**63), None, None, early, -second / 1_000_000) == found[2]
    late = dt.datetime(9999, 12, 31, 23, 59, 59, 999_999, dt.UTC)
    assert (-1, "1e+300", 2**63 - 1, "\\.", True, late, 0 * second) == found[3]


def test_times_far_away_are_exact(place: Place) -> None:
    writer = place.writer()
    writer.write(batch_of(ONE, [2**63 - 1, -210_866_803_200_000_000], [(1,), (2,)]))
    writer.close()
    found = place.ask("SELECT _time::text FROM {table} ORDER BY x DESC")
    assert [("4714-11-24 00:00:00+00 BC",), ("294247-01-10 04:00:54.775807+00",)] == found


def test_a_time_before_the_calendar_of_postgresql_is_told(place: Place) -> None:
    type_ = QueueType(Schema.of(at=TIME))
    writer = place.writer(type_)
    with pytest.raises(RunError) as caught:
        writer.write(batch_of(type_, [1], [(-210_866_803_200_000_001,)]))
    writer.abort()
    assert (
        'the time -210866803200000001 of column "at" is too early for PostgreSQL\n'
        "    its calendar begins in 4714 BC; times are microseconds since 1970"
    ) == str(caught.value)


def test_a_text_that_postgresql_cannot_store_is_told(place: Place) -> None:
    type_ = QueueType(Schema.of(t=TEXT))
    writer = place.writer(type_)
    with pytest.raises(RunError, match='column "t" has a text with the character U\\+0000'):
        writer.write(batch_of(type_, [1], [("a\0b",)]))
    writer.abort()


def test_names_are_never_taken_for_sql() -> None:
    type_ = QueueType(Schema.of(**{'a"b': INTEGER, "50%": INTEGER, "{}": INTEGER}))
    location = located('x";DROP%20TABLE%20y;--%25s')
    writer = postgres.PostgresWriter(location, "out", type_)
    writer.write(batch_of(type_, [1], [(1, 2, 3)]))
    writer.close()
    with postgres.connect(location) as connection:
        found = connection.execute('SELECT "a""b", "50%", "{}" FROM "x"";DROP TABLE y;--%s"')
        assert [(1, 2, 3)] == found.fetchall()


def test_a_table_can_be_in_a_schema_and_is_named_like_its_output(place: Place) -> None:
    place.ask('CREATE SCHEMA "other%"')
    for table, output in (("other%25.here", "out"), ("", "plain")):
        writer = postgres.PostgresWriter(located(table), output, ONE)
        writer.open("job", fresh=True)
        writer.write_batch(0, rows(1))
        writer.close()
    assert [(1,)] == place.ask('SELECT x FROM "other%".here')
    assert [("job out", 0)] == place.ask('SELECT job, batch FROM "other%".millstream_batches')
    assert [(1,)] == place.ask("SELECT x FROM plain")


# --- tables that are there ---


def test_a_table_that_does_not_fit_is_told_with_its_columns(place: Place) -> None:
    place.ask("CREATE TABLE {table} (_time bigint, y integer NOT NULL)")
    assert (
        'URL: this table does not fit the output: column "_time" is bigint, '
        'expected timestamp with time zone, it has no column "x" of type bigint, '
        'column "y" needs a value\n'
        "    choose another table, or drop this one"
    ) == place.failure()


def test_a_table_with_more_columns_can_be_used(place: Place) -> None:
    place.ask("CREATE TABLE {table} (id serial, x bigint, note varchar, _time timestamptz)")
    writer = place.writer()
    writer.write(rows(5))
    writer.close()
    assert [(1, 5, None)] == place.ask("SELECT id, x, note FROM {table}")


def test_a_table_with_rows_of_others_is_left_alone(place: Place) -> None:
    place.ask("CREATE TABLE {table} (_time timestamptz, x bigint)")
    place.ask("INSERT INTO {table} VALUES (now(), 1)")
    expected = "this table holds rows that are not results of Millstream"
    writer = place.writer()
    with pytest.raises(UsageError, match=expected):
        writer.open("job", fresh=True)
    with pytest.raises(UsageError, match=expected):
        writer.write(rows(2))
    writer.abort()
    assert [1] == place.values()


# --- batches ---


def test_a_batch_that_is_there_changes_nothing(place: Place) -> None:
    firsts = []
    for _ in range(2):
        writer = place.writer()
        firsts.append(writer.open("job", fresh=False))
        for number in (0, 1, 1, 0, 2):
            writer.write_batch(number, empty_batch(ONE) if number == 1 else rows(number))
            writer.write_batch(number, rows(100 + number))
        writer.close()
    assert [0, 3] == firsts
    assert [0, 2] == place.values()


def test_the_result_of_an_earlier_job_goes_in_the_transaction_of_the_first_batch(
    place: Place,
) -> None:
    for job, fresh in (("old", True), ("new", False), ("new", True)):
        before = [] if job == "old" else place.values()
        writer = place.writer()
        assert 0 == writer.open(job, fresh=fresh)
        assert before == (place.values() if before else [])
        writer.write_batch(0, rows(7 + len(before)))
        writer.close()
    assert [8] == place.values()


def test_a_job_that_starts_afresh_forgets_what_it_had_even_after_a_crash(place: Place) -> None:
    writer = place.writer()
    writer.open("job", fresh=True)
    writer.write_batch(4, rows(1))
    writer.close()
    writer = place.writer()
    writer.open("job", fresh=True)
    writer.abort()
    writer = place.writer()
    assert 0 == writer.open("job", fresh=False)
    writer.write_batch(0, empty_batch(ONE))
    writer.close()
    assert [] == place.values()


def test_a_table_that_was_dropped_is_filled_again(place: Place) -> None:
    for _ in range(2):
        writer = place.writer()
        assert 0 == writer.open("job", fresh=False)
        writer.write_batch(0, rows(1))
        writer.close()
        assert [1] == place.values()
        place.ask("DROP TABLE {table}")


def test_of_two_runs_on_one_table_the_later_one_goes_on(place: Place) -> None:
    one, two = place.writer(), place.writer(output="other")
    one.open("job", fresh=True)
    one.write_batch(0, rows(1))
    two.open("job", fresh=False)
    with pytest.raises(RunError, match="another run, or another output of this one"):
        one.write_batch(1, rows(2))
    two.write_batch(0, rows(3))
    one.abort()
    two.close()
    assert [3] == place.values()


def test_a_lost_connection_is_one_error_and_the_next_run_goes_on(place: Place) -> None:
    writer = place.writer()
    writer.open("job", fresh=True)
    writer.write_batch(0, rows(0))
    place.ask(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE application_name = 'millstream' AND pid <> pg_backend_pid()"
    )
    with pytest.raises(RunError) as caught:
        writer.write_batch(1, rows(1))
    writer.abort()
    assert "the connection to the database is lost: " in str(caught.value)
    assert "the next run goes on after the last batch that is there" in str(caught.value)
    assert "secret" not in str(caught.value)
    writer = place.writer()
    assert 1 == writer.open("job", fresh=False)
    writer.write_batch(1, rows(1))
    writer.close()
    assert [0, 1] == place.values()


# --- as a plain writer ---


def test_as_a_plain_writer_all_appears_on_close(place: Place) -> None:
    for start in (0, 10):
        before = place.values() if start else []
        writer = place.writer()
        for value in range(start, start + 3):
            writer.write(rows(value))
            assert before == (place.values() if start else [])
        writer.close()
        writer.abort()
        assert list(range(start, start + 3)) == place.values()


def test_a_plain_run_without_rows_leaves_an_empty_result(place: Place) -> None:
    for batches in ([rows(1)], []):
        writer = place.writer()
        for batch in batches:
            writer.write(batch)
        writer.close()
    assert [] == place.values()


def test_a_failed_plain_run_changes_nothing(place: Place) -> None:
    writer = place.writer()
    writer.write(rows(1))
    writer.abort()
    assert [(None,)] == place.ask("SELECT to_regclass('{table}')")
    writer = place.writer()
    writer.write(rows(2))
    writer.close()
    writer = place.writer()
    writer.write(rows(3))
    writer.abort()
    assert [2] == place.values()


def test_two_plain_runs_on_one_table_do_not_meet(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "LONGEST_WAIT", "50ms")
    one, two = place.writer(), place.writer()
    one.write(rows(1))
    with pytest.raises(RunError, match="another run writes to this table"):
        two.write(rows(2))
    two.abort()
    one.close()
    assert [1] == place.values()


def test_once_it_is_opened_each_batch_appears_at_once(place: Place) -> None:
    writer = place.writer()
    writer.open("job", fresh=True)
    for value in (1, 2):
        writer.write(rows(value))
        assert list(range(1, value + 1)) == place.values()
    writer.write(empty_batch(ONE))
    writer.abort()
    assert [1, 2] == place.values()


@pytest.mark.slow
def test_after_kill_9_at_any_step_no_row_is_lost_or_doubled(place: Place) -> None:
    command = [sys.executable, "-m", "tests.connectors.killed", "postgres", server()]
    done = subprocess.run(command, capture_output=True, check=False, text=True)
    assert ("", 0) == (done.stderr, done.returncode)
    tables = [name for (name,) in place.ask("SELECT sink FROM millstream_batches ORDER BY 1")]
    killed = [name for name in tables if name.startswith("killed_")]
    assert 40 < len(killed)
    for table in killed:
        select = f"SELECT x, word FROM {table} ORDER BY x"
        left = place.ask(select)
        words = {word for _, word in left}
        assert len(words) <= 1, f"a mixture in {table}"
        assert [x for x, _ in left] == expected_rows(words.pop() if words else NEW)[: len(left)]
        deliver(postgres.PostgresWriter(located(table), "out", TYPE), NEW, fresh=False)
        assert expected_rows(NEW) == [x for x, _ in place.ask(select)], table
