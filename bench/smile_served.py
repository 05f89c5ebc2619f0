"""A broker in a process of its own, those who publish to it and one who listens, for benchmarks."""

from __future__ import annotations

import http.client
import itertools
import json
import os
import random
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from millstream.broker.core import Broker, Given, Publish
from millstream.broker.env import Env, FolderDisk, MachineClock
from millstream.languages.smile.served import load_served
from millstream.source import Source

ISSUES, PRICES = 50, 20
TOKEN = "token-of-benchmarks"  # noqa: S105 - of brokers that live for a minute
TRADE_FLOOR = Path(__file__).parents[1] / "examples/smile/trade_floor/trade_floor.smile"


class Served:
    """Mutable: `millstream serve` on a port of its own, with a log in a folder.

    It is started again where it was, with the tokens it had.
    """

    def __init__(self, folder: Path, *more: str) -> None:
        self.command = [sys.executable, "-m", "millstream", "serve", str(TRADE_FLOOR),
                        "--checkpoint", str(folder), *more]  # fmt: skip
        tokens = folder / "tokens"
        tokens.touch(0o600)
        tokens.write_text(f"{TOKEN} read, publish, admin\n")
        self.command += ["--tokens", str(tokens)]
        self.headers = {"Authorization": f"Bearer {TOKEN}"}
        self.start(0)

    def start(self, port: int) -> None:
        self.started = time.perf_counter()
        self.process = subprocess.Popen(  # noqa: S603 - our own command
            [*self.command, "--port", str(port)], stderr=subprocess.PIPE, text=True, env=os.environ
        )
        assert self.process.stderr is not None
        found = re.search(r":(\d+)$", self.process.stderr.readline().strip())
        assert found is not None
        self.port = int(found[1])

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)

    def ask(self, connection: http.client.HTTPConnection, method: str, path: str,
            body: bytes | None = None) -> tuple[int, bytes]:  # fmt: skip
        connection.request(method, path, body, self.headers)
        reply = connection.getresponse()
        return reply.status, reply.read()

    def publish(
        self, connection: http.client.HTTPConnection, stream: str, rows: list[Any]
    ) -> list[dict[str, Any]]:
        body = b"\n".join(json.dumps(row).encode() for row in rows)
        status, said = self.ask(connection, "POST", f"/streams/{stream}", body)
        assert status == 200, said
        fates: list[dict[str, Any]] = json.loads(said)["rows"]
        return fates

    def status(self) -> dict[str, Any]:
        made: dict[str, Any] = json.loads(self.ask(self.connection(), "GET", "/status")[1])
        return made

    def wait_until_compiled(self, seconds: float = 300) -> None:
        end = time.perf_counter() + seconds
        while self.status()["views"] != "compiled":
            assert time.perf_counter() < end
            time.sleep(0.1)

    def events(self, view: str) -> Iterator[tuple[str, dict[str, Any]]]:
        connection = self.connection()
        connection.request("GET", f"/views/{view}/changes", headers=self.headers)
        reply = connection.getresponse()
        assert reply.status == 200, reply.read()
        kind = ""
        while line := reply.readline():
            name, _, value = line.decode().rstrip("\n").partition(": ")
            if name == "event":
                kind = value
            elif name == "data":
                yield kind, json.loads(value)

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(60)
        assert self.process.stderr is not None
        self.process.stderr.close()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(60)
        assert self.process.stderr is not None
        self.process.stderr.close()


def bids(count: int, seed: int) -> list[dict[str, Any]]:
    chance = random.Random(seed)
    return [
        {"issue": f"I{chance.randrange(ISSUES)}", "price": chance.randrange(PRICES),
         "#bid": chance.randint(1, 1000)}
        for _ in range(count)
    ]  # fmt: skip


def seconds_to_subscriber(served: Served, events: int, rate: int, batch: int) -> list[float]:
    """For each bid how long it took from when it was to be sent until a subscriber had it."""
    sent: dict[int, float] = {}
    heard: dict[int, float] = {}
    is_live, is_over = threading.Event(), threading.Event()

    def listen() -> None:
        for kind, data in served.events("RemainingBuy"):
            now = time.perf_counter()
            if kind == "live":
                is_live.set()
            for change in data.get("changes", ()):
                if change["weight"] > 0:
                    heard.setdefault(change["row"]["buyid"], now)
            if len(heard) >= events:
                break
        is_over.set()

    threading.Thread(target=listen, daemon=True).start()
    assert is_live.wait(60)
    numbers = itertools.count()
    begin = time.perf_counter() + 0.2

    def publish() -> None:
        connection = served.connection()
        while (number := next(numbers)) * batch < events:
            due = begin + number * batch / rate
            time.sleep(max(0.0, due - time.perf_counter()))
            for fate in served.publish(connection, "BuyBids", bids(batch, number)):
                sent[fate["tick"]] = due

    publishers = [threading.Thread(target=publish) for _ in range(8)]
    for one in publishers:
        one.start()
    for one in publishers:
        one.join()
    assert is_over.wait(60)
    return sorted(heard[tick] - sent[tick] for tick in sent)


def trades(events: int, open_bids: int) -> Iterator[tuple[str, list[tuple[Any, ...]]]]:
    """Buys, sells and matches in batches of 1,000 rows; only the last bids stay open."""
    chance = random.Random(1)
    pairs, tick = events // 3, 1
    waiting: list[tuple[int, int, int]] = []
    for begin in range(0, pairs, 1000):
        buys, sells = [], []
        for _ in range(min(1000, pairs - begin)):
            issue, price = f"I{chance.randrange(ISSUES)}", chance.randrange(PRICES)
            count = chance.randint(1, 1000)
            buys.append((tick, issue, price, count))
            sells.append((tick, issue, price, count))
            waiting.append((tick, tick, count))
            tick += 1
        yield "BuyBids", buys
        yield "SellBids", sells
        done, waiting = waiting[: -(open_bids // 2)], waiting[-(open_bids // 2) :]
        if done:
            yield "Matches", [(tick + n, *one) for n, one in enumerate(done)]
            tick += len(done)


def write_log(folder: Path, events: int) -> None:
    """A log as a broker writes it."""
    served = load_served(Source("trade_floor", TRADE_FLOOR.read_text()))
    env = Env(FolderDisk(folder), MachineClock())
    broker = Broker(env, served)
    broker.open(is_evaluating=False)
    for number, (stream, rows) in enumerate(trades(events, 20_000), 1):
        given = tuple(Given(row) for row in rows)
        request = Publish(stream, given, bytes(16), "bench", number)
        broker.commit([request])
        broker.unseen.clear()
    env.disk.close()


def seconds_to_start(folder: Path) -> float:
    """Until a view answers; then a checkpoint is waited for, and the broker is killed."""
    served = Served(folder)
    try:
        while served.ask(served.connection(), "GET", "/views/RemainingBuy")[0] != 200:
            time.sleep(0.05)
        taken = time.perf_counter() - served.started
        served.publish(served.connection(), "BuyBids", bids(1, 1))
        end = time.perf_counter() + 60
        while not served.status()["checkpoint"]["position"] and time.perf_counter() < end:
            time.sleep(0.1)
        return taken
    finally:
        served.kill()
