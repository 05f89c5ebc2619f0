"""A full disk stops a run with one sentence; with space freed it goes on."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.engine.running import Job, difference, make_job

pytestmark = [pytest.mark.slow, pytest.mark.proof_on_spark]

BATCHES = 10
ROWS = 40
NOTE = 2_000
FULL = "No space left on device"


def mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True, capture_output=True)


def resize(disk: Path, size: str) -> None:
    mount("-o", f"remount,size={size}", str(disk))


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    folder.mkdir()
    try:
        mount("-t", "tmpfs", "-o", "size=16m", "tmpfs", str(folder))
    except (subprocess.CalledProcessError, FileNotFoundError) as reason:
        pytest.skip(f"a small disk cannot be mounted here: {reason}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def make(folder: Path, sinks: str, engine: str) -> Job:
    return make_job(
        folder, sinks, files=BATCHES, rows=ROWS, note=NOTE, batch_bytes=ROWS * (NOTE + 20), seed=4,
        engine=engine,
    )  # fmt: skip


def told(job: Job) -> str:
    """What a run says that meets a full disk: one sentence, and what to do."""
    running = job.start()
    assert 1 == running.finish(), running.errors()
    sentence, *hints = running.errors().splitlines()
    assert all(hint.startswith("    ") for hint in hints)
    return sentence


#: Full at the beginning, before the first batch, and between batches.
SIZES = [
    pytest.param("20k", marks=pytest.mark.proof), "300k",
    pytest.param("900k", marks=pytest.mark.proof), pytest.param("1500k", marks=pytest.mark.proof),
]  # fmt: skip


@pytest.mark.parametrize("size", SIZES)
def test_a_full_disk_stops_a_run_and_with_space_it_goes_on(
    size: str, engine: str, tmp_path: Path
) -> None:
    with small_disk(tmp_path / "checkpoint") as disk:
        job = make(tmp_path, "file", engine)
        try:
            resize(disk, size)
            assert f"error: the disk is full: {FULL}" == told(job)
            assert len(job.batches()) < BATCHES
            resize(disk, "64m")
            job.start().succeed()
            assert not difference(job.expected(), job.outputs(job.kept))
        finally:
            job.close()


def test_a_full_disk_of_an_output_is_told_by_its_name(engine: str, tmp_path: Path) -> None:
    job = make(tmp_path, "folder", engine)
    with small_disk(tmp_path / f"{job.kept}-last") as disk:
        try:
            resize(disk, "20k")
            assert f"error: {job.kept}-last/: cannot be written: {FULL}" == told(job)
            assert len(job.batches()) < BATCHES
            resize(disk, "64m")
            job.start().succeed()
            assert not difference(job.expected(), job.outputs(job.kept))
        finally:
            job.close()
