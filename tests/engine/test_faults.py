"""Stopping and going on: Ctrl-C, two runs at once, another program, another cut of the work."""

from __future__ import annotations

import itertools
import os
import random
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

import millstream
from millstream.connectors.location import parse_location
from millstream.engine.checkpoint import Checkpoint
from millstream.engine.job import Report
from millstream.errors import MillstreamError, PlanError, Stopped, UsageError
from millstream.languages.brook.load import load
from millstream.source import Source
from tests.engine.bench import Bench
from tests.engine.running import (
    INPUTS,
    OUTPUTS,
    PROGRAM,
    Job,
    Running,
    difference,
    make_job,
    parts_in,
    wait_for,
)

BATCHES = 30
ROWS = 40
#: As docs/checkpoints.md names them.
KEYS = {
    "seconds", "batch", "batch_seconds", "read", "processed", "waiting", "late", "rejected",
    "conserved", "written", "batch_read", "batch_written", "time", "lag", "state_bytes",
}  # fmt: skip


@pytest.fixture
def job(engine: str, tmp_path: Path) -> Iterator[Job]:
    made = make_job(
        tmp_path, "folder", files=BATCHES, rows=ROWS, batch_bytes=700, seed=1, engine=engine
    )
    yield made
    made.close()


@pytest.fixture
def small_job(engine: str, tmp_path: Path) -> Job:
    return make_job(tmp_path, "folder", files=6, rows=ROWS, batch_bytes=700, seed=1, engine=engine)


LAYOUT = {"program": "output x;\n", "shape": "[]", "buckets": 4, "layout": {}}


def after_batches(job: Job, running: Running, count: int) -> None:
    wait_for("batches", lambda: len(job.batches()) >= count or running.is_over)
    assert not running.is_over, running.errors()


def ended_within(running: Running, seconds: float) -> int:
    """The exit status; a run that has ended leaves nothing behind."""
    started = time.monotonic()
    status = running.finish(seconds)
    wait_for("all processes to end", lambda: not running.left(), 5)
    assert time.monotonic() - started < seconds + 5
    return status


def check_progress(told: list[dict[str, Any]]) -> None:
    """One object for each batch, in order, and nothing lost between them."""
    assert told
    assert [KEYS] * len(told) == [set(one) for one in told]
    first = told[0]["batch"]
    assert list(range(first, first + len(told))) == [one["batch"] for one in told]
    assert all(one["conserved"] is True for one in told)
    for one in told:
        gone = one["processed"] + one["waiting"] + one["late"] + one["rejected"]
        assert one["read"] == gone
    for one, other in itertools.pairwise(told):
        assert other["read"] == one["read"] + other["batch_read"]
        assert other["written"] == one["written"] + other["batch_written"]
        assert other["time"] >= one["time"]


@pytest.mark.slow
def test_an_interrupted_run_finishes_its_batch_and_the_next_one_goes_on(job: Job) -> None:
    job.sinks = "file"  # a folder is refused to a second run even before the checkpoint is
    running = job.start("mid-task@3", hold=True, more=["--progress", "json"])
    wait_for("the batch", lambda: job.is_held() or running.is_over)
    second = job.start()
    assert 2 == second.finish()
    assert f"is in use by process {running.pid}" in second.errors()
    running.interrupt()
    time.sleep(0.5)
    job.let_go()
    assert 130 == ended_within(running, 10), running.errors()
    assert not (job.folder / job.place(job.kept, OUTPUTS[0])).exists()  # a file appears at the end
    done = job.batches()
    assert len(done) < BATCHES
    assert done == [one["batch"] for one in running.progress()]
    assert "Traceback" not in running.errors()
    last = job.start(more=["--progress", "json"]).succeed()
    check_progress([*running.progress(), *last.progress()])
    assert list(range(BATCHES)) == job.batches()
    assert not difference(job.expected(), job.outputs(job.kept))


@pytest.mark.slow
@pytest.mark.proof_on_spark
def test_a_second_interrupt_stops_at_once_and_loses_nothing(job: Job) -> None:
    running = job.start("mid-task@3", hold=True)
    wait_for("the batch", lambda: job.is_held() or running.is_over)
    running.interrupt()
    time.sleep(1)
    assert not running.is_over, running.errors()
    running.interrupt()
    assert 130 == ended_within(running, 5), running.errors()
    assert "Traceback" not in running.errors()
    assert [0, 1, 2] == job.batches()
    job.start().succeed()
    assert not difference(job.expected(), job.outputs(job.kept))


@pytest.mark.slow
@pytest.mark.proof_on_spark
def test_a_run_that_follows_ends_when_it_is_asked_to(job: Job) -> None:
    running = job.start(more=["--follow"])
    after_batches(job, running, BATCHES)
    running.process.send_signal(signal.SIGTERM)
    assert 0 == ended_within(running, 10), running.errors()
    assert "Traceback" not in running.errors()
    job.start().succeed()
    assert not difference(job.expected(), job.outputs(job.kept))


def run(job: Job, launched: dict[str, Any], stop_after: int | None = None, **options: Any) -> None:
    """Stopped after so many batches."""
    done = 0

    def count(_: Report) -> None:
        nonlocal done
        done += 1

    with pytest.raises(Stopped) if stop_after is not None else nullcontext():
        millstream.compile(job.folder / "job.brook").run(
            {name: parse_location(f"{name}/", job.folder) for name in INPUTS},
            options.pop("outputs"), checkpoint=job.checkpoint,
            batch_bytes=job.batch_bytes, progress=count, **launched, **options,
            stopped=lambda: stop_after is not None and done >= stop_after,
        )  # fmt: skip


def folders(job: Job) -> dict[str, str]:
    return {name: f"{job.folder}/{job.place(job.kept, name)}" for name in OUTPUTS}


@pytest.mark.parametrize("engine", [pytest.param("spark", marks=pytest.mark.spark)])
def test_another_number_of_partitions_keeps_the_results(spark: Any, job: Job) -> None:
    launched = {"engine": "spark", "session": spark}
    for partitions in (2, 3, 1, 4):
        run(job, launched, 5, partitions=partitions, snapshot_every=3, outputs=folders(job))
    run(job, launched, partitions=2, outputs=folders(job))
    assert not difference(job.expected(), job.outputs(job.kept))


@pytest.mark.spark
@pytest.mark.parametrize("first", ["local", "spark"])
def test_either_engine_takes_up_what_the_other_has_begun(
    first: str, spark: Any, tmp_path: Path
) -> None:
    """Also after a kill, with a batch planned and half computed."""
    job = make_job(tmp_path, "folder", files=12, rows=ROWS, batch_bytes=700, seed=2, engine="local")
    local = {"engine": "local"}
    on_spark = {"engine": "spark", "session": spark, "partitions": 2}
    if first == "spark":
        run(job, on_spark, 2, outputs=folders(job), snapshot_every=3)
    killed_run = job.start(f"mid-task@{len(job.batches()) + 2}")
    assert -signal.SIGKILL == killed_run.finish(), killed_run.errors()
    for launched in (on_spark, local):
        run(job, launched, 2, outputs=folders(job), snapshot_every=3)
    run(job, on_spark, outputs=folders(job))
    assert not difference(job.expected(), job.outputs(job.kept))
    job.close()


TWO_STAGES = """
output counts;
input in(k text, x integer);
variable $s(x integer = 0);
variable $n(n integer = 0);
(sums, $s)   <- Fold[by k; set $s.x = $s.x + x; emit k, x = $s.x](in, $s);
(counts, $n) <- Fold[by x; set $n.n = $n.n + 1; emit k, x, n = $n.n](sums, $n);
"""


def bench(folder: Path, checkpoint: str, partitions: int) -> Bench:
    """A job whose workers remember nothing, taken up as a run takes it up."""
    job = Bench(
        load(Source("test.brook", TWO_STAGES)), {"in": parse_location("csv:in/*.csv", folder)},
        folder / checkpoint, partitions=partitions, snapshot_every=4, forgets=True,
    )  # fmt: skip
    job.checkpoint.take_up(len(job.layout.stages), job.last)
    return job


def begin_batch(job: Bench) -> None:
    """All of a batch but its manifest: killed before the end."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tests.engine.bench.write_manifest", killed)
        with pytest.raises(KeyboardInterrupt):
            job.batch()


def killed(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("seed", range(3))
def test_a_batch_may_be_begun_with_one_number_of_partitions_and_ended_with_another(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("millstream.engine.storage.files.LocalFiles.small", 0)  # all in files
    generator = random.Random(seed)
    (tmp_path / "in").mkdir()
    found: list[Any] = []
    for number in range(20):
        rows = "".join(f"{t},k{t % 7},{t}\n" for t in range(number * 10, number * 10 + 10))
        (tmp_path / "in" / f"{number:03}.csv").write_text("_time,k,x\n" + rows)
        if generator.random() < 0.5:
            begin_batch(bench(tmp_path, "checkpoint", generator.randint(1, 4)))
        job = bench(tmp_path, "checkpoint", generator.randint(1, 4))
        assert job.batch()
        found += job.sinks["counts"].rows()
    whole = bench(tmp_path, "whole", 2)
    assert whole.batch()
    assert whole.sinks["counts"].rows() == found


def test_an_output_that_is_seldom_written_does_not_hold_a_job_up(
    launched: dict[str, Any], tmp_path: Path
) -> None:
    """Its folder knows of a batch without rows, long after the results of others are gone."""
    program = """
        output all, rare; input in(x integer);
        (all, b) <- Duplicate(in);
        (rare) <- Filter[x % 1000 == 3](b);
    """
    (tmp_path / "in").mkdir()
    compiled = millstream.compile(text=program)
    options: dict[str, Any] = {
        **launched, "snapshot_every": 2, "checkpoint": tmp_path / "checkpoint", "batch_bytes": 10,
    }  # fmt: skip
    outputs = {name: f"{tmp_path / name}/" for name in ("all", "rare")}
    for first in (0, 12):
        for n in range(first, first + 12):
            (tmp_path / "in" / f"{n:02}.csv").write_text(f"_time,x\n{n},{n}\n")
        compiled.run({"in": parse_location("in/", tmp_path)}, outputs, **options)
    rows = [row["x"] for part in parts_in(tmp_path / "all").values() for row in part]
    assert list(range(24)) == rows
    assert [[3]] == [[r["x"] for r in part] for part in parts_in(tmp_path / "rare").values()]


def test_another_program_is_refused_and_rebuild_takes_it(
    launched: dict[str, Any], small_job: Job
) -> None:
    run(small_job, launched, 3, outputs=folders(small_job))
    text = PROGRAM.replace("Range[50 us]", "Range[70 us]")
    (small_job.folder / "job.brook").write_text(text)
    with pytest.raises(
        PlanError, match=r"made by another program: now there is .*70 us"
    ) as refusal:
        run(small_job, launched, outputs=folders(small_job))
    assert "--rebuild" in refusal.value.faults[0].render()
    run(small_job, launched, rebuild=True, outputs=folders(small_job))
    assert not difference(small_job.expected(), small_job.outputs(small_job.kept))


def remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


@pytest.mark.parametrize("lost", ["batches", "job"])
def test_a_checkpoint_that_has_lost_its_folders_is_noticed(
    lost: str, launched: dict[str, Any], small_job: Job
) -> None:
    run(small_job, launched, 3, outputs=folders(small_job))
    remove(small_job.checkpoint / lost)
    with pytest.raises(MillstreamError, match="is missing"):
        run(small_job, launched, outputs=folders(small_job))
    run(small_job, launched, rebuild=True, outputs=folders(small_job))
    assert not difference(small_job.expected(), small_job.outputs(small_job.kept))


def test_clearing_begins_with_what_makes_a_checkpoint_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = Checkpoint(tmp_path)
    checkpoint.open(LAYOUT, rebuild=False)
    checkpoint.files.write("batches/000000000", b"")
    checkpoint.close()
    monkeypatch.setattr("shutil.rmtree", killed)
    with pytest.raises(KeyboardInterrupt):
        checkpoint.open(LAYOUT, rebuild=True)
    checkpoint.close()
    assert not (tmp_path / "job").exists()


def test_a_second_run_on_the_same_checkpoint_is_refused(tmp_path: Path) -> None:
    first = Checkpoint(tmp_path)
    first.open(LAYOUT, rebuild=False)
    with pytest.raises(UsageError, match=f"in use by process {os.getpid()}"):
        Checkpoint(tmp_path).open(LAYOUT, rebuild=False)
    first.close()
