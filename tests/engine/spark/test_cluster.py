"""On a cluster of two workers: the same rows, also when an executor is killed."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.running import Job, Running, difference, make_job, of_session, wait_for

pytestmark = [pytest.mark.spark, pytest.mark.slow]

MASTER = "local-cluster[2,1,1024]"
ROWS = 40
#: So long that rows travel in files.
NOTE = 2_000


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    made = make_job(
        tmp_path, "folder", files=12, rows=ROWS, note=NOTE, batch_bytes=ROWS * (NOTE + 20), seed=2
    )
    made.more = ("--master", MASTER)
    yield made
    made.close()


def executors(running: Running) -> list[int]:
    """Each is a Java of its own."""
    return [
        p.pid
        for p in of_session(running.pid)
        if p.is_java and "CoarseGrainedExecutorBackend" in p.command
    ]


@pytest.mark.proof  # so does one whose executors are killed
def test_a_cluster_gives_what_one_process_gives(job: Job) -> None:
    running = job.start()
    wait_for("two executors", lambda: len(executors(running)) == 2 or running.is_over)
    running.succeed()
    assert not difference(job.expected(), job.outputs("spark"))
    wait_for("all processes to end", lambda: not running.left(), 10)


def kill_an_executor(job: Job, running: Running, batches: int) -> None:
    """After so many batches, while others run."""
    wait_for("some batches", lambda: len(job.batches()) >= batches or running.is_over)
    wait_for("two executors", lambda: len(executors(running)) == 2 or running.is_over)
    assert not running.is_over, running.errors()
    os.kill(executors(running)[0], signal.SIGKILL)


def test_executors_that_are_killed_lose_and_repeat_nothing(job: Job) -> None:
    running = job.start()
    kill_an_executor(job, running, 2)
    kill_an_executor(job, running, 6)
    running.succeed()
    assert not difference(job.expected(), job.outputs("spark"))
