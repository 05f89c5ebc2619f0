"""Brokers that are killed: what was acknowledged is there once, and subscribers go on."""

from __future__ import annotations

import random
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.server.broker_harness import TEXT, Process, events, lines
from tests.server.harness import wait_until


class Follower:
    """Mutable: follows a view through all restarts by its token, in a thread of its own."""

    def __init__(self) -> None:
        self.token: str | None = None
        self.rows: dict[tuple[Any, ...], int] = {}
        self.resets = 0

    def follow(self, client: httpx.Client) -> threading.Thread:
        thread = threading.Thread(target=self._follow, args=(client,), daemon=True)
        thread.start()
        return thread

    def _follow(self, client: httpx.Client) -> None:
        headers = {"Last-Event-ID": self.token} if self.token else {}
        try:
            with events(client, "/views/Sold/changes", headers=headers) as told:
                for kind, token, data in told:
                    self._hear(kind, data)
                    self.token = token
        except (httpx.HTTPError, AssertionError):
            return  # the broker is gone, or not quite there

    def _hear(self, kind: str, data: Any) -> None:
        if kind == "reset":
            self.resets += 1
            self.rows = {}
        for row in data.get("rows", ()):
            self._add(row, 1)
        for change in data.get("changes", ()):
            self._add(change["row"], change["weight"])

    def _add(self, row: dict[str, Any], weight: int) -> None:
        key = tuple(row.items())
        self.rows[key] = self.rows.get(key, 0) + weight
        if not self.rows[key]:
            del self.rows[key]


def started(file: Path) -> Process:
    """A broker whose views are there."""
    server = Process(file)
    wait_until(lambda: server.client.get("/views/Sold").status_code == 200)
    return server


def kill_often(folder: Path, kills: int, seed: int) -> None:
    chance = random.Random(seed)
    file = folder / "sales.smile"
    file.write_text(TEXT)
    server = started(file)
    follower = Follower()
    thread = follower.follow(server.client)
    acknowledged: dict[int, int] = {}
    sequence = 0
    try:
        for _ in range(kills):
            timer = threading.Timer(chance.random() * 0.4, server.kill)
            timer.start()
            while server.process.poll() is None:
                rows = [{"t": 100 * sequence + n + 1, "b": n, "sold": 1} for n in range(3)]
                try:
                    path = f"/streams/M?publisher=p&sequence={sequence}"
                    reply = server.client.post(path, content=lines(*rows))
                except (httpx.HTTPError, RuntimeError):
                    break  # nobody knows whether it is there: it is sent again
                assert {r["fate"] for r in reply.json()["rows"]} <= {"accepted", "duplicate"}
                acknowledged[sequence] = reply.json()["position"]
                sequence += 1
            timer.join()
            thread.join(20)
            server = started(file)
            thread = follower.follow(server.client)
        batches = len(acknowledged)
        position = server.client.get("/status").json()["position"]
        assert len(set(acknowledged.values())) == batches and position in (batches + 1, batches + 2)

        def is_there() -> bool:
            rows = server.client.get("/views/Sold").json()["rows"]
            told = {tuple(row.items()) for row in rows}
            counts = {row["n"] for row in rows}
            return counts == {position - 1} and set(follower.rows) == told

        wait_until(is_there, 60)
        assert server.stop() == 0
    finally:
        server.process.kill()


@pytest.mark.slow
def test_a_few_kills_lose_and_double_nothing(tmp_path: Path) -> None:
    kill_often(tmp_path, 5, 1)


@pytest.mark.proof
@pytest.mark.parametrize("seed", [2, 3])
def test_twenty_kills_lose_and_double_nothing(tmp_path: Path, seed: int) -> None:
    kill_often(tmp_path, 20, seed)


def test_a_second_broker_on_the_same_log_says_who_has_it(tmp_path: Path) -> None:
    file = tmp_path / "sales.smile"
    file.write_text(TEXT)
    first = Process(file)
    try:
        with pytest.raises(AssertionError, match=f"in use by process {first.process.pid}"):
            Process(file)
    finally:
        assert first.stop() == 0
