"""What goes of the logs of several brokers: their views stay those of one that keeps everything."""

from __future__ import annotations

import random
from collections import deque

import pytest

from millstream.broker.core import Accepted, Broker
from millstream.broker.cutting import part_of
from millstream.broker.messages import Message
from millstream.broker.node import Node
from millstream.broker.placement import read_placement
from millstream.errors import UsageError
from millstream.languages.served import Always, WhileIn, WhileOpen
from millstream.source import Source
from tests.broker.test_retention import SAME
from tests.broker.world import Crash, CrashingDisk, SetClock, batch, opened, served
from tests.seeds import of_the_day

TEXT = """
    CREATE STREAM B (b: time -> k: integer, bid: shares) SLACK 30 MICROSECONDS;
    CREATE STREAM M (t: time -> b: time, sold: shares) SLACK 10 MICROSECONDS;
    CREATE STREAM V (v: time -> k: integer, n: shares) SLACK 10 MICROSECONDS;
    CREATE VIEW Sold (SELECT b, SUM(sold) AS total FROM M GROUP BY b);
    CREATE VIEW Rest (SELECT b, k, bid - total AS rest FROM B JOIN Sold USING (b) WHERE rest > 0);
    CREATE VIEW Hours (SELECT WINDOW(v, 30 MICROSECONDS) AS hour, k, SUM(n) AS n
                       FROM V GROUP BY hour, k);
    CREATE VIEW Busy (SELECT hour, k, n FROM Hours WHERE n > 3);
    CREATE VIEW Pairs (SELECT x.b AS one, y.b AS two FROM Rest AS x JOIN Rest AS y USING (k));
    subscriptions Rest WITH RANGES, Hours WITH RANGES, Busy, Pairs;
"""
BROKERS = """
[broker.bids]
address = "http://127.0.0.1:8101"
streams = ["B"]
views = ["Rest"]
[broker.sales]
address = "http://127.0.0.1:8102"
streams = ["M"]
[broker.visits]
address = "http://127.0.0.1:8103"
streams = ["V"]
views = ["Hours", "Busy"]
[broker.pairs]
address = "http://127.0.0.1:8104"
views = ["Pairs"]
"""
WHOLE = served(TEXT)
PLACEMENT = read_placement(Source("brokers.toml", BROKERS))
PARTS = {name: part_of(WHOLE, PLACEMENT, name) for name in PLACEMENT.brokers}
HOSTS = {"B": "bids", "M": "sales", "V": "visits"}


class Several:
    """Mutable: brokers that let go of their logs and are killed, beside one that does neither."""

    def __init__(self, seed: int) -> None:
        self.chance, self.clock = random.Random(seed), SetClock(10_000)
        self.whole = opened(WHOLE, CrashingDisk(), self.clock)
        self.disks = {name: CrashingDisk(seed + n) for n, name in enumerate(PARTS)}
        self.wires: deque[tuple[str, str, Message]] = deque()
        self.nodes: dict[str, Node] = {}
        self.gone = dict.fromkeys(PARTS, 0)
        self.tick = 100
        self.bids = [100]
        for name in PARTS:
            self.start(name)

    def start(self, name: str) -> None:
        while True:
            try:
                broker = opened(PARTS[name], self.disks[name], self.clock, segment=300, least=0)
                break
            except Crash:
                self.disks[name].restart()
        broker.retention.share = 1e9  # these logs are shorter than what stands in their place

        def send(to: str, message: Message) -> None:
            if self.chance.random() < 0.8:
                self.wires.append((name, to, message))

        self.nodes[name] = Node(broker, send)

    def broker(self, name: str) -> Broker:
        return self.nodes[name].broker

    def run(self, turns: int = 25) -> None:
        for sequence in range(1, turns + 1):
            self.publish(sequence)
            for _ in range(3):
                self.work(self.chance.choice(list(PARTS)))
            name = self.chance.choice(list(PARTS))
            try:
                self.maybe_fail(name)
            except Crash:
                self.restart(name)
        for _ in range(60):
            self.clock.time += 500_000
            for name in PARTS:
                self.work(name)
        self.check()

    def check(self) -> None:
        for name in PARTS:
            for view, rows in self.broker(name).views.items():
                if view in self.whole.views:
                    assert rows.rows == self.whole.views[view].rows, SAME

    def publish(self, sequence: int) -> None:
        stream, rows = self.chance.choice("BMV"), []
        for _ in range(self.chance.randrange(1, 5)):
            self.tick += self.chance.randrange(1, 9)
            k, n = self.chance.randrange(2), self.chance.randrange(6)
            if stream == "B":
                self.bids.append(self.tick)
            if stream == "M":
                k = self.chance.choice(self.bids[-8:])
            rows.append((self.tick, k, n))
        one = batch(stream, rows, "p", sequence)
        for broker in (self.broker(HOSTS[stream]), self.whole):
            (answer,) = broker.commit([one])
            assert isinstance(answer, Accepted)
            broker.evaluate()

    def work(self, name: str) -> None:
        for _ in range(len(self.wires)):
            sender, to, message = self.wires.popleft()
            self.nodes[to].hear(sender, message)
        node = self.nodes[name]
        requests = node.requests()
        node.broker.commit(requests)
        node.settle(requests)
        node.broker.evaluate()
        node.tell()

    def maybe_fail(self, name: str) -> None:
        disk, broker = self.disks[name], self.broker(name)
        if self.chance.random() < 0.3:
            disk.crash_at = disk.calls + self.chance.randrange(1, 4)
        frozen = broker.frozen()
        assert frozen is not None
        if self.chance.random() < 0.3:
            broker.soft_log.write(frozen, broker.log.size)
        broker.retain(frozen)
        self.gone[name] += broker.retention.gone > 0
        disk.crash_at = None
        if self.chance.random() < 0.3:
            self.restart(name)

    def restart(self, name: str) -> None:
        self.disks[name].restart()
        self.start(name)


@pytest.mark.parametrize("seed", range(3))
def test_what_goes_is_not_missed(seed: int) -> None:
    world = Several(seed)
    world.run()
    assert all(world.gone[name] for name in ("bids", "visits"))


@pytest.mark.proof
@pytest.mark.parametrize("start", of_the_day(range(100, 5_100, 5), days=50))
def test_what_goes_is_not_missed_at_length(start: int) -> None:
    for seed in range(start, start + 5):
        Several(seed).run(60)


def test_a_broker_keeps_what_others_may_need() -> None:
    assert PARTS["bids"].needs == {"B": (WhileIn("Rest", "b", "b", "B"),)}
    assert PARTS["visits"].needs == {"V": (WhileOpen(30),)}
    (need,) = PARTS["sales"].needs["M"]
    assert need == Always("Rest lives at the broker bids")


def test_a_view_that_comes_when_rows_are_gone_is_refused() -> None:
    world = Several(1)
    world.run()
    broker = world.broker("visits")
    assert broker.base is not None and broker.base.since["V"] > 0
    query = "SELECT WINDOW(v, 20 MICROSECONDS) AS h, SUM(n) AS n FROM V GROUP BY h"
    with pytest.raises(UsageError, match="Late would need rows that have gone"):
        broker.load({"Late": query})


def test_of_another_file_what_others_sent_is_asked_for_again() -> None:
    world = Several(2)
    world.run()
    base = world.broker("bids").base
    assert base is not None and base.held
    other = read_placement(Source("brokers.toml", BROKERS.replace('"Pairs"', "")))
    changed = part_of(WHOLE, other, "bids")
    assert not base.is_of(changed)
    assert base.knowledge_for(changed)["held"] == {}
