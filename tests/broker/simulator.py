"""A broker, publishers and subscribers in one thread, from one seed: what goes wrong is drawn.

Batches come twice, in another order, or not before they are sent again; the process is gone at any
write; the disk is full. An observer who knows everything looks at each message that is told.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from millstream.broker.asking import AskedRows, asked
from millstream.broker.core import Accepted, Broker, Publish, Refused, Silence
from millstream.broker.cursor import Subscriber, ToldMessage, position_in
from millstream.broker.log import LogFailed
from millstream.broker.soft import ENDING
from millstream.broker.ticks import Fate
from millstream.errors import PlanError
from tests.broker.world import Crash, CrashingDisk, SetClock, batch, opened, served

TEXT = """
    CREATE STREAM B (b: time -> k: integer, bid: shares) SLACK 1 SECOND
        HEARTBEAT 40 MICROSECONDS;
    CREATE STREAM M (t: time -> b: time, sold: shares) SLACK 1 SECOND;
    CREATE VIEW Sold (SELECT b, SUM(sold) AS total FROM M GROUP BY b);
    CREATE VIEW Left (SELECT b, k, bid - total AS rest FROM B JOIN Sold USING (b) WHERE rest > 0);
    CREATE VIEW Kinds (SELECT DISTINCT k FROM B);
    subscriptions Sold, Left, Kinds;
"""
PROGRAM = served(TEXT)
KEYS = {"Sold": "b", "Left": "b", "Kinds": "k"}
#: Questions of subscribers, and what they let in: of `Sold` b and total, of `Left` b, k and rest.
QUESTIONS: dict[str | None, Callable[..., bool]] = {
    None: lambda *_: True,
    "total >= 3": lambda _, total: total >= 3,
    "k = 2 AND rest > 1": lambda _, k, rest: k == 2 and rest > 1,
    "1 = k OR rest = 3": lambda _, k, rest: k == 1 or rest == 3,
}
ACKNOWLEDGED = "what was acknowledged is there, once, and as it was said"


@dataclass
class Replica:
    """Mutable: what one subscriber believes, and the token it would come back with."""

    view: str
    where: str | None = None
    token: str | None = None
    rows: dict[tuple[Any, ...], int] = field(default_factory=dict)
    subscriber: Subscriber | None = None
    #: The most steps that were seen of a key.
    steps: dict[Any, int] = field(default_factory=dict)

    @property
    def wanted(self) -> AskedRows:
        return asked(PROGRAM.views[self.view], self.where)

    def hear(self, message: ToldMessage) -> None:
        if message.kind == "reset":
            self.rows = {}
        for row in message.data.get("rows", ()):
            self._add(row, 1)
        for change in message.data.get("changes", ()):
            self._add(change["row"], change["weight"])
        assert all(count > 0 for count in self.rows.values()), "what goes was there"
        self.token = message.token

    def _add(self, row: dict[str, Any], weight: int) -> None:
        key = tuple(row.items())
        self.rows[key] = self.rows.get(key, 0) + weight
        if not self.rows[key]:
            del self.rows[key]
        if weight > 0 and "_steps" in row:
            name = row[KEYS[self.view]]
            assert row["_steps"] >= self.steps.get(name, 0), "steps never become fewer"
            self.steps[name] = row["_steps"]


class Simulation:
    """Mutable: one world from one seed."""

    def __init__(self, seed: int, *, turns: int = 60) -> None:
        self.chance = random.Random(seed)
        self.disk = CrashingDisk(seed)
        self.clock = SetClock(50)
        self.turns = turns
        self.trace: list[object] = []
        self.unsent = self._batches()
        #: What was acknowledged, by publisher and sequence, with the ticks.
        self.acknowledged: dict[tuple[str, int], tuple[Publish, Accepted]] = {}
        self.replicas = [
            Replica("Sold"), Replica("Left"), Replica("Kinds"), Replica("Left"),
            Replica("Sold", "total >= 3"), Replica("Left", "k = 2 AND rest > 1"),
            Replica("Left", "1 = k OR rest = 3"),
        ]  # fmt: skip
        self.crashes = 0
        #: How often a broker began from a soft checkpoint.
        self.restored = 0
        self.broker = self._start()

    def _batches(self) -> list[Publish]:
        made: list[Publish] = []
        ticks = self.chance.sample(range(1, 200), 60)
        for publisher in ("p", "q"):
            for sequence in range(1, 9):
                stream = self.chance.choice("BM")
                rows = []
                for _ in range(self.chance.randrange(1, 4)):
                    tick, number = ticks.pop(), self.chance.randrange(4)
                    rows.append((tick, number + 1, self.chance.randrange(5)))
                made.append(batch(stream, rows, publisher, sequence))
        self.chance.shuffle(made)
        return made

    # --- the broker ---

    def _start(self) -> Broker:
        while True:
            self._arm()
            try:
                broker = opened(PROGRAM, self.disk, self.clock, kept=self.chance.choice((5, 1000)),
                                segment=self.chance.choice((1, 600, 1 << 20)),
                                least=self.chance.choice((0, 500)))  # fmt: skip
            except Crash:
                self._crashed()
                continue
            except PlanError as error:
                is_full = self.disk.full_at is not None and self.disk.full_at <= self.disk.calls
                if not is_full or "damaged" in str(error):
                    raise AssertionError("a crash damages no log") from error
                continue
            except Exception as error:
                raise AssertionError("a broker always starts") from error
            self.restored += broker.soft_log.position > 0
            self._check_durable(broker)
            return broker

    def _arm(self) -> None:
        calls = self.disk.calls
        if self.crashes < 12:
            self.disk.crash_at = calls + self.chance.randrange(1, 12)
        if self.chance.random() < 0.3:
            self.disk.full_at = calls + self.chance.randrange(1, 12)

    def _crashed(self) -> None:
        self.crashes += 1
        self.disk.restart()
        for replica in self.replicas:
            replica.subscriber = None
        self.trace.append("crash")

    def _check_durable(self, broker: Broker) -> None:
        """What was acknowledged is there, once, and as it was said."""
        for (publisher, sequence), (_, answer) in self.acknowledged.items():
            known = broker.knowledge.publisher(publisher).answered.get(sequence)
            assert known is not None and known.judged is not None, ACKNOWLEDGED
            assert known.position == answer.position, ACKNOWLEDGED
            assert [j.tick for j in known.judged] == [j.tick for j in answer.judged], ACKNOWLEDGED
        for replica in self.replicas:
            position = position_in(broker, replica.wanted, replica.token)
            assert position is None or position <= broker.log.durable, "nothing told is lost"

    # --- what happens ---

    def run(self) -> list[object]:
        for _ in range(self.turns):
            self._try(self.chance.choice((
                self._publish, self._publish, self._listen, self._beat, self._checkpoint,
                self._steal,
            )))  # fmt: skip
        while self.unsent:
            self._try(self._publish)
        self.clock.time = 10_000
        for stream in "BM":
            self._try(lambda s=stream: self._silence(s, 900))
        for replica in self.replicas:
            self._try(lambda r=replica: self._hear(r))
            self._check_at_rest(replica)
        return self.trace

    def _try(self, what: Any) -> None:
        while True:
            try:
                what()
            except Crash:
                self._crashed()
                self.broker = self._start()
            else:
                return

    def _publish(self) -> None:
        """Some of what has not been acknowledged, and some of what has, in any order."""
        some = self.chance.sample(self.unsent, min(len(self.unsent), self.chance.randrange(1, 4)))
        if self.acknowledged and self.chance.random() < 0.4:
            some.append(self.chance.choice(list(self.acknowledged.values()))[0])
        if self.chance.random() < 0.3:
            some += some[:1]
        answers = self.broker.commit(some)
        self.broker.evaluate()
        for one, answer in zip(some, answers, strict=True):
            self.trace.append((one.publisher, one.sequence, repr(answer)))
            if isinstance(answer, Refused):
                assert answer.status == 507, answer
                self.disk.full_at = None
                continue
            if self.chance.random() < 0.8:  # else the answer is lost on its way
                self._acknowledge(one, answer)

    def _steal(self) -> None:
        """Whoever comes for a tick that was given to another is told so."""
        rows = [
            (one.stream, judged.tick)
            for one, answer in self.acknowledged.values()
            for judged in answer.judged
            if judged.fate is Fate.ACCEPTED
        ]
        if not rows:
            return
        stream, tick = self.chance.choice(rows)
        (answer,) = self.broker.commit([batch(stream, [(tick, 1, 1)])])
        if isinstance(answer, Refused):
            self.disk.full_at = None
            return
        assert answer.judged[0].fate in (Fate.REJECTED, Fate.LATE), "a tick has one row"

    def _acknowledge(self, one: Publish, answer: Accepted) -> None:
        key = one.publisher, one.sequence
        if key in self.acknowledged:
            before = self.acknowledged[key][1]
            assert before.position == answer.position, "a batch has one place"
            return
        self.acknowledged[key] = one, answer
        self.unsent = [u for u in self.unsent if (u.publisher, u.sequence) != key]

    def _beat(self) -> None:
        self.clock.time += self.chance.randrange(1, 50)
        with suppress(LogFailed):
            self.broker.beat()

    def _checkpoint(self) -> None:
        """Write one, lose one, or damage one: it must make no difference."""
        frozen = self.broker.frozen()
        if frozen is not None and self.chance.random() < 0.8:
            self.broker.soft_log.write(frozen, self.broker.log.size)
        names = self.disk.names(ENDING)
        if names and self.chance.random() < 0.2:
            name = self.chance.choice(names)
            data = bytearray(self.disk.files[name])
            if data and self.chance.random() < 0.7:
                data[self.chance.randrange(len(data))] ^= 1 << self.chance.randrange(8)
                self.disk.files[name] = bytes(data)
            else:
                self.disk.remove(name)

    def _silence(self, stream: str, through: int) -> None:
        while isinstance(self.broker.commit([Silence(stream, through)])[0], Refused):
            self.disk.full_at = None
        self.broker.evaluate()

    def _listen(self) -> None:
        self._hear(self.chance.choice(self.replicas))

    def _hear(self, replica: Replica) -> None:
        if replica.subscriber is None or self.chance.random() < 0.2:
            if replica.subscriber is not None:
                replica.subscriber.leave()
            if replica.token is None:
                replica.rows = {}
            replica.subscriber = Subscriber(self.broker, replica.wanted, replica.token)
        for message in replica.subscriber.next():
            replica.hear(message)
            self.trace.append((replica.view, message.kind, repr(message.data)))
        # What is told, all together, is the view of that position.
        view = self.broker.views[replica.view]
        wanted = replica.wanted
        rows = {tuple(wanted.record(r).items()): n for r, n in wanted.shown(view.rows).items()}
        assert replica.rows == rows, "snapshot and changes are the view"

    # --- in the end ---

    def _check_at_rest(self, replica: Replica) -> None:
        """The answer of plain Python to all rows that were acknowledged."""
        bids: dict[int, tuple[int, int]] = {}
        sold: dict[int, int] = {}
        for one, answer in self.acknowledged.values():
            for given, judged in zip(one.rows, answer.judged, strict=True):
                assert given.values is not None and judged.tick == given.values[0]
                if judged.fate not in (Fate.ACCEPTED, Fate.DUPLICATE):
                    assert judged.fate is Fate.LATE and one.stream == "B", "by a heartbeat"
                    continue
                tick, first, second = map(int, given.values)  # type: ignore[arg-type]
                if one.stream == "B":
                    bids[tick] = (first, second)
                else:
                    sold[first] = sold.get(first, 0) + second
        left = {b: (k, bid - sold.get(b, 0)) for b, (k, bid) in bids.items()}
        said: dict[str, set[tuple[int, ...]]] = {
            "Sold": set(sold.items()),
            "Left": {(b, k, rest) for b, (k, rest) in left.items() if rest > 0},
            "Kinds": {(k,) for k, _ in bids.values()},
        }
        shown = {tuple(v for n, v in row if not n.startswith("_")) for row in replica.rows}
        expected = {row for row in said[replica.view] if QUESTIONS[replica.where](*row)}
        assert shown == expected, "at rest a view is what plain Python says"
