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
from millstream.engine.spark.java import find_java
from millstream.engine.spark.run import STARTS, SparkRun
from millstream.engine.spark.session import _launch
from millstream.errors import RunError

pytestmark = pytest.mark.spark
PASSING = "output out; input in(n integer); (out) <- Map[n](in);"


def run_job(folder: Path, *more: str, **environment: str) -> subprocess.CompletedProcess[str]:
    (folder / "job.brook").write_text(PASSING)
    (folder / "in.csv").write_text("_time,n\n1,1\n")
    return subprocess.run(
        [sys.executable, "-m", "millstream", "run", "job.brook", "--in", "in=in.csv", *more],
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


def test_a_master_that_means_nothing_is_told_in_one_sentence(tmp_path: Path) -> None:
    answer = run_job(tmp_path, "--master", "sparkle")
    assert 1 == answer.returncode
    sentence, hint = answer.stderr.splitlines()
    assert "error: Spark did not start: Could not parse Master URL: 'sparkle'" == sentence
    _, _, log = hint.partition("; its log is ")
    assert "sparkle" in Path(log).read_text()


def test_a_query_that_spark_did_not_wait_for_is_started_again(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy machine a Python may take longer to start than Spark waits."""
    from pyspark.errors import StreamingQueryException

    starts = []
    until_over = SparkRun._until_over

    def late(run: SparkRun, writer: Any) -> None:
        starts.append(run)
        if len(starts) < STARTS:
            raise StreamingQueryException("Python worker failed to connect back.")
        until_over(run, writer)

    monkeypatch.setattr(SparkRun, "_until_over", late)
    (tmp_path / "in.csv").write_text("_time,n\n1,1\n2,2\n")
    compiled = millstream.compile(text=PASSING, language="brook")
    finished = compiled.run({"in": tmp_path / "in.csv"}, engine="spark", session=spark)
    assert [1, 2] == [row["n"] for row in finished.rows("out")]
    assert len(starts) == STARTS


def test_a_query_that_never_starts_is_given_up(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark.errors import StreamingQueryException

    def never(run: SparkRun, writer: Any) -> None:
        raise StreamingQueryException("Python worker failed to connect back.")

    monkeypatch.setattr(SparkRun, "_until_over", never)
    (tmp_path / "in.csv").write_text("_time,n\n1,1\n")
    compiled = millstream.compile(text=PASSING, language="brook")
    with pytest.raises(RunError, match="not there within ten seconds"):
        compiled.run({"in": tmp_path / "in.csv"}, engine="spark", session=spark)


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
    monkeypatch.setattr("time.sleep", interrupt)
    with pytest.raises(KeyboardInterrupt):
        _launch(java, {"spark.master": "local[1]"}, tmp_path / "log")
    assert [-signal.SIGKILL] == [process.returncode for process in launched]
