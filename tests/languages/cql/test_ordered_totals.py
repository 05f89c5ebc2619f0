"""Aggregates that look at the order of a group are what DuckDB makes of the same rows."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import millstream
from millstream.errors import MillstreamError
from tests.languages.cql.oracle import by_cql, by_sql, connected

TABLES = {"s": {"id": "integer", "k": "text", "v": "integer", "x": "number", "t": "text"}}

ITEMS = (
    "MEDIAN(v)",
    "MEDIAN(x)",
    "PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY x)",
    "PERCENTILE_CONT(0.3) WITHIN GROUP (ORDER BY v DESC)",
    "PERCENTILE_DISC(0.4) WITHIN GROUP (ORDER BY v)",
    "PERCENTILE_DISC(0.9) WITHIN GROUP (ORDER BY t)",
    "QUANTILE_CONT(x, 0.9)",
    "STRING_AGG(t, '-' ORDER BY id)",
    "STRING_AGG(t, ', ' ORDER BY v DESC, id)",
    "STRING_AGG(DISTINCT t, '/' ORDER BY t)",
    "STRING_AGG(t, '' ORDER BY id) FILTER (WHERE v > 0)",
    "FIRST(v ORDER BY id)",
    "LAST(t ORDER BY v NULLS LAST, id)",
    "FIRST(x ORDER BY id) FILTER (WHERE v IS NULL)",
)

QUERIES = (
    *(f"SELECT k, {item} AS c FROM s GROUP BY k" for item in ITEMS),
    *(f"SELECT {item} AS c FROM s" for item in (ITEMS[0], ITEMS[4], ITEMS[7], ITEMS[11])),
    """SELECT k, COUNT(*) AS n, MEDIAN(v) AS m, MAX(x) AS h, STRING_AGG(t, '' ORDER BY id) AS c
       FROM s GROUP BY k""",
    "SELECT k FROM s GROUP BY k HAVING MEDIAN(v) > 0.5",
    "SELECT id, v - (SELECT MEDIAN(v) FROM s) AS d FROM s",
    "SELECT id, (SELECT MEDIAN(r.v) FROM s AS r WHERE r.k = s.k) AS d FROM s",
    "SELECT k, RANK() OVER (ORDER BY MEDIAN(v)) AS place FROM s GROUP BY k",
)  # fmt: skip


def rows_of(seed: int) -> dict[str, list[tuple[Any, ...]]]:
    random = Random(seed)
    return {"s": [(n, random.choice(["a", "b", None]), random.choice([None, 0, 1, 1, 2, 5]),
                   random.choice([None, 0.5, 1.25, -2.0]), random.choice([None, "x", "y", ""]))
                  for n in range(random.randint(1, 12))]}  # fmt: skip


@pytest.mark.parametrize("query", QUERIES)
def test_aggregates_in_order_are_those_of_sql(query: str) -> None:
    for seed in range(3):
        contents = rows_of(seed)
        expected = by_sql(query, connected(TABLES, contents))
        assert expected is not None
        assert expected == by_cql(query, TABLES, contents)


def test_aggregates_in_order_are_the_same_when_compiled() -> None:
    columns = ", ".join(f"{item} AS c{n}" for n, item in enumerate(ITEMS))
    query, contents = f"SELECT k, {columns} FROM s GROUP BY k", rows_of(2)
    assert by_cql(query, TABLES, contents) == by_cql(query, TABLES, contents, engine="local")


def told(query: str) -> list[tuple[Any, ...]]:
    text = f"CREATE STREAM s (k TEXT, v INTEGER); {query};"
    rows: list[dict[str, Any]] = [{"_time": t, "k": k, "v": v} for t, k, v in
            [(0, "a", 5), (1, "a", 7), (1, "b", None), (2, "a", 6)]]  # fmt: skip
    run = millstream.compile(text=text, language="cql").run({"s": rows}, engine="reference")
    return [tuple(row.values()) for row in run.rows("query1")]


def test_without_an_order_rows_are_in_the_order_of_their_times() -> None:
    query = "SELECT FIRST(v) AS f, LAST(k) AS l, ARRAY_AGG(v) AS a, STRING_AGG(k, '') AS t FROM s"
    assert told(query)[-1] == (2, 1, 5, "a", "[5, 7, null, 6]", "aaba")


def test_what_leaves_a_window_leaves_the_median() -> None:
    assert told("SELECT MEDIAN(v) AS m FROM s [Range 0 us]") == [
        (0, 1, 5.0), (1, -1, 5.0), (1, 1, 7.0), (2, -1, 7.0), (2, 1, 6.0),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ("MEDIAN(k)", "MEDIAN is of numbers, not of a text"),
        ("PERCENTILE_CONT(v)", "needs a part from 0 to 1"),
        ("PERCENTILE_CONT(v, 2)", "expected a part from 0 to 1"),
        ("MEDIAN(v, 0.5)", "takes one argument, got more"),
        ("STRING_AGG(k, v)", "expected the text that stands between"),
        ("STRING_AGG(DISTINCT k, ',' ORDER BY v)", "can only be ordered by itself"),
        ("MEDIAN(v ORDER BY k)", "is in the order of its values"),
        ("FIRST(w)", 'unknown column "w"'),
    ],
)
def test_what_is_wrong_with_an_aggregate_is_told(item: str, message: str) -> None:
    text = "CREATE STREAM s (k TEXT, v INTEGER);\n"
    with pytest.raises(MillstreamError, match=r"(?s)\^") as error:
        millstream.compile(text=f"{text}SELECT {item} AS c FROM s;", language="cql")
    assert message in str(error.value)


def test_the_first_of_a_relation_needs_an_order() -> None:
    text = "CREATE RELATION r (v INTEGER); SELECT FIRST(v) AS f FROM r;"
    with pytest.raises(MillstreamError, match="of what has no times needs an order"):
        millstream.compile(text=text, language="cql")
