"""Those who listen: each hears what its question lets in, whoever else listens."""

from __future__ import annotations

import random

import pytest

from millstream.broker.asking import asked
from millstream.broker.core import Broker
from millstream.broker.cursor import Subscriber
from tests.broker.world import CrashingDisk, SetClock, batch, opened, served

TEXT = """
    CREATE STREAM S (t: time -> k: integer, name: string, x: number) SLACK 1 HOUR;
    CREATE VIEW V (SELECT t, k, name, x FROM S);
    CREATE VIEW N (SELECT k, COUNT(*) AS n FROM S GROUP BY k);
    subscriptions V, N;
"""
PROGRAM = served(TEXT)
CONDITIONS = (
    None, "k = 1", "2 = k AND name = 'a'", "name = 'a' AND k = 2", "k = 1 AND k = 2", "k > 1",
    "name <> 'b'", "k = 1 OR name = 'b'", "x = 1", "x > 0.5 AND k = 0", "name >= 'b' AND 1 <= k",
    "k IS NULL", "k = NULL",
)  # fmt: skip


def broker(seed: int = 0) -> Broker:
    return opened(PROGRAM, CrashingDisk(seed), SetClock(50))


def publish(one: Broker, *rows: tuple[object, ...]) -> None:
    one.commit([batch("S", list(rows))])
    one.evaluate()


class Listener:
    """Mutable: what one has heard, put together."""

    def __init__(self, one: Broker, where: str | None, view: str = "V") -> None:
        self.subscriber = Subscriber(one, asked(PROGRAM.views[view], where))
        self.rows: list[object] = []

    def hear(self) -> None:
        for message in self.subscriber.next():
            self.rows += [sorted(row.items()) for row in message.data.get("rows", ())]
            for change in message.data.get("changes", ()):
                row = sorted(change["row"].items())
                if change["weight"] > 0:
                    self.rows += [row] * change["weight"]
                else:
                    self.rows.remove(row)

    def check(self, one: Broker) -> None:
        wanted = self.subscriber.asked
        rows = wanted.records(wanted.shown(one.views[wanted.view.name].rows))
        assert sorted(map(repr, self.rows)) == sorted(repr(sorted(row.items())) for row in rows)


@pytest.mark.parametrize("seed", range(20))
def test_each_hears_what_its_question_lets_in(seed: int) -> None:
    chance, one = random.Random(seed), broker(seed)
    listeners: list[Listener] = []
    tick = 0
    for _ in range(60):
        rows = []
        for _ in range(chance.choice((1, 1, 3, 100))):
            tick += 1
            k, x = chance.choice((0, 1, 2, 3, None)), chance.choice((0.0, 1.0, None))
            rows.append((tick, k, chance.choice("abc"), x))
        publish(one, *rows)
        if chance.random() < 0.5:
            view = chance.choice("VVN")
            where = chance.choice(CONDITIONS if view == "V" else (None, "n > 3", "k = 1"))
            listeners.append(Listener(one, where, view))
        if len(listeners) > 5 and chance.random() < 0.3:
            listeners.pop(chance.randrange(len(listeners))).subscriber.leave()
        for listener in listeners:
            if chance.random() < 0.4:
                listener.hear()
                listener.check(one)
    for listener in listeners:
        listener.hear()
        listener.check(one)


def test_only_those_are_woken_for_whom_a_row_has_changed() -> None:
    one = broker()
    first, same, other = (Subscriber(one, asked(PROGRAM.views["V"], w)) for w in
                          ("k = 1", "k = 1", "k = 2"))  # fmt: skip
    for subscriber in (first, same, other):
        subscriber.next()
    one.views["V"].audience.woken()
    publish(one, (1, 1, "a", None))
    assert one.views["V"].audience.woken() == {first, same}
    assert first.selection is same.selection, "who asks the same is one question"
    publish(one, (2, 3, "a", None))
    assert not one.views["V"].audience.woken()


def test_what_all_have_heard_is_not_kept() -> None:
    one = broker()
    quick, slow = (Subscriber(one, asked(PROGRAM.views["V"], "k = 1")) for _ in range(2))
    quick.next(), slow.next()
    for n in range(1, 200):
        publish(one, (n, 1, "a", None))
        quick.next()
    selection = quick.selection
    assert len(selection) <= 64, "nobody is waited for"
    told = slow.next()[0].data["changes"]
    assert len(told) == 199 and len(selection) == 0


def test_nothing_is_left_of_those_who_have_gone() -> None:
    one = broker()
    some = [Subscriber(one, asked(PROGRAM.views["V"], where)) for where in CONDITIONS]
    for subscriber in some:
        subscriber.leave()
        subscriber.leave()
    assert len(one.views["V"].audience) == 0
