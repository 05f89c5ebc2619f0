"""The driver of the paper: bidders and a matcher, in a process of its own.

    MILLSTREAM_TOKEN=... python smile_market.py SECONDS BUYS SELLS MATCHES FLOOR

with the addresses of the brokers that have these streams and the view Matchable, or with that of
one PostgreSQL database instead of the four. Bidders publish as fast as the matcher lets them; it
trades what it hears of, and publishes the matches. For each buy there is a sell like it, so that
all bids are satisfied in the end. Prints how many matches were acknowledged a second, without those
of the first seconds.
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
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Protocol

ISSUES, PRICES = 50, 20
#: So many bids are published at once, and so many of each side may be open.
BATCH, OPEN = 200, 1_000
#: What is not counted yet, in seconds.
BEGINNING = 3.0
#: So many pairs a database is asked for at once, and so long is waited if there is none.
PAIRS, PAUSE = 1_000, 0.001

Rows = list[dict[str, Any]]
Publish = Callable[[str, Rows], int]


class Place(Protocol):
    """Where bids and matches go, and where pairs come from."""

    def publisher(self, stream: str) -> Publish:
        """Publishes rows of a stream, and says how many were acknowledged."""
        ...

    def pairs(self) -> Iterator[Rows]:
        """Pairs that can be matched, as they are heard of."""
        ...


class Brokers:
    """One broker or several, by the addresses of what they have."""

    def __init__(self, addresses: list[str], token: str) -> None:
        self.addresses = dict(zip(("BuyBids", "SellBids", "Matches", "Matchable"), addresses))  # noqa: B905
        self.headers = {"Authorization": f"Bearer {token}"}

    def connection(self, what: str) -> http.client.HTTPConnection:
        host, _, port = self.addresses[what].removeprefix("http://").partition(":")
        return http.client.HTTPConnection(host, int(port), timeout=60)

    def publisher(self, stream: str) -> Publish:
        connection = self.connection(stream)

        def publish(stream: str, rows: Rows) -> int:
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

        return publish

    def pairs(self) -> Iterator[Rows]:
        connection = self.connection("Matchable")
        connection.request("GET", "/views/Matchable/changes", headers=self.headers)
        reply = connection.getresponse()
        assert reply.status == 200, reply.read()
        while line := reply.readline():
            if line.startswith(b"data: "):
                data = json.loads(line[6:])
                rows = [c["row"] for c in data.get("changes", ()) if c["weight"] > 0]
                yield [*rows, *data.get("rows", ())]


class Database:
    """Tables with triggers, and a view that is asked for again and again."""

    _BID = "(issue, price, bid) VALUES (%(issue)s, %(price)s, %(#bid)s)"
    INSERTS: Mapping[str, str] = MappingProxyType({
        "BuyBids": f"INSERT INTO buybids {_BID}",
        "SellBids": f"INSERT INTO sellbids {_BID}",
        "Matches": "INSERT INTO matches (buyid, sellid, traded) "
                   "VALUES (%(buyid)s, %(sellid)s, %(#traded)s)",
    })  # fmt: skip

    def __init__(self, address: str) -> None:
        self.address = address

    def connection(self) -> Any:
        import psycopg

        return psycopg.connect(self.address)

    def publisher(self, stream: str) -> Publish:
        connection = self.connection()

        def publish(stream: str, rows: Rows) -> int:
            with connection.cursor() as cursor:
                cursor.executemany(self.INSERTS[stream], rows)
            connection.commit()
            return len(rows)

        return publish

    def pairs(self) -> Iterator[Rows]:
        connection = self.connection()
        names = ("buyid", "sellid", "buyremaining", "sellremaining")
        while True:
            found = connection.execute(
                f"SELECT {', '.join(names)} FROM matchable LIMIT {PAIRS}"  # noqa: S608
            ).fetchall()
            connection.commit()
            if not found:
                time.sleep(PAUSE)
            yield [dict(zip(names, row, strict=True)) for row in found]


class Market:
    """Mutable: what is left of all bids, as the matcher knows it."""

    def __init__(self, place: Place, *, is_asked: bool) -> None:
        self.place = place
        #: Whether the matcher asks again, and so must have published what it has traded.
        self.is_asked = is_asked
        self.left: dict[int, int] = {}
        #: Bids that were acknowledged and are not satisfied; those who wait for fewer.
        self.open = {"BuyBids": 0, "SellBids": 0}
        self.fewer = threading.Condition()
        self.trades: queue.SimpleQueue[Rows] = queue.SimpleQueue()
        self.is_over = threading.Event()
        self.begun = time.perf_counter()
        #: Matches that were acknowledged: when, and how many.
        self.done: deque[tuple[float, int]] = deque()
        self.rows = 0

    def bid(self, stream: str) -> None:
        """Both sides bid the same, in another order."""
        chance, publish = random.Random(1), self.place.publisher(stream)
        order = random.Random(stream)
        while not self.is_over.is_set():
            with self.fewer:
                self.fewer.wait_for(lambda: self.open[stream] < OPEN or self.is_over.is_set(), 1)
                if self.open[stream] >= OPEN:
                    continue
                self.open[stream] += BATCH
            rows = [
                {"issue": f"I{chance.randrange(ISSUES)}", "price": chance.randrange(PRICES),
                 "#bid": chance.randint(1, 1000)}
                for _ in range(BATCH)
            ]  # fmt: skip
            order.shuffle(rows)
            publish(stream, rows)

    def match(self) -> None:
        """Trade every pair when it is first heard of: then nothing is left of one of the two."""
        publish = self.place.publisher("Matches")
        for rows in self.place.pairs():
            if self.is_over.is_set():
                return
            self.rows += len(rows)
            if trades := self.traded(rows):
                if self.is_asked:
                    self.settled(publish, trades)
                else:
                    self.trades.put(trades)

    def traded(self, rows: Rows) -> Rows:
        left = self.left
        made: Rows = []
        satisfied = {"BuyBids": 0, "SellBids": 0}
        for row in rows:
            buy, sell = row["buyid"], row["sellid"]
            shares = min(
                left.setdefault(buy, row["buyremaining"]),
                left.setdefault(-sell, row["sellremaining"]),
            )
            if shares > 0:
                left[buy] -= shares
                left[-sell] -= shares
                satisfied["BuyBids"] += left[buy] == 0
                satisfied["SellBids"] += left[-sell] == 0
                made.append({"buyid": buy, "sellid": sell, "#traded": shares})
        with self.fewer:
            for stream, count in satisfied.items():
                self.open[stream] -= count
            self.fewer.notify_all()
        return made

    def settled(self, publish: Publish, trades: Rows) -> None:
        count = publish("Matches", trades)
        self.done.append((time.perf_counter() - self.begun, count))

    def settle(self) -> None:
        publish = self.place.publisher("Matches")
        while not self.is_over.is_set():
            try:
                trades = self.trades.get(timeout=0.2)
            except queue.Empty:
                continue
            while not self.trades.empty():
                trades += self.trades.get()
            self.settled(publish, trades)

    def run(self, seconds: float) -> dict[str, float]:
        work = [(self.bid, "BuyBids"), (self.bid, "SellBids"), (self.match,), (self.settle,)]
        threads = [threading.Thread(target=one[0], args=one[1:], daemon=True) for one in work]
        for thread in threads:
            thread.start()
        time.sleep(seconds)
        self.is_over.set()
        counted = sum(n for at, n in self.done if BEGINNING <= at < seconds)
        return {"matches/s": round(counted / (seconds - BEGINNING), 1), "matches": counted,
                "rows": self.rows, "open": sum(self.open.values()),
                "driver's s": round(time.process_time(), 1)}  # fmt: skip


if __name__ == "__main__":
    is_database = len(sys.argv) == 3
    place: Place = (Database(sys.argv[2]) if is_database
                    else Brokers(sys.argv[2:], os.environ["MILLSTREAM_TOKEN"]))  # fmt: skip
    print(json.dumps(Market(place, is_asked=is_database).run(float(sys.argv[1]))), flush=True)
