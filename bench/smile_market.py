"""The driver of the paper: bidders and a matcher, in a process of its own.

    MILLSTREAM_TOKEN=... python smile_market.py SECONDS BUYS SELLS MATCHES FLOOR

with the addresses of the brokers that have these streams and the view Matchable. Bidders publish
as fast as the matcher lets them; it trades what it hears of, and publishes the matches. Prints how
many matches were acknowledged a second, without those of the first seconds.
"""

from __future__ import annotations

import http.client
import json
import os
import queue
import random
import sys
import threading
import time
from collections import deque
from typing import Any

ISSUES, PRICES = 50, 20
#: So many bids are published at once, and so many may be open.
BATCH, OPEN = 200, 2_000
#: What is not counted yet, in seconds.
BEGINNING = 3.0


class Market:
    """Mutable: what is left of all bids, as the matcher knows it."""

    def __init__(self, places: dict[str, str], token: str) -> None:
        self.places = places
        self.headers = {"Authorization": f"Bearer {token}"}
        self.left: dict[int, int] = {}
        #: Bids that were acknowledged and are not satisfied; those who wait for fewer.
        self.open = 0
        self.fewer = threading.Condition()
        self.trades: queue.SimpleQueue[list[dict[str, int]]] = queue.SimpleQueue()
        self.is_over = threading.Event()
        self.begun = time.perf_counter()
        #: Matches that were acknowledged: when, and how many.
        self.done: deque[tuple[float, int]] = deque()
        self.rows = 0

    def connection(self, what: str) -> http.client.HTTPConnection:
        host, _, port = self.places[what].removeprefix("http://").partition(":")
        return http.client.HTTPConnection(host, int(port), timeout=60)

    def publish(self, connection: http.client.HTTPConnection, stream: str, rows: list[Any]) -> int:
        body = b"\n".join([json.dumps(row).encode() for row in rows])
        while True:
            connection.request("POST", f"/streams/{stream}", body, self.headers)
            reply = connection.getresponse()
            said = reply.read()
            if reply.status == 200:
                accepted = said.count(b'"accepted"')
                assert accepted == len(rows), said[:500]
                return accepted
            assert reply.status in (429, 503), said
            time.sleep(0.1)

    def bid(self, stream: str, seed: int) -> None:
        chance, connection = random.Random(seed), self.connection(stream)
        while not self.is_over.is_set():
            with self.fewer:
                self.fewer.wait_for(lambda: self.open < OPEN or self.is_over.is_set(), 1)
                if self.open >= OPEN:
                    continue
                self.open += BATCH
            self.publish(connection, stream, [
                {"issue": f"I{chance.randrange(ISSUES)}", "price": chance.randrange(PRICES),
                 "#bid": chance.randint(1, 1000)}
                for _ in range(BATCH)
            ])  # fmt: skip

    def match(self) -> None:
        """Trade every pair when it is first heard of: then nothing is left of one of the two."""
        connection = self.connection("Matchable")
        connection.request("GET", "/views/Matchable/changes", headers=self.headers)
        reply = connection.getresponse()
        assert reply.status == 200, reply.read()
        while line := reply.readline():
            if self.is_over.is_set():
                return
            if line.startswith(b"data: "):
                data = json.loads(line[6:])
                rows = [c["row"] for c in data.get("changes", ()) if c["weight"] > 0]
                self.rows += len(rows)
                if trades := self.traded([*rows, *data.get("rows", ())]):
                    self.trades.put(trades)

    def traded(self, rows: list[dict[str, Any]]) -> list[dict[str, int]]:
        left, made, satisfied = self.left, [], 0
        for row in rows:
            buy, sell = row["buyid"], row["sellid"]
            shares = min(
                left.setdefault(buy, row["buyremaining"]),
                left.setdefault(-sell, row["sellremaining"]),
            )
            if shares > 0:
                left[buy] -= shares
                left[-sell] -= shares
                satisfied += (left[buy] == 0) + (left[-sell] == 0)
                made.append({"buyid": buy, "sellid": sell, "#traded": shares})
        with self.fewer:
            self.open -= satisfied
            self.fewer.notify_all()
        return made

    def settle(self) -> None:
        connection = self.connection("Matches")
        while not self.is_over.is_set():
            try:
                trades = self.trades.get(timeout=0.2)
            except queue.Empty:
                continue
            while not self.trades.empty():
                trades += self.trades.get()
            count = self.publish(connection, "Matches", trades)
            self.done.append((time.perf_counter() - self.begun, count))

    def run(self, seconds: float) -> dict[str, float]:
        work = [(self.bid, "BuyBids", 1), (self.bid, "SellBids", 2), (self.match,), (self.settle,)]
        threads = [threading.Thread(target=one[0], args=one[1:], daemon=True) for one in work]
        for thread in threads:
            thread.start()
        time.sleep(seconds)
        self.is_over.set()
        counted = sum(n for at, n in self.done if BEGINNING <= at < seconds)
        return {"matches/s": round(counted / (seconds - BEGINNING), 1), "matches": counted,
                "rows": self.rows, "open": self.open, "processor": time.process_time()}  # fmt: skip


if __name__ == "__main__":
    names = ("BuyBids", "SellBids", "Matches", "Matchable")
    market = Market(dict(zip(names, sys.argv[2:], strict=True)), os.environ["MILLSTREAM_TOKEN"])
    print(json.dumps(market.run(float(sys.argv[1]))), flush=True)
