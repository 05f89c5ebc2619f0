"""Windows of time: TUMBLE, HOP and SESSION are what DuckDB makes of the same rows."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import duckdb
import pytest

import millstream
from millstream.errors import MillstreamError

STREAM = "CREATE STREAM s (k TEXT, v INTEGER, ts TIME) TIME ts;\n"
Rows = list[tuple[str | None, int | None, int]]


def rows_of(seed: int) -> Rows:
    """Rows of a few keys in order of time, several of them at one instant."""
    random = Random(seed)
    time, rows = random.randint(-20, 20), []
    for _ in range(random.randint(0, 30)):
        time += random.choice([0, 0, 1, 1, 2, 3, 7, 15])
        rows.append((random.choice(["a", "b", None]), random.choice([None, 1, 2, 5]), time))
    return rows


def ran(query: str, rows: Rows, engine: str = "reference") -> list[dict[str, Any]]:
    job = millstream.compile(text=f"{STREAM}CREATE OUTPUT o AS {query};", language="cql")
    given = [{"k": k, "v": v, "ts": ts} for k, v, ts in rows]
    return job.run({"s": given}, engine=engine).rows("o")


def in_the_end(query: str, rows: Rows, engine: str = "reference") -> Counter[Any]:
    there: Counter[Any] = Counter()
    for row in ran(query, rows, engine):
        values = tuple(v for n, v in row.items() if n not in ("_time", "_weight"))
        there[values] += row.get("_weight", 1)
    return +there


def by_duckdb(query: str, rows: Rows) -> Counter[Any]:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE s (k VARCHAR, v BIGINT, ts BIGINT)")
    if rows:
        connection.executemany("INSERT INTO s VALUES (?, ?, ?)", rows)
    found = connection.execute(query).fetchall()
    return Counter(tuple(int(v) if isinstance(v, float) else v for v in row) for row in found)


SHOWN = "window_start, window_end, k, SUM(v), COUNT(*), MAX(v)"
GROUPS = "GROUP BY window_start, window_end, k"

#: Each query of a window, and how SQL without windows says the same.
TUMBLED = f"""SELECT a AS window_start, a + 10 AS window_end, k, SUM(v), COUNT(*), MAX(v)
  FROM (SELECT *, CAST(floor(ts / 10.0) AS BIGINT) * 10 AS a FROM s) {GROUPS}"""
MOVED = f"""SELECT a AS window_start, a + 10 AS window_end, k, SUM(v), COUNT(*), MAX(v)
  FROM (SELECT *, CAST(floor((ts - 3) / 10.0) AS BIGINT) * 10 + 3 AS a FROM s) {GROUPS}"""
HOPPED = f"""SELECT a AS window_start, a + 10 AS window_end, k, SUM(v), COUNT(*), MAX(v)
  FROM s JOIN (SELECT CAST(range AS BIGINT) * 4 AS a FROM range(-20, 120))
  ON ts >= a AND ts < a + 10 {GROUPS}"""
SKIPPED = HOPPED.replace("* 4", "* 15")
SESSIONS = """WITH marked AS (SELECT *, CASE WHEN ts - LAG(ts) OVER w > 5 THEN 1 ELSE 0 END AS new
    FROM s WINDOW w AS (PARTITION BY k ORDER BY ts)),
  numbered AS (SELECT *, SUM(new) OVER (PARTITION BY k ORDER BY ts) AS n FROM marked)
  SELECT MIN(ts) AS window_start, MAX(ts) + 5 AS window_end, k, SUM(v), COUNT(*), MAX(v)
  FROM numbered GROUP BY k, n"""

CASES = {
    "tumble": (
        f"SELECT {SHOWN} FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL 10 us)) {GROUPS}",
        TUMBLED,
    ),
    "own time": (f"SELECT {SHOWN} FROM TUMBLE(s, INTERVAL 10 us) {GROUPS}", TUMBLED),
    "own time, bare": (f"SELECT {SHOWN} FROM TUMBLE(s, 10 us) {GROUPS}", TUMBLED),
    "group by tumble": (f"SELECT {SHOWN} FROM s GROUP BY TUMBLE(_time, 10 us), k", TUMBLED),
    "offset": (f"SELECT {SHOWN} FROM TUMBLE(s, ts, 10 us, OFFSET => 3 us) {GROUPS}", MOVED),
    "hop": (
        f"""SELECT {SHOWN} FROM TABLE(HOP(DATA => TABLE s, TIMECOL => DESCRIPTOR(ts),
        SLIDE => INTERVAL 4 us, SIZE => INTERVAL 10 us)) {GROUPS}""",
        HOPPED,
    ),
    "group by hop": (f"SELECT {SHOWN} FROM s GROUP BY HOP(ts, 4 us, 10 us), k", HOPPED),
    "hop with holes": (f"SELECT {SHOWN} FROM HOP(s, ts, 15 us, 10 us) {GROUPS}", SKIPPED),
    "session": (
        f"""SELECT {SHOWN}
        FROM TABLE(SESSION(TABLE s PARTITION BY k, DESCRIPTOR(ts), 5 us)) {GROUPS}""",
        SESSIONS,
    ),
    "group by session": (f"SELECT {SHOWN} FROM s GROUP BY k, SESSION(_time, 5 us)", SESSIONS),
}


@pytest.mark.parametrize("name", CASES)
def test_windows_hold_what_sql_says(name: str) -> None:
    ours, theirs = CASES[name]
    for seed in range(6):
        rows = rows_of(seed)
        assert by_duckdb(theirs, rows) == in_the_end(ours, rows), seed


@pytest.mark.parametrize("name", CASES)
def test_final_windows_are_told_once_when_they_have_ended(name: str) -> None:
    ours, theirs = CASES[name]
    for seed in range(6):
        rows = rows_of(seed)
        last = max((ts for _, _, ts in rows), default=0)
        expected = {row: n for row, n in by_duckdb(theirs, rows).items() if row[1] <= last}
        told = ran(f"{ours} EMIT FINAL", rows)
        assert all(row["_time"] == row["window_end"] for row in told)
        assert expected == Counter(tuple(list(row.values())[1:]) for row in told), seed


def test_windows_are_the_same_when_compiled() -> None:
    for ours, _ in (CASES[name] for name in ("group by hop", "session")):
        for query in (ours, f"{ours} EMIT FINAL"):
            rows = rows_of(3)
            assert in_the_end(query, rows) == in_the_end(query, rows, "local")


def test_windows_of_windows() -> None:
    """Sums of ten are summed to sums of forty, each when it is complete."""
    rows = rows_of(5)
    inner = f"SELECT window_start, k, SUM(v) AS v FROM TUMBLE(s, ts, 10 us) {GROUPS} EMIT FINAL"
    outer = f"""SELECT window_end, k, SUM(v) AS v
        FROM TUMBLE(({inner}), window_start, 40 us) {GROUPS} EMIT FINAL"""
    whole = f"SELECT window_end, k, SUM(v) AS v FROM TUMBLE(s, ts, 40 us) {GROUPS} EMIT FINAL"
    assert in_the_end(whole, rows) == in_the_end(outer, rows)


def test_the_best_of_each_window() -> None:
    rows: Rows = [("a", 1, 0), ("b", 5, 2), ("c", 3, 9), ("a", 2, 10), ("b", None, 31)]
    query = """SELECT window_end, k, v FROM TUMBLE(s, ts, 10 us)
        ORDER BY v DESC LIMIT 2 EMIT FINAL"""
    told = [tuple(row.values()) for row in ran(query, rows)]
    assert told == [(10, 10, "b", 5), (10, 10, "c", 3), (20, 20, "a", 2)]


def test_first_and_last_of_windows_are_those_of_time() -> None:
    rows: Rows = [("a", 4, 0), ("a", 9, 2), ("a", 1, 9), ("a", 3, 10), ("a", 7, 25)]
    query = """SELECT window_start, FIRST(v) AS a, MAX(v) AS b, MIN(v) AS c, LAST(v) AS d,
        MEDIAN(v) AS m FROM s GROUP BY TUMBLE(ts, 10 us), k EMIT FINAL"""
    told = [tuple(row.values()) for row in ran(query, rows)]
    assert told == [(10, 0, 4, 9, 1, 1, 4.0), (20, 10, 3, 3, 3, 3, 3.0)]
    running = (
        "SELECT window_start, FIRST(v) AS a, LAST(v) AS d FROM s GROUP BY SESSION(ts, 5 us), k"
    )
    assert in_the_end(running, rows) == Counter([(0, 4, 9), (9, 1, 3), (25, 7, 7)])


def test_places_in_windows_that_have_ended() -> None:
    rows: Rows = [("a", 4, 0), ("b", 9, 2), ("a", 1, 9), ("b", 3, 10), ("a", 7, 25)]
    query = """SELECT * FROM (SELECT window_end, k, v,
          ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY v DESC) AS n
        FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL 10 us))) WHERE n <= 2 EMIT FINAL"""
    told = [tuple(row.values()) for row in ran(query, rows)]
    assert told == [(10, 10, "a", 4, 2), (10, 10, "b", 9, 1), (20, 20, "b", 3, 1)]


def test_the_time_of_a_row_can_be_read() -> None:
    rows: Rows = [("a", 1, 3), ("b", 5, 8), ("a", 2, 9)]
    text = "CREATE STREAM s (k TEXT, v INTEGER); CREATE OUTPUT o AS "
    given = [{"_time": ts, "k": k, "v": v} for k, v, ts in rows]

    def told(query: str) -> list[tuple[Any, ...]]:
        job = millstream.compile(text=text + query + ";", language="cql")
        return [tuple(row.values()) for row in job.run({"s": given}, engine="reference").rows("o")]

    assert told("SELECT _time, k FROM s WHERE _time > time(3)") == [(8, 8, "b"), (9, 9, "a")]
    assert told("SELECT k, MAX(_time) AS last FROM s [Rows 2] GROUP BY k")[-1] == (9, 1, "a", 9)
    assert told("SELECT ts FROM (SELECT _time AS ts, v FROM s) WHERE v = 5") == [(8, 8)]
    assert told("SELECT s.v, q._time AS ts FROM s, (SELECT _time, k FROM s) AS q WHERE s.k = q.k")
    assert told("SELECT * FROM s WHERE _time = time(8)") == [(8, "b", 5)]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT k FROM TUMBLE(s, ts) GROUP BY k", "TUMBLE needs a size"),
        ("SELECT k FROM HOP(s, ts, 5 us) GROUP BY k", "HOP needs a size"),
        ("SELECT k FROM TUMBLE(s, ts, 0 us)", "a size must be longer than nothing"),
        ("SELECT k FROM TUMBLE(s, v, 5 us)", 'a window is of times, but "v" is of type integer'),
        ("SELECT k FROM TUMBLE(s, att, 5 us)", 'unknown column "att"'),
        ("SELECT k FROM TUMBLE(s PARTITION BY k, ts, 5 us)", "only SESSION has PARTITION BY"),
        ("SELECT k FROM HOP(s, ts, 1 us, 1 HOUR)", "every row would be in more than 1000 windows"),
        ("SELECT k FROM CUMULATE(s, ts, 1 us, 1 HOUR)", "CUMULATE is not part of CQL"),
        ("SELECT HOP_END(ts) FROM s GROUP BY HOP(ts, 1 us, 2 us)", "write window_end"),
        ("SELECT k FROM s EMIT FINAL", "EMIT FINAL is of a query with windows of time"),
        ("SELECT k FROM s EMIT SOON", "expected FINAL, CHANGES or EARLY after EMIT"),
        ("SELECT COUNT(*) FROM s, s AS r GROUP BY TUMBLE(s.ts, 5 us)", "is of a single stream"),
        ("SELECT k FROM s GROUP BY SESSION(ts, 5 us), upper(k)", "keys of SESSION are columns"),
        ("SELECT COUNT(*) FROM TUMBLE(s, ts, 5 us) EMIT FINAL", "grouped by their windows"),
        ("SELECT _time FROM (SELECT k FROM s)", "only the rows of a stream have a time"),
        ("SELECT k FROM SESSION((SELECT k, ts FROM s), ts, 5 us)", "time of the stream"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_window_is_told(query: str, message: str) -> None:
    with pytest.raises(MillstreamError, match=r"(?s)\^") as error:
        millstream.compile(text=f"{STREAM}{query};", language="cql")
    assert message in str(error.value)
