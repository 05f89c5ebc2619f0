"""Tables of Arrow, pandas and Polars in and out, moments of Python, callbacks, the state."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

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
