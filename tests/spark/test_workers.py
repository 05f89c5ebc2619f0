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
from tests.spark.running import Process, numbers_in, processes

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


def make_input(folder: Path) -> None:
    generator = random.Random(5)
    (folder / "trades").mkdir()
    for number in range(BATCHES):
        rows = (
            f"{number * ROWS + n},S{generator.randint(0, 30)},{generator.randint(0, 99)}\n"
            for n in range(ROWS)
        )
        (folder / "trades" / f"{number}.csv").write_text("_time,symbol,volume\n" + "".join(rows))


def own_workers() -> list[Process]:
    """Processes that run tasks for the session of this process."""
    known = {p.pid: p for p in processes()}

    def is_ours(one: Process) -> bool:
        while one.parent in known:
            if one.parent == os.getpid():
                return True
            one = known[one.parent]
        return False

    return [
        p
        for p in known.values()
        if p.command.endswith("pyspark.worker ")
        and p.parent in known
        and p.command == known[p.parent].command
        and is_ours(p)
    ]


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
        return (self.checkpoint / "exchange" / f"{batch:09}.in-0").exists()


def run(folder: Path, engine: str, **options: Any) -> list[Any]:
    compiled = millstream.compile(text=PROGRAM)
    inputs = {"trades": parse_location("trades/", folder)}
    return compiled.run(inputs, engine=engine, **options).rows("sums")


def test_workers_that_are_killed_in_every_batch_lose_and_repeat_nothing(
    spark: Any, tmp_path: Path
) -> None:
    make_input(tmp_path)
    checkpoint = tmp_path / "checkpoint"
    with Killer(checkpoint) as killer:
        found = run(
            tmp_path, "spark", session=spark, checkpoint=checkpoint, partitions=2,
            batch_bytes=ROWS * 10, snapshot_every=2,
        )  # fmt: skip
    assert len(killer.killed_in) >= BATCHES - 2, killer.killed_in
    assert list(range(BATCHES)) == numbers_in(checkpoint / "batches")
    assert run(tmp_path, "local") == found
