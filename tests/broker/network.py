"""Several brokers in one thread, from one seed: messages between them are lost, doubled, late and
in any order, links are cut, brokers crash at any write, and some lose their disks.

An observer who knows everything compares each relation that a broker holds with what its sender
had at that number, and each statement that a subscriber was told with what is true in the end.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

from millstream.broker.asking import asked
from millstream.broker.core import Accepted, Broker, Publish, Refused, Silence
from millstream.broker.cursor import Subscriber, ToldMessage
from millstream.broker.cutting import part_of
from millstream.broker.env import Env
from millstream.broker.evaluate import Changes
from millstream.broker.messages import Message
from millstream.broker.node import Node
from millstream.broker.placement import read_placement
from millstream.broker.soft import ENDING
from millstream.broker.ticks import Fate
from millstream.errors import PlanError
from millstream.languages.served import Served
from millstream.source import Source
from tests.broker.world import Crash, CrashingDisk, SetClock, batch, opened, served

TEXT = """
    CREATE TYPE lot AS INTEGER BETWEEN 0 AND 20;
    CREATE STREAM B (b: time -> k: integer, bid: lot) SLACK 100 MICROSECONDS
        UNTIL '1970-01-01T00:00:00.000900Z';
    CREATE STREAM M (t: time -> b: time, sold: lot) SLACK 100 MICROSECONDS
        UNTIL '1970-01-01T00:00:00.000900Z';
    CREATE VIEW Sold (SELECT b, SUM(sold) AS total FROM M GROUP BY b);
    CREATE VIEW Rest (SELECT b, k, bid - total AS rest FROM B JOIN Sold USING (b) WHERE rest > 0);
    CREATE VIEW PerKind (SELECT k, SUM(rest) AS rest, COUNT(*) AS n FROM Rest GROUP BY k);
    CREATE VIEW Both (SELECT b, rest, total FROM Rest JOIN Sold USING (b));
    CREATE VIEW Unsold (SELECT b, bid FROM B WHERE NOT EXISTS (SELECT * FROM M WHERE M.b = B.b));
    CREATE VIEW Kinds (SELECT DISTINCT k FROM B);
    CREATE VIEW Times (SELECT WINDOW(t, 80 MICROSECONDS) AS w, SUM(sold) AS total, COUNT(*) AS n
                       FROM M GROUP BY WINDOW(t, 80 MICROSECONDS));
    CREATE VIEW Busy (SELECT w, total FROM Times WHERE total > 5);
    subscriptions Sold, Rest, PerKind, Both, Unsold, Kinds, Times, Busy;
"""
WHOLE = served(TEXT)
KEYS = {"Sold": "b", "Rest": "b", "PerKind": "k", "Both": "b", "Unsold": "b", "Kinds": "k",
        "Times": "w", "Busy": "w"}  # fmt: skip
NAMES = ("one", "two", "three", "four")
Pair = tuple[str, str]
_END, _STEP = 900, 20_000


@cache
def parts(
    homes: tuple[Pair, ...], lazy: frozenset[Pair], *, is_ring: bool = False
) -> dict[str, Served]:
    """The parts of all brokers, when views live here; in a ring most goes by way of others."""
    lines = []
    for number, name in enumerate(NAMES):
        streams = {"one": '"B"', "two": '"M"'}.get(name, "")
        views = ", ".join(f'"{v}"' for v, home in homes if home == name)
        lines += [f"[broker.{name}]", f'address = "http://127.0.0.1:{8100 + number}"',
                  f"streams = [{streams}]", f"views = [{views}]"]  # fmt: skip
    for a in NAMES:
        for b in NAMES:
            is_next = NAMES.index(b) == (NAMES.index(a) + 1) % len(NAMES)
            if is_next if is_ring else a != b:
                is_lazy = str((a, b) in lazy).lower()
                lines += [f"[link.{a}-{b}]", f'from = "{a}"', f'to = "{b}"', f"lazy = {is_lazy}"]
    placement = read_placement(Source("brokers.toml", "\n".join(lines)))
    return {name: part_of(WHOLE, placement, name) for name in NAMES}


@dataclass
class Replica:
    """Mutable: what one subscriber believes, and all that it was ever told."""

    view: str
    rows: dict[tuple[Any, ...], int] = field(default_factory=dict)
    token: str | None = None
    subscriber: Subscriber | None = None
    steps: dict[Any, int] = field(default_factory=dict)
    told: set[tuple[Any, ...]] = field(default_factory=set)

    def hear(self, message: ToldMessage) -> None:
        if message.kind == "reset":
            self.rows = {}
        for row in message.data.get("rows", ()):
            self._add(row, 1)
        for change in message.data.get("changes", ()):
            self._add(change["row"], change["weight"])
        self.token = message.token
        assert all(count > 0 for count in self.rows.values()), "what goes was there"

    def _add(self, row: dict[str, Any], weight: int) -> None:
        key = tuple(row.items())
        self.rows[key] = self.rows.get(key, 0) + weight
        if not self.rows[key]:
            del self.rows[key]
        if weight > 0:
            self.told.add(key)
            name, steps = row[KEYS[self.view]], row.get("_steps")
            if steps is not None:
                assert steps >= self.steps.get(name, 0), "nobody goes back"
                self.steps[name] = steps


class Place:
    """Mutable: one broker, its disk, and whether it runs."""

    def __init__(self, part: Served, seed: int) -> None:
        self.part = part
        self.disk = CrashingDisk(seed)
        self.broker: Broker | None = None
        self.node: Node | None = None
        #: How far its live program was told that streams are known.
        self.known: dict[str, int] = {}


class Network:
    """Mutable: one world from one seed."""

    def __init__(self, seed: int, *, turns: int = 250) -> None:
        self.chance = chance = random.Random(seed)
        self.clock = SetClock(1_000)
        self.trace: list[object] = []
        homes = tuple((view, chance.choice(NAMES)) for view in KEYS)
        pairs = [(a, b) for a in NAMES for b in NAMES if a != b]
        lazy = frozenset(p for p in pairs if seed % 3 == 2 and chance.random() < 0.5)
        self.homes = dict(homes)
        made = parts(homes, lazy, is_ring=seed % 4 == 3)
        self.places = {name: Place(made[name], seed + n) for n, name in enumerate(NAMES)}
        self.loss, self.twice = chance.choice((0.0, 0.1, 0.5)), chance.choice((0.0, 0.1, 0.5))
        self.cut: set[tuple[str, str]] = set()
        #: What is on its way: to whom, from whom, and what.
        self.wires: list[tuple[str, str, Message]] = []
        self.crashes = self.crashes_left = self.losses = 0
        self.turns = turns
        #: The relations as their senders had them, by name, incarnation and number.
        self.had: dict[tuple[str, str, int], Changes] = {}
        self.unsent = self._batches()
        self.accepted: list[tuple[Publish, Accepted]] = []
        self.replicas = [Replica(view) for view in KEYS]
        self.identities = 0
        self.is_calm = False
        for name in NAMES:
            self._start(name)

    def _batches(self) -> list[Publish]:
        made: list[Publish] = []
        bids = sorted(self.chance.sample(range(1, 400), 14))
        ticks = sorted(self.chance.sample(range(1, 400), 30), reverse=True)
        for number, tick in enumerate(bids):
            rows = [(tick, self.chance.randrange(3), self.chance.randrange(6, 20))]
            made.append(batch("B", rows, "p", number + 1))
        for number in range(12):
            rows = [(ticks.pop(), self.chance.choice(bids), self.chance.randrange(8))
                    for _ in range(self.chance.randrange(1, 3))]  # fmt: skip
            made.append(batch("M", rows, "q", number + 1))
        return made

    # --- brokers ---

    def _start(self, name: str) -> None:
        place = self.places[name]
        place.broker = place.node = None
        chance = self.chance
        if not self.is_calm and chance.random() < 0.6:
            place.disk.crash_at = place.disk.calls + chance.randrange(1, 20)
        try:
            broker = opened(
                place.part, place.disk, self.clock, kept=chance.choice((5, 1000)),
                segment=chance.choice((1, 600, 1 << 20)), least=chance.choice((0, 500)),
                identity=self._identity,
            )  # fmt: skip
        except Crash:
            self._crashed(name)
            return
        except PlanError:
            assert place.disk.crash_at is None, "a log is never damaged"
            raise
        place.broker = broker
        place.node = Node(broker, partial(self._send, name))

    def _identity(self) -> str:
        self.identities += 1
        return f"log{self.identities}"

    def _crashed(self, name: str) -> None:
        self.crashes += 1
        self.trace.append(("crash", name))
        place = self.places[name]
        place.disk.restart()
        place.broker = place.node = None
        if not place.part.hosted and self.chance.random() < 0.6:
            self.losses += 1
            place.known = {}
            place.disk = CrashingDisk(self.chance.randrange(1 << 30))
        for replica in self.replicas:
            if self.homes[replica.view] == name:
                replica.subscriber = None

    def _at(self, name: str, what: Any) -> None:
        """Have something done at a broker that runs; it may end there."""
        if self.places[name].broker is None:
            return
        try:
            what(self.places[name])
        except Crash:
            self._crashed(name)

    # --- messages ---

    def _send(self, sender: str, to: str, message: Message) -> None:
        self.trace.append((sender, to, repr(message)))
        if self.is_calm:
            self.wires.append((to, sender, message))
            return
        if (sender, to) in self.cut or self.chance.random() < self.loss:
            return
        self.wires.append((to, sender, message))
        if self.chance.random() < self.twice:
            self.wires.append((to, sender, message))

    def _deliver(self) -> None:
        for _ in range(self.chance.randrange(1, 6)):
            if self.wires:
                at = 0 if self.chance.random() < 0.5 else self.chance.randrange(len(self.wires))
                to, sender, message = self.wires.pop(at)
                node = self.places[to].node
                if node is not None:
                    node.hear(sender, message)

    def _work(self, place: Place) -> None:
        """What a broker does again and again."""
        assert place.broker is not None and place.node is not None
        requests = place.node.requests()
        place.broker.commit(requests)
        place.node.settle(requests)
        if self.is_calm or self.chance.random() < 0.8:
            place.broker.evaluate()
        place.node.tell()
        self._look(place)

    def _look(self, place: Place) -> None:
        """What a broker holds is what its sender had."""
        broker, node = place.broker, place.node
        assert broker is not None and node is not None and broker.evaluations is not None
        for name, one in node.exports.items():
            if one.marks:
                key = name, broker.identity, one.marks[-1].number
                rows = dict(one.view(broker).rows)
                assert self.had.setdefault(key, rows) == rows, "a number means one thing"
                if one.one.is_stream:
                    self._check_known(name, one.marks[-1].progress[name], rows)
        evaluations = broker.evaluations
        for name, known in evaluations.told.items():
            assert known >= place.known.get(name, known), "what is known remains so"
            place.known[name] = known
        for name, held in evaluations.knowledge.held.items():
            had = self.had.get((name, held.incarnation, held.through))
            assert evaluations.held[name] == had, "what is held is what was sent"

    def _check_known(self, stream: str, through: int, rows: Changes) -> None:
        """All rows that there are up to here are there."""
        for one, answer in self.accepted:
            for given, judged in zip(one.rows, answer.judged, strict=True):
                is_row = one.stream == stream and judged.fate is Fate.ACCEPTED
                if is_row and judged.tick is not None and judged.tick <= through:
                    assert given.values in rows, "progress does not overtake rows"

    # --- what happens ---

    def run(self) -> list[object]:
        for _ in range(self.turns):
            self.clock.time += self.chance.choice((0, _STEP, 5 * _STEP))
            self._turn()
        self._rest()
        alone = self._alone()
        for replica in self.replicas:
            self._check(replica, alone)
        return self.trace

    def _turn(self) -> None:
        chance = self.chance
        what = chance.randrange(12)
        name = chance.choice(NAMES)
        if what < 2:
            self._publish()
        elif what < 5:
            self._deliver()
        elif what == 5:
            self._hear(chance.choice(self.replicas))
        elif what == 6:
            self._at(name, self._checkpoint)
        elif what == 7 and self.places[name].broker is None:
            self._start(name)
        elif what == 8 and chance.random() < 0.2:
            self.cut = {(a, b) for a in NAMES for b in NAMES if chance.random() < 0.3}
        elif what == 9 and chance.random() < 0.2:
            self.cut = set()
        else:
            self._at(name, self._work)

    def _publish(self) -> None:
        if not self.unsent:
            return
        streams = sorted({one.stream for one in self.unsent})
        stream = self.chance.choice(streams)
        one = self.chance.choice([one for one in self.unsent if one.stream == stream][:3])
        host = "one" if one.stream == "B" else "two"

        def publish(place: Place) -> None:
            assert place.broker is not None
            (answer,) = place.broker.commit([one])
            assert not isinstance(answer, Refused), answer
            self.unsent.remove(one)
            self.accepted.append((one, answer))

        self._at(host, publish)

    def _checkpoint(self, place: Place) -> None:
        assert place.broker is not None
        frozen = place.broker.frozen()
        if frozen is not None:
            place.broker.soft_log.write(frozen, place.broker.log.size)
        names = place.disk.names(ENDING)
        if names and self.chance.random() < 0.2:
            place.disk.remove(self.chance.choice(names))

    def _hear(self, replica: Replica) -> None:
        place = self.places[self.homes[replica.view]]
        if place.broker is None or place.node is None:
            return
        place.node.want(replica.view)
        if replica.subscriber is None or self.chance.random() < 0.1:
            wanted = asked(place.part.views[replica.view], has_ranges=True)
            if replica.subscriber is not None:
                replica.subscriber.leave()
            if replica.token is None:
                replica.rows = {}
            replica.subscriber = Subscriber(place.broker, wanted, replica.token)
        for message in replica.subscriber.next():
            self.trace.append((replica.view, message.kind, repr(message.data)))
            replica.hear(message)

    # --- in the end ---

    def _rest(self) -> None:
        """Everybody runs and every message comes, until nobody has anything to say."""
        self.is_calm, self.cut = True, set()
        for name in NAMES:
            self.places[name].disk.crash_at = None
            while self.places[name].broker is None:
                self._start(name)
        while self.unsent:
            self._publish()
        for host, stream in (("one", "B"), ("two", "M")):
            broker = self.places[host].broker
            assert broker is not None
            broker.commit([Silence(stream, _END)])
        quiet = 0
        while quiet < 30:  # longer than anybody waits before it asks again
            before = self._numbers()
            self.clock.time += 5 * _STEP
            wires, self.wires = self.wires, []
            for to, sender, message in wires:
                node = self.places[to].node
                assert node is not None
                node.hear(sender, message)
            for replica in self.replicas:
                self._hear(replica)
            for name in NAMES:
                self._at(name, self._work)
            quiet = quiet + 1 if self._numbers() == before else 0
        for replica in self.replicas:
            self._hear(replica)

    def _numbers(self) -> list[int]:
        return [p.broker.log.number for p in self.places.values() if p.broker is not None]

    def _check(self, replica: Replica, alone: Broker) -> None:
        """The answer of one broker that has had all rows, and the truth of all that was told."""
        wanted = asked(WHOLE.views[replica.view], has_ranges=True)
        shown = wanted.shown(alone.views[replica.view].rows)
        rows = {tuple(wanted.record(r).items()): n for r, n in shown.items()}
        assert replica.rows == rows, f"{replica.view} is complete in the end"
        truth = {dict(row)[KEYS[replica.view]]: dict(row) for row in rows}
        for told in replica.told:
            said = dict(told)
            true = truth.get(said[KEYS[replica.view]])
            if said["_final"]:
                assert true == said, "what is final never changes"
            for column, value in (true or {}).items():
                low, high = said.get(f"{column}_low"), said.get(f"{column}_high")
                assert low is None or low <= value, "no bound is ever false"
                assert high is None or value <= high, "no bound is ever false"

    def _alone(self) -> Broker:
        """One broker that has had all rows at once."""
        broker = Broker(Env(CrashingDisk(), SetClock(10_000)), WHOLE)
        broker.open()
        for stream in "BM":
            rows = [
                given.values
                for one, answer in self.accepted
                for given, judged in zip(one.rows, answer.judged, strict=True)
                if one.stream == stream and judged.fate is not Fate.LATE and given.values
            ]
            broker.commit([batch(stream, rows), Silence(stream, _END)])
        broker.evaluate()
        return broker
