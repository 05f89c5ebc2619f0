"""Nothing that is written is passed over: SQL of every kind is answered as DuckDB does, or refused.

What is refused is told at a place of the text and in words of the language, never in those of
the translation.
"""

from __future__ import annotations

import datetime as dt
import functools
import re
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest

import millstream
from millstream.calculus.instants import parse_time
from millstream.errors import MillstreamError

DECLARED = """CREATE STREAM S (k INTEGER, v INTEGER, t TEXT, x NUMBER, b BOOLEAN, m TIME);
CREATE STREAM R (k INTEGER, w INTEGER, t TEXT);
"""
COLUMNS = {"S": ("k", "v", "t", "x", "b", "m"), "R": ("k", "w", "t")}
ROWS: dict[str, list[tuple[Any, ...]]] = {
    "S": [
        (1, 10, "a", 0.5, True, "2025-02-03T04:05:06"),
        (2, 20, "b", 2.5, False, "2024-12-31T23:59:59"),
        (2, 20, "b", 2.5, False, "2024-12-31T23:59:59"),
        (3, 30, "ab", -1.25, None, "1969-12-28T00:00:00"),
        (1, None, "a", 4.0, True, None),
        (None, None, None, None, None, None),
    ],
    "R": [(1, 10, "a"), (1, 15, "b"), (2, None, "a"), (4, 40, None), (None, 5, "ab"), (2, 20, "b")],
}
LINES = (Path(__file__).parent / "constructs.sql").read_text().splitlines()
CONSTRUCTS = [line for line in LINES if line and not line.startswith("--")]

#: What is meant to be answered otherwise, or answered where DuckDB says nothing.
OTHERWISE = {
    "SELECT INTERVAL '1.5' HOURS FROM S": "half an hour is not dropped",
    "SELECT SUBSTRING(t, 0), SUBSTRING(t, 0, 2), SUBSTRING(t, -1), SUBSTRING(t, 5) FROM S":
        "places before the first are counted, as in the standard and in PostgreSQL",
    "SELECT CONCAT(t, '!'), CONCAT(t, NULL) FROM S": "CONCAT is null if anything is",
    "SELECT v DIV 0 FROM S": "what cannot be computed is null",
    "SELECT k, w FROM S, R WHERE S.k = R.k": "what is equal by the join is one column",
}  # fmt: skip

#: Names that a translation makes up, which no message may show.
MADE_UP = re.compile(r"outer\.|_sub\b|_from\d|\b(key|found|using|order|value|rows|first)\.\d")


def plain(value: Any) -> Any:
    """A value as both sides write it: times and durations in microseconds."""
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        value = dt.datetime.combine(value, dt.time())
    if isinstance(value, dt.datetime):
        value = value.replace(tzinfo=dt.UTC) - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    if isinstance(value, dt.timedelta):
        return value // dt.timedelta(microseconds=1)
    if isinstance(value, (float, Decimal)):
        return round(float(value), 9)
    return value


@functools.cache
def oracle() -> Any:
    connection = duckdb.connect()
    connection.execute("SET default_null_order = 'nulls_first_on_asc_last_on_desc'")
    connection.execute(
        "CREATE TABLE S (k BIGINT, v BIGINT, t VARCHAR, x DOUBLE, b BOOL, m TIMESTAMP)"
    )
    connection.execute("CREATE TABLE R (k BIGINT, w BIGINT, t VARCHAR)")
    for name, rows in ROWS.items():
        marks = ", ".join("?" * len(COLUMNS[name]))
        connection.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)
    return connection


def by_sql(text: str) -> Counter[tuple[Any, ...]] | None:
    """What DuckDB says, which calls some things otherwise; None if it refuses."""
    text = re.sub(r"\bDIV\b", "//", text).replace("NUMBER", "DOUBLE").replace("IFF(", "IF(")
    try:
        rows = oracle().execute(text).fetchall()
    except duckdb.Error:
        return None
    return Counter(tuple(plain(v) for v in row) for row in rows)


def by_cql(text: str) -> Counter[tuple[Any, ...]]:
    """What is there in the end, when all rows have come at once."""
    job = millstream.compile(text=f"{DECLARED}{text};", language="cql")
    given = {
        name: [{"_time": 0, **row} for row in dicts(name)]
        for name in ROWS
        if name in job.program.input_names
    }
    found: Counter[tuple[Any, ...]] = Counter()
    for row in job.run(given, engine="reference").rows("query1"):
        weight = int(row.get("_weight") or 1)
        columns = [v for name, v in row.items() if name not in ("_time", "_weight")]
        found[tuple(plain(v) for v in columns)] += weight
    return found


def dicts(name: str) -> list[dict[str, Any]]:
    """The rows of a table, with times as our inputs have them."""
    rows = [dict(zip(COLUMNS[name], row, strict=True)) for row in ROWS[name]]
    return [r | {"m": parse_time(f"{r['m']}Z")} if r.get("m") else r for r in rows]


@pytest.mark.parametrize("text", CONSTRUCTS)
def test_sql_is_answered_as_it_should_be_or_refused(text: str) -> None:
    try:
        found = by_cql(text)
    except MillstreamError as error:
        for fault in error.faults:
            assert fault.span is not None, fault.message
            assert fault.span.start >= len(DECLARED), fault.message
            assert not MADE_UP.search(f"{fault.message} {fault.hint}"), fault.message
        return
    assert (text in OTHERWISE) == (by_sql(text) != found)
