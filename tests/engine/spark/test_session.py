"""What is said if Spark does not start."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark


def run_job(folder: Path, *more: str, **environment: str) -> subprocess.CompletedProcess[str]:
    (folder / "job.brook").write_text("output out; input in(n integer); (out) <- Map[n](in);")
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
