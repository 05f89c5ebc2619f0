"""Generated SQL of many kinds means what DuckDB says, on every engine."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from millstream.errors import MillstreamError
from tests.languages.cql.generate_sql import TABLES, Case, case
from tests.languages.cql.oracle import by_cql, by_sql, connected
from tests.seeds import campaign

#: What generated queries may be refused for.
REFUSED = ("this aggregate reads the query around it only",)


def check(one: Case, engine: str = "reference") -> None:
    expected = by_sql(one.text, connected(TABLES, one.rows))
    if expected is None:
        return  # a mistake that only the database can see, such as an aggregate in the wrong query
    try:
        found = by_cql(one.text, TABLES, one.rows, engine=engine)
    except MillstreamError as error:
        if not any(reason in str(error) for reason in REFUSED):
            raise
        return
    assert expected == found


def cases() -> st.SearchStrategy[Case]:
    return st.randoms(use_true_random=False).map(case)


@settings(max_examples=60, deadline=None, derandomize=True, database=None,
          suppress_health_check=list(HealthCheck))  # fmt: skip
@given(cases())
def test_generated_sql_means_what_it_should(one: Case) -> None:
    check(one)


@settings(max_examples=5, deadline=None, derandomize=True, database=None,
          suppress_health_check=list(HealthCheck))  # fmt: skip
@given(cases())
def test_generated_sql_means_the_same_when_compiled(one: Case) -> None:
    check(one, "local")


@pytest.mark.proof
@pytest.mark.parametrize("number", campaign(2_000, 40))
def test_thousands_of_generated_queries_mean_what_they_should(number: int) -> None:
    for seed in range(40):
        check(case(Random(100 * number + seed)), "local" if seed < 4 else "reference")
