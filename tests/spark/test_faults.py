"""Killed at any moment and started again, a job gives what it would have given.

Compared row by row and in order, never as sets: lost = duplicated = wrong = 0.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark

PROGRAM = """
output sums, last;
input trades(symbol text, volume integer), prices(symbol text, price number);
variable $n(n integer = 0);
(recent, $w)   <- Range[50 us](trades, $w);
(totals, $t)   <- Aggregate[by symbol; volume = sum(volume), n = count()](recent, $t);
(changes, $i)  <- Istream(totals, $i);
(sums, $n)     <- Fold[set $n.n = $n.n + 1; emit symbol, volume, n, seen = $n.n](changes, $n);
(last, $l)     <- Latest[by symbol](prices, $l);
"""


def make_project(folder: Path, files: int = 8, rows: int = 40) -> None:
    generator = random.Random(7)
    (folder / "job.brook").write_text(PROGRAM)
    for name, column in (("trades", "volume"), ("prices", "price")):
        (folder / name).mkdir()
        clock = 0
        for number in range(files):
            lines = [f"_time,symbol,{column}"]
            for _ in range(rows):
                clock += generator.randint(0, 9)
                lines.append(f"{clock},S{generator.randint(0, 5)},{generator.randint(0, 99)}")
            (folder / name / f"{number:03}.csv").write_text("\n".join(lines) + "\n")


def command(folder: Path, engine: str, *more: str) -> list[str]:
    return [
        sys.executable, "-m", "millstream.cli.main", "run", "job.brook", "--engine", engine,
        "--in", "trades=trades/", "--in", "prices=prices/",
        "--out", f"sums={engine}-sums.csv", "--out", f"last={engine}-last.csv", *more,
    ]  # fmt: skip


def outputs(folder: Path, engine: str) -> list[str]:
    return [(folder / f"{engine}-{name}.csv").read_text() for name in ("sums", "last")]


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """The driver and everything it has started, at once."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def test_a_run_that_is_killed_again_and_again_loses_and_repeats_nothing(tmp_path: Path) -> None:
    make_project(tmp_path)
    subprocess.run(command(tmp_path, "local"), cwd=tmp_path, check=True)
    environment = {**os.environ, "MILLSTREAM_SPARK_BATCH_BYTES": "500"}
    generator = random.Random(11)
    spark = command(tmp_path, "spark", "--checkpoint", "checkpoint")
    kills = 0
    for _ in range(3):
        process = subprocess.Popen(spark, cwd=tmp_path, start_new_session=True, env=environment)
        # A run takes some ten seconds here, most of it starting; batches come after that.
        deadline = time.monotonic() + generator.uniform(4, 12)
        while process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        if process.poll() is None:
            kill_group(process)
            kills += 1
    finished = subprocess.run(spark, cwd=tmp_path, check=True, env=environment, timeout=120)
    assert 0 == finished.returncode
    assert kills
    assert outputs(tmp_path, "local") == outputs(tmp_path, "spark")


def test_a_second_run_on_the_same_checkpoint_is_refused(tmp_path: Path) -> None:
    from millstream.backends.spark.checkpoint import Checkpoint
    from millstream.errors import UsageError

    first = Checkpoint(tmp_path)
    first.open("a", "program", rebuild=False)
    with pytest.raises(UsageError, match=f"in use by process {os.getpid()}"):
        Checkpoint(tmp_path).open("a", "program", rebuild=False)
    first.close()


def test_another_program_is_refused_and_rebuild_takes_it(tmp_path: Path) -> None:
    from millstream.backends.spark.checkpoint import Checkpoint
    from millstream.errors import PlanError

    first = Checkpoint(tmp_path)
    first.open("a", "output x;\n", rebuild=False)
    first.close()
    second = Checkpoint(tmp_path)
    with pytest.raises(PlanError, match="made by another program"):
        second.open("b", "output y;\n", rebuild=False)
    second.open("b", "output y;\n", rebuild=True)
    second.close()


def test_an_interrupted_run_finishes_its_batch_and_goes_on_later(tmp_path: Path) -> None:
    make_project(tmp_path, files=5)
    subprocess.run(command(tmp_path, "local"), cwd=tmp_path, check=True)
    environment = {**os.environ, "MILLSTREAM_SPARK_BATCH_BYTES": "500"}
    spark = command(tmp_path, "spark", "--checkpoint", "checkpoint")
    process = subprocess.Popen(spark, cwd=tmp_path, env=environment, start_new_session=True)
    outputs_folder = tmp_path / "checkpoint" / "batches"
    deadline = time.monotonic() + 60
    while not (outputs_folder.is_dir() and any(outputs_folder.iterdir())):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    assert 0 == process.wait(timeout=20)
    assert len(list(outputs_folder.iterdir())) < 5
    subprocess.run(spark, cwd=tmp_path, check=True, env=environment, timeout=120)
    assert outputs(tmp_path, "local") == outputs(tmp_path, "spark")
