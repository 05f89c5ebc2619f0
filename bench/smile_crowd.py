"""Thousands who listen to a broker: how long a bid takes to each, and how soon all are back."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import psutil

from millstream.client import Client
from smile_listeners import wanted
from smile_served import ISSUES, PRICES, TOKEN, Served, bids, write_log

RATE, SECONDS = 1_000, 10


class Listeners:
    """Mutable: a crowd in a process of its own."""

    def __init__(self, served: Served, count: int) -> None:
        program = Path(__file__).parent / "smile_listeners.py"
        self.count = count
        self.process = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, str(program), str(served.port), str(count)], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env={**os.environ, "MILLSTREAM_TOKEN": TOKEN},
        )  # fmt: skip

    def wait_until_live(self) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "live\n"

    def report(self) -> dict[str, Any]:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write("end\n")
        self.process.stdin.flush()
        made: dict[str, Any] = json.loads(self.process.stdout.readline())
        self.process.wait(60)
        return made

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(60)


def published(served: Served, seconds: float, rate: int, batch: int) -> list[dict[str, Any]]:
    """Bids at a rate, of which each has its time as its tick; those that were accepted."""
    made: list[dict[str, Any]] = []
    begin = time.time() + 0.2
    connection = served.connection()
    for number in range(int(seconds * rate) // batch):
        due = begin + number * batch / rate
        time.sleep(max(0.0, due - time.time()))
        tick = int(due * 1e6)
        rows = [{"buyid": tick + n, **one, "#bid": one["#bid"] + 10}
                for n, one in enumerate(bids(batch, number))]  # fmt: skip
        fates = served.publish(connection, "BuyBids", rows)
        assert all(fate["fate"] == "accepted" for fate in fates), fates
        made += rows
    return made


def misheard(heard: list[list[int]], rows: list[dict[str, Any]]) -> dict[str, int]:
    """How many have not heard all bids that they listen to, or others, or some more than once."""
    by_kind: dict[tuple[str, int], list[int]] = {}
    for row in rows:
        by_kind.setdefault((row["issue"], row["price"]), []).append(row["buyid"])
    missing = more = 0
    for number, some in enumerate(heard):
        issue, price, _ = wanted(number)
        left, right = Counter(some), Counter(by_kind.get((issue, price), []))
        missing += bool(right - left)
        more += bool(left - right)
    return {"missing some": missing, "hearing more": more}


def memory(served: Served) -> int:
    return int(psutil.Process(served.process.pid).memory_info().rss)


def at_parts(waits: list[float]) -> dict[str, float]:
    """The wait that half of them, and all but some, have not exceeded."""
    parts = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999, "last": 1.0}
    ordered = sorted(waits)
    last = len(ordered) - 1
    return {n: round(ordered[min(int(len(ordered) * p), last)], 3) for n, p in parts.items()}


def crowd(scale: float) -> list[dict[str, Any]]:
    """Seconds from when a bid is to be published until each who listens for it has it.

    10,000 subscribers with a filter each, in a process of their own; 1,000 bids a second in batches
    of 10, of which ten subscribers hear each. Then what each has heard is compared with what was
    published. Memory is that of the broker for each of them, and the bars are 1 s and 100 kB.
    """
    count = int(10_000 * scale)
    with tempfile.TemporaryDirectory() as folder:
        served = Served(Path(folder))
        try:
            served.wait_until_compiled()
            published(served, 1, 100, 10)
            before, begun = memory(served), time.time()
            listeners = Listeners(served, count)
            try:
                listeners.wait_until_live()
                live = time.time() - begun
                each = (memory(served) - before) / count
                rows = published(served, SECONDS, RATE, 10)
                time.sleep(3)
                told = listeners.report()
            finally:
                listeners.kill()
        finally:
            served.stop()
    return [{
        "subscribers": count, "bids": len(rows), "deliveries": len(told["waits"]),
        **at_parts(told["waits"]), "kB each": round(each / 1000, 1),
        **misheard(told["bids"], rows), "all live s": round(live, 1),
        "crowd's s": round(told["processor"], 1),
    }]  # fmt: skip


def comeback(scale: float) -> list[dict[str, Any]]:
    """Seconds from a `kill -9` until 1,000 subscribers have heard all that was published since.

    The broker has a log of 100,000 events and is killed under load; it is started again at once.
    What was on its way is sent until it is acknowledged, and then a bid for each subscriber. The
    bar is 10 s.
    """
    count = int(1_000 * scale)
    with tempfile.TemporaryDirectory() as folder:
        write_log(Path(folder), 100_000)
        served = Served(Path(folder))
        try:
            served.wait_until_compiled()
            listeners = Listeners(served, count)
            try:
                listeners.wait_until_live()
                rows, killed = _published_over_a_kill(served)
                time.sleep(10)
                told = listeners.report()
            finally:
                listeners.kill()
        finally:
            served.stop()
    since = int(killed * 1e6)
    waits = [w for w, bid in zip(told["waits"], itertools.chain(*told["bids"]), strict=True)
             if bid >= since]  # fmt: skip
    return [{"subscribers": count, "heard of it": len(waits), **at_parts(waits),
             **misheard(told["bids"], rows), "resets": told["resets"],
             "live": told["live"]}]  # fmt: skip


def _published_over_a_kill(served: Served) -> tuple[list[dict[str, Any]], float]:
    """All bids, and when the broker was killed; those after it have this time as their tick."""
    rows: list[dict[str, Any]] = []
    killed = threading.Event()
    publisher = Client(f"http://127.0.0.1:{served.port}", TOKEN).publisher("desk")

    def publish() -> None:
        while not killed.is_set():
            tick = time.time_ns() // 1000
            some = [{"buyid": tick + n, **one, "#bid": one["#bid"] + 10}
                    for n, one in enumerate(bids(10, tick))]  # fmt: skip
            publisher.publish("BuyBids", some)
            rows.extend(some)

    thread = threading.Thread(target=publish)
    thread.start()
    time.sleep(2)
    killed.set()
    served.kill()
    moment = time.time()
    served.start(served.port)
    thread.join()
    last = [{"buyid": int(moment * 1e6) + n, "issue": f"I{n % ISSUES}", "price": n // ISSUES,
             "#bid": 1000} for n in range(ISSUES * PRICES)]  # fmt: skip
    publisher.publish("BuyBids", last)
    return rows + last, moment


BENCHMARKS = {"smile_crowd": crowd, "smile_comeback": comeback}
