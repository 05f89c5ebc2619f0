"""When the local engine uses threads, and that its answers are the same then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import millstream
from millstream.engine.local import run as local
from millstream.engine.local.threads import ThreadedRunner, threads_wanted
from millstream.errors import UsageError

ROWS = 300_000
QUERY = """
CREATE STREAM trades (sym TEXT, at TIME, vol INTEGER) TIME at FROM 'trades.parquet';
CREATE OUTPUT out AS SELECT Istream(sym, SUM(vol) AS volume, MIN(vol) AS low, MAX(vol) AS high,
  STDDEV(vol) AS spread, VARIANCE(vol) AS square) FROM trades [Range 1 Second] GROUP BY sym;
"""


@pytest.fixture
def trades(tmp_path: Path) -> Path:
    """A query on many trades, of which several have the same time."""
    numbers = np.random.default_rng(7)
    table = pa.table({
        "sym": pa.array([f"S{n}" for n in numbers.integers(0, 50, ROWS)]),
        "at": pa.array(np.arange(ROWS) // 3 * 1_000, pa.timestamp("us", "UTC")),
        "vol": numbers.integers(0, 100, ROWS),
    })  # fmt: skip
    # Small groups of rows, so that several rounds are under way at a time.
    pq.write_table(table, tmp_path / "trades.parquet", row_group_size=1 << 15)
    path = tmp_path / "trades.cql"
    path.write_text(QUERY)
    return path


def written(path: Path, threads: int, monkeypatch: pytest.MonkeyPatch) -> tuple[bytes, bool]:
    """What is written on so many threads, and whether buckets were shared among them."""
    runners: list[Any] = []

    def noting(*given: Any) -> ThreadedRunner:
        runners.append(ThreadedRunner(*given))
        return runners[-1]  # type: ignore[no-any-return]

    monkeypatch.setattr(local, "ThreadedRunner", noting)
    out = path.with_name(f"out-{threads}.csv")
    millstream.compile(path).run(outputs={"out": str(out)}, threads=threads)
    return out.read_bytes(), bool(runners)


def test_large_inputs_are_shared_by_threads_and_give_the_same_bytes(
    trades: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone, is_shared = written(trades, 1, monkeypatch)
    assert not is_shared
    for threads in (2, 3):
        assert (alone, True) == written(trades, threads, monkeypatch)


def test_small_inputs_are_not_shared(trades: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "ThreadedRunner", None)  # nobody calls it
    rows = pq.read_table(trades.with_name("trades.parquet")).slice(0, 1_000)
    pq.write_table(rows, trades.with_name("trades.parquet"))
    assert millstream.compile(trades).run(threads=2).report.outputs["out"] > 0


def test_the_number_of_threads_is_asked_for_or_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MILLSTREAM_THREADS", "3")
    assert 3 == threads_wanted(None)
    assert 5 == threads_wanted(5)
    monkeypatch.setenv("MILLSTREAM_THREADS", "many")
    with pytest.raises(UsageError, match=r'MILLSTREAM_THREADS must be a number .*"many"'):
        threads_wanted(None)
    with pytest.raises(UsageError, match="at least one thread"):
        threads_wanted(0)
