"""What can be written, and what it means in small."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest

import millstream
from millstream.calculus.text import render
from millstream.errors import MillstreamError
from millstream.languages.cql.load import load
from millstream.optimiser.optimise import optimise
from millstream.source import Source

TRADES = "CREATE STREAM trades (symbol TEXT, price NUMBER, volume INTEGER);\n"
QUOTES = "CREATE STREAM quotes (symbol TEXT, ask NUMBER);\n"


def trade(time: int, symbol: str | None, price: float = 1.0, volume: int = 1) -> dict[str, Any]:
    return {"_time": time, "symbol": symbol, "price": price, "volume": volume}


def answers(
    text: str, *, output: str = "query1", engine: str = "reference", **inputs: Any
) -> list[tuple[Any, ...]]:
    """The rows of a query as tuples: the time, for a relation the weight, the columns."""
    job = millstream.compile(text=text, language="cql")
    return [tuple(row.values()) for row in job.run(inputs, engine=engine).rows(output)]


def program(text: str) -> str:
    return render(load(Source("test.cql", text)).program)


def test_the_shape_is_that_of_the_paper() -> None:
    text = """
    CREATE STREAM quotes (ticker TEXT, ask NUMBER);
    CREATE RELATION history (ticker TEXT, low NUMBER);
    CREATE OUTPUT bargains AS
    select IStream(*) from quotes[Now], history
    where quotes.ask <= history.low and quotes.ticker == history.ticker;
    """
    functions = [op.function.name for op in load(Source("x", text)).program.operators]
    assert ["Now", "Join", "Istream"] == functions


def test_a_closed_range_ends_a_microsecond_after_its_length() -> None:
    text = f"{TRADES} SELECT symbol FROM trades [Range 5 us];"
    rows = answers(text, trades=[trade(1, "a"), trade(9, "b")])
    assert [(1, 1, "a"), (7, -1, "a"), (9, 1, "b")] == rows


def test_a_window_of_now_is_one_instant() -> None:
    text = f"{TRADES} SELECT symbol FROM trades [Now];"
    rows = answers(text, trades=[trade(1, "a"), trade(2, "b")])
    assert [(1, 1, "a"), (2, -1, "a"), (2, 1, "b")] == rows


def test_a_stream_without_a_window_is_unbounded_and_its_query_an_istream() -> None:
    text = f"{TRADES} SELECT symbol FROM trades WHERE volume > 1;"
    rows = answers(text, trades=[trade(1, "a"), trade(2, "b", volume=2)])
    assert [(2, "b")] == rows


def test_a_query_that_does_not_only_grow_stays_a_relation() -> None:
    text = f"{TRADES} SELECT symbol, COUNT(*) AS n FROM trades GROUP BY symbol;"
    rows = answers(text, trades=[trade(1, "a"), trade(2, "a")])
    assert [(1, 1, "a", 1), (2, -1, "a", 1), (2, 1, "a", 2)] == rows


def test_a_window_on_a_growing_view_is_one_on_its_istream() -> None:
    text = f"""{TRADES}
    CREATE VIEW large AS SELECT symbol FROM trades WHERE volume > 1;
    SELECT symbol FROM large [Rows 1];"""
    rows = answers(text, trades=[trade(1, "a", volume=3), trade(2, "b"), trade(3, "c", volume=3)])
    assert [(1, 1, "a"), (3, -1, "a"), (3, 1, "c")] == rows


@pytest.mark.parametrize(
    ("condition", "is_relation"),
    [
        ("EXISTS (SELECT 1 FROM quotes AS q WHERE q.symbol = t.symbol)", False),
        ("symbol IN (SELECT symbol FROM quotes)", False),
        ("EXISTS (SELECT 1 FROM quotes [Now] AS q)", True),
        ("NOT EXISTS (SELECT 1 FROM quotes AS q WHERE q.symbol = t.symbol)", True),
        ("symbol NOT IN (SELECT symbol FROM quotes)", True),
        ("(symbol = 'a' OR symbol IN (SELECT symbol FROM quotes))", True),
    ],
)
def test_only_what_can_only_grow_is_a_stream_by_default(condition: str, is_relation: bool) -> None:
    text = f"{TRADES}{QUOTES} SELECT symbol FROM trades AS t WHERE {condition};"
    types = load(Source("x", text)).program.queue_types()
    assert is_relation == types["query1"].is_relation


@pytest.mark.parametrize(
    ("operator", "expected"),
    [
        ("Istream", [(1, "a"), (3, "b")]),
        ("Dstream", [(3, "a")]),
        ("Rstream", [(1, "a"), (2, "a"), (3, "b")]),
    ],
)
def test_operators_to_streams(operator: str, expected: list[tuple[Any, ...]]) -> None:
    rows = [trade(1, "a", volume=2), trade(2, "x"), trade(3, "b", volume=2)]
    inner = "SELECT symbol FROM (SELECT Istream(*) FROM trades WHERE volume > 1) [Rows 1]"
    around = f"{TRADES} {operator}({inner});"
    inside = f"{TRADES} {inner.replace('SELECT symbol', f'SELECT {operator}(symbol)', 1)};"
    assert expected == answers(around, trades=rows)
    assert expected == answers(inside, trades=rows)


def test_rstream_speaks_at_heartbeats_too() -> None:
    text = """CREATE STREAM trades (symbol TEXT) HEARTBEAT 4 us;
    Rstream(SELECT symbol FROM trades [Range 6 us]);"""
    rows = [{"_time": 3, "symbol": "a"}, {"_time": 13, "symbol": "b"}]
    for engine in ("reference", "local"):
        assert [(3, "a"), (4, "a"), (8, "a"), (13, "b")] == answers(
            text, trades=rows, engine=engine
        )


def test_a_sliding_window_moves_in_steps() -> None:
    text = f"{TRADES} SELECT symbol FROM trades [Range 5 us Slide 4 us];"
    rows = answers(text, trades=[trade(1, "a"), trade(5, "b"), trade(13, "c")])
    assert [(4, 1, "a"), (8, -1, "a"), (8, 1, "b"), (12, -1, "b")] == rows


def test_the_prototype_style() -> None:
    text = """
    table : register stream Cars (id integer, speed integer, at integer);
    vquery : select id, speed from Cars where speed > 10;
    vtable : register stream Fast (car integer, mph integer);
    query : istream(select car from Fast [range unbounded]);
    """
    cars = [{"_time": 1, "id": 7, "speed": 20, "at": 0}, {"_time": 2, "id": 8, "speed": 5, "at": 0}]
    assert [(1, 7)] == answers(text, Cars=cars)


def test_a_relation_with_a_key_holds_the_latest_row_of_each_key() -> None:
    text = """CREATE RELATION rates (currency TEXT, rate NUMBER, KEY (currency));
    SELECT * FROM rates;"""
    rows = [{"_time": t, "currency": "eur", "rate": float(t)} for t in (1, 2)]
    assert [(1, 1, "eur", 1.0), (2, -1, "eur", 1.0), (2, 1, "eur", 2.0)] == answers(
        text, rates=rows
    )


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("rates.csv", "_time,_weight,currency,rate\n1,-1,eur,2\n"),
        ("rates.jsonl", '{"_time": 1, "_weight": -1, "currency": "eur", "rate": 2}\n'),
    ],
)
def test_a_log_with_a_key_must_not_have_weights(tmp_path: Path, name: str, content: str) -> None:
    text = (
        "CREATE RELATION rates (currency TEXT, rate NUMBER, KEY (currency)); SELECT * FROM rates;"
    )
    (tmp_path / name).write_text(content)
    job = millstream.compile(text=text, language="cql")
    with pytest.raises(MillstreamError, match="_weight has no meaning"):
        job.run({"rates": tmp_path / name})
    with pytest.raises(MillstreamError, match="_weight has no meaning"):
        job.run({"rates": [{"_time": 1, "_weight": -1, "currency": "eur", "rate": 2.0}]})


@pytest.mark.parametrize("engine", ["reference", "local"])
def test_a_relation_that_is_read_once_is_always_there(tmp_path: Path, engine: str) -> None:
    (tmp_path / "rates.csv").write_text("currency,rate\neur,2\nusd,3\n")
    (tmp_path / "bids.csv").write_text("_time,currency,amount\n5,eur,10\n6,usd,10\n")
    program_file = tmp_path / "convert.cql"
    program_file.write_text("""
    CREATE STREAM bids (currency TEXT, amount NUMBER) FROM 'bids.csv';
    CREATE RELATION rates (currency TEXT, rate NUMBER) FROM 'rates.csv' ONCE;
    SELECT Rstream(b.amount * r.rate AS dollars) FROM bids [Now] AS b JOIN rates AS r
      USING (currency);
    """)
    found = millstream.compile(program_file).run(engine=engine)
    assert [(5, 20.0), (6, 30.0)] == [tuple(r.values()) for r in found.rows("query1")]


def test_a_file_says_where_results_go(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("at,a\n5,1\n6,2\n")
    (tmp_path / "q.cql").write_text(
        "register stream s (a integer) time at;\nsource : s.csv\n"
        "query big : select a from s where a > 1;\ndest : big.csv\n"
    )
    millstream.compile(tmp_path / "q.cql").run()
    assert "_time,a\n6,2\n" == (tmp_path / "big.csv").read_text()


def test_a_node_of_a_project(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("_time,a\n5,1\n6,2\n")
    (tmp_path / "q.cql").write_text(
        "CREATE STREAM numbers (a INTEGER);\nCREATE STREAM own (b INTEGER) FROM 'own.csv';\n"
        "CREATE OUTPUT big AS SELECT a FROM numbers WHERE a > 1 TO 'big.csv';\n"
        "CREATE OUTPUT small AS SELECT b FROM own;\n"
    )
    (tmp_path / "own.csv").write_text("_time,b\n7,3\n")
    (tmp_path / "millstream.toml").write_text(
        '[stream.S]\nsource = "s.csv"\n[node.q]\ncql = "q.cql"\ninputs.numbers = "S"\n'
        'outputs.Small = "small"\n'
    )
    found = millstream.compile(tmp_path).run()
    assert [{"_time": 7, "b": 3}] == found.rows("Small")
    assert "_time,a\n6,2\n" == (tmp_path / "big.csv").read_text()


def test_a_project_takes_the_event_time_from_the_program_that_reads(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("at,a\n6,2\n5,1\n")
    (tmp_path / "q.cql").write_text(
        "CREATE STREAM s (a INTEGER) TIME at SLACK 1 us;\nCREATE OUTPUT all AS SELECT a FROM s;"
    )
    (tmp_path / "millstream.toml").write_text(
        '[stream.s]\nsource = "s.csv"\n[node.q]\ncql = "q.cql"\n'
    )
    found = millstream.compile(tmp_path).run()
    assert [{"_time": 5, "a": 1}, {"_time": 6, "a": 2}] == found.rows("all")


def test_names_of_columns_in_joins() -> None:
    text = f"""{TRADES}{QUOTES}
    SELECT * FROM trades [Now], quotes [Now] WHERE trades.symbol = quotes.symbol;
    SELECT * FROM trades [Now], quotes [Now];
    SELECT quotes.*, trades.price + 1 FROM trades [Now], quotes [Now];"""
    types = load(Source("x", text)).program.queue_types()
    assert ("symbol", "price", "volume", "ask") == types["query1"].schema.names
    both = ("trades_symbol", "price", "volume", "quotes_symbol", "ask")
    assert both == types["query2"].schema.names
    assert ("symbol", "ask", "column2") == types["query3"].schema.names


def test_names_may_be_written_in_any_case() -> None:
    text = f"{TRADES} select Istream(SYMBOL) from Trades [now] where Price > 0;"
    assert [(1, "a")] == answers(text, trades=[trade(1, "a")])


def test_equations_become_keys_and_other_conditions_stay() -> None:
    text = f"""{TRADES}{QUOTES}
    SELECT t.price FROM trades [Now] AS t JOIN quotes [Now] AS q
    ON upper(t.symbol) = q.symbol AND t.volume = q.ask AND t.price < q.ask;"""
    shown = program(text)
    assert "Join[on `key.1` = `q.symbol`, `key.2` = ask; where price < ask]" in shown
    assert "`key.1` = upper(`t.symbol`), `key.2` = number(volume)" in shown


def test_what_is_computed_for_joins_clashes_with_nothing() -> None:
    text = """
    CREATE STREAM a (x INTEGER, found INTEGER); CREATE STREAM b (y INTEGER, key INTEGER);
    CREATE STREAM c (z INTEGER, value INTEGER, rows INTEGER);
    SELECT a.x, b.key, c.value, COUNT(DISTINCT c.rows) AS n
    FROM a [Now] JOIN b [Now] ON a.x + 1 = b.y + 1 JOIN c [Now] ON a.x + 2 = c.z + 2
    WHERE a.x IN (SELECT z FROM c [Now]) OR a.found IN (SELECT key FROM b [Now])
    GROUP BY a.x, b.key, c.value ORDER BY a.x + 1, MAX(c.rows) LIMIT 3;"""
    inputs: dict[str, Any] = {
        "a": [{"_time": 1, "x": 1, "found": 5}],
        "b": [{"_time": 1, "y": 1, "key": 5}],
        "c": [{"_time": 1, "z": 1, "value": 7, "rows": 9}],
    }
    assert [(1, 1, 1, 5, 7, 1)] == answers(text, **inputs)


def test_division_by_zero_is_null_and_counted() -> None:
    text = f"{TRADES} SELECT price / volume AS x FROM trades;"
    job = millstream.compile(text=text, language="cql")
    found = job.run({"trades": [trade(1, "a", 3.0, 0), trade(2, "a", 3.0, 2)]})
    assert [None, 1.5] == [row["x"] for row in found.rows("query1")]
    assert [1] == list(found.report.faults.values())


def test_functions_of_text_and_time() -> None:
    text = """CREATE STREAM s (t TEXT, at TIME);
    SELECT upper(trim(t)) AS a, length(t) AS b, substring(t, 2, 2) AS c, concat(t, '!') AS d,
           extract(hour FROM at) AS e, date_trunc('hour', at) AS f, at + INTERVAL '5' MINUTES AS g,
           CASE t WHEN 'x' THEN 1 ELSE 2 END AS h, CAST(length(t) AS TEXT) AS i,
           at > TIMESTAMP '1970-01-01T00:30:00Z' AS j FROM s;"""
    hour = 3_600_000_000
    rows = answers(text, s=[{"_time": 1, "t": " abc", "at": hour + 5}])
    expected = (1, "ABC", 4, "ab", " abc!", 1, hour, hour + 5 + 300_000_000, 2, "4", True)
    assert [expected] == rows


def test_standard_deviation() -> None:
    text = f"{TRADES} SELECT STDDEV(volume) AS d FROM trades [Rows 3] GROUP BY symbol;"
    rows = answers(text, trades=[trade(t, "a", volume=v) for t, v in ((1, 2), (2, 4), (3, 6))])
    assert [None, 2.0**0.5, 2.0] == [row[2] for row in rows if row[1] > 0]


@pytest.mark.parametrize(
    "clauses",
    [
        "GROUP BY symbol HAVING COUNT(*) > 1",
        "GROUP BY 1 HAVING n > 1",
        "GROUP BY s HAVING n >= 2 AND s <> 'z'",
    ],
)
def test_groups_may_be_named_by_the_select_list(clauses: str) -> None:
    text = f"{TRADES} SELECT symbol AS s, COUNT(*) AS n FROM trades [Rows 3] {clauses};"
    rows = answers(text, trades=[trade(t, s) for t, s in ((1, "a"), (2, "b"), (3, "a"))])
    assert [(3, 1, "a", 2)] == rows


def test_equal_subqueries_of_two_queries_are_one() -> None:
    query = "SELECT symbol FROM trades [Now] WHERE upper(symbol) IN (SELECT symbol FROM quotes)"
    program_ = load(Source("x", f"{TRADES}{QUOTES} {query}; {query};")).program
    shared = [op.function.name for op in optimise(program_).operators]
    assert (1, 1) == (shared.count("Lookup"), shared.count("Now"))


def test_two_queries_of_one_file_share_its_streams() -> None:
    text = f"{TRADES} SELECT symbol FROM trades; SELECT price FROM trades WHERE volume > 1;"
    job = millstream.compile(text=text, language="cql")
    found = job.run({"trades": [trade(1, "a", 2.0, 2)]})
    assert [{"_time": 1, "symbol": "a"}] == found.rows("query1")
    assert [{"_time": 1, "price": 2.0}] == found.rows("query2")


@pytest.mark.parametrize(
    "text",
    [
        "",
        ";",
        "SELECT",
        "CREATE",
        "CREATE STREAM",
        "SELECT * FROM (((",
        "SELECT * FROM s [",
        "]",
        "SELECT * FROM s [Range 99999999999999999999999 days]",
        "query :",
        "source : x",
        "SELECT a FROM s WHERE a IN ()",
        "SELECT " + "(" * 400 + "1" + ")" * 400 + " FROM s",
        "SELECT a FROM s WHERE " + " AND ".join(["a > 1"] * 300),
        "CREATE STREAM s (a INTEGER); SELECT a FROM s [Rows 1] WHERE " + " OR ".join(["a=1"] * 999),
    ],
)
def test_bad_text_is_told_and_never_a_surprise(text: str) -> None:
    with contextlib.suppress(MillstreamError):
        load(Source("bad.cql", text))


@pytest.mark.parametrize(
    ("unreadable", "is_told"),
    [
        ("SELECT symbol FROM trades WHERE;", True),
        ("CREATE OUTPUT o AS SELECT FROM trades;", True),
        ("CREATE STREAM quotess (symbol;", False),
        ("CREATE VIEW quotess AS SELECT symbol FROM trades WHERE;", False),
        ("CRATE STREAM quotess (symbol TEXT);", False),
    ],
)
def test_unknown_names_are_told_beside_what_can_have_defined_none(
    unreadable: str, *, is_told: bool
) -> None:
    with pytest.raises(MillstreamError) as caught:
        load(Source("test.cql", f"{TRADES}{unreadable}\nSELECT symbol FROM quotess;"))
    assert is_told == ('unknown stream or relation "quotess"' in str(caught.value))


NUMBERS = "CREATE STREAM S (k INTEGER, v INTEGER); CREATE STREAM R (k INTEGER, w INTEGER);\n"


def numbers(query: str) -> list[tuple[Any, ...]]:
    """A query over (1, 10), (2, 20), (3, 30), without times."""
    rows = [{"_time": k, "k": k, "v": 10 * k} for k in (1, 2, 3)]
    return [row[1:] for row in answers(NUMBERS + query, S=rows)]


def test_names_after_an_alias_are_those_of_the_columns() -> None:
    assert [(10,), (20,), (30,)] == numbers("SELECT k FROM (SELECT k, v FROM S) AS t (v, k);")
    assert [(1, 10)] == numbers("SELECT a, v FROM S AS t (a) WHERE a < 2;")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT k FROM S SAMPLE (10);", "SAMPLE is not part of CQL"),
        ("SELECT k FROM S [Rows 1] [Range 3 seconds];", "a second one"),
        ("SELECT S.k FROM S JOIN R;", "CROSS JOIN"),
        (
            "CREATE STREAM T (a INTEGER) SLACK 1 s SLACK 2 s; SELECT a FROM T;",
            "SLACK is said twice",
        ),
        ("CREATE VIEW V (a, a) AS SELECT k, v FROM S; SELECT a FROM V;", 'two columns "a"'),
        ("SELECT a.k FROM S AS a, S AS c FULL JOIN R AS d ON c.k = d.k;", "since the comma"),
    ],
)
def test_nothing_that_is_written_is_passed_over(query: str, expected: str) -> None:
    with pytest.raises(MillstreamError, match=expected) as caught:
        load(Source("test.cql", NUMBERS + query))
    assert all(fault.span is not None for fault in caught.value.faults)


def test_many_conditions_are_not_deep() -> None:
    listed = ", ".join(map(str, range(2, 2000)))
    assert [(2,), (3,)] == numbers(f"SELECT k FROM S WHERE k IN ({listed});")
    chained = " OR ".join(f"k = {n}" for n in range(2, 500))
    assert [(2,), (3,)] == numbers(f"SELECT k FROM S WHERE {chained};")
