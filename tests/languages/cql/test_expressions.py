"""Expressions mean what SQL says, on both engines, nulls included."""

from __future__ import annotations

import datetime as dt
from typing import Any

import duckdb
import pytest

import millstream
from millstream.errors import MillstreamError
from millstream.queries.names import GRAMMATICAL
from millstream.queries.shorthands import SHORTHANDS
from millstream.values.instants import parse_time

EXPRESSIONS = [
    "t LIKE 'A%'",
    "t NOT LIKE 'A%'",
    "NOT t LIKE '%_c%'",
    "t ILIKE 'aB%'",
    "t NOT ILIKE 'aB%'",
    "t LIKE 'Ab!c' ESCAPE '!'",
    "(t || '%') LIKE '%b!%' ESCAPE '!'",
    "(t || '_') NOT LIKE '%!_' ESCAPE '!'",
    "(t || '!') LIKE '%!!' ESCAPE '!'",
    "(t || '%') ILIKE 'AB\\%' ESCAPE '\\'",
    "t LIKE '__%' ESCAPE '_'",
    "n NOT IN (1, 2)",
    "n NOT BETWEEN 1 AND 2",
    "b IS TRUE",
    "b IS NOT TRUE",
    "b IS FALSE",
    "(x > 2) IS NOT FALSE",
    "n IS DISTINCT FROM 2",
    "n IS NOT DISTINCT FROM m",
    "NULLIF(n, m)",
    "t || '-' || t",
    "ROUND(x)",
    "ROUND(x, 1)",
    "LEFT(t, 2)",
    "RIGHT(t, 2)",
    "RIGHT(t, 20)",
    "SIGN(x)",
    "SIGN(n)",
    "POSITION('b' IN t)",
    "STRPOS(t, 'c')",
    "INSTR(t, '')",
    "EXTRACT(EPOCH FROM at_)",
    "EXTRACT(DOW FROM at_)",
    "EXTRACT(ISODOW FROM at_)",
    "EXTRACT(DOY FROM at_)",
    "EXTRACT(QUARTER FROM at_)",
    "DATE_TRUNC('hour', at_)",
    "DATE_TRUNC('week', at_)",
    "DATE_TRUNC('month', at_)",
    "DATE_TRUNC('quarter', at_)",
    "DATE_TRUNC('year', at_)",
    "at_ > DATE '2025-02-03'",
]
ROWS: list[tuple[Any, ...]] = [
    ("Abc", 1, 1, 2.25, True, "2025-02-03T04:05:06.5Z"),
    ("ab", 2, None, -0.5, False, "2024-12-31T23:59:59Z"),
    ("", 3, 2, 0.0, None, "1969-12-28T00:00:00Z"),
    (None, None, None, None, True, None),
    ("bcAb", -2, -2, 2.5, False, "2025-10-31T00:00:00Z"),
]
COLUMNS = ("t", "n", "m", "x", "b", "at_")


def plain(value: Any) -> Any:
    """Times as microseconds, so that both sides write them alike."""
    if isinstance(value, dt.datetime):
        since = value.replace(tzinfo=dt.UTC) - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
        return since // dt.timedelta(microseconds=1)
    if isinstance(value, float):
        return round(value, 9)
    return value


def by_sql() -> list[tuple[Any, ...]]:
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE s (i INT, t VARCHAR, n BIGINT, m BIGINT, x DOUBLE, b BOOL, at_ TIMESTAMP)"
    )
    for number, row in enumerate(ROWS):
        text = row[-1].rstrip("Z") if row[-1] else None
        connection.execute("INSERT INTO s VALUES (?, ?, ?, ?, ?, ?, ?)", [number, *row[:-1], text])
    query = f"SELECT {', '.join(EXPRESSIONS)} FROM s ORDER BY i"
    return [tuple(plain(v) for v in row) for row in connection.execute(query).fetchall()]


@pytest.mark.parametrize("engine", ["reference", "local"])
def test_expressions_mean_what_sql_says(engine: str) -> None:
    items = ", ".join(f"{e} AS c{n}" for n, e in enumerate(EXPRESSIONS))
    job = millstream.compile(
        text=f"""
        CREATE STREAM s (t TEXT, n INTEGER, m INTEGER, x NUMBER, b BOOLEAN, at_ TIME);
        SELECT {items} FROM s;""",
        language="cql",
    )
    rows = [(*row[:-1], parse_time(row[-1]) if row[-1] else None) for row in ROWS]
    given = [{"_time": n, **dict(zip(COLUMNS, row, strict=True))} for n, row in enumerate(rows)]
    found = [tuple(row.values())[1:] for row in job.run({"s": given}, engine=engine).rows("query1")]
    for row, expected in zip(found, by_sql(), strict=True):
        told = dict(zip(EXPRESSIONS, map(plain, row), strict=True))
        assert dict(zip(EXPRESSIONS, expected, strict=True)) == told


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("n BETWEEN SYMMETRIC 2 AND 1", "SYMMETRIC is not part of CQL"),
        ("t LIKE 'a!%' ESCAPE '!!'", "an escape is a text of one character"),
        ("t LIKE 'a!%' ESCAPE t", "an escape is a text of one character"),
        ("t LIKE 'a!' ESCAPE '!'", "nothing follows the escape"),
        ("t ILIKE 'ax%' ESCAPE 'x'", "letters cannot be escapes of ILIKE"),
        ("t ESCAPE '!'", "ESCAPE is not part of CQL"),
        ("t SIMILAR TO 'a'", "use LIKE"),
        ("LEFT(t) = 'a'", "usage: LEFT"),
        ("n IS 3", "expected NULL, TRUE, FALSE or DISTINCT FROM after IS"),
    ],
)
def test_nothing_that_is_written_is_passed_over(condition: str, message: str) -> None:
    text = f"CREATE STREAM s (t TEXT, n INTEGER); SELECT n FROM s WHERE {condition};"
    with pytest.raises(MillstreamError, match=message):
        millstream.compile(text=text, language="cql")


def test_a_function_is_read_by_us_or_by_its_grammar() -> None:
    assert not set(SHORTHANDS) & set(GRAMMATICAL)
