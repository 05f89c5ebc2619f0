"""`millstream bench`: names of benchmarks and of their modules, tables and JSON."""

from __future__ import annotations

import json

import pytest

from millstream.cli.bench import benchmarks, choose
from millstream.cli.main import main
from millstream.errors import UsageError


def test_a_module_stands_for_all_its_benchmarks() -> None:
    known = benchmarks()
    assert list(known["spark"]) == list(choose(known, ["spark"]))
    assert {"memory", *known["spark"]} == set(choose(known, ["memory", "spark", "spark_vwap"]))
    assert sum(map(len, known.values())) == len(choose(known, []))


def test_a_wrong_name_is_told_with_those_there_are() -> None:
    with pytest.raises(UsageError, match='there is no benchmark "spark_wvap"') as error:
        choose(benchmarks(), ["spark_wvap"])
    assert "spark_vwap" in (error.value.faults[0].hint or "")


@pytest.mark.spark
@pytest.mark.proof
def test_a_small_batch_on_spark_is_measured_part_by_part(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MILLSTREAM_BENCH_REPEATS", "1")
    assert 0 == main(["bench", "spark_latency", "--scale", "0.1", "--format", "json"])
    records = {one["part"]: one for one in json.loads(capsys.readouterr().out)}
    for part in ("a whole batch", "- Spark's job"):
        assert records[part]["median_ms"] > 0
    assert {"spark_latency"} == {one["name"] for one in records.values()}
