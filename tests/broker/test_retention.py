"""What goes of a log: nothing that matters, and whoever comes later says what it does not know."""

from __future__ import annotations

import random
from typing import Any

import pytest

from millstream.broker.base import ENDING
from millstream.broker.core import Accepted, Broker, ChangeViews, Silence
from millstream.broker.evaluate import difference
from millstream.broker.evaluations import Evaluations
from millstream.broker.retention import Retention, _Asked
from millstream.errors import PlanError
from millstream.languages.served import Always, WhileIn, WhileOpen
from tests.broker.world import Crash, CrashingDisk, SetClock, batch, is_found_by, opened, served
from tests.seeds import of_the_day

TEXT = """
    CREATE STREAM B (b: time -> k: integer, bid: shares) SLACK 30 MICROSECONDS;
    CREATE STREAM M (t: time -> b: time, sold: shares) SLACK 10 MICROSECONDS;
    CREATE VIEW Sold (SELECT b, SUM(sold) AS total FROM M GROUP BY b);
    CREATE VIEW Rest (SELECT b, k, bid - total AS rest FROM B JOIN Sold USING (b) WHERE rest > 0);
    CREATE VIEW Pairs (SELECT x.b AS one, y.b AS two FROM Rest AS x JOIN Rest AS y USING (k));
    CREATE VIEW Hours (SELECT WINDOW(t, 30 MICROSECONDS, 10 MICROSECONDS) AS hour, SUM(sold) AS sold
                       FROM M GROUP BY hour);
    CREATE VIEW Busy (SELECT hour, sold FROM Hours WHERE sold > 3);
    CREATE VIEW Big (SELECT b, bid FROM B WHERE bid > 3);
    subscriptions Rest WITH RANGES, Pairs, Hours WITH RANGES, Busy, Big;
"""
PROGRAM = served(TEXT)
TAKEN_UP = "a log can always be taken up"
SAME = "views are those of all rows"


def rows_of(broker: Broker) -> dict[str, dict[Any, int]]:
    return {name: dict(view.rows) for name, view in broker.views.items()}


def _eager(broker: Broker) -> Broker:
    """These logs are shorter than what stands in their place."""
    broker.retention.share = 1e9
    return broker


class Twins:
    """Mutable: a broker that lets go of its log and is killed, beside one that does neither."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.disk, self.clock = CrashingDisk(seed), SetClock(10_000)
        self.whole = opened(PROGRAM, CrashingDisk(), self.clock)
        self.broker = self._opened()
        self.gone = self.restarts = 0
        self.tick = 100
        self.bids: list[int] = []

    def _opened(self) -> Broker:
        while True:
            try:
                return _eager(opened(PROGRAM, self.disk, self.clock, segment=400, least=0))
            except Crash:
                self.disk.restart()

    def run(self, turns: int = 18) -> None:
        for sequence in range(1, turns + 1):
            self._publish(sequence)
            assert rows_of(self.broker) == rows_of(self.whole), SAME
            try:
                self._maybe_fail()
            except Crash:
                self._restart()
            assert rows_of(self.broker) == rows_of(self.whole), SAME

    def _publish(self, sequence: int) -> None:
        stream, rows = self.chance.choice("BM"), []
        for _ in range(self.chance.randrange(1, 5)):
            self.tick += self.chance.randrange(1, 9)
            if stream == "B":
                rows.append((self.tick, self.chance.randrange(2), self.chance.randrange(6)))
                self.bids.append(self.tick)
            else:
                sold = self.chance.choice([*self.bids[-12:], self.tick + 3])
                rows.append((self.tick - self.chance.randrange(9), sold, self.chance.randrange(4)))
        one = batch(stream, rows, "p", sequence)
        requests = [one, one] if self.chance.random() < 0.2 else [one]
        for broker in (self.broker, self.whole):
            assert all(isinstance(a, Accepted) for a in broker.commit(requests))
            broker.evaluate()

    def _maybe_fail(self) -> None:
        if self.chance.random() < 0.3:
            self.disk.crash_at = self.disk.calls + self.chance.randrange(1, 4)
        if self.chance.random() < 0.5:
            frozen = self.broker.frozen()
            assert frozen is not None
            if self.chance.random() < 0.3:
                self.broker.soft_log.write(frozen, self.broker.log.size)
            self.broker.retain(frozen)
            self.gone = max(self.gone, self.broker.retention.gone)
        self.disk.crash_at = None
        if self.chance.random() < 0.2:
            self._restart()

    def _restart(self) -> None:
        self.disk.restart()
        self.restarts += 1
        self.broker = self._opened()


@pytest.mark.parametrize("seed", range(3))
def test_what_goes_is_not_missed(seed: int) -> None:
    world = Twins(seed)
    world.run()
    assert world.gone > 0
    assert world.restarts >= 1


@pytest.mark.proof
@pytest.mark.parametrize("start", of_the_day(range(100, 5_100, 5), days=50))
def test_what_goes_is_not_missed_at_length(start: int) -> None:
    for seed in range(start, start + 5):
        Twins(seed).run(50)


def test_needs_are_told_by_the_language() -> None:
    account = WhileIn("Rest", "b", "b", "B")
    assert PROGRAM.needs == {"B": (account,), "M": (account, WhileOpen(30))}


@pytest.mark.parametrize("query", [
    "SELECT b, SUM(sold) AS total FROM M GROUP BY b",
    "SELECT COUNT(*) AS n FROM M",
    "SELECT k, sold FROM B INNER JOIN M USING (b)",
    "SELECT b, LATEST(sold) AS sold FROM M GROUP BY b",
    "SELECT DISTINCT sold FROM M",
    "SELECT hour, sold FROM Hours INNER JOIN M USING (sold)",
    "SELECT SUM(rest) AS rest FROM Rest",
    "SELECT b FROM B WHERE NOT EXISTS (SELECT * FROM M AS m WHERE m.b = B.b)",
    "SELECT t, sold FROM MERGE(M, M2)",
    "SELECT t, sold FROM MERGE(Some, M2)",
    "SELECT sold FROM M ORDER BY sold LIMIT 2",
])  # fmt: skip
def test_what_can_always_change_keeps_the_log(query: str) -> None:
    more = """CREATE STREAM M2 (t: time -> b: time, sold: shares);
              CREATE VIEW Some (SELECT b, sold, t FROM M WHERE sold > 1);"""
    program = served(f"{more}{TEXT} CREATE VIEW More ({query}); subscriptions More;")
    assert any(isinstance(need, Always) for need in program.needs["M"])


def _let_go() -> tuple[CrashingDisk, SetClock, Broker]:
    """A broker of which the first sales are gone; their windows are over, and their bids sold."""
    disk, clock = CrashingDisk(), SetClock(10_000)
    broker = _eager(opened(PROGRAM, disk, clock, segment=300, least=0))
    for n in range(12):
        tick = 100 + 10 * n
        broker.commit([batch("B", [(tick, 1, 5)], "p", 2 * n + 1)])
        broker.commit([batch("M", [(tick + 1, tick, 5)], "p", 2 * n + 2)])
    broker.evaluate()
    frozen = broker.frozen()
    assert frozen is not None
    broker.retain(frozen)
    assert broker.base is not None and broker.base.since["M"] > 120
    assert len(disk.names()) == 1
    return disk, clock, broker


def _with(broker: Broker, name: str, query: str) -> None:
    broker.commit([ChangeViews({name: query})])


def test_a_later_view_says_since_when_it_is_complete() -> None:
    disk, clock, broker = _let_go()
    since = broker.base.since["M"] if broker.base else 0
    _with(broker, "Late", "SELECT WINDOW(t, 30 MICROSECONDS) AS hour, SUM(sold) AS sold FROM M "
                          "GROUP BY hour")  # fmt: skip
    broker = opened(PROGRAM, disk, clock, segment=300, least=0)
    assert broker.complete_since("Late") == {"M": since}
    assert broker.complete_since("Hours") == {}
    broker.commit([Silence("M", 9_000)])
    broker.evaluate()
    schema = broker.served.views["Late"].schema
    late = [dict(zip(schema.names, row, strict=True)) for row in broker.views["Late"].rows]
    assert not any(row["_final"] for row in late)
    assert all(row["sold_high"] is None for row in late)
    hours = broker.served.views["Hours"].schema
    assert all(row[hours.index("_final")] for row in broker.views["Hours"].rows)
    sold = [row[hours.index("sold")] for row in broker.views["Hours"].rows]
    assert sum(n for n in sold if isinstance(n, int)) == 3 * 60


def test_batches_of_before_are_known_again() -> None:
    disk, clock, _ = _let_go()
    broker = opened(PROGRAM, disk, clock)
    (answer,) = broker.commit([batch("M", [(101, 100, 5)], "p", 2)])
    assert isinstance(answer, Accepted) and answer.judged[0].fate.value == "duplicate"


def test_a_base_that_is_damaged_is_not_served_without() -> None:
    disk, clock, _ = _let_go()
    (name,) = disk.names(ENDING)
    disk.files[name] = disk.files[name][:-1]
    log = dict(disk.files)
    with pytest.raises(PlanError, match="the beginning of the log is gone"):
        opened(PROGRAM, disk, clock)
    assert disk.files == log


def test_rows_that_go_too_early_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    test = _Asked._test

    def too_early(self: _Asked, stream: str, need: Any) -> Any:
        return test(self, stream, WhileOpen(-50) if isinstance(need, WhileOpen) else need)

    monkeypatch.setattr(_Asked, "_test", too_early)
    monkeypatch.setattr(Retention, "_stored", _unchecked)
    is_found_by(SAME, lambda seed: _told(Twins(seed)), (4, *range(8)))


def test_rows_that_go_too_early_are_seen_before_they_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_Asked, "_test", lambda *_: lambda _row: False)
    world = Twins(1)
    world.run()
    assert "though nothing seemed to need them" in str(world.broker.retention.kept)


def test_files_that_go_before_the_base_is_durable_are_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def write(self: Retention, base: Any, data: bytes) -> None:
        self.disk.append(f"{base.position:016}{ENDING}", data)

    monkeypatch.setattr(Retention, "_write", write)
    is_found_by(TAKEN_UP, lambda seed: _told(Twins(seed)), (3, *range(8)))


def _told(world: Twins) -> None:
    try:
        world.run()
    except AssertionError:
        raise
    except Exception as error:
        raise AssertionError(TAKEN_UP) from error


def _unchecked(self: Any, frozen: Any, base: Any) -> Any:
    rows = base.put_into(Evaluations(frozen.served, frozen.make))
    return {n: difference(rows[n], dict(frozen.rows[n])) for n in frozen.served.views}
