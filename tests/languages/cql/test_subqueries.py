"""Subqueries as values, ALL and ANY, WITH, and aggregates of aggregates."""

from __future__ import annotations

import statistics
from typing import Any

import pytest

from millstream.errors import MillstreamError
from millstream.languages.cql.load import load
from millstream.source import Source
from tests.languages.cql.test_language import TRADES, answers, trade

ENGINES = ["reference", "local"]
THREE = [trade(1, "a", 1.0, 1), trade(2, "b", 3.0, 2), trade(3, "a", 5.0, 9)]
BIDS = "register stream Bid (auction integer, price integer);\n"


def asked(text: str, engine: str = "reference") -> list[tuple[Any, ...]]:
    return answers(TRADES + text, trades=THREE, engine=engine)


def complaint(text: str) -> str:
    with pytest.raises(MillstreamError) as caught:
        load(Source("test.cql", TRADES + text))
    return str(caught.value)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_subquery_is_a_value_in_where(engine: str) -> None:
    text = """SELECT Istream(symbol, price) FROM trades [Now]
    WHERE price > (SELECT AVG(price) FROM trades [Range 5 us]);"""
    assert [(2, "b", 3.0), (3, "a", 5.0)] == asked(text, engine)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_subquery_counts_the_rows_that_belong_to_an_outer_row(engine: str) -> None:
    text = """SELECT Istream(symbol, (SELECT COUNT(*) FROM trades AS u
        WHERE u.symbol = t.symbol AND u.price < t.price) AS n,
      (SELECT SUM(u.price) FROM trades AS u WHERE u.symbol = t.symbol AND u.price < t.price) AS s)
    FROM trades [Now] AS t;"""
    assert [(1, "a", 0, None), (2, "b", 0, None), (3, "a", 1, 1.0)] == asked(text, engine)


def test_a_subquery_over_what_never_came_is_null_and_counts_nothing() -> None:
    text = """CREATE STREAM quiet (x INTEGER);
    SELECT Istream(symbol, (SELECT MAX(x) FROM quiet) AS m, (SELECT COUNT(*) FROM quiet) AS n)
    FROM trades [Now];"""
    rows = answers(TRADES + text, trades=[trade(1, "a")], quiet=[])
    assert [(1, "a", None, 0)] == rows


def test_a_subquery_may_have_one_row_by_its_limit_or_none_by_having() -> None:
    text = """SELECT Istream(symbol,
      (SELECT symbol FROM trades AS u ORDER BY price DESC LIMIT 1) AS best,
      (SELECT MAX(price) FROM trades AS u HAVING COUNT(*) > 2) AS late) FROM trades [Now];"""
    assert [(1, "a", "a", None), (2, "b", "b", None), (3, "a", "a", 5.0)] == asked(text)


def test_answers_in_a_select_list_change_and_are_no_stream_by_default() -> None:
    text = """SELECT symbol, EXISTS (SELECT 1 FROM trades AS u WHERE u.price > t.price) AS beaten
    FROM trades AS t;"""
    assert [
        (1, 1, "a", False), (2, -1, "a", False), (2, 1, "a", True), (2, 1, "b", False),
        (3, -1, "b", False), (3, 1, "a", False), (3, 1, "b", True),
    ] == asked(text)  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
def test_hot_items(engine: str) -> None:
    text = f"""{BIDS}
    query : select rstream(auction) from (select auction, count(*) as num
        from Bid [range 60 minutes slide 1 minutes] group by auction)
      where num >= all (select count(*) from Bid [range 60 minutes slide 1 minutes]
                        group by auction);"""
    minute = 60_000_000
    sold = [(1, 7), (2, 8), (3, 8), (63, 7), (64, 9)]
    bids = [{"_time": m * minute, "auction": a, "price": 1} for m, a in sold]
    expected = [(1, 7), (2, 7), (2, 8), (3, 8), (63, 8), (63, 7), (64, 7), (64, 9)]
    # Of minutes 3 to 63 there are one bid for 8 and one for 7; of 4 to 64, for 7 and 9.
    found = answers(text, Bid=bids, engine=engine)
    assert sorted((m * minute, a) for m, a in expected) == sorted(found)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("x >= ALL (SELECT y FROM T [Now])", [2]),
        ("x > ANY (SELECT y FROM T [Now])", [2]),
        ("x < SOME (SELECT y FROM T [Now])", [0, 1]),
        ("x = ANY (SELECT y FROM T [Now])", [1, 2]),
        ("x <> ALL (SELECT y FROM T [Now])", [0]),
        ("x = ALL (SELECT y FROM T [Now] WHERE y > 1)", [2]),
        ("x <> ANY (SELECT y FROM T [Now])", [0, 1, 2]),
        ("x > ALL (SELECT y FROM T [Now] WHERE y > 9)", [0, 1, 2]),
        ("x > ANY (SELECT y FROM T [Now] WHERE y > 9)", []),
    ],
)
def test_all_and_any(condition: str, expected: list[int]) -> None:
    text = f"""CREATE STREAM S (x INTEGER); CREATE STREAM T (y INTEGER);
    SELECT Istream(x) FROM S [Now] WHERE {condition};"""
    s = [{"_time": 1, "x": x} for x in range(3)]
    t = [{"_time": 1, "y": y} for y in (1, 2)]
    assert expected == [x for _, x in answers(text, S=s, T=t)]


def test_a_query_may_have_views_of_its_own() -> None:
    text = """WITH sums AS (
        SELECT symbol, SUM(volume) AS v FROM trades [Range 5 us] GROUP BY symbol),
      best (most) AS (SELECT MAX(v) FROM sums)
    SELECT Istream(symbol, v) FROM sums, best WHERE v = most;"""
    assert [(1, "a", 1), (2, "b", 2), (3, "a", 10)] == asked(text)
    for whole in ("CREATE OUTPUT query1 AS", "query query1 :"):
        assert asked(text) == asked(f"{whole} {text}")
    assert asked(text) == asked(f"vquery best : {text} Istream(SELECT * FROM best [Now]);")


def test_with_hides_other_names_and_ends_with_its_query() -> None:
    text = "WITH trades AS (SELECT symbol FROM trades [Now]) Istream(SELECT * FROM trades);"
    assert [(1, "a"), (2, "b"), (3, "a")] == asked(text)
    twice = "WITH q AS (SELECT * FROM trades) SELECT * FROM q; SELECT * FROM q;"
    assert 'unknown stream or relation "q"' in complaint(twice)


def test_aggregates_of_some_of_the_rows() -> None:
    text = """SELECT Istream(COUNT(*) FILTER (WHERE price > 2) AS n,
      SUM(volume) FILTER (WHERE price > 2) AS v,
      COUNT(DISTINCT symbol) FILTER (WHERE price > 2) AS d) FROM trades;"""
    assert [(1, 0, None, 0), (2, 1, 2, 1), (3, 2, 11, 2)] == asked(text)


@pytest.mark.parametrize("engine", ENGINES)
def test_variances(engine: str) -> None:
    text = """SELECT Istream(VARIANCE(price) AS a, VAR_SAMP(price) AS b, VAR_POP(price) AS c,
      STDDEV_POP(price) AS d, STDDEV(DISTINCT price) AS e) FROM trades;"""
    prices = [2.0, 4.0, 4.0, 7.0]
    rows = answers(
        TRADES + text, trades=[trade(t, "a", p) for t, p in enumerate(prices)], engine=engine
    )
    assert (0, None, None, 0.0, 0.0, None) == rows[0]
    sample = statistics.variance(prices)
    assert (3, sample, sample, statistics.pvariance(prices), statistics.pstdev(prices),
            statistics.stdev([2.0, 4.0, 7.0])) == pytest.approx(rows[-1])  # fmt: skip


def test_rounding_to_digits() -> None:
    text = "SELECT ROUND(price / 3, 2) AS r, ROUND(volume * 123, -2) AS s FROM trades;"
    assert [(1, 0.33, 100.0), (2, 1.0, 200.0), (3, 1.67, 1100.0)] == asked(text)


def test_columns_of_one_name_get_their_source_in_front() -> None:
    text = f"{TRADES} SELECT a.symbol, b.symbol, a.price FROM trades AS a, trades AS b;"
    types = load(Source("x", text)).program.queue_types()
    assert ("a_symbol", "b_symbol", "price") == types["query1"].schema.names


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT symbol FROM trades WHERE price > (SELECT price FROM trades AS u);",
         "may have more than one row"),
        ("SELECT symbol FROM trades WHERE price > (SELECT MAX(price) FROM trades GROUP BY symbol);",
         "may have more than one row"),
        ("SELECT symbol FROM trades WHERE price > (SELECT MAX(price), 1 FROM trades);",
         "must have one column, but has 2"),
        ("SELECT symbol FROM trades WHERE price > ALL (SELECT price, 1 FROM trades AS u);",
         "after ALL or ANY must have one column"),
        ("SELECT symbol FROM trades WHERE price > (SELECT MAX(symbol) FROM trades);",
         "cannot compare a number and a text"),
        ("SELECT symbol FROM trades WHERE price > ALL (SELECT symbol FROM trades);",
         "cannot compare a number and a text"),
        ("SELECT symbol FROM trades WHERE price > (SELECT MAX(price) + price FROM trades AS u);",
         "is not inside an aggregate"),
        ("SELECT (SELECT 1 FROM trades u WHERE t.price > 1 ORDER BY 1 LIMIT 1) FROM trades t;",
         '"t.price" is of the query around, which cannot be read here'),
        ("SELECT price + ALL (SELECT price FROM trades) FROM trades;", "after a comparison"),
        ("SELECT price > ALL (1, 2) FROM trades;", "take a query in parentheses"),
        ("SELECT upper(symbol) FILTER (WHERE price > 1) FROM trades;", "after an aggregate"),
        ("SELECT SUM(price) FILTER (WHERE price) FROM trades;", "expected a value of type boolean"),
        ("SELECT ROUND(price, volume) FROM trades;", "number of digits"),
        ("SELECT VARIANCE(symbol) FROM trades;", "VARIANCE cannot aggregate a text"),
        ("WITH q AS (SELECT 1 FROM trades), q AS (SELECT 2 FROM trades) SELECT * FROM q;",
         "defined more than once"),
        ("WITH q (a, b) AS (SELECT price FROM trades) SELECT * FROM q;", "names for 2"),
        ("WITH RECURSIVE q AS (SELECT price FROM q) SELECT * FROM q;", "RECURSIVE is not part"),
    ],
)  # fmt: skip
def test_what_cannot_be_asked_is_told(text: str, expected: str) -> None:
    assert expected in complaint(text)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_subquery_may_stand_inside_an_aggregate(engine: str) -> None:
    text = """SELECT Rstream(
      SUM(CASE WHEN price > (SELECT AVG(price) FROM trades [Range 5 us]) THEN volume ELSE 0 END)
        AS s,
      COUNT(*) FILTER (WHERE EXISTS (SELECT * FROM trades AS u
        WHERE u.symbol = t.symbol AND u.price < t.price)) AS n)
    FROM trades [Range 5 us] AS t;"""
    assert [(1, 0, 0), (2, 2, 0), (3, 9, 1)] == asked(text, engine)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_subquery_may_stand_in_the_condition_of_an_inner_join(engine: str) -> None:
    text = """SELECT Istream(t.symbol, u.price AS p) FROM trades [Now] AS t
    JOIN trades [Range 5 us] AS u ON t.symbol = u.symbol
      AND u.price < (SELECT MAX(price) FROM trades [Range 5 us]);"""
    assert [(3, "a", 1.0)] == asked(text, engine)
