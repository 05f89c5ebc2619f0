"""OVER in the order of time: a row is told once, when it comes, and little is kept for it."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import duckdb
import pytest

import millstream
from millstream.calculus.functions import Ordered

STREAM = "CREATE STREAM s (id INTEGER, k TEXT, v INTEGER, x NUMBER, ts TIME) TIME ts;\n"

#: What each row is told; what depends on the order within one instant is ordered by `id` there.
ITEMS = (
    "row_number() OVER (PARTITION BY k ORDER BY ts/, id/)",
    "RANK() OVER (PARTITION BY k ORDER BY ts)",
    "DENSE_RANK() OVER (ORDER BY ts)",
    "LAG(v) OVER (PARTITION BY k ORDER BY ts/, id/)",
    "LAG(v, 2, -1) OVER (PARTITION BY k ORDER BY ts/, id/)",
    "FIRST_VALUE(v) OVER (PARTITION BY k ORDER BY ts/, id/)",
    "SUM(v) OVER (PARTITION BY k ORDER BY ts)",
    "COUNT(*) OVER (ORDER BY ts)",
    "MAX(x) OVER (PARTITION BY k ORDER BY ts)",
    "AVG(x) OVER (PARTITION BY k ORDER BY ts RANGE INTERVAL 3 us PRECEDING)",
    "MIN(v) OVER (ORDER BY ts RANGE BETWEEN INTERVAL 1 us PRECEDING AND CURRENT ROW)",
    "SUM(v) OVER (PARTITION BY k ORDER BY ts/, id/ ROWS UNBOUNDED PRECEDING)",
    "AVG(x) OVER (PARTITION BY k ORDER BY ts/, id/ ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)",
    "MIN(v) OVER (PARTITION BY k ORDER BY ts/, id/ ROWS 1 PRECEDING)",
    "MAX(v) OVER (PARTITION BY k ORDER BY ts/, id/ ROWS UNBOUNDED PRECEDING)",
    "COUNT(v) OVER (PARTITION BY k ORDER BY ts/, id/ ROWS 1 PRECEDING)",
    "COUNT(*) OVER (PARTITION BY k ORDER BY ts/, id/ ROWS 2 PRECEDING)",
    "v - LAG(v) OVER (PARTITION BY k ORDER BY ts/, id/)",
)  # fmt: skip


def rows_of(seed: int) -> list[tuple[Any, ...]]:
    random = Random(seed)
    time, rows = 0, []
    for number in range(15):
        time += random.choice([0, 0, 1, 2, 5])
        rows.append((number, random.choice(["a", "b", None]), random.choice([None, 1, 2, 5]),
                     random.choice([None, 0.5, 1.25, -2.0]), time))  # fmt: skip
    return rows


def by_duckdb(item: str, rows: list[tuple[Any, ...]]) -> Counter[Any]:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE s (id BIGINT, k VARCHAR, v BIGINT, x DOUBLE, ts BIGINT)")
    connection.executemany("INSERT INTO s VALUES (?, ?, ?, ?, ?)", rows)
    item = item.replace("/", "").replace("INTERVAL ", "").replace(" us", "")
    found = connection.execute(f"SELECT ts, id, {item} AS c FROM s").fetchall()
    return Counter(tuple(round(v, 9) if isinstance(v, float) else v for v in r) for r in found)


def compiled(items: tuple[str, ...], where: str = "") -> Any:
    listed = ", ".join(f"{item} AS c{n}" for n, item in enumerate(items))
    listed = listed.replace("/, id/", "")
    text = f"{STREAM}CREATE OUTPUT o AS SELECT id, {listed} FROM s{where};"
    return millstream.compile(text=text, language="cql")


def told(job: Any, rows: list[tuple[Any, ...]], engine: str = "reference") -> Counter[Any]:
    given = [dict(zip(("id", "k", "v", "x", "ts"), row, strict=True)) for row in rows]
    lines = job.run({"s": given}, engine=engine).rows("o")
    assert all("_weight" not in line for line in lines)
    return Counter(
        tuple(round(v, 9) if isinstance(v, float) else v for v in line.values()) for line in lines
    )


@pytest.mark.parametrize("item", ITEMS)
def test_what_follows_from_the_rows_before_is_told_at_once(item: str) -> None:
    job = compiled((item,))
    assert not any(isinstance(op.function, Ordered) for op in job.program.operators)
    for seed in range(3):
        rows = rows_of(seed)
        assert by_duckdb(item, rows) == told(job, rows)


def test_all_of_it_is_the_same_when_compiled() -> None:
    job, rows = compiled(ITEMS), rows_of(4)
    assert told(job, rows) == told(job, rows, "local")


def test_what_needs_later_rows_is_corrected_when_they_come() -> None:
    job = compiled(("LEAD(v) OVER (ORDER BY ts)",))
    assert any(isinstance(op.function, Ordered) for op in job.program.operators)
    given: list[dict[str, Any]] = [{"id": n, "k": "a", "v": n, "x": 0.0, "ts": n} for n in range(2)]
    rows = job.run({"s": given}, engine="reference").rows("o")
    assert [tuple(row.values()) for row in rows] == [
        (0, 1, 0, None), (1, -1, 0, None), (1, 1, 0, 1), (1, 1, 1, None),
    ]  # fmt: skip


def test_rows_that_where_leaves_out_have_no_place() -> None:
    rows = [(n, "a", n % 2, 0.0, n) for n in range(6)]
    job = compiled(("row_number() OVER (ORDER BY ts)",), " WHERE v = 1")
    assert told(job, rows) == Counter([(1, 1, 1), (3, 3, 2), (5, 5, 3)])
