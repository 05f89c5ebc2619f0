"""`kill -9` of a run at named points and at random moments, and what the next starts make of it.

Every result is compared with that of an uninterrupted run: by rows in order with the local
engine without a checkpoint, and for folders also part by part with a run left in peace.
"""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path
from typing import Any

import pytest

import millstream
from millstream.connectors.location import parse_location
from tests.engine.running import (
    INPUTS,
    OUTPUTS,
    PATIENCE,
    Job,
    Running,
    difference,
    make_job,
    parts_in,
    wait_for,
)
from tests.seeds import TODAY

pytestmark = pytest.mark.slow

#: One start each. A point of a batch that is over already is passed again in recovery.
POINTS = [
    "before-tasks@0", "mid-task@1", "after-state@2", "after-manifest@3",
    "before-sink@3", "after-sink@3",  # of the same batch: both in recovery
    "before-commit@4", "before-sink@5", "after-sink@6",
    "mid-task@7", "after-state@7", "before-tasks@7",  # the same batch again and again
    "after-manifest@8", "before-commit@9",
]  # fmt: skip
#: Three a day, each in its turn; all of them in the campaigns.
FEW = [
    ("before-tasks@0", "after-state@2", "before-sink@3"),
    ("mid-task@1", "after-manifest@3", "after-sink@3"),
    ("mid-task@1", "after-sink@3", "before-commit@4"),
]  # fmt: skip
BATCHES = 12
ROWS = 40
#: So long that rows travel in files.
NOTE = 2_000
BATCH_BYTES = ROWS * (NOTE + 20)


def small_job(folder: Path, sinks: str, engine: str) -> Job:
    return make_job(
        folder, sinks, files=BATCHES, rows=ROWS, note=NOTE, batch_bytes=BATCH_BYTES, seed=3,
        engine=engine,
    )  # fmt: skip


def uninterrupted(job: Job, launched: dict[str, Any]) -> dict[str, dict[int, Any]]:
    """The parts of every output of a run that is left in peace."""
    places = {name: job.folder / f"peace-{name}" for name in OUTPUTS}
    millstream.compile(job.folder / "job.brook").run(
        {name: parse_location(f"{name}/", job.folder) for name in INPUTS},
        {name: f"{path}/" for name, path in places.items()},
        batch_bytes=job.batch_bytes, checkpoint=job.folder / "peace", **launched,
    )  # fmt: skip
    return {name: parts_in(path) for name, path in places.items()}


def is_killed(running: Running) -> bool:
    return running.finish() == -signal.SIGKILL


@pytest.mark.parametrize(
    ("sinks", "is_all"),
    [
        pytest.param("folder", False, id="folder"),
        pytest.param("folder", True, marks=pytest.mark.proof, id="folder-again"),
        pytest.param("file", True, marks=pytest.mark.proof, id="file"),
    ],
)
def test_killed_at_every_point_a_run_loses_and_repeats_nothing(
    sinks: str, is_all: bool, engine: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    job = small_job(tmp_path, sinks, engine)
    request.addfinalizer(job.close)
    for point in POINTS if is_all else FEW[TODAY % len(FEW)]:
        running = job.start(point)
        assert is_killed(running), f"{point}: {running.errors()}"
        assert not job.armed.exists()
        assert len(job.batches()) < BATCHES
    job.start().succeed()
    assert list(range(BATCHES)) == job.batches()
    assert not difference(job.expected(), job.outputs(job.kept))
    if sinks == "folder":
        assert uninterrupted(job, request.getfixturevalue("launched")) == job.parts(job.kept)


def kill_at_random(job: Job, generator: random.Random) -> None:
    """Start and kill: mostly soon after a batch, sometimes while still starting."""
    before = len(job.batches())
    running = job.start()
    is_early = generator.random() < 0.2
    deadline = time.monotonic() + (generator.uniform(0.2, 5) if is_early else PATIENCE)
    most = 5 if is_early else 1  # batches; not too many, or nothing is left to be killed in
    wait_for(
        "a batch",
        lambda: (
            len(job.batches()) >= before + most or running.is_over or time.monotonic() > deadline
        ),
    )
    time.sleep(generator.uniform(0, 0.05 if job.engine == "local" else 1.2))
    assert not running.is_over, f"too few batches, or: {running.errors()}"
    if generator.random() < 0.5:
        running.kill_all()
    else:
        running.kill_driver()  # the next start meets what is left of this one


def killed_many_times(job: Job, kills: int, seed: int) -> None:
    generator = random.Random(seed)
    try:
        for _ in range(kills):
            kill_at_random(job, generator)
        last = job.start().succeed(4 * PATIENCE)
        assert not difference(job.expected(), job.outputs(job.kept))
        wait_for("all processes to end", lambda: not last.left(), 10)
    finally:
        job.close()


def long_job(folder: Path, sinks: str, seed: int, engine: str) -> Job:
    """About 110 batches, and twice as many where they take no time."""
    files = 44 if engine == "local" else 22
    return make_job(
        folder, sinks, files=files, rows=5 * ROWS, note=NOTE, batch_bytes=BATCH_BYTES, seed=seed,
        engine=engine,
    )  # fmt: skip


@pytest.mark.proof
def test_killed_many_times_at_random_a_run_loses_and_repeats_nothing(
    engine: str, tmp_path: Path
) -> None:
    """To start takes its time: it is killed more often in the campaigns."""
    killed_many_times(long_job(tmp_path, "folder", 7, engine), 4, 7)


@pytest.mark.proof
@pytest.mark.parametrize("seed", range(10))
def test_killed_two_hundred_times_at_random_a_run_loses_and_repeats_nothing(
    seed: int, engine: str, tmp_path: Path
) -> None:
    sinks = "folder" if seed % 2 else "file"
    killed_many_times(long_job(tmp_path, sinks, seed, engine), 20, 100 + seed)
