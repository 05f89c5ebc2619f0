"""SMILE: silences, rows that are refused, what is as of, and all at once beside DuckDB."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import duckdb
import pytest

import millstream
from millstream.calculus.types import START_OF_TIME
from millstream.cli.main import main
from tests.examples.folders import ROOT

Given = dict[str, list[dict[str, Any]]]
TRADE_FLOOR = (ROOT / "smile" / "trade_floor" / "trade_floor.smile").read_text()


def rows(text: str, given: dict[str, list[dict[str, Any]]], output: str, engine: str) -> Any:
    compiled = millstream.compile(text=text, language="smile")
    return compiled.run(given, engine=engine).rows(output)


QUIET = """
    CREATE STREAM A (t: time -> k: integer) UNTIL 100;
    CREATE VIEW Q (SELECT * FROM QUIET(A BY k, 3 MICROSECONDS));
    CREATE VIEW S (SELECT * FROM QUIET(A, 3 MICROSECONDS));
    subscriptions Q WITH RANGES, S;
"""
EVENTS = [{"t": t, "k": k} for t, k in ((1, 1), (2, 2), (5, 1), (9, 1))]


@pytest.mark.parametrize("engine", ["reference", "local"])
def test_silence_is_told_when_it_is_known_and_ends_with_the_next_event(engine: str) -> None:
    told = [
        (r["_time"], r["_weight"], r["k"], r["since"], r["until"], r["until_low"], r["_final"])
        for r in rows(QUIET, {"A": EVENTS}, "Q", engine)
    ]
    assert told == [
        (5, 1, 1, 1, 5, 5, True),
        (6, 1, 2, 2, None, 6, False),
        (9, 1, 1, 5, 9, 9, True),
        (13, 1, 1, 9, None, 13, False),
        (101, -1, 1, 9, None, 13, False),
        (101, -1, 2, 2, None, 6, False),
        (101, 1, 1, 9, None, 13, True),
        (101, 1, 2, 2, None, 6, True),
    ]


def test_silence_of_a_selection_is_that_of_its_rows() -> None:
    chosen = """
        CREATE STREAM A (t: time -> k: integer) UNTIL 100;
        CREATE VIEW P (SELECT k, t AS tick FROM A WHERE k > 0);
        CREATE VIEW Q (SELECT * FROM QUIET(P BY k, 3 MICROSECONDS));
        subscriptions Q WITH RANGES;
    """
    others = [{"t": t, "k": -1} for t in (3, 7, 8)]
    given = {"A": sorted(EVENTS + others, key=lambda e: e["t"])}
    for engine in ("reference", "local"):
        assert rows(chosen, given, "Q", engine) == rows(QUIET, {"A": EVENTS}, "Q", engine)


@pytest.mark.parametrize("engine", ["reference", "local"])
def test_silence_of_a_whole_stream(engine: str) -> None:
    told = [(r["_time"], r["_weight"], r["since"], r["until"])
            for r in rows(QUIET, {"A": EVENTS}, "S", engine)]  # fmt: skip
    assert told == [
        (START_OF_TIME, 1, None, None), (1, -1, None, None), (1, 1, None, 1), (9, 1, 5, 9),
        (13, 1, 9, None), (101, -1, 9, None), (101, 1, 9, None),
    ]  # fmt: skip


def test_a_stream_that_is_silent_from_its_start_is_told() -> None:
    first = rows(QUIET, {"A": []}, "S", "local")[0]
    assert (first["since"], first["until"], first["_final"]) == (None, None, False)


WINDOWS = """
    CREATE STREAM A (t: time -> k: integer);
    CREATE VIEW W (SELECT WINDOW(t, 4 MICROSECONDS, 2 MICROSECONDS) AS w, COUNT(*) AS n
                   FROM A GROUP BY w);
    subscriptions W;
"""


@pytest.mark.parametrize("engine", ["reference", "local"])
def test_windows_are_final_when_they_are_over(engine: str) -> None:
    told = [(r["_time"], r["w"], r["n"]) for r in rows(WINDOWS, {"A": EVENTS}, "W", engine)
            if r["_final"] and r["_weight"] > 0]  # fmt: skip
    assert told == [(2, -2, 1), (4, 0, 2), (6, 2, 2), (8, 4, 1)]


BOTH = """
    CREATE STREAM A (t: time -> k: integer);
    CREATE STREAM B (u: time -> k: integer);
    CREATE VIEW N (SELECT WINDOW(t, 10 MICROSECONDS) AS w, COUNT(*) AS n FROM A GROUP BY w);
    CREATE VIEW M (SELECT WINDOW(u, 10 MICROSECONDS) AS w, COUNT(*) AS m FROM B GROUP BY w);
    CREATE VIEW J (SELECT w, n, m FROM N JOIN M USING (w));
    subscriptions J;
"""


@pytest.mark.parametrize("engine", ["reference", "local"])
def test_a_window_without_rows_counts_as_empty_and_is_over_at_its_end(engine: str) -> None:
    given = {"A": [{"t": 5, "k": 1}, {"t": 25, "k": 1}], "B": [{"u": 12, "k": 1}]}
    told = [
        (r["_time"], r["_weight"], r["w"], r["n"], r["m"], r["_final"])
        for r in rows(BOTH, given, "J", engine)
    ]
    assert told == [
        (5, 1, 0, 1, 0, False), (10, -1, 0, 1, 0, False), (10, 1, 0, 1, 0, True),
        (12, 1, 10, 0, 1, False), (20, -1, 10, 0, 1, False), (20, 1, 10, 0, 1, True),
        (25, 1, 20, 1, 0, False),
    ]  # fmt: skip


@pytest.mark.parametrize("engine", ["reference", "local"])
def test_groups_by_the_minute_of_a_tick_are_final_when_it_is_over(engine: str) -> None:
    text = """
        CREATE STREAM A (t: time -> k: integer);
        CREATE VIEW V (SELECT k, date_trunc('minute', t) AS m, COUNT(*) AS n FROM A GROUP BY k, m);
        subscriptions V;
    """
    second = 1_000_000
    given = [{"t": t * second, "k": k} for t, k in ((5, 1), (50, 1), (55, 2), (61, 1))]
    told = [(r["_time"], r["k"], r["m"], r["n"]) for r in rows(text, {"A": given}, "V", engine)
            if r["_final"] and r["_weight"] > 0]  # fmt: skip
    assert told == [(60 * second, 1, 0, 2), (60 * second, 2, 0, 1)]


TIES = """
    CREATE STREAM A (t: time -> x: integer) {ties};
    CREATE VIEW V (SELECT t, x FROM A);
    subscriptions V;
"""
TIED = [{"t": 1, "x": 1}, {"t": 1, "x": 2}, {"t": 1, "x": 3}, {"t": 3, "x": 4}]


@pytest.mark.parametrize("engine", ["reference", "local"])
@pytest.mark.parametrize("events", [[], [{"t": 5, "x": 1}]])
def test_streams_without_rows_end_where_they_say(engine: str, events: list[Any]) -> None:
    text = """CREATE STREAM A (t: time -> x: integer) UNTIL '1970-01-01T00:00:00.000020Z';
        CREATE STREAM B (t: time -> x: integer) UNTIL '1970-01-01T00:00:00.000040Z';
        CREATE VIEW V (SELECT COUNT(*) AS n FROM A); CREATE VIEW W (SELECT COUNT(*) AS n FROM B);
        subscriptions V, W;"""
    for view, end in (("V", 21), ("W", 41)):
        told = rows(text, {"A": events, "B": []}, view, engine)
        assert [(r["_time"], r["n"]) for r in told if r["_final"]] == [
            (end, len(events) if view == "V" else 0)
        ]


@pytest.mark.parametrize("engine", ["reference", "local"])
def test_windows_of_ticks_that_were_shifted(engine: str) -> None:
    text = """CREATE STREAM A (t: time -> x: integer) TIES SHIFT;
        CREATE VIEW W (SELECT WINDOW(t, 10 MICROSECONDS) AS w, SUM(x) AS s FROM A GROUP BY w);
        subscriptions W;"""
    given = [{"t": t, "x": x} for t, x in ((8, 1), (9, 2), (9, 4), (9, 8), (25, 16))]
    told = [(r["_time"], r["w"], r["s"], r["_final"])
            for r in rows(text, {"A": given}, "W", engine) if r["_weight"] > 0]  # fmt: skip
    assert told == [
        (8, 0, 1, False), (9, 0, 3, False), (9, 10, 12, False), (10, 0, 3, True),
        (20, 10, 12, True), (25, 20, 16, False),
    ]  # fmt: skip


@pytest.mark.parametrize("engine", ["reference", "local"])
def test_a_tick_has_one_row(engine: str) -> None:
    compiled = millstream.compile(text=TIES.format(ties=""), language="smile")
    finished = compiled.run({"A": TIED}, engine=engine)
    assert [r["x"] for r in finished.rows("V")] == [1, 4]
    assert [r["x"] for r in finished.rows("A_taken")] == [2, 3]


@pytest.mark.parametrize("engine", ["reference", "local"])
def test_a_row_whose_tick_is_taken_takes_the_next_free_one(engine: str) -> None:
    told = rows(TIES.format(ties="TIES SHIFT"), {"A": TIED}, "V", engine)
    assert [(r["t"], r["x"]) for r in told] == [(1, 1), (2, 2), (3, 3), (4, 4)]


@pytest.mark.parametrize("engine", ["reference", "local"])
def test_a_row_that_finds_no_tick_up_to_the_end_leaves_aside(engine: str) -> None:
    text = """CREATE STREAM A (t: time -> x: integer) UNTIL 3 TIES SHIFT;
              CREATE VIEW V (SELECT t, x FROM A); subscriptions V;"""
    given = [{"t": 2, "x": x} for x in (1, 2, 3)] + [{"t": 3, "x": 4}]
    ran = millstream.compile(text=text, language="smile").run({"A": given}, engine=engine)
    assert [(r["t"], r["x"]) for r in ran.rows("V")] == [(2, 1), (3, 2)]
    assert [(r["t"], r["x"]) for r in ran.rows("A_taken")] == [(2, 3), (3, 4)]


def test_values_outside_their_type_are_rejected() -> None:
    text = """CREATE TYPE few AS INTEGER BETWEEN 1 AND 2;
              CREATE STREAM A (t: time -> x: few) UNTIL 5;
              CREATE VIEW V (SELECT x FROM A); subscriptions V;"""
    given = [{"t": t, "x": x} for t, x in ((1, 1), (2, 0), (3, 3), (4, None), (6, 1))]
    finished = millstream.compile(text=text, language="smile").run({"A": given}, engine="local")
    assert [r["x"] for r in finished.rows("V")] == [1]
    assert finished.report.inputs["A"].rejected == 4


@pytest.mark.parametrize("engine", ["reference", "local"])
def test_what_has_no_rule_is_as_of(engine: str) -> None:
    text = """CREATE STREAM D (t: time -> x: shares, y: text);
              CREATE VIEW S (SELECT y, SUM(x) AS s FROM D GROUP BY y);
              CREATE VIEW T (SELECT s, COUNT(*) AS n FROM S GROUP BY s);
              subscriptions T;"""
    given = [{"t": 1, "x": 3, "y": "a"}, {"t": 2, "x": 3, "y": "b"}, {"t": 5, "x": 1, "y": "b"}]
    told = rows(text, {"D": given}, "T", engine)
    assert [(r["_time"], r["_weight"], r["s"], r["n"], r["_asof"]) for r in told] == [
        (1, 1, 3, 1, True), (2, -1, 3, 1, True), (2, 1, 3, 2, True), (5, -1, 3, 2, True),
        (5, 1, 3, 1, True), (5, 1, 4, 1, True),
    ]  # fmt: skip


@pytest.mark.parametrize("engine", ["reference", "local"])
def test_steps_count_rows_that_have_left_the_first(engine: str) -> None:
    text = """
        CREATE STREAM A (t: time -> k: integer, x: shares) UNTIL 9;
        CREATE VIEW Best (SELECT t, k, x FROM A ORDER BY x DESC, t LIMIT 2);
        CREATE VIEW Sums (SELECT k, SUM(x) AS total FROM Best GROUP BY k);
        subscriptions Sums WITH RANGES;
    """
    given = [{"t": t, "k": 1, "x": x} for t, x in ((1, 5), (2, 3), (3, 9), (4, 1))]
    told = {r["_time"]: (r["total"], r["_steps"], r["_final"])
            for r in rows(text, {"A": given}, "Sums", engine) if r["_weight"] > 0}  # fmt: skip
    assert {
        1: (5, 1, False), 2: (8, 2, False), 3: (14, 3, False), 4: (14, 4, False),
        10: (14, 4, True),
    } == told  # fmt: skip


def shifted(rows: list[tuple[int, Any, int]]) -> list[tuple[int, Any, int]]:
    """Each row at the first tick from its own on that none before it has."""
    made: list[tuple[int, Any, int]] = []
    for tick, *rest in rows:
        made.append((max(tick, made[-1][0] + 1 if made else tick), *rest))
    return made


@pytest.mark.parametrize("shifts", [("", ""), (" TIES SHIFT", ""), (" TIES SHIFT",) * 2])
def test_rows_that_are_out_are_forgotten_and_others_are_not(shifts: tuple[str, str]) -> None:
    """However ticks are given: entries may come before their row, with it, and when it is out."""
    text = f"""
        CREATE TYPE few AS INTEGER BETWEEN 0 AND 9;
        CREATE STREAM B (b: time -> k: string, bid: few){shifts[0]};
        CREATE STREAM M (t: time -> b: time, sold: few){shifts[1]};
        CREATE VIEW Sold (SELECT b, SUM(sold) AS total, COUNT(*) AS n FROM M GROUP BY b);
        CREATE VIEW V (SELECT b, k, bid - total AS rest FROM B JOIN Sold USING (b)
                       WHERE rest > 0 AND n < 3);
        subscriptions V;
    """
    chance = random.Random(5)
    bids: list[tuple[int, Any, int]] = sorted(
        (chance.randint(1, 40), chance.choice("ab"), chance.randrange(10)) for _ in range(20)
    )
    sales: list[tuple[int, Any, int]] = sorted(
        (chance.randint(1, 60), chance.randint(1, 45), chance.randrange(4)) for _ in range(60)
    )
    given: Given = {"B": [dict(zip(("b", "k", "bid"), r, strict=True)) for r in bids],
             "M": [dict(zip(("t", "b", "sold"), r, strict=True)) for r in sales]}  # fmt: skip
    known = [shifted(some) if shift else list({r[0]: r for r in reversed(some)}.values())
             for some, shift in zip((bids, sales), shifts, strict=True)]  # fmt: skip
    entries: dict[int, list[int]] = {}
    for _, b, sold in known[1]:
        entries.setdefault(b, []).append(sold)
    expected = sorted(
        (b, k, bid - sum(entries.get(b, ()))) for b, k, bid in known[0]
        if bid > sum(entries.get(b, ())) and len(entries.get(b, ())) < 3
    )  # fmt: skip
    net: dict[tuple[Any, ...], int] = {}
    for row in rows(text, given, "V", "reference"):
        key = (row["b"], row["k"], row["rest"])
        net[key] = net.get(key, 0) + row["_weight"]
    assert expected == sorted(key for key, count in net.items() for _ in range(count))
    assert 3 < len(expected) < len(known[0]) - 3


@pytest.mark.parametrize("seed", [1, 2])
def test_trade_floor_comes_to_what_sql_says(seed: int) -> None:
    chance = random.Random(seed)
    buys = [{"buyid": t, "issue": chance.choice("ab"), "price": chance.randrange(2),
             "#bid": chance.randrange(5)} for t in range(1, 40)]  # fmt: skip
    sells = [{"sellid": b["buyid"], "issue": chance.choice("ab"), "price": chance.randrange(2),
              "#bid": chance.randrange(5)} for b in buys]  # fmt: skip
    matches = [{"t": t, "buyid": chance.randrange(1, 40), "sellid": chance.randrange(1, 40),
                "#traded": chance.randrange(3)} for t in range(2, 60)]  # fmt: skip
    given: dict[str, list[dict[str, Any]]] = {
        "BuyBids": buys,
        "SellBids": sells,
        "Matches": matches,
    }
    compiled = millstream.compile(text=TRADE_FLOOR, language="smile")
    ran = {engine: compiled.run(given, engine=engine) for engine in ("reference", "local")}
    for output in ("RemainingBuy", "RemainingSell", "Matchable"):
        assert ran["reference"].rows(output) == ran["local"].rows(output)
    columns = ("issue", "price", "buyid", "buyremaining", "sellid", "sellremaining")
    stands = [tuple(r[c] for c in columns) for r in ran["local"].state("Matchable")]
    assert sorted(stands) == sorted(_by_sql(given))


def test_a_project_has_views(tmp_path: Path) -> None:
    """Rows whose tick was taken go nowhere there too, unless somebody asks."""
    (tmp_path / "v.smile").write_text(TIES.format(ties="FROM 'a.csv'"))
    (tmp_path / "a.csv").write_text("t,x\n1,1\n1,2\n3,4\n")
    project = '[node.v]\nsmile = "v.smile"\n[sink.V]\nto = "v.csv"\n'
    (tmp_path / "millstream.toml").write_text(project)
    assert main(["run", str(tmp_path), "--engine", "reference"]) == 0
    told = (tmp_path / "v.csv").read_text().splitlines()
    assert told == ["_time,_weight,t,x,_steps,_final", "1,1,1,1,1,true", "3,1,3,4,1,true"]


def _by_sql(given: dict[str, list[dict[str, Any]]]) -> list[tuple[Any, ...]]:
    base = duckdb.connect()
    for name, key in (("BuyBids", "buyid"), ("SellBids", "sellid")):
        base.execute(f"CREATE TABLE {name} ({key} INT, issue TEXT, price INT, bid INT)")
    base.execute("CREATE TABLE Matches (t INT, buyid INT, sellid INT, traded INT)")
    for name, table in given.items():
        marks = ", ".join("?" * 4)
        base.executemany(f"INSERT INTO {name} VALUES ({marks})", [list(r.values()) for r in table])
    return base.execute("""
        WITH b AS (SELECT buyid, issue, price, bid - coalesce((SELECT sum(traded) FROM Matches m
                   WHERE m.buyid = x.buyid), 0) AS rest FROM BuyBids x),
             s AS (SELECT sellid, issue, price, bid - coalesce((SELECT sum(traded) FROM Matches m
                   WHERE m.sellid = x.sellid), 0) AS rest FROM SellBids x)
        SELECT issue, price, buyid, b.rest, sellid, s.rest FROM b JOIN s USING (issue, price)
        WHERE b.rest > 0 AND s.rest > 0""").fetchall()
