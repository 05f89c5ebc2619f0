"""`kill -9` of Python's workers in the middle of batches: Spark tries their tasks again."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from pathlib import Path
from typing import Any, Self

import pytest

import millstream
from millstream.connectors.location import parse_location
from tests.engine.running import (
    Process,
    difference,
    make_job,
    numbers_in,
    of_session,
    processes,
    wait_for,
    workers_among,
)
from tests.seeds import in_turn

pytestmark = pytest.mark.spark

PROGRAM = """
output sums;
input trades(symbol text, volume integer);
variable $n(n integer = 0);
(recent, $w)  <- Range[300 us](trades, $w);
(totals, $t)  <- Aggregate[by symbol; volume = sum(volume), n = count()](recent, $t);
(changes, $i) <- Istream(totals, $i);
(sums, $n)    <- Fold[set $n.n = $n.n + 1; emit symbol, volume, n, seen = $n.n](changes, $n);
"""
BATCHES = 6
ROWS = 10_000


def make_input(folder: Path) -> int:
    """Files of about the same size; answers the size of the largest."""
    generator = random.Random(5)
    (folder / "trades").mkdir()
    sizes = []
    for number in range(BATCHES):
        rows = (
            f"{number * ROWS + n},S{generator.randint(0, 30)},{generator.randint(0, 99)}\n"
            for n in range(ROWS)
        )
        path = folder / "trades" / f"{number}.csv"
        sizes.append(path.write_text("_time,symbol,volume\n" + "".join(rows)))
    return max(sizes)


def own_workers() -> list[Process]:
    """Processes that run tasks for the session of this process."""
    known = {p.pid: p for p in processes()}

    def is_ours(one: Process) -> bool:
        while one.parent in known:
            if one.parent == os.getpid():
                return True
            one = known[one.parent]
        return False

    return [p for p in workers_among(known.values()) if is_ours(p)]


class Killer:
    """Mutable: kills a worker in every batch, as soon as the batch has rows on their way."""

    def __init__(self, checkpoint: Path) -> None:
        self.checkpoint = checkpoint
        self.killed_in: list[int] = []
        self._random = random.Random(9)
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _run(self) -> None:
        for batch in range(BATCHES):
            while not self._is_over.is_set() and not self._is_running(batch):
                time.sleep(0.002)
            workers = own_workers()
            if workers and len(numbers_in(self.checkpoint / "batches")) == batch:
                os.kill(self._random.choice(workers).pid, signal.SIGKILL)
                self.killed_in.append(batch)

    def _is_running(self, batch: int) -> bool:
        return any((self.checkpoint / "exchange").glob(f"{batch:09}.in-*"))


def run(folder: Path, engine: str, **options: Any) -> list[Any]:
    compiled = millstream.compile(text=PROGRAM)
    inputs = {"trades": parse_location("trades/", folder)}
    return compiled.run(inputs, engine=engine, **options).rows("sums")


def test_workers_that_are_killed_in_every_batch_lose_and_repeat_nothing(
    spark: Any, tmp_path: Path
) -> None:
    size = make_input(tmp_path)
    checkpoint = tmp_path / "checkpoint"
    with Killer(checkpoint) as killer:
        found = run(
            tmp_path, "spark", session=spark, checkpoint=checkpoint, partitions=2,
            batch_bytes=size, snapshot_every=2,
        )  # fmt: skip
    assert list(range(BATCHES)) == numbers_in(checkpoint / "batches")
    assert len(killer.killed_in) >= BATCHES // 2, killer.killed_in
    assert run(tmp_path, "local") == found


@pytest.mark.slow
@pytest.mark.parametrize("point", in_turn(["mid-task@3", "after-state@4"]))
def test_workers_that_are_killed_at_a_point_lose_and_repeat_nothing(
    point: str, tmp_path: Path
) -> None:
    """Held at the point first, so that none of them has gone on."""
    job = make_job(tmp_path, "folder", files=6, rows=40, batch_bytes=700, seed=6)
    try:
        running = job.start(point, hold=True)
        wait_for("the point", lambda: job.is_held() or running.is_over)
        job.armed.unlink()  # those who come after them are let through
        held = workers_among(of_session(running.pid))
        assert held, running.errors()
        for worker in held:
            os.kill(worker.pid, signal.SIGKILL)
        running.succeed()
        assert not difference(job.expected(), job.outputs("spark"))
    finally:
        job.close()
