"""DuckDB's GROUP BY as an oracle: per vertex, grain and step."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from millstream.calculus.aggregation import Aggregation
from millstream.calculus.cube import Cubify, Vertex
from millstream.calculus.grains import Grain
from millstream.calculus.terms import Column
from millstream.engine.reference.feed import Event
from tests.laws.runs import Rows, on_local
from tests.laws.test_cubes import DIMENSIONS, SALES, program_of, vertices

SECOND = 1_000_000
PIECES = Column("pieces", SALES["pieces"])
MEASURES = (
    *(Aggregation(f, f, PIECES) for f in ("sum", "min", "max", "avg")),
    Aggregation("n", "count"),
    Aggregation("different", "distinct", PIECES),
)
#: The grains that DuckDB has too.
CALENDAR = ("second", "minute", "hour", "day", "month", "year")


def present(rows: Rows, instant: int) -> Counter[Any]:
    """A relation at an instant, from its changes."""
    counts: Counter[Any] = Counter()
    for time, weight, row in rows:
        if time <= instant:
            counts[row] += weight
    return +counts


def table_of(events: list[Event]) -> duckdb.DuckDBPyConnection:
    """The sales in a database."""
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE sales (t BIGINT, part TEXT, kind TEXT, shop BIGINT, amount DOUBLE, "
        "pieces BIGINT)"
    )
    rows = [[e.time, *e.row] for e in events]
    connection.executemany("INSERT INTO sales VALUES (?, ?, ?, ?, ?, ?)", rows)
    return connection


def asked(
    connection: duckdb.DuckDBPyConnection, vertex: Vertex, cube: Cubify, instant: int
) -> Counter[Any]:
    """What the window holds at an instant, grouped by DuckDB."""
    k = cube.grain.index(instant)
    first, last = cube.grain.start(k - cube.window), cube.grain.start(k)
    length = vertex.grain.length
    by = ", ".join((*vertex.attributes, "part_of_time"))
    query = f"""
        SELECT {by}, sum(pieces)::BIGINT, min(pieces), max(pieces), avg(pieces), count(*),
            count(DISTINCT pieces)
        FROM (SELECT *, (floor(t / {length}) * {length})::BIGINT AS part_of_time FROM sales)
        WHERE t >= {first} AND t < {last} GROUP BY {by}
    """
    return Counter(connection.execute(query).fetchall())


@st.composite
def sales(draw: st.DrawFn) -> list[Event]:
    row = st.tuples(
        st.sampled_from(["p", "q", None]), st.sampled_from(["k", "l"]),
        st.sampled_from([1, 2, None]), st.just(0.5), st.one_of(st.none(), st.integers(-9, 9)),
    )  # fmt: skip
    times = sorted(draw(st.lists(st.integers(0, 30 * SECOND), min_size=1, max_size=25)))
    return [Event(t, draw(row)) for t in times]


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(sales(), st.data(), st.integers(1, 4), st.integers(1, 5))
def test_every_vertex_is_what_a_group_by_gives_at_every_step(
    events: list[Event], data: st.DataObject, seconds: int, window: int
) -> None:
    grain = Grain(seconds * SECOND)
    outputs = data.draw(st.lists(vertices(grain, window), min_size=1, max_size=2, unique=True))
    kept = data.draw(st.lists(vertices(grain, window), max_size=2, unique=True))
    finest = Vertex(("part", "shop"), grain)
    every = tuple(dict.fromkeys((finest, *kept)))
    cube = Cubify(DIMENSIONS, MEASURES, grain, window, every, tuple(outputs))
    rows, _ = on_local(program_of(cube), {"sales": events}, [3, 7, 12])
    connection = table_of(events)
    for number, vertex in enumerate(outputs):
        for step in range(events[-1].time // grain.length + 1):
            instant = step * grain.length
            assert asked(connection, vertex, cube, instant) == present(rows[f"q{number}"], instant)


def test_months_and_years_are_those_of_duckdb_at_every_step() -> None:
    """Years within a window of 14 months: the oldest loses its months one by one."""
    rng = random.Random(3)
    times = sorted(rng.randrange(-(10**14), 10**14) for _ in range(120))
    events = [
        Event(t, (rng.choice(["p", "q", None]), "k", rng.choice([1, None]), 0.5,
                  rng.choice([None, *range(-9, 9)])))
        for t in times
    ]  # fmt: skip
    month, year = Grain(months=1), Grain(months=12)
    grains = {"month": month, "quarter": Grain(months=3), "year": year}
    attributes = {"month": ("part", "shop"), "quarter": ("shop",), "year": ()}
    outputs = tuple(Vertex(attributes[name], grain) for name, grain in grains.items())
    every = (Vertex(("part", "shop"), month), Vertex(("shop",), year))
    cube = Cubify(DIMENSIONS, MEASURES, month, 14, every, outputs)
    rows, _ = on_local(program_of(cube), {"sales": events}, [31, 80])
    connection = table_of(events)
    for index in range(month.index(times[0]), month.index(times[-1]) + 1):
        first, last = month.start(index - 14), month.start(index)
        for number, (name, vertex) in enumerate(zip(grains, outputs, strict=True)):
            part = f"epoch_us(date_trunc('{name}', make_timestamp(t)))"
            by = ", ".join((*vertex.attributes, part))
            query = f"""
                SELECT {by}, sum(pieces)::BIGINT, min(pieces), max(pieces), avg(pieces), count(*),
                    count(DISTINCT pieces)
                FROM sales WHERE t >= {first} AND t < {last} GROUP BY {by}
            """
            wanted = Counter(connection.execute(query).fetchall())
            assert wanted == present(rows[f"q{number}"], last)


@pytest.mark.parametrize("name", CALENDAR)
def test_parts_of_time_begin_as_duckdb_truncates(name: str) -> None:
    grain = Grain.named(name)
    assert grain is not None
    times = [n * 86_400_123_457 * 17 - 10**15 for n in range(300)]
    query = "SELECT epoch_us(date_trunc(?, make_timestamp(t))) FROM unnest(?) AS x(t)"
    truncated = duckdb.connect().execute(query, [name, times]).fetchall()
    assert [t for (t,) in truncated] == [grain.start(grain.index(t)) for t in times]


def test_sketches_are_near_what_duckdb_counts() -> None:
    """Tens of thousands of values: distinct ones within 5 %, quantiles within 1 %."""
    chance = np.random.default_rng(7)
    pieces = chance.integers(0, 30_000, 40_000).tolist()
    amounts = np.exp(chance.normal(0, 4, 40_000)).tolist()
    events = [
        Event(n, ("p", "k", n % 2, a, v))
        for n, (a, v) in enumerate(zip(amounts, pieces, strict=True))
    ]
    amount = Column("amount", SALES["amount"])
    at = (10_000, 500_000, 990_000)
    measures = (Aggregation("near", "approx_distinct", PIECES),
                *(Aggregation(f"p{q}", "quantile", amount, q) for q in at))  # fmt: skip
    grain = Grain(40_000)
    vertex = Vertex(("shop",), grain)
    cube = Cubify(DIMENSIONS, measures, grain, 1, (Vertex(("part", "shop"), grain),), (vertex,))
    end = Event(40_000, ("p", "k", 0, 1.0, 1))
    rows, _ = on_local(program_of(cube), {"sales": [*events, end]}, [15_000])
    for _, _, (shop, _, near, *quantiles) in rows["q0"]:
        mine = [n for n in range(40_000) if n % 2 == shop]
        exact = duckdb.execute(
            "SELECT count(DISTINCT p), quantile_disc(a, [0.01, 0.5, 0.99]) "
            "FROM (SELECT unnest(?) AS p, unnest(?) AS a)",
            [[pieces[n] for n in mine], [amounts[n] for n in mine]],
        ).fetchone()
        assert exact is not None
        assert near == pytest.approx(exact[0], rel=0.05)
        assert quantiles == pytest.approx(exact[1], rel=0.01)
