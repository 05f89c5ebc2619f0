"""Declarations without columns: the source tells them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import millstream
from millstream.calculus.types import Value
from millstream.errors import MillstreamError

TRADES = [
    ("trades.csv", "symbol,price,n,ok,at,code\nIBM,1.5,3,true,2026-01-05T09:30:00Z,007\n"),
    ("trades.jsonl", ('{"symbol": "IBM", "price": 1.5, "n": 3, "ok": true, "code": "007", '
     '"at": "2026-01-05T09:30:00Z"}\n')),
]  # fmt: skip
TIME = 1_767_605_400_000_000


def answer(folder: Path, text: str) -> tuple[list[dict[str, Value]], list[str]]:
    (folder / "q.cql").write_text(text)
    job = millstream.compile(folder / "q.cql")
    return job.run().rows("out"), [fault.message for fault in job.warnings()]


@pytest.mark.parametrize(("name", "text"), TRADES)
def test_a_sample_tells_the_columns_and_says_so(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    rows, notes = answer(
        tmp_path,
        f"CREATE STREAM t FROM '{name}';"
        "CREATE OUTPUT out AS SELECT symbol, price * n AS total, code FROM t WHERE ok;",
    )
    assert [{"_time": TIME, "symbol": "IBM", "total": 4.5, "code": "007"}] == rows
    assert len(notes) == 1
    assert notes[0].startswith(f'columns of "t" by 1 row of {name}: symbol text, price number')


def test_parquet_tells_its_columns_itself(tmp_path: Path) -> None:
    times = pa.array([TIME], pa.timestamp("us", "UTC"))
    table = pa.table({"at": times, "n": pa.array([3], pa.int16()), "deep": [[1]]})
    pq.write_table(table, tmp_path / "t.parquet")
    rows, notes = answer(
        tmp_path,
        "CREATE RELATION t KEY (n) FROM 't.parquet';CREATE OUTPUT out AS ISTREAM(SELECT n FROM t);",
    )
    assert [{"_time": TIME, "n": 3}] == rows
    assert ["deep of t.parquet cannot be a column and is left out"] == notes


@pytest.mark.parametrize(
    ("header", "declared", "message"),
    [
        ("a,b", "t FROM 't.csv'", "which column of t.csv is the event time"),
        ("at,until", "t FROM 't.csv'", "it could be at, until"),
        ("a,b", "t FROM 'x.csv'", 'there is no file "x.csv"'),
        ("a,b", "t TIME a", "this has no columns"),
        ("a,b", "t FROM '-' TIME a", "the columns of this source must be declared"),
        ("a,b", "t FROM 'empty.csv' TIME a", "has no column to be told by"),
    ],
)
def test_what_cannot_be_told_is_asked_for(
    tmp_path: Path, header: str, declared: str, message: str
) -> None:
    cell = "2026-01-05T09:30:00Z" if "at" in header else "x"
    (tmp_path / "t.csv").write_text(f"{header}\n{cell},{cell}\n")
    (tmp_path / "empty.csv").write_text("")
    with pytest.raises(MillstreamError) as caught:
        answer(tmp_path, f"CREATE STREAM {declared}; CREATE OUTPUT out AS SELECT * FROM t;")
    assert message in caught.value.faults[0].message


def test_the_time_is_the_column_of_the_source_in_whatever_way_it_is_written(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("Datum,n\n05.01.2026 09:30,3\n")
    (tmp_path / "q.cql").write_text(
        "CREATE STREAM t TIME datum FROM 't.csv'; CREATE OUTPUT out AS SELECT n FROM t;"
    )
    job = millstream.compile(tmp_path / "q.cql").with_times(format="%d.%m.%Y %H:%M")
    assert [{"_time": TIME, "n": 3}] == job.run().rows("out")
