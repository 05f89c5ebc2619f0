"""Soft checkpoints: whether they are there or not, a broker says the same."""

from __future__ import annotations

import pytest

from millstream.broker.compiled import Compiled
from millstream.broker.core import Accepted, Broker, Refused
from millstream.broker.env import Env
from millstream.broker.evaluate import Changes, Interpreted
from millstream.broker.evaluations import Maker
from millstream.broker.journal import Journal
from millstream.broker.publishers import REMEMBERED, Answered, Publisher
from millstream.broker.soft import ENDING
from millstream.broker.ticks import Fate, Judged
from millstream.languages.served import Served
from tests.broker.simulator import PROGRAM
from tests.broker.world import CrashingDisk, SetClock, batch, served

OPTIONS = "SLACK 1 SECOND"
TEXT = """
    CREATE STREAM S (t: time -> k: integer, x: shares) {};
    CREATE VIEW V (SELECT k, SUM(x) AS total, MAX(x) AS most FROM S GROUP BY k);
    CREATE VIEW W (SELECT DISTINCT k FROM S);
    subscriptions V, W;
"""


def begun(disk: CrashingDisk, make: Maker = Interpreted, program: Served = PROGRAM) -> Broker:
    broker = Broker(Env(disk, SetClock(10_000)), program, make, least=0)
    broker.open()
    return broker


def filled(disk: CrashingDisk, make: Maker, program: Served) -> Broker:
    broker = begun(disk, make, program)
    for n in range(1, 7):
        rows = [(10 * n + m, (n + m) % 3, n * m) for m in range(3)]
        broker.commit([batch("S", rows, "p", n)])
        broker.evaluate()
        if n in (2, 4):
            frozen = broker.frozen()
            assert frozen is not None
            broker.soft_log.write(frozen, broker.log.size)
    return broker


def rows_of(broker: Broker) -> dict[str, Changes]:
    return {name: dict(view.rows) for name, view in broker.views.items()}


#: There is not much to compile.
SHORT = """
    CREATE STREAM S (t: time -> k: integer, x: shares) SLACK 1 SECOND;
    CREATE VIEW V (SELECT k, SUM(x) AS total FROM S GROUP BY k);
    subscriptions V;
"""


@pytest.mark.parametrize(("make", "text"), [(Interpreted, TEXT.format(OPTIONS)), (Compiled, SHORT)])
def test_views_go_on_from_a_checkpoint(make: Maker, text: str) -> None:
    program = served(text)
    disk = CrashingDisk()
    before = filled(disk, make, program)
    again = begun(disk, make, program)
    assert again.soft_log.position == 5
    assert {n: v.rows for n, v in again.views.items()} == {
        n: v.rows for n, v in before.views.items()
    }
    (answer,) = again.commit([batch("S", [(11, 1, 1)], "q", 1)])
    assert isinstance(answer, Accepted) and answer.judged[0].reason == "t: 11 is taken"
    for broker in (before, again):
        broker.commit([batch("S", [(100, 2, 50)], "p", 7)])
        broker.evaluate()
    assert {n: v.rows for n, v in again.views.items()} == {
        n: v.rows for n, v in before.views.items()
    }


def test_a_checkpoint_that_does_not_fit_is_left_alone() -> None:
    program = served(TEXT.format(OPTIONS))
    disk = CrashingDisk()
    before = filled(disk, Interpreted, program)
    rows = rows_of(before)
    first, last = disk.names(ENDING)
    whole = disk.files[last]
    disk.files[last] = whole[:-9]
    assert begun(disk, Interpreted, program).soft_log.position == 3, "the one before it"
    disk.files[first] = b""
    assert begun(disk, Interpreted, program).soft_log.position == 0
    disk.files[last] = whole
    slack = served(TEXT.format("SLACK 30 MICROSECONDS"))
    again = begun(disk, Interpreted, slack)
    assert again.soft_log.position == 0, "knowledge depends on the options of streams"
    assert again.knowledge.ticks["S"].horizon > before.knowledge.ticks["S"].horizon
    other = served(TEXT.format(OPTIONS).replace("MAX(x)", "MIN(x)"))
    changed = begun(disk, Interpreted, other)
    assert changed.soft_log.position == 5, "of other views only the knowledge is taken"
    assert changed.views["W"].rows == rows["W"]
    assert changed.views["V"].rows != rows["V"] and len(changed.views["V"].rows) == 3
    disk.files["0000000000000001.log"] = disk.files["0000000000000001.log"][:300]
    assert begun(disk, Interpreted, program).log.number < 5, "a log that ends before it counts"


def test_nobody_waits_for_a_checkpoint() -> None:
    program = served(TEXT.format(OPTIONS))
    disk = CrashingDisk()
    broker = filled(disk, Interpreted, program)
    frozen = broker.frozen()
    assert frozen is not None
    disk.full_at = disk.calls + 1
    broker.soft_log.write(frozen, broker.log.size)
    assert broker.soft_log.failed is not None
    assert not isinstance(broker.commit([batch("S", [(90, 1, 1)])])[0], Refused)
    assert begun(disk, Interpreted, program).soft_log.position == 5


def test_what_was_answered_to_many_small_batches_is_kept() -> None:
    """Whoever published more than 100,000 rows one by one is still told the last ticks."""
    publisher, journal = Publisher(), Journal()
    for n in range(110_000):
        publisher.add(n, Answered(b"", n, (Judged(Fate.ACCEPTED, n),)), journal)
        journal.commit()
        publisher.forget()
    assert len(publisher.answered) == REMEMBERED
    assert all(one.judged is not None for one in publisher.answered.values())
