"""At rest a broker, whatever the order of rows, and `run` say what DuckDB says."""

from __future__ import annotations

import random
from typing import Any

import duckdb
import pytest

import millstream
from millstream.broker.core import Silence
from millstream.languages.served import FINAL_COLUMN
from tests.broker.world import CrashingDisk, SetClock, batch, opened, served

STREAMS = """
CREATE TYPE lot AS INTEGER BETWEEN 0 AND 100;
CREATE STREAM A (t: time -> k: integer, x: lot) SLACK 1 SECOND UNTIL 1000;
CREATE STREAM B (u: time -> k: integer, y: lot) SLACK 1 SECOND UNTIL 1000;
CREATE STREAM C (t: time -> k: integer, x: lot) SLACK 1 SECOND UNTIL 1000;
"""
COLUMNS = {"A": ("t", "k", "x"), "B": ("u", "k", "y"), "C": ("t", "k", "x")}
#: A program whose view is V, and the same in SQL.
PROGRAMS = {
    "selection": (
        """CREATE VIEW V (SELECT t,k,x*2+1 AS z FROM A WHERE x>40);""",
        """SELECT t,k,x*2+1 AS z FROM A WHERE x>40""",
    ),
    "group": (
        """CREATE VIEW V (SELECT k,SUM(x) AS s,COUNT(*) AS n,MIN(x) AS a,MAX(x) AS b
           FROM A GROUP BY k);""",
        """SELECT k,SUM(x)::BIGINT AS s,COUNT(*) AS n,MIN(x) AS a,MAX(x) AS b FROM A GROUP BY k""",
    ),
    "average": (
        """CREATE VIEW V (SELECT k,AVG(x) AS m FROM A GROUP BY k);""",
        """SELECT k,AVG(x) AS m FROM A GROUP BY k""",
    ),
    "having": (
        """CREATE VIEW V (SELECT k,SUM(x) AS s FROM A GROUP BY k HAVING COUNT(*)>2);""",
        """SELECT k,SUM(x)::BIGINT AS s FROM A GROUP BY k HAVING COUNT(*)>2""",
    ),
    "join": (
        """CREATE VIEW V (SELECT A.t AS t,B.u AS u,A.x-B.y AS d FROM A JOIN B USING (k)
           WHERE A.x>B.y);""",
        """SELECT A.t AS t,B.u AS u,A.x-B.y AS d FROM A JOIN B USING (k) WHERE A.x>B.y""",
    ),
    "group_in_join": (
        """CREATE VIEW S (SELECT k,SUM(x) AS s FROM A GROUP BY k); CREATE VIEW V (SELECT
           u,k,y-s AS r FROM B JOIN S USING (k) WHERE r<0);""",
        """SELECT u,B.k AS k,y-coalesce(s,0)::BIGINT AS r FROM B LEFT JOIN (SELECT
           k,SUM(x)::BIGINT AS s FROM A GROUP BY k) S USING (k) WHERE y-coalesce(s,0)<0""",
    ),
    "inner": (
        """CREATE VIEW S (SELECT k,COUNT(*) AS n FROM A GROUP BY k); CREATE VIEW V
           (SELECT u,n FROM B INNER JOIN S USING (k));""",
        """SELECT u,n FROM B JOIN (SELECT k,COUNT(*) AS n FROM A GROUP BY k) S USING (k)""",
    ),
    "left_join": (
        """CREATE VIEW V (SELECT A.t AS t,B.u AS u FROM A LEFT JOIN B ON A.k=B.k AND A.x=B.y);""",
        """SELECT A.t AS t,B.u AS u FROM A LEFT JOIN B ON A.k=B.k AND A.x=B.y""",
    ),
    "exists": (
        """CREATE VIEW V (SELECT t FROM A WHERE EXISTS (SELECT * FROM B WHERE B.k=A.k));""",
        """SELECT t FROM A WHERE EXISTS (SELECT * FROM B WHERE B.k=A.k)""",
    ),
    "not_exists": (
        """CREATE VIEW V (SELECT t,k FROM A WHERE NOT EXISTS (SELECT * FROM B WHERE B.k=A.k));""",
        """SELECT t,k FROM A WHERE NOT EXISTS (SELECT * FROM B WHERE B.k=A.k)""",
    ),
    "largest": (
        """CREATE VIEW V (SELECT t,x FROM A ORDER BY x DESC, t LIMIT 3);""",
        """SELECT t,x FROM A ORDER BY x DESC, t LIMIT 3""",
    ),
    "earliest": (
        """CREATE VIEW V (SELECT t,x FROM A ORDER BY t LIMIT 4);""",
        """SELECT t,x FROM A ORDER BY t LIMIT 4""",
    ),
    "merge": (
        """CREATE VIEW V (SELECT k,COUNT(*) AS n FROM MERGE(A,C) GROUP BY k);""",
        """SELECT k,COUNT(*) AS n FROM (SELECT k FROM A UNION ALL SELECT k FROM C) GROUP BY k""",
    ),
    "window": (
        """CREATE VIEW V (SELECT WINDOW(t, 50 MICROSECONDS) AS w,COUNT(*) AS n,SUM(x) AS
           s FROM A GROUP BY WINDOW(t, 50 MICROSECONDS));""",
        """SELECT t//50*50 AS w,COUNT(*) AS n,SUM(x)::BIGINT AS s FROM A GROUP BY t//50*50""",
    ),
    "latest": (
        """CREATE VIEW V (SELECT k,LATEST(x) AS l FROM A GROUP BY k);""",
        """SELECT k,arg_max(x,t) AS l,max(t) AS l_at FROM A GROUP BY k""",
    ),
    "distinct": (
        """CREATE VIEW V (SELECT DISTINCT k FROM A);""",
        """SELECT DISTINCT k FROM A""",
    ),
    "group_of_groups": (
        """CREATE VIEW S (SELECT k,SUM(x) AS s FROM A GROUP BY k); CREATE VIEW V (SELECT
           s,COUNT(*) AS n FROM S GROUP BY s);""",
        """SELECT s,COUNT(*) AS n FROM (SELECT k,SUM(x)::BIGINT AS s FROM A GROUP BY k)
           GROUP BY s""",
    ),
    "case": (
        """CREATE VIEW V (SELECT t,CASE WHEN x>50 THEN 'hi' ELSE 'lo' END AS c FROM A);""",
        """SELECT t,CASE WHEN x>50 THEN 'hi' ELSE 'lo' END AS c FROM A""",
    ),
    "whole_stream": (
        """CREATE VIEW V (SELECT SUM(x) AS s,COUNT(*) AS n FROM A WHERE k=1);""",
        """SELECT SUM(x)::BIGINT AS s,COUNT(*) AS n FROM A WHERE k=1""",
    ),
    "with_itself": (
        """CREATE VIEW V (SELECT p.t AS a,q.t AS b FROM A p JOIN A q ON p.k=q.k
           WHERE p.x<q.x);""",
        """SELECT p.t AS a,q.t AS b FROM A p JOIN A q ON p.k=q.k WHERE p.x<q.x""",
    ),
    "groups_of_the_first": (
        """CREATE VIEW F (SELECT t,k,x FROM A WHERE k<>1 ORDER BY x DESC, t LIMIT 5);
           CREATE VIEW V (SELECT k,COUNT(*) AS n,SUM(x) AS s FROM F GROUP BY k);""",
        """SELECT k,COUNT(*) AS n,SUM(x)::BIGINT AS s FROM (SELECT t,k,x FROM A WHERE k<>1
           ORDER BY x DESC, t LIMIT 5) GROUP BY k""",
    ),
    "the_first_in_a_join": (
        """CREATE VIEW F (SELECT t,k FROM A ORDER BY x DESC, t LIMIT 3);
           CREATE VIEW V (SELECT t,u FROM F JOIN B ON F.k=B.k);""",
        """SELECT t,u FROM (SELECT t,k FROM A ORDER BY x DESC, t LIMIT 3) F JOIN B ON F.k=B.k""",
    ),
    "two_groups": (
        """CREATE VIEW S (SELECT k,SUM(x) AS s FROM A GROUP BY k); CREATE VIEW T (SELECT
           k,SUM(y) AS z FROM B GROUP BY k); CREATE VIEW V (SELECT k,s-z AS d FROM S JOIN T
           USING (k));""",
        """SELECT k,coalesce(s,0)-coalesce(z,0) AS d FROM (SELECT k,SUM(x)::BIGINT AS s
           FROM A GROUP BY k) S FULL JOIN (SELECT k,SUM(y)::BIGINT AS z FROM B GROUP BY k) T
           USING (k)""",
    ),
}

Data = dict[str, list[tuple[int, int, int]]]


def data_of(seed: int) -> Data:
    chance = random.Random(seed)
    made: Data = {name: [] for name in COLUMNS}
    for tick in chance.sample(range(1, 400), 60):
        name = chance.choice("ABC")
        keys = 4 if name == "B" else 5
        made[name].append((tick, chance.randrange(keys), chance.randrange(101)))
    return made


def by_duckdb(sql: str, data: Data) -> tuple[list[str], list[str]]:
    """The columns of an answer, and its rows in order."""
    with duckdb.connect() as connection:
        for name, columns in COLUMNS.items():
            connection.execute(f"CREATE TABLE {name} ({' BIGINT, '.join(columns)} BIGINT)")
            connection.executemany(f"INSERT INTO {name} VALUES (?, ?, ?)", data[name])
        cursor = connection.execute(sql)
        assert cursor.description is not None
        return [d[0] for d in cursor.description], sorted(map(repr, cursor.fetchall()))


def by_run(text: str, data: Data, columns: list[str]) -> list[str]:
    given = {
        name: [dict(zip(COLUMNS[name], row, strict=True)) for row in sorted(rows)]
        for name, rows in data.items()
    }
    ran = millstream.compile(text=text, language="smile").run(given, engine="reference")
    net: dict[tuple[Any, ...], int] = {}
    for row in ran.rows("V"):
        key = tuple(row[c] for c in columns)
        weight = row["_weight"]
        assert isinstance(weight, int)
        net[key] = net.get(key, 0) + weight
    return sorted(repr(row) for row, count in net.items() for _ in range(count))


def by_broker(text: str, data: Data, columns: list[str], seed: int) -> list[str]:
    """Rows come one by one, in any order; in the end all is known, and final."""
    broker = opened(served(text), CrashingDisk(), SetClock(10_000))
    batches = [batch(name, [row]) for name, rows in data.items() for row in rows]
    random.Random(seed).shuffle(batches)
    for half in (batches[:30], batches[30:]):
        broker.commit(half)
        broker.evaluate()
    broker.commit([Silence(name, 1000) for name in data])
    broker.evaluate()
    view = broker.views["V"]
    names = view.view.schema.names
    if FINAL_COLUMN in names:
        assert all(row[names.index(FINAL_COLUMN)] is True for row in view.rows)
    places = [names.index(c) for c in columns]
    rows = [row for row, count in view.rows.items() for _ in range(count)]
    return sorted(repr(tuple(row[n] for n in places)) for row in rows)


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_at_rest_are_what_sql_says(name: str) -> None:
    program, sql = PROGRAMS[name]
    text = f"{STREAMS}{program}\nsubscriptions V;"
    data = data_of(3)
    columns, expected = by_duckdb(sql, data)
    assert len(expected) > 0
    assert expected == by_run(text, data, columns)
    assert expected == by_broker(text, data, columns, 4)
