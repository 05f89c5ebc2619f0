"""Theorem 1 and its like: what a query says is what comes out, at every instant.

The oracle knows nothing of changes: at every instant it works out what the windows hold
and asks DuckDB for the answer.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from millstream.calculus.graph import Program
from millstream.calculus.types import Row
from millstream.languages.cql.load import load
from millstream.optimiser.optimise import optimise
from millstream.source import Source
from tests.languages.cql.generate import (
    COLUMNS,
    Inputs,
    Query,
    inputs,
    queries,
    queries_with_values,
)
from tests.laws.runs import Rows, on_local, on_reference
from tests.seeds import campaign, seeded

CUTS = st.lists(st.integers(0, 8), max_size=4)


def program_of(query: Query) -> Program:
    return load(Source("generated.cql", query.cql)).program


def used(program: Program, given_: Inputs) -> Inputs:
    return {one.name: given_[one.name] for one in program.inputs}


def bag_at(query: Query, given_: Inputs, now: int, connection: Any) -> Counter[Row]:
    """The instantaneous relation, from scratch."""
    for number, source in enumerate(query.sources):
        columns = COLUMNS[source.name]
        types = ", ".join(f"{c} {'VARCHAR' if c == 't' else 'BIGINT'}" for c in columns)
        connection.execute(f"CREATE OR REPLACE TABLE w{number} ({types})")
        rows = source.contents(given_[source.name], now)
        if rows:
            marks = ", ".join("?" * len(columns))
            connection.executemany(f"INSERT INTO w{number} VALUES ({marks})", rows)
    return Counter(connection.execute(query.sql).fetchall())


def expected_rows(
    query: Query, given_: Inputs, instants: range, ticks: set[int], *, is_relation: bool
) -> dict[int, Counter[Row]]:
    """At each instant the relation, or for a stream what is sent."""
    connection = duckdb.connect()
    found: dict[int, Counter[Row]] = {}
    before: Counter[Row] = Counter()
    for now in instants:
        bag = bag_at(query, given_, now, connection)
        if not query.operator and not is_relation:
            assert not before - bag, "a default Istream needs a relation that only grows"
        if is_relation:
            found[now] = bag
        elif query.operator == "Rstream":
            found[now] = bag if now in ticks else Counter()
        else:
            found[now] = before - bag if query.operator == "Dstream" else bag - before
        before = bag
    connection.close()
    return found


def actual_rows(rows: Rows, instants: range, *, is_relation: bool) -> dict[int, Counter[Row]]:
    found: dict[int, Counter[Row]] = {}
    bag: Counter[Row] = Counter()
    for now in instants:
        here = [(row, weight) for time, weight, row in rows if time == now]
        if not is_relation:
            found[now] = Counter(row for row, _ in here)
            continue
        for row, weight in here:
            bag[row] += weight
        assert all(n >= 0 for n in bag.values())
        found[now] = +bag
    return found


def check_against_oracle(query: Query, given_: Inputs) -> None:
    program = program_of(query)
    events = used(program, given_)
    is_relation = program.queue_types()["out"].is_relation
    times = {e.time for some in events.values() for e in some}
    instants = range(-1, max(times, default=0) + 1)
    rows = on_reference(program, events)[0]["out"]
    assert all(time in instants for time, _, _ in rows)
    expected = expected_rows(query, given_, instants, times, is_relation=is_relation)
    assert expected == actual_rows(rows, instants, is_relation=is_relation)


def check_engines(query: Query, given_: Inputs, cuts: list[int]) -> None:
    program = program_of(query)
    events = used(program, given_)
    expected, _ = on_reference(program, events)
    assert expected == on_reference(optimise(program), events)[0]
    assert expected == on_local(program, events, cuts)[0]
    assert expected == on_local(optimise(program), events, cuts)[0]


@settings(max_examples=25, deadline=None, derandomize=True, database=None,
          suppress_health_check=list(HealthCheck))  # fmt: skip
@given(queries(), inputs())
def test_the_reference_says_what_sql_says_at_every_instant(query: Query, given_: Inputs) -> None:
    check_against_oracle(query, given_)


@settings(max_examples=25, deadline=None, derandomize=True, database=None,
          suppress_health_check=list(HealthCheck))  # fmt: skip
@given(queries_with_values(), inputs())
def test_subqueries_are_the_values_that_sql_says(query: Query, given_: Inputs) -> None:
    check_against_oracle(query, given_)


@pytest.mark.proof
@pytest.mark.parametrize("number", campaign(300, 25))
def test_more_queries_say_what_sql_says(number: int) -> None:
    @seeded(number, 25)
    @given(st.one_of(queries(), queries_with_values()), inputs())
    def law(query: Query, given_: Inputs) -> None:
        check_against_oracle(query, given_)

    law()


@settings(max_examples=6, deadline=None, derandomize=True, database=None,
          suppress_health_check=list(HealthCheck))  # fmt: skip
@given(st.one_of(queries(), queries_with_values()), inputs(), CUTS)
def test_the_engines_agree_on_queries(query: Query, given_: Inputs, cuts: list[int]) -> None:
    check_engines(query, given_, cuts)


@pytest.mark.proof
@pytest.mark.parametrize("number", campaign(2_000, 20))
def test_the_engines_agree_on_thousands_of_queries(number: int) -> None:
    @seeded(number, 20)
    @given(st.one_of(queries(), queries_with_values()), inputs(), CUTS)
    def law(query: Query, given_: Inputs, cuts: list[int]) -> None:
        check_against_oracle(query, given_)
        check_engines(query, given_, cuts)

    law()
