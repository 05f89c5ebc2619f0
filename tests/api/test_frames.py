"""Tables of Arrow, pandas and Polars in and out, moments of Python, callbacks, the state."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import millstream
from millstream.errors import CheckError, UsageError

T0 = datetime(2026, 1, 31, 12, tzinfo=UTC)
TIMES = [T0 + timedelta(seconds=n) for n in range(3)]
COLUMNS: dict[str, Any] = {"at": TIMES, "symbol": ["A", "B", "A"], "volume": [1, 2, 4]}


def totals() -> millstream.Compiled:
    trades = millstream.stream("trades", time="at", symbol="text", volume="integer", at="time")
    table = trades.unbounded().aggregate(
        by=("symbol",), volume=("sum", lambda r: r.volume), last=("max", lambda r: r.at)
    )
    return millstream.compile_flow(totals=table)


LAST = [
    {"symbol": "B", "volume": 2, "last": TIMES[1]},
    {"symbol": "A", "volume": 5, "last": TIMES[2]},
]
GIVEN: dict[str, Any] = {
    "arrow": lambda: pa.table(COLUMNS),
    "arrow, once": lambda: pa.table(COLUMNS).to_reader(),
    "pandas": lambda: pd.DataFrame(COLUMNS),
    "polars": lambda: pl.DataFrame(COLUMNS),
    "rows": lambda: pa.table(COLUMNS).to_pylist(),
}


@pytest.mark.parametrize("kind", GIVEN)
@pytest.mark.parametrize("engine", ["reference", "local"])
def test_tables_go_in_and_come_out(kind: str, engine: str) -> None:
    result = totals().run({"trades": GIVEN[kind]()}, engine=engine)
    assert LAST == result.to_arrow(state=True).to_pylist()
    assert LAST == result.to_polars("totals", state=True).to_dicts()
    frame = result.to_pandas("totals", state=True)
    assert [2, 5] == frame["volume"].tolist()
    assert TIMES[2] == frame["last"].iloc[1]
    changes = result.to_pandas()
    assert [1, 1, -1, 1] == changes.sort_values(["_time", "_weight"])["_weight"].tolist()


def test_the_state_can_be_asked_for_as_of_a_time() -> None:
    result = totals().run({"trades": pd.DataFrame(COLUMNS)})
    early = result.state("totals", as_of=TIMES[0])
    assert [("A", 1)] == [(row["symbol"], row["volume"]) for row in early]
    assert early == result.state(as_of=int(T0.timestamp() * 1e6))


def test_an_output_without_rows_has_its_columns() -> None:
    result = totals().run({"trades": pd.DataFrame(COLUMNS).iloc[:0]})
    assert ["symbol", "volume", "last"] == result.to_arrow(state=True).column_names
    assert 0 == len(result.to_pandas())
    assert [] == result.state()


def test_naive_moments_are_in_the_zone_of_the_input() -> None:
    seen = millstream.stream("seen", x="integer")
    job = millstream.compile_flow(out=seen)
    row = {"_time": datetime(2026, 1, 31, 12), "x": 1}  # noqa: DTZ001 - that is the point
    utc = job.run({"seen": [row]})
    there = job.with_times(zone="Europe/Amsterdam").run({"seen": [row]})
    assert int(T0.timestamp() * 1e6) == utc.rows()[0]["_time"]
    assert int(T0.timestamp() * 1e6) - 3_600_000_000 == there.rows()[0]["_time"]


def test_changes_are_told_as_they_come() -> None:
    told: list[dict[str, Any]] = []
    result = totals().run({"trades": pl.DataFrame(COLUMNS)}, on_change={"totals": told.append})
    assert 4 == len(told)
    assert told == result.rows()
    with pytest.raises(UsageError, match='no output "total"'):
        totals().run({"trades": []}, on_change={"total": told.append})


def test_a_callback_that_fails_ends_the_run() -> None:
    def fail(row: dict[str, Any]) -> None:
        raise RuntimeError(row["symbol"])

    with pytest.raises(RuntimeError, match="A"):
        totals().run({"trades": pl.DataFrame(COLUMNS)}, on_change={"totals": fail})


def test_a_notebook_shows_tables() -> None:
    rows = [{"at": T0, "symbol": "<b>", "volume": n} for n in range(30)]
    result = totals().run({"trades": rows})
    shown = result._repr_html_()
    assert "totals: 1 rows now" in shown
    assert "<td>&lt;b&gt;</td><td>435</td>" in shown
    assert "totals" in repr(result)


def test_what_is_wrong_with_a_table_is_told() -> None:
    frame = pd.DataFrame({"at": TIMES, "symbol": [1, 2, 3]})
    with pytest.raises(CheckError) as fault:
        totals().run({"trades": frame})
    assert 'the table of "trades"' in str(fault.value)
    assert "volume" in str(fault.value)


def test_streams_have_no_state_and_names_are_told() -> None:
    trades = millstream.stream("trades", x="integer")
    result = millstream.compile_flow(a=trades, b=trades).run({"trades": [{"_time": 1, "x": 1}]})
    with pytest.raises(UsageError, match="is a stream"):
        result.state("a")
    with pytest.raises(UsageError, match="say which output"):
        result.rows()
    with pytest.raises(UsageError, match='no output "c"'):
        result.to_arrow("c")


GAPS = [3, None, 5]
NOON = 1_769_860_800_000_000


def values() -> millstream.Compiled:
    seen = millstream.stream("seen", time="at", at="time", n="integer", k="text", due="time")
    return millstream.compile_flow(out=seen.map(lambda r: {"n": r.n, "k": r.k, "due": r.due}))


def given_rows(*, n: Any, k: Any = "a", at: Any = T0, due: Any = None) -> list[dict[str, Any]]:
    return [{"at": at, "n": n, "k": k, "due": due}]


@pytest.mark.parametrize("engine", ["reference", "local"])
@pytest.mark.parametrize("kind", ["pandas", "decimals", "floats", "parquet", "lazy"])
def test_integers_with_gaps_come_as_other_numbers(kind: str, engine: str, tmp_path: Path) -> None:
    columns = {"at": TIMES, "n": GAPS, "k": ["a", None, "b"], "due": [None, None, None]}
    table = pa.table(columns)
    frame: Any = pd.DataFrame(columns)
    assert "float64" == frame["n"].dtype
    if kind == "decimals":
        frame = table.set_column(1, "n", table["n"].cast(pa.decimal128(22, 2)))
    elif kind == "floats":
        frame = table.set_column(1, "n", table["n"].cast(pa.float32()))
    elif kind == "parquet":
        frame.to_parquet(tmp_path / "seen.parquet")
        frame = tmp_path / "seen.parquet"
    elif kind == "lazy":
        frame = pl.DataFrame(columns).lazy()
    rows = values().run({"seen": frame}, engine=engine).rows("out")
    assert GAPS == [row["n"] for row in rows]
    assert ["a", None, "b"] == [row["k"] for row in rows]


@pytest.mark.parametrize("engine", ["reference", "local"])
def test_numbers_that_are_not_whole_are_rejected_row_by_row(engine: str) -> None:
    odd = [1.5, float("nan"), 2.0**63, 4.0, -(2.0**63), float("inf")]
    table = pa.table({"at": [T0] * 6, "n": odd, "k": ["a"] * 6, "due": pa.nulls(6)})
    result = values().run({"seen": table}, engine=engine)
    assert [4, -(2**63)] == [row["n"] for row in result.rows("out")]
    assert (6, 4) == (result.report.inputs["seen"].read, result.report.inputs["seen"].rejected)
    assert "expected an integer, got 1.5" in result.report.rejections["seen"][0]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (given_rows(n=np.int8(3), k=np.str_("x")), (3, "x", None)),
        (given_rows(n=3.0, due=date(2026, 1, 31)), (3, "a", NOON - 43_200_000_000)),
        (given_rows(n=float("nan"), k=float("nan"), due=pd.NaT), (None, None, None)),
        (given_rows(n=pd.NA, k=pd.NA, due=np.datetime64("NaT")), (None, None, None)),
        (given_rows(n=Decimal("7.00"), due=np.datetime64("2026-01-31T12", "h")), (7, "a", NOON)),
        (given_rows(n=1, due="2026-01-31T13:00:00+01:00"), (1, "a", NOON)),
        (given_rows(n=1, at="2026-01-31T12:00:00Z", due=float(NOON)), (1, "a", NOON)),
    ],
)
def test_values_of_other_packages_are_what_they_mean(
    given: list[dict[str, Any]], expected: tuple[Any, ...]
) -> None:
    (row,) = values().run({"seen": given}, engine="reference").rows("out")
    assert (NOON, *expected) == tuple(row.values())


@pytest.mark.parametrize("kind", ["rows", "arrow"])
def test_a_unit_counts_in_every_column_of_times(kind: str) -> None:
    rows = given_rows(n=1, at=NOON // 1_000_000, due=NOON // 1_000_000 + 1)
    given: Any = rows if kind == "rows" else pa.Table.from_pylist(rows)
    (row,) = values().with_units("seen=s").run({"seen": given}, engine="reference").rows("out")
    assert (NOON, NOON + 1_000_000) == (row["_time"], row["due"])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (None, 'the rows of "seen" cannot be None'),
        (7, 'the rows of "seen" cannot be 7'),
        (COLUMNS, r"give a file, a list of dictionaries, or a table"),
        ([(1, 2)], r"row 1 of \"seen\": expected a dictionary, got \(1, 2\)"),
        (np.zeros(2), "row 1 of .*expected a dictionary"),
        ([{1: 2}], 'unknown column "1"'),
        (given_rows(n=1.5), "n: expected an integer, got 1.5"),
        (given_rows(n=Decimal("inf")), "n: expected an integer"),
        (given_rows(n=1, due="noon"), "due: expected a time, got"),
        (given_rows(n=1, at=pd.NaT), "has no time"),
        (pd.DataFrame([[1, 2]], columns=["n", "n"]), 'the table of "seen" cannot be taken'),
    ],
)
def test_what_is_no_table_is_told(given: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        values().run({"seen": given}, engine="reference")
