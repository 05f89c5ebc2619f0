"""A full disk stops a run with one sentence; with space freed it goes on."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.spark.running import Job, difference, make_job

pytestmark = [pytest.mark.spark, pytest.mark.slow]

BATCHES = 10
ROWS = 40
NOTE = 2_000
FULL = "No space left on device"


def mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True, capture_output=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    try:
        mount("-t", "tmpfs", "-o", "size=16m", "tmpfs", str(folder))
    except (subprocess.CalledProcessError, FileNotFoundError) as reason:
        pytest.skip(f"a small disk cannot be mounted here: {reason}")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.fixture
def job(tmp_path: Path, disk: Path) -> Iterator[Job]:
    made = make_job(
        tmp_path, "file", files=BATCHES, rows=ROWS, note=NOTE, batch_bytes=ROWS * (NOTE + 20),
        seed=4,
    )  # fmt: skip
    yield made
    made.close()


def resize(disk: Path, size: str) -> None:
    mount("-o", f"remount,size={size}", str(disk))


def told(job: Job) -> list[str]:
    """What a run says that meets a full disk."""
    running = job.start()
    assert 1 == running.finish(), running.errors()
    return running.errors().splitlines()


@pytest.mark.parametrize("size", ["900k", "1500k"])
def test_a_full_disk_stops_a_run_and_with_space_it_goes_on(size: str, job: Job, disk: Path) -> None:
    resize(disk, size)
    lines = told(job)
    assert FULL in lines[0], lines
    assert lines[0].startswith("error: ")
    assert len(lines) <= 2, lines  # the second names the log
    assert 0 < len(job.batches()) < BATCHES
    resize(disk, "64m")
    job.start().succeed()
    assert not difference(job.expected(), job.outputs("spark"))
