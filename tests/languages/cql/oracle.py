"""One query over whole tables, asked of DuckDB and of CQL."""

from __future__ import annotations

import datetime as dt
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import duckdb

import millstream
from millstream.values.instants import parse_time

#: The columns of each table with their types, and its rows; times are texts.
Tables = Mapping[str, Mapping[str, str]]
Contents = Mapping[str, Sequence[tuple[Any, ...]]]
Answer = Counter[tuple[Any, ...]]

_TYPES = {"integer": "BIGINT", "number": "DOUBLE", "text": "VARCHAR", "boolean": "BOOL",
          "time": "TIMESTAMP"}  # fmt: skip


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


def connected(tables: Tables, contents: Contents) -> Any:
    """A connection to a database with some tables; nulls are less than all else, as in CQL."""
    connection = duckdb.connect()
    connection.execute("SET default_null_order = 'nulls_first_on_asc_last_on_desc'")
    for name, columns in tables.items():
        declared = ", ".join(f"{c} {_TYPES[t]}" for c, t in columns.items())
        connection.execute(f"CREATE TABLE {name} ({declared})")
        marks = ", ".join("?" * len(columns))
        connection.executemany(f"INSERT INTO {name} VALUES ({marks})", contents[name])
    return connection


def by_sql(text: str, connection: Any) -> Answer | None:
    """What DuckDB says, which calls some things otherwise; None if it refuses."""
    text = re.sub(r"\bDIV\b", "//", text).replace("IFF(", "IF(")
    text = re.sub(r"\bNUMBER\b", "DOUBLE", text)
    try:
        rows = connection.execute(text).fetchall()
    except duckdb.Error:
        return None
    return Counter(tuple(plain(v) for v in row) for row in rows)


def declarations(tables: Tables) -> str:
    return "".join(
        f"CREATE STREAM {name} ({', '.join(f'{c} {t.upper()}' for c, t in columns.items())});\n"
        for name, columns in tables.items()
    )


def by_cql(text: str, tables: Tables, contents: Contents, *, engine: str = "reference") -> Answer:
    """What is there in the end, when all rows have come at once."""
    job = millstream.compile(text=f"{declarations(tables)}{text};", language="cql")
    given = {
        name: [_row(columns, row) for row in contents[name]]
        for name, columns in tables.items()
        if name in job.program.input_names
    }
    found: Answer = Counter()
    for row in job.run(given, engine=engine).rows("query1"):
        weight = int(row.get("_weight") or 1)
        columns = [v for name, v in row.items() if name not in ("_time", "_weight")]
        found[tuple(plain(v) for v in columns)] += weight
    return found


def _row(columns: Mapping[str, str], row: tuple[Any, ...]) -> dict[str, Any]:
    """A row as our inputs have it."""
    values = zip(columns.items(), row, strict=True)
    return {"_time": 0} | {
        c: parse_time(f"{v}Z") if t == "time" and v is not None else v for (c, t), v in values
    }
