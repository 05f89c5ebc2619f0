"""Servers that are killed: nothing is lost, nothing doubled, and those who listen go on."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

import pytest

from tests.server.harness import Process, add_file, project, wait_until

SECOND = 1_000_000
ALL = {"rows": ["kind", "shop"], "grain": "Second", "measures": ["n", "total", "most"]}
CONF = """
Dimensions = product, kind | shop
TimeGrain = Second
CWindow = 1000
MVertices = kind | shop
OutputVertices = all
Measures = total: sum(amount), n: count(), most: max(amount)
"""


def rows_of(number: int, rng: random.Random) -> list[tuple[Any, ...]]:
    """The rows of a second, the last of them at its end so that all before it are complete."""
    count = rng.randrange(1, 30)
    inside = sorted(rng.randrange(SECOND - 1) for _ in range(count))
    return [
        (number * SECOND + t, rng.choice("pqr"), rng.choice("kl"), rng.randrange(3),
         rng.randrange(100))
        for t in (*inside, SECOND - 1)
    ]  # fmt: skip


def expected(files: list[list[tuple[Any, ...]]]) -> dict[tuple[Any, ...], tuple[int, int, int]]:
    """The cells of all rows but those of the last instant, which may go on."""
    last = files[-1][-1][0]
    made: dict[tuple[Any, ...], tuple[int, int, int]] = {}
    for time_, _, kind, shop, amount in (row for rows in files for row in rows):
        if time_ < last:
            key = kind, shop, time_ // SECOND
            n, total, most = made.get(key, (0, 0, -1))
            made[key] = n + 1, total + amount, max(most, amount)
    return made


def shown(answer: Any) -> dict[tuple[Any, ...], tuple[int, int, int]]:
    cells = answer["cells"]
    made = {
        (c["kind"], c["shop"], 60 * int(c["time"][14:16]) + int(c["time"][17:19])): (
            c["n"], c["total"], c["most"])
        for c in cells
    }  # fmt: skip
    assert len(made) == len(cells)
    return made


def version_of(server: Process) -> int:
    """What can be asked for; -2 while the state of the run before is taken up."""
    status = server.client.get("/status").json()
    return int(status["versions"]["Sales_cube"]) if status["status"] == "running" else -2


def kill_often(folder: Path, kills: int, seed: int, *engine: str, patience: float = 60) -> None:
    """Some servers are killed as they start, others when they have gone on for a while."""
    rng = random.Random(seed)
    files = [rows_of(0, rng)]
    project(folder, files[0], CONF)
    server = Process(folder, "--follow", *engine)
    try:
        for _ in range(kills):
            is_early = rng.random() < 0.2
            before = -2
            if not is_early:
                wait_until(lambda of=server: version_of(of) > -2, patience)
                before = version_of(server)
            for _ in range(rng.randrange(1, 6)):
                files.append(rows_of(len(files), rng))
                add_file(folder, f"{len(files):03}.csv", files[-1])
                time.sleep(rng.random() * 0.15)
            if not is_early:
                wait_until(lambda of=server, was=before: version_of(of) > was, patience)
            time.sleep(rng.random() * 0.5)
            server.kill()
            server = Process(folder, "--follow", *engine)
        want = expected(files)
        wait_until(
            lambda: (made := server.ask("Sales_cube", ALL)) and shown(made) == want, patience
        )
        status = server.client.get("/status").json()
        counts = status["inputs"]["Sales"]
        assert counts["read"] == sum(map(len, files)) and counts["conserved"]
        assert server.stop() == 0
    finally:
        server.process.kill()


@pytest.mark.slow
def test_a_few_kills_lose_and_double_nothing(tmp_path: Path) -> None:
    kill_often(tmp_path, 3, 1)


@pytest.mark.proof
def test_twenty_kills_lose_and_double_nothing(tmp_path: Path) -> None:
    kill_often(tmp_path, 20, 2)


@pytest.mark.proof
@pytest.mark.spark
def test_twenty_kills_of_the_driver_lose_and_double_nothing(tmp_path: Path) -> None:
    kill_often(tmp_path, 20, 3, "--engine", "spark", patience=600)


def test_a_second_server_on_the_same_checkpoint_says_who_has_it(tmp_path: Path) -> None:
    project(tmp_path, [(1, "p", "k", 1, 1)])
    first = Process(tmp_path, "--follow")
    try:
        wait_until(lambda: first.client.get("/status").json()["status"] == "running")
        second = Process(tmp_path, "--follow")
        assert second.process.wait(60) != 0
        assert second.process.stderr is not None
        assert f"in use by process {first.process.pid}" in second.process.stderr.read()
        second.kill()
    finally:
        assert first.stop() == 0
