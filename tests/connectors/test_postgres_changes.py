"""A table of PostgreSQL as an input: what it has, then what changes in it, each row once."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

import millstream
from millstream.connectors.location import Location, parse_location
from millstream.errors import MillstreamError, RunError, UsageError
from tests.connectors.database import decodes_changes, server
from tests.engine.following import Following
from tests.engine.running import wait_for

postgres = pytest.importorskip("millstream.connectors.postgres")
changes = pytest.importorskip("millstream.connectors.elsewhere.postgres_changes")

NAMES = itertools.count()
QUERY = """CREATE RELATION t (id INTEGER, k TEXT, x NUMBER);
SELECT k, SUM(x) AS x, COUNT(*) AS n FROM t GROUP BY k;"""


pytestmark = pytest.mark.skipif(
    not decodes_changes(),
    reason="no PostgreSQL with test_decoding: apt-get install postgresql",
)


class Table:
    """A table with some rows, and a connection that changes it."""

    def __init__(self, *, is_whole: bool = True) -> None:
        self.name = f"source_{next(NAMES)}"
        self.slot = f"slot_{self.name}"
        self.connection = postgres.connect(self.location())
        self.do("CREATE TABLE {t} (id integer PRIMARY KEY, k text, x double precision)")
        if is_whole:
            self.do("ALTER TABLE {t} REPLICA IDENTITY FULL")

    def location(self, more: str = "") -> Location:
        return parse_location(f"{server()}&table={self.name}{more}", Path())

    def do(self, statement: str) -> None:
        self.connection.execute(statement.replace("{t}", self.name))

    def totals(self) -> Counter[tuple[Any, ...]]:
        asked = f"SELECT k, SUM(x), COUNT(*) FROM {self.name} GROUP BY k"
        return Counter(self.connection.execute(asked).fetchall())

    def forget(self) -> None:
        there = "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots"
        self.connection.execute(f"{there} WHERE slot_name = '{self.slot}' AND NOT active")


@pytest.fixture
def tables() -> Iterator[Callable[..., Table]]:
    made: list[Table] = []

    def make(*, is_whole: bool = True) -> Table:
        made.append(Table(is_whole=is_whole))
        return made[-1]

    yield make
    for one in made:
        one.forget()
        one.connection.close()


@pytest.fixture
def table(tables: Callable[..., Table]) -> Table:
    return tables()


def told(rows: Any) -> Counter[tuple[Any, ...]]:
    there: Counter[tuple[Any, ...]] = Counter()
    for _, weight, row in rows:
        there[row] += weight
    return +there


def job() -> Any:
    return millstream.compile(text=QUERY, language="cql")


def test_a_run_that_ends_takes_what_is_there(table: Table) -> None:
    table.do("INSERT INTO {t} VALUES (1, 'a', 2), (2, 'it''s', 0.5), (3, NULL, NULL)")
    result = job().run({"t": table.location()})
    expected = [("a", 2.0, 1), ("it's", 0.5, 1), (None, None, 1)]
    assert Counter(expected) == Counter((r["k"], r["x"], r["n"]) for r in result.state())


def test_with_a_slot_runs_go_on_where_the_last_one_ended(table: Table, tmp_path: Path) -> None:
    random = Random(3)
    table.do("INSERT INTO {t} SELECT n, 'k' || n % 3, n FROM generate_series(1, 20) n")
    outputs = tmp_path / "out"
    for _ in range(4):
        place = table.location(f"&slot={table.slot}")
        job().run({"t": place}, {"query1": f"jsonl:{outputs}/"}, checkpoint=tmp_path / "kept")
        assert table.totals() == standing(outputs)
        for _ in range(5):
            n = random.randint(1, 20)
            table.do(f"UPDATE {{t}} SET k = 'k{random.randint(0, 4)}', x = x + 1 WHERE id = {n}")
            table.do(f"DELETE FROM {{t}} WHERE id = {random.randint(1, 20)}")
        table.do(f"BEGIN; INSERT INTO {{t}} VALUES ({100 + n}, 'r', 1); ROLLBACK")
        table.do(f"INSERT INTO {{t}} VALUES ({random.randint(1000, 10**9)}, 'new', 1.25)")


def standing(folder: Path) -> Counter[tuple[Any, ...]]:
    import json

    there: Counter[tuple[Any, ...]] = Counter()
    for path in sorted(folder.glob("*.jsonl")):
        for row in map(json.loads, path.read_text().splitlines()):
            there[row["k"], row["x"], row["n"]] += row["_weight"]
    return +there


def test_what_was_brought_is_not_brought_again_though_the_slot_does_not_know(
    table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that dies between the two has brought rows that the slot will tell again."""
    place = table.location(f"&slot={table.slot}")
    from millstream.connectors.elsewhere.spool import Spool

    spool = Spool(tmp_path, "t")
    first = changes.PostgresBringer(place, spool, "t", is_following=False)
    table.do("INSERT INTO {t} VALUES (1, 'a', 2)")
    execute = first._connection.execute

    class Dead:
        closed = False

        def execute(self, query: Any, *args: Any) -> Any:
            if "advance" in query:
                raise KeyboardInterrupt
            return execute(query, *args)

    real = first._connection
    first._connection = Dead()
    with pytest.raises(KeyboardInterrupt):
        first.fetch()
    real.close()
    before = spool.next
    second = changes.PostgresBringer(place, spool, "t", is_following=False)
    table.do("INSERT INTO {t} VALUES (2, 'b', 3)")
    assert not second.fetch()
    assert before + 1 == spool.next
    lines = sorted(p for p in tmp_path.iterdir() if p.name.endswith("gz"))
    import gzip

    assert [b'"id": 1' in gzip.decompress(p.read_bytes()) for p in lines] == [False, True, False]
    second.close()
    spool.close()


def test_changes_that_the_first_reading_has_seen_are_passed_over(
    table: Table, tmp_path: Path
) -> None:
    """The slot is older than the reading: what came between is in both."""
    asked = "SELECT pg_create_logical_replication_slot(%s, 'test_decoding')"
    table.connection.execute(asked, (table.slot,))
    table.do("INSERT INTO {t} VALUES (1, 'a', 2)")
    open_one = postgres.connect(table.location())
    open_one.execute(f"BEGIN; INSERT INTO {table.name} VALUES (2, 'b', 3)")
    place = table.location(f"&slot={table.slot}")
    for _ in range(2):  # the second is not seen by the reading, and told by the slot
        run = {"query1": f"jsonl:{tmp_path}/out/"}
        job().run({"t": place}, run, checkpoint=tmp_path / "kept")
        assert table.totals() == standing(tmp_path / "out")
        if open_one.info.transaction_status.name == "INTRANS":
            open_one.execute("COMMIT")
    open_one.close()


def test_a_run_that_follows_is_told_of_changes(table: Table, tmp_path: Path) -> None:
    table.do("INSERT INTO {t} VALUES (1, 'a', 2), (2, 'b', 3)")
    options = {"engine": "local", "inputs": {"t": table.location()}}
    with Following(job(), options, None) as run:
        run.wait("read", 2)
        table.do("UPDATE {t} SET x = 5 WHERE id = 1")
        table.do("DELETE FROM {t} WHERE id = 2")
        table.do("INSERT INTO {t} VALUES (9, 'last', 0)")
        expected = Counter({("a", 5.0, 1): 1})
        # The last transaction waits for a later one, as any last instant does.
        wait_for("the changes", lambda: expected == told(run.outputs["query1"].rows))
    asked = "SELECT 1 FROM pg_replication_slots WHERE slot_name LIKE 'millstream%'"
    wait_for("the slot to go", lambda: not table.connection.execute(asked).fetchall())


def test_new_rows_only_are_a_stream(tables: Callable[..., Table], tmp_path: Path) -> None:
    table = tables(is_whole=False)
    table.do("INSERT INTO {t} VALUES (1, 'a', 2)")
    text = "CREATE STREAM t (id INTEGER, k TEXT); SELECT id, k FROM t;"
    stream = millstream.compile(text=text, language="cql")
    place = table.location(f"&slot={table.slot}&changes=rows")
    kept = tmp_path / "kept"
    stream.run({"t": place}, {"query1": f"csv:{tmp_path}/out/"}, checkpoint=kept)
    table.do("UPDATE {t} SET k = 'b'")
    table.do("DELETE FROM {t}")
    stream.run({"t": place}, {"query1": f"csv:{tmp_path}/out/"}, checkpoint=kept)
    lines = [line for p in sorted((tmp_path / "out").glob("*.csv"))
             for line in p.read_text().splitlines()[1:]]  # fmt: skip
    assert [",1,a", ",1,b"] == [line[line.index(",") :] for line in lines]


def test_what_changes_tell_is_what_rows_are() -> None:
    text = """id[integer]:1 "Odd ""name"[text]:'it''s [text]:1' a[integer[]]:'{1,2}' """
    text += "t[timestamp with time zone]:'2026-01-31 12:00:00.5+00' d[numeric]:1.50 n[text]:null "
    text += "b[boolean]:true f[double precision]:'NaN' "
    text += "z[timestamp without time zone]:'2026-01-31 12:00:00'"
    assert {
        "id": 1, 'Odd "name': "it's [text]:1", "a": "{1,2}", "t": "2026-01-31T12:00:00.5+00:00",
        "d": 1.5, "n": None, "b": True, "f": "NaN", "z": "2026-01-31T12:00:00",
    } == changes._row(text)  # fmt: skip
    with pytest.raises(RunError, match="cannot be read"):
        changes._row("id[integer]")


def failure(place: Location, **options: Any) -> str:
    with pytest.raises(MillstreamError) as caught:
        job().run({"t": place}, **options)
    assert "secret" not in str(caught.value)
    return str(caught.value)


def test_what_is_wrong_is_told(table: Table, tables: Callable[..., Table], tmp_path: Path) -> None:
    nowhere = parse_location(f"{server()}&table=nowhere", Path())
    assert 'there is no table "nowhere"' in failure(nowhere)
    assert "names no table" in failure(parse_location(server(), Path()))
    assert "no name of a slot" in failure(table.location("&slot=A-b"))
    assert "changes=all or changes=rows" in failure(table.location("&changes=some"))
    half = tables(is_whole=False)
    assert "REPLICA IDENTITY FULL" in failure(half.location(f"&slot={half.slot}"))
    kept = {"checkpoint": tmp_path / "kept", "outputs": {"query1": f"csv:{tmp_path}/out/"}}
    job().run({"t": table.location()}, **kept)
    assert "was not kept" in failure(table.location(), **kept)
    with pytest.raises(UsageError, match="settings of inputs"):
        job().run({"t": []}, {"query1": table.location("&slot=x")})


def test_a_slot_that_is_lost_and_a_table_that_is_truncated_are_told(
    table: Table, tmp_path: Path
) -> None:
    place = table.location(f"&slot={table.slot}")
    kept = {"checkpoint": tmp_path / "kept", "outputs": {"query1": f"csv:{tmp_path}/out/"}}
    table.do("INSERT INTO {t} VALUES (1, 'a', 2)")
    job().run({"t": place}, **kept)
    table.do("TRUNCATE {t}")
    assert "has been truncated" in failure(place, **kept)
    table.forget()
    assert "is gone" in failure(place, **kept)
    table.do("INSERT INTO {t} VALUES (7, 'z', 2)")
    result = job().run({"t": place}, rebuild=True, **kept)
    assert 1 == result.report.inputs["t"].read
