"""`(a, b) IN ...` with nulls, where DuckDB does not answer or not as the standard does."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.languages.cql.oracle import by_cql
from tests.languages.cql.test_constructs import ROWS, TABLES


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (
            "SELECT (k, v) IN (SELECT k, w FROM R WHERE R.t = S.t) FROM S",
            {(True,): 3, (False,): 2, (None,): 1},
        ),
        ("SELECT (k, v) NOT IN (SELECT k, w FROM R WHERE R.k < S.k) FROM S", {(True,): 6}),
        (
            "SELECT (k, v) IN ((1, 10), (2, 20)) FROM S",
            {(True,): 3, (False,): 1, (None,): 2},
        ),
        (
            "SELECT (k, v) IN (SELECT k, MAX(w) FROM R WHERE R.k <= S.k GROUP BY k) FROM S",
            {(True,): 2, (False,): 3, (None,): 1},
        ),
    ],
)
def test_rows_are_compared_part_by_part(text: str, wanted: dict[tuple[bool | None], int]) -> None:
    assert Counter(wanted) == by_cql(text, TABLES, ROWS)
