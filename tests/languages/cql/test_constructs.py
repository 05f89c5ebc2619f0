"""Nothing that is written is passed over: SQL of every kind is answered as DuckDB does, or refused.

What is refused is told at a place of the text and in words of the language, never in those of
the translation.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Any

import pytest

from millstream.errors import MillstreamError
from tests.languages.cql.oracle import by_cql, by_sql, connected, declarations

TABLES = {
    "S": {"k": "integer", "v": "integer", "t": "text", "x": "number", "b": "boolean", "m": "time"},
    "R": {"k": "integer", "w": "integer", "t": "text"},
}
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
    "SELECT CAST(t AS VARCHAR(1)) FROM S": "a text ends where its type does, as in the standard",
    "SELECT v DIV 0 FROM S": "what cannot be computed is null",
    "SELECT (k, v) IN (SELECT k, w FROM R WHERE R.t = S.t) FROM S": "DuckDB does not answer this",
    "SELECT (k, v) NOT IN (SELECT k, w FROM R WHERE R.k < S.k) FROM S": "nor this",
    "SELECT (k, v) IN ((1, 10), (2, 20)) FROM S":
        "a null in a row is unknown, as in the standard and in PostgreSQL",
    "SELECT (k, v) NOT IN ((1, 10), (2, NULL)) FROM S": "so it is here",
    **dict.fromkeys(
        ("SELECT t -> 'a' FROM S", "SELECT t ->> 'a' FROM S",
         "SELECT JSON_EXTRACT(t, '$.a') FROM S"),
        "what is not JSON is null, where DuckDB stops",
    ),
    **dict.fromkeys(
        ("SELECT t REGEXP 'a' FROM S", "SELECT t RLIKE 'a' FROM S",
         "SELECT t FROM S WHERE t REGEXP 'b'"),
        "as in MySQL, which DuckDB does not read",
    ),
    "SELECT STRING_AGG(t, ',') FROM S": "rows of one instant are in the order of their values",
    "SELECT FIRST(v) FROM S": "so they are here",
    "SELECT regexp_matches(t, '^a.?$'), regexp_extract(t, '(a)(b)', 2) FROM S WHERE t LIKE '%b'":
        "what is not there is null, not empty",
    "SELECT k, w FROM S, R WHERE S.k = R.k": "what is equal by the join is one column",
}  # fmt: skip

#: Names that a translation makes up, which no message may show.
MADE_UP = re.compile(r"outer\.|_sub\b|_from\d|\b(key|found|using|order|value|rows|first)\.\d")


@functools.cache
def connection() -> Any:
    return connected(TABLES, ROWS)


@pytest.mark.parametrize("text", CONSTRUCTS)
def test_sql_is_answered_as_it_should_be_or_refused(text: str) -> None:
    try:
        found = by_cql(text, TABLES, ROWS)
    except MillstreamError as error:
        for fault in error.faults:
            assert fault.span is not None, fault.message
            assert fault.span.start >= len(declarations(TABLES)), fault.message
            assert not MADE_UP.search(f"{fault.message} {fault.hint}"), fault.message
        return
    assert (text in OTHERWISE) == (by_sql(text, connection()) != found)


NULLS = "(SELECT NULL AS k, w FROM R) AS q"


@pytest.mark.parametrize(
    "text",
    [
        *(f"SELECT k, w, v FROM S {kind} JOIN {NULLS} USING (k)"
          for kind in ("", "LEFT", "RIGHT", "FULL")),
        *(f"SELECT k, w, v FROM {NULLS} {kind} JOIN S USING (k)"
          for kind in ("", "LEFT", "RIGHT", "FULL")),
        f"SELECT k, w FROM {NULLS} FULL JOIN (SELECT ABS(NULL) AS k FROM S) AS r USING (k)",
        f"SELECT COALESCE(k, 5), w FROM S FULL JOIN {NULLS} USING (k) FULL JOIN R USING (k, w)",
        f"SELECT k + 1 FROM S RIGHT JOIN {NULLS} USING (k) RIGHT JOIN R USING (k)",
    ],
)  # fmt: skip
def test_a_column_of_nothing_but_null_takes_the_type_of_what_using_ties_it_to(text: str) -> None:
    assert by_sql(text, connection()) == by_cql(text, TABLES, ROWS)


HALVES = "(SELECT k * 1.0 AS k, w FROM R) AS q"


@pytest.mark.parametrize(
    "text",
    [
        *(f"SELECT k, w, v FROM S {kind} JOIN {HALVES} USING (k)"
          for kind in ("", "LEFT", "RIGHT", "FULL")),
        f"SELECT * FROM S JOIN {HALVES} USING (k) JOIN R USING (k, w)",
        'SELECT k, COUNT(*) FROM S JOIN (SELECT k + 0.0 AS "K" FROM R) AS q USING (k) GROUP BY k',
        f"SELECT k, S.k, q.k FROM S JOIN {HALVES} USING (k) WHERE k > 1 ORDER BY k DESC LIMIT 2",
    ],
)  # fmt: skip
def test_a_column_of_using_has_one_name_whatever_types_its_sides_have(text: str) -> None:
    assert by_sql(text, connection()) == by_cql(text, TABLES, ROWS)
