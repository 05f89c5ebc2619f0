"""Small jobs on Spark: a task answers them, and nothing is compiled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import millstream
from millstream.engine import warm
from millstream.engine.spark import run as spark_run
from tests.examples.folders import ROOT, program_of
from tests.examples.test_examples import table

pytestmark = pytest.mark.spark

VOLUMES = """
output totals; input trades(symbol text, volume integer);
(recent, $w) <- Range[1 s](trades, $w);
(totals, $a) <- Aggregate[by symbol; volume = sum(volume)](recent, $a);
"""
TRADES = [{"_time": n * 300_000, "symbol": "ab"[n % 2], "volume": n} for n in range(200)]


@pytest.fixture
def compiled_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Any]:
    """The jobs that are run by compiled loops, with nothing compiled yet."""
    monkeypatch.setenv(warm.SETTING, "inf")
    monkeypatch.setattr(warm, "cache_directory", lambda: tmp_path / "cache")
    jobs: list[Any] = []
    run_batches = spark_run._run_batches

    def noted(job: Any, *more: Any) -> Any:
        jobs.append(job)
        return run_batches(job, *more)

    monkeypatch.setattr(spark_run, "_run_batches", noted)
    return jobs


@pytest.mark.parametrize("name", ["cql/auction_site", "sheets/vwap"])
def test_an_example_is_answered_by_a_task_that_compiles_nothing(
    name: str, spark: Any, tmp_path: Path, compiled_runs: list[Any]
) -> None:
    folder = ROOT / name
    compiled = program_of(folder)
    outputs = {q: tmp_path / f"{q}.csv" for q in compiled.program.outputs}
    compiled.run(outputs=outputs, engine="spark", session=spark)
    expected = {p.stem: table(p) for p in (folder / "expected").glob("*.csv")}
    assert expected == {q: table(path) for q, path in outputs.items()}
    assert not compiled_runs


def test_what_takes_long_is_given_up_and_not_tried_again(
    spark: Any, compiled_runs: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    job = millstream.compile(text=VOLUMES, language="brook")
    expected = job.run({"trades": TRADES}, engine="spark", session=spark).rows("totals")
    assert not compiled_runs
    monkeypatch.setenv(warm.SETTING, "1e-9")
    tried = job.run({"trades": TRADES}, engine="spark", session=spark).rows("totals")
    monkeypatch.setenv(warm.SETTING, "inf")
    again = job.run({"trades": TRADES}, engine="spark", session=spark).rows("totals")
    assert [expected, expected] == [tried, again]
    assert len(compiled_runs) == 2


def test_with_a_checkpoint_a_small_job_is_run_as_all_others(
    spark: Any, tmp_path: Path, compiled_runs: list[Any]
) -> None:
    job = millstream.compile(text=VOLUMES, language="brook")
    kept = job.run(
        {"trades": TRADES}, engine="spark", session=spark, checkpoint=tmp_path / "checkpoint"
    )
    assert len(compiled_runs) == 1
    assert job.run({"trades": TRADES}, engine="local").rows("totals") == kept.rows("totals")
