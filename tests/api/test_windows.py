"""One kind of stream and one of table: windows, event time, moments, and what is refused."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest

import millstream
from millstream import algebra
from millstream.errors import CheckError, MillstreamError, UsageError

ENGINES = pytest.mark.parametrize("engine", ["reference", "local"])
STREAM = "CREATE STREAM s (k TEXT, v INTEGER); CREATE STREAM r (k TEXT, w INTEGER);"


def given(seed: int) -> dict[str, list[dict[str, Any]]]:
    random = Random(seed)
    times = sorted(random.choices(range(40), k=25))
    rows = [{"_time": t, "k": random.choice("ab"), "v": random.randint(1, 9)} for t in times]
    others = [{"_time": t, "k": random.choice("ab"), "w": t} for t in times[::4]]
    return {"s": rows, "r": others}


def s() -> millstream.Stream:
    return millstream.stream("s", k="text", v="integer")


def r() -> millstream.Stream:
    return millstream.stream("r", k="text", w="integer")


SUM = ("sum", lambda row: row.v)
#: What is written in Python, and the query that means the same.
PAIRS: dict[str, tuple[Any, str]] = {
    "range": (lambda: s().range("5 us").aggregate(by="k", v=SUM, n="count"),
              "SELECT k, SUM(v) AS v, COUNT(*) AS n FROM s [Range 5 us] GROUP BY k"),
    "slide": (lambda: s().range(timedelta(microseconds=5), slide="2 us"),
              "SELECT * FROM s [Range 5 us Slide 2 us]"),
    "now": (lambda: s().now(), "SELECT * FROM s [Now]"),
    "rows": (lambda: s().rows(2, by="k"), "SELECT * FROM s [Partition By k Rows 2]"),
    "within": (lambda: s().rows(2, "k", within="4 us"),
               "SELECT * FROM s [Partition By k Rows 2 Range 4 us]"),
    "tumble": (lambda: s().tumble("10 us").unbounded().aggregate(
                   by=("window_start", "k"), high=("max", "v")),
               "SELECT window_start, k, MAX(v) AS high FROM s GROUP BY TUMBLE(_time, 10 us), k"),
    "hop": (lambda: s().hop("4 us", "10 us").unbounded().aggregate(by="window_end", n="count"),
            "SELECT window_end, COUNT(*) AS n FROM HOP(s, _time, 4 us, 10 us) GROUP BY window_end"),
    "session": (lambda: s().session("3 us", by="k").aggregate(
                    by=("k", "window_start", "window_end"), n="count"),
                """SELECT k, window_start, window_end, COUNT(*) AS n
                FROM SESSION(TABLE s PARTITION BY (k), _time, 3 us)
                GROUP BY k, window_start, window_end"""),
    "join": (lambda: s().range("5 us").join(r().unbounded(), on="k", where=lambda x: x.v < x.w),
             "SELECT k, v, w FROM s [Range 5 us] JOIN r USING (k) WHERE v < w"),
    "union": (lambda: s().now().map(lambda x: {"k": x.k}).union(
                  r().now().map(lambda x: {"k": x.k})),
              "SELECT k FROM s [Now] UNION ALL SELECT k FROM r [Now]"),
    "distinct": (lambda: s().range("9 us").map(lambda x: {"k": x.k}).distinct(),
                 "SELECT DISTINCT k FROM s [Range 9 us]"),
    "except": (lambda: s().range("9 us").map(lambda x: {"k": x.k}).except_(
                   r().range("9 us").map(lambda x: {"k": x.k})),
               "SELECT k FROM s [Range 9 us] EXCEPT ALL SELECT k FROM r [Range 9 us]"),
    "top": (lambda: s().range("9 us").top(2, by=("v", "k"), descending="v"),
            "SELECT * FROM s [Range 9 us] ORDER BY v DESC, k LIMIT 2"),
    "rstream": (lambda: s().rows(1).rstream(), "SELECT Rstream(*) FROM s [Rows 1]"),
    "filter": (lambda: s().range("5 us").filter(lambda x: x.v > 3).istream(),
               "SELECT Istream(*) FROM s [Range 5 us] WHERE v > 3"),
}  # fmt: skip


@pytest.mark.parametrize("name", PAIRS)
@ENGINES
def test_windows_mean_what_queries_mean(name: str, engine: str) -> None:
    written, query = PAIRS[name]
    ours = millstream.compile_flow(query1=written())
    theirs = millstream.compile(text=f"{STREAM}{query};", language="cql")
    for seed in range(4):
        rows = given(seed)
        told = [
            job.run({n: rows[n] for n in job.program.input_names}, engine=engine).rows("query1")
            for job in (ours, theirs)
        ]
        assert Counter(map(repr, told[0])) == Counter(map(repr, told[1]))


@ENGINES
def test_lambdas_read_the_time_of_a_row(engine: str) -> None:
    at = datetime(2026, 1, 31, 12, tzinfo=UTC)
    rows = [{"_time": at + timedelta(minutes=n), "k": "a", "v": n} for n in range(3)]
    later = s().filter(lambda x: x._time >= at + timedelta(minutes=1))
    shown = later.map(lambda x: {"end": x._time + timedelta(minutes=5), "v": x.v})
    kept = s().map(lambda x: {"minute": int(x._time) // 60_000_000 % 60}, minute="integer")
    twice = s().flat_map(lambda x: [{"t": x._time}, {"t": x._time}])
    job = millstream.compile_flow(shown=shown, kept=kept, twice=twice)
    result = job.run({"s": rows}, engine=engine)
    ends = result.to_arrow("shown")["end"].to_pylist()
    assert [at + timedelta(minutes=6), at + timedelta(minutes=7)] == ends
    assert [0, 1, 2] == [row["minute"] for row in result.rows("kept")]
    assert 6 == len(result.rows("twice"))


@ENGINES
def test_what_is_aggregated_is_a_table_with_a_key(engine: str) -> None:
    totals = s().range("9 us").aggregate(by="k", v=SUM)
    assert ("k",) == totals.key
    seen = r().latest("k").inner_join(totals).changelog()
    rows = given(1)
    told = millstream.compile_flow(out=seen).run(rows, engine=engine).rows("out")
    assert {"_time", "k", "w", "v", "deleted"} == set(told[0])


@ENGINES
def test_an_input_of_changes(engine: str) -> None:
    prices = millstream.relation("prices", k="text", p="integer")
    job = millstream.compile_flow(out=prices.aggregate(n="count"))
    rows = [{"_time": 1, "k": "a", "p": 1}, {"_time": 2, "k": "a", "p": 1, "_weight": -1}]
    assert [{"n": 0}] == job.run({"prices": rows}, engine=engine).state()


def test_what_needs_a_key_says_so() -> None:
    window = s().range("5 us")
    for wrong in (
        window.changelog,
        lambda: window.inner_join(window),
        lambda: r().latest("k").foreign_join(window, on="k"),
        lambda: window.combine_updates(0, lambda n, row: n + row.v),
    ):
        with pytest.raises(UsageError, match="a table with a key"):
            wrong()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: s().range("5 apples"), "5 apples"),
        (lambda: s().rows(0), "at least one row"),
        (lambda: s().tumble("0 s"), "a size must be longer than nothing"),
        (lambda: s().tumble("-1 s"), "a size must be longer than nothing"),
        (lambda: s().hop("0 s", "1 s"), "a slide must be longer than nothing"),
        (lambda: s().hop("1 us", "1 s"), "in more than 1000 windows"),
        (lambda: s().session("-1 s"), "a gap must be longer than nothing"),
        (lambda: s().rows(2, by="x"), '"x"'),
        (lambda: s().now().aggregate(by="x", n="count"), 'unknown column "x"'),
        (lambda: s().now().aggregate(), "nothing to aggregate"),
        (lambda: s().now().aggregate(n=("add", "v")), 'unknown aggregate "add"'),
        (lambda: s().now().aggregate(n=("sum", "k")), "n"),
        (lambda: s().now().aggregate(n=("sum", lambda x: len(x.k))), "cannot be traced"),
        (lambda: s().now().join(r().now(), on="v"), 'unknown column "v"'),
        (lambda: s().now().union(r().now()), "alike"),
        (lambda: s().session("3 us", by="z"), 'unknown column "z"'),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_where_it_is_written(wrong: Any, message: str) -> None:
    with pytest.raises(MillstreamError) as fault:
        wrong()
    assert message in str(fault.value)


def test_changes_of_a_table_have_no_time_of_their_own() -> None:
    with pytest.raises(CheckError, match="_time"):
        millstream.compile_flow(out=s().now().map(lambda x: {"t": x._time}))


def test_the_old_names_are_the_same_ones() -> None:
    assert millstream.stream is algebra.stream
    assert millstream.Table is algebra.Table
