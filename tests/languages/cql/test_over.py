"""OVER: places, neighbours and frames are what DuckDB makes of the same rows."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import millstream
from millstream.errors import MillstreamError
from tests.languages.cql.oracle import by_cql, by_sql, connected

TABLES = {"s": {"id": "integer", "k": "text", "v": "integer", "x": "number"}}

#: Rows that are alike in an order are told apart by `id`, as both sides must agree on them.
ITEMS = (
    "row_number() OVER (PARTITION BY k ORDER BY v, id)",
    "row_number() OVER (ORDER BY v DESC NULLS LAST, id)",
    "row_number() OVER (ORDER BY v NULLS LAST, id DESC)",
    "RANK() OVER (PARTITION BY k ORDER BY v DESC)",
    "DENSE_RANK() OVER (PARTITION BY k ORDER BY v)",
    "PERCENT_RANK() OVER (PARTITION BY k ORDER BY v)",
    "CUME_DIST() OVER (PARTITION BY k ORDER BY v)",
    "NTILE(3) OVER (ORDER BY v, id)",
    "LAG(v) OVER (PARTITION BY k ORDER BY id)",
    "LAG(v, 2, -1) OVER (PARTITION BY k ORDER BY id)",
    "LEAD(x, 1, 0.5) OVER (PARTITION BY k ORDER BY id DESC)",
    "LEAD(k) OVER (ORDER BY id)",
    "FIRST_VALUE(v) OVER (PARTITION BY k ORDER BY id)",
    "LAST_VALUE(v) OVER (PARTITION BY k ORDER BY id ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING)",
    "SUM(v) OVER (PARTITION BY k ORDER BY v)",
    "SUM(x) OVER (PARTITION BY k ORDER BY id ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)",
    "AVG(v) OVER (ORDER BY id ROWS 1 PRECEDING)",
    "MIN(v) OVER (PARTITION BY k ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING)",
    "MAX(x) OVER (PARTITION BY k)",
    "COUNT(*) OVER (PARTITION BY k ORDER BY v)",
    "COUNT(v) OVER ()",
    "COUNT(*) FILTER (WHERE v > 1) OVER (PARTITION BY k)",
    "SUM(v) OVER (ORDER BY v RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING)",
    "SUM(v) OVER (ORDER BY v DESC RANGE BETWEEN 2 PRECEDING AND CURRENT ROW)",
    "COUNT(*) OVER (ORDER BY id ROWS BETWEEN 3 PRECEDING AND 2 PRECEDING)",
    "v - LAG(v) OVER (PARTITION BY k ORDER BY id) + SUM(v) OVER (PARTITION BY k)",
)

QUERIES = (
    "SELECT k, v FROM s QUALIFY row_number() OVER (PARTITION BY k ORDER BY v DESC, id) <= 2",
    "SELECT k, id, RANK() OVER (PARTITION BY k ORDER BY v) AS r FROM s QUALIFY r = 1",
    """SELECT k, v, n FROM (SELECT k, v, row_number() OVER (PARTITION BY k ORDER BY v, id) AS n
       FROM s) AS q WHERE n <= 2""",
    "SELECT k, SUM(v) AS total, RANK() OVER (ORDER BY SUM(v) DESC) AS place FROM s GROUP BY k",
    "SELECT k, COUNT(*) AS n, SUM(COUNT(*)) OVER () AS all_of_it FROM s GROUP BY k",
    """SELECT id, row_number() OVER (ORDER BY id) AS a FROM s
       ORDER BY SUM(v) OVER (PARTITION BY k ORDER BY id) DESC, id LIMIT 3""",
)  # fmt: skip


def rows_of(seed: int) -> dict[str, list[tuple[Any, ...]]]:
    random = Random(seed)
    numbers = list(range(random.randint(0, 12)))
    random.shuffle(numbers)
    return {"s": [(n, random.choice(["a", "b", None]), random.choice([None, 0, 1, 1, 2, 5]),
                   random.choice([None, 0.5, 1.25, -2.0])) for n in numbers]}  # fmt: skip


@pytest.mark.parametrize("query", [*(f"SELECT id, {item} AS c FROM s" for item in ITEMS), *QUERIES])
def test_places_and_frames_are_those_of_sql(query: str) -> None:
    for seed in range(3):
        contents = rows_of(seed)
        if not contents["s"]:
            continue
        expected = by_sql(query, connected(TABLES, contents))
        assert expected is not None
        assert expected == by_cql(query, TABLES, contents)


def test_places_and_frames_are_the_same_when_compiled() -> None:
    query = f"SELECT id, {', '.join(f'{item} AS c{n}' for n, item in enumerate(ITEMS))} FROM s"
    contents = rows_of(2)
    assert by_cql(query, TABLES, contents) == by_cql(query, TABLES, contents, engine="local")


def test_the_first_of_each_group_change_as_rows_come_and_leave() -> None:
    text = """CREATE STREAM s (k TEXT, v INTEGER);
        SELECT k, v FROM s [Range 2 us]
        QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC) = 1;"""
    rows: list[dict[str, Any]] = [{"_time": t, "k": k, "v": v} for t, k, v in
            [(0, "a", 5), (1, "a", 7), (1, "b", 1), (2, "a", 6), (9, "b", 0)]]  # fmt: skip
    told = millstream.compile(text=text, language="cql").run({"s": rows}, engine="reference")
    assert [tuple(row.values()) for row in told.rows("query1")] == [
        (0, 1, "a", 5), (1, -1, "a", 5), (1, 1, "a", 7), (1, 1, "b", 1),
        (4, -1, "a", 7), (4, -1, "b", 1), (4, 1, "a", 6), (5, -1, "a", 6), (9, 1, "b", 0),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ("ROW_NUMBER()", "ROW_NUMBER needs OVER"),
        ("LAG(v) OVER (PARTITION BY k)", "LAG needs ORDER BY"),
        ("LAG() OVER (ORDER BY v)", "LAG is given 0 arguments"),
        ("LAG(v, id) OVER (ORDER BY v)", "expected a number of rows"),
        ("upper(k) OVER (ORDER BY v)", "upper cannot stand before OVER"),
        ("SUM(k) OVER (ORDER BY v)", "sum cannot aggregate a text"),
        ("SUM(DISTINCT v) OVER (ORDER BY v)", "DISTINCT cannot stand before OVER"),
        ("STDDEV(v) OVER (ORDER BY v)", "STDDEV cannot stand before OVER"),
        ("SUM(v) OVER (ORDER BY k RANGE 1 PRECEDING)", "needs ORDER BY one number or time"),
        ("SUM(v) OVER (ORDER BY v ROWS BETWEEN 1 FOLLOWING AND 1 PRECEDING)", "must not be after"),
        ("SUM(v) OVER (ORDER BY v GROUPS 1 PRECEDING)", "GROUPS are not part of CQL"),
        ("SUM(w) OVER (ORDER BY v)", 'unknown column "w"'),
        ("v OVER (ORDER BY v)", "OVER is not part of CQL"),
    ],
)
def test_what_is_wrong_with_over_is_told(item: str, message: str) -> None:
    text = "CREATE STREAM s (id INTEGER, k TEXT, v INTEGER);\n"
    with pytest.raises(MillstreamError, match=r"(?s)\^") as error:
        millstream.compile(text=f"{text}SELECT {item} AS c FROM s;", language="cql")
    assert message in str(error.value)


def test_over_cannot_stand_in_where() -> None:
    text = "CREATE STREAM s (v INTEGER); SELECT v FROM s WHERE RANK() OVER (ORDER BY v) = 1;"
    with pytest.raises(MillstreamError, match="it can stand in a select list, in QUALIFY"):
        millstream.compile(text=text, language="cql")
