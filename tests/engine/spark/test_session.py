"""What is said if Spark does not start."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import millstream
from millstream.api import Compiled
from millstream.engine.spark.java import find_java
from millstream.engine.spark.query import Query
from millstream.engine.spark.session import _launch
from millstream.engine.spark.telling import STARTS
from millstream.errors import RunError

pytestmark = pytest.mark.spark
PASSING = "output out; input in(n integer); (out) <- Map[n](in);"


def run_job(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    (folder / "job.brook").write_text(PASSING)
    (folder / "in.csv").write_text("_time,n\n1,1\n")
    return subprocess.run(
        [sys.executable, "-m", "millstream", "run", "job.brook", "--in", "in=in.csv"],
        env={**os.environ, **environment},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_java_that_does_not_start_is_told_with_its_own_words(tmp_path: Path) -> None:
    small = "--driver-memory 1k pyspark-shell"
    answer = run_job(tmp_path, PYSPARK_SUBMIT_ARGS=small)
    assert 1 == answer.returncode
    assert "did not start: Too small maximum heap" in answer.stderr.splitlines()[0]
    assert "heap" not in answer.stdout


def native_job(folder: Path) -> Compiled:
    """An input that Spark reads makes a run one query."""
    (folder / "job.brook").write_text("output out; input in(n integer); (out) <- Map[n](in);")
    (folder / "rows").mkdir()
    (folder / "rows" / "1.json").write_text('{"_time": "1970-01-01T00:00:01Z", "n": 1}\n')
    (folder / "millstream.toml").write_text(
        '[stream.in]\nsource = "spark:json"\noptions = { path = "rows" }\n'
        'columns = { _time = "time", n = "integer" }\ntime = "_time"\n'
        '[node.job]\nbrook = "job.brook"\n'
    )
    return millstream.compile(folder)


def test_a_query_that_spark_did_not_wait_for_is_started_again(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy machine a Python may take longer to start than Spark waits."""
    from pyspark.errors import StreamingQueryException

    starts = []
    until_over = Query._until_over

    def late(query: Query, writer: Any) -> None:
        starts.append(query)
        if len(starts) < STARTS:
            raise StreamingQueryException("Python worker failed to connect back.")
        until_over(query, writer)

    monkeypatch.setattr(Query, "_until_over", late)
    finished = native_job(tmp_path).run(engine="spark", session=spark)
    assert [1] == [row["n"] for row in finished.rows("out")]
    assert len(starts) == STARTS


def test_a_query_that_never_starts_is_given_up(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark.errors import StreamingQueryException

    def never(query: Query, writer: Any) -> None:
        raise StreamingQueryException("Python worker failed to connect back.")

    monkeypatch.setattr(Query, "_until_over", never)
    with pytest.raises(RunError, match="not there within ten seconds"):
        native_job(tmp_path).run(engine="spark", session=spark)


def test_a_launch_that_is_interrupted_leaves_no_java(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark import SparkContext

    launched: list[subprocess.Popen[bytes]] = []
    popen = subprocess.Popen

    def noted(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        launched.append(popen(*arguments, **options))
        return launched[-1]

    def interrupt(_seconds: float) -> None:
        raise KeyboardInterrupt

    java = find_java()
    monkeypatch.setattr(SparkContext, "_gateway", None)
    monkeypatch.setattr("millstream.engine.spark.session.subprocess.Popen", noted)
    monkeypatch.setattr("millstream.engine.spark.session._launched", [])
    monkeypatch.setattr("time.sleep", interrupt)
    with pytest.raises(KeyboardInterrupt):
        _launch(java, {"spark.master": "local[1]"}, tmp_path / "log")
    assert [-signal.SIGKILL] == [process.returncode for process in launched]
