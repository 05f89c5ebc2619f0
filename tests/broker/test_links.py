"""What two brokers say to each other, word for word."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace
from uuid import uuid4

import pytest

from millstream.broker.asking import asked
from millstream.broker.catching_up import CatchUp
from millstream.broker.core import ChangeViews, Silence
from millstream.broker.cursor import Subscriber
from millstream.broker.cutting import part_of
from millstream.broker.evaluate import Interpreted
from millstream.broker.messages import Curiosity, Message, Numbers, Wish, read_message, written
from millstream.broker.node import Node
from millstream.broker.placement import read_placement
from millstream.broker.records import KnownRecord
from millstream.errors import UsageError
from millstream.source import Source
from tests.broker.world import CrashingDisk, SetClock, batch, opened, served

TEXT = """
    CREATE STREAM M (t: time -> b: time, sold: shares) SLACK 1 SECOND
        UNTIL '1970-01-01T00:00:00.000900Z';
    CREATE VIEW Sold (SELECT b, SUM(sold) AS total FROM M GROUP BY b);
    CREATE VIEW Large (SELECT b, total FROM Sold WHERE total > 5);
    subscriptions Sold, Large;
"""
BROKERS = """
[broker.up]
address = "http://127.0.0.1:8101"
streams = ["M"]
[broker.down]
address = "http://127.0.0.1:8102"
views = ["Large"]
[link.l]
from = "up"
to = "down"
lazy = LAZY
"""


@dataclass
class Pair:
    """Mutable: two brokers, and all that they have said."""

    lazy: bool = False
    clock: SetClock = field(default_factory=lambda: SetClock(10_000))
    said: list[tuple[str, Message]] = field(default_factory=list)

    def __post_init__(self) -> None:
        text = BROKERS.replace("LAZY", str(self.lazy).lower())
        placement = read_placement(Source("brokers.toml", text))
        self.parts = {name: part_of(served(TEXT), placement, name) for name in ("up", "down")}
        self.nodes: dict[str, Node] = {}
        for name in ("up", "down"):
            self.start(name)

    def start(self, name: str) -> None:
        """A broker whose disk is empty."""
        broker = opened(self.parts[name], CrashingDisk(), self.clock, identity=lambda: uuid4().hex)
        self.nodes[name] = Node(broker, lambda to, message: self.said.append((to, message)))

    def work(self, name: str, later: int = 0) -> list[Message]:
        """Let one of them work; what it has said."""
        self.clock.time += later
        node, before = self.nodes[name], len(self.said)
        requests = node.requests()
        node.broker.commit(requests)
        node.settle(requests)
        node.broker.evaluate()
        node.tell()
        return [message for _, message in self.said[before:]]

    def carry(self, messages: list[Message], to: str) -> None:
        sender = "down" if to == "up" else "up"
        part = self.nodes[to].part
        for one in messages:
            again = read_message(written(one), part)
            assert again == one or isinstance(one, KnownRecord), "written and read"
            self.nodes[to].hear(sender, again)

    def publish(self, tick: int, sold: int) -> None:
        self.nodes["up"].broker.commit([batch("M", [(tick, 1, sold)])])

    def begin(self) -> None:
        self.carry(self.work("down"), "up")
        self.carry(self.work("up"), "down")
        self.work("down")

    @property
    def large(self) -> list[object]:
        return [row[1] for row in self.nodes["down"].broker.views["Large"].rows]


def known(messages: list[Message]) -> list[KnownRecord]:
    return [one for one in messages if isinstance(one, KnownRecord)]


def curious(messages: list[Message]) -> list[Curiosity]:
    return [one for one in messages if isinstance(one, Curiosity)]


def test_who_has_asked_once_is_told_what_changes() -> None:
    pair = Pair()
    pair.begin()
    pair.publish(1, 7)
    (told,) = known(pair.work("up"))
    assert len(told.changes) == 1 and told.after > 0
    pair.carry([told, told], "down")
    pair.work("down")
    assert pair.large == [7]


def test_who_comes_back_is_told_nothing_before_all_that_it_has_heard_of_is_there() -> None:
    pair = Pair()
    pair.begin()
    pair.publish(1, 7)
    pair.carry(pair.work("up"), "down")
    pair.work("down")
    wanted = asked(pair.parts["down"].views["Large"])
    token = Subscriber(pair.nodes["down"].broker, wanted).next()[-1].token
    pair.start("down")
    pair.work("down")
    again = Subscriber(pair.nodes["down"].broker, wanted, token)
    assert again.next() == [], "it would be told less than it knew"
    assert Subscriber(pair.nodes["down"].broker, wanted).next(), "others are told what is here"
    pair.carry(pair.work("down", 2_000_000), "up")
    pair.carry(pair.work("up"), "down")
    pair.work("down")
    kinds = [(one.kind, len(one.data.get("rows", ()))) for one in again.next()]
    assert kinds == [("reset", 0), ("state", 1), ("live", 0)]


def test_a_view_whose_stream_has_lost_its_log_says_so_until_it_begins_anew() -> None:
    pair = Pair()
    pair.begin()
    pair.publish(1, 7)
    pair.carry(pair.work("up"), "down")
    pair.work("down")
    wanted = asked(pair.parts["down"].views["Large"])
    listening = Subscriber(pair.nodes["down"].broker, wanted)
    token = listening.next()[-1].token
    (held,) = pair.nodes["down"].broker.knowledge.held.values()
    (old,) = held.stand
    pair.start("up")
    pair.publish(1, 20)
    pair.carry(pair.work("down", 2_000_000), "up")
    pair.carry(pair.work("up"), "down")
    pair.work("down")
    assert [one.kind for one in listening.next()] == ["lost"]
    assert pair.large == [7], "what was known stays"
    pair.start("down")
    again = Subscriber(pair.nodes["down"].broker, wanted, token)
    assert again.next() == [], "it may still be that it comes"
    pair.carry(pair.work("down", 2_000_000), "up")
    pair.carry(pair.work("up"), "down")
    pair.work("down")
    first, state, _ = again.next()
    assert ("reset", {"lost": (old,)}) == (first.kind, first.data)
    assert [20] == [row["total"] for row in state.data["rows"]]


def test_a_lost_log_is_told_to_brokers_further_down() -> None:
    pair = Pair()
    pair.begin()
    ((name, held),) = pair.nodes["down"].broker.knowledge.held.items()
    gone = Numbers(name, pair.nodes["down"].part.edition, held.incarnation, 0, ("gone",))
    pair.carry([gone], "down")
    pair.work("down")
    assert {name: ("gone",)} == pair.nodes["down"].broker.lost
    pair.carry([replace(gone, lost=())], "down")
    pair.work("down")
    assert {} == pair.nodes["down"].broker.lost, "its folder was put back"


@pytest.mark.parametrize("cut", [1, 5])
def test_a_token_with_a_damaged_end_begins_anew(cut: int) -> None:
    pair = Pair()
    pair.begin()
    wanted = asked(pair.parts["down"].views["Large"])
    token = Subscriber(pair.nodes["down"].broker, wanted).next()[-1].token
    pair.start("down")
    pair.begin()
    again = Subscriber(pair.nodes["down"].broker, wanted, token[:-cut] + "!")
    assert again.next()[0].kind == "reset"


def test_only_what_is_missing_is_asked_for_and_sent() -> None:
    pair = Pair()
    pair.begin()
    sent = []
    for tick, sold in ((1, 7), (2, 10), (3, 20)):
        pair.publish(tick, sold)
        sent += known(pair.work("up"))
    first, lost, last = sent
    pair.carry([last, first], "down")
    pair.work("down")
    assert pair.large == [7], "what is early waits"
    (question,) = curious(pair.work("down", 100_000))
    assert question.gaps == ((lost.after, lost.through),)
    pair.carry([question], "up")
    (answer,) = known(pair.work("up"))
    assert answer == lost
    pair.carry([answer], "down")
    pair.work("down")
    assert pair.large == [37]


def test_the_last_message_may_be_lost() -> None:
    pair = Pair()
    pair.begin()
    pair.publish(1, 7)
    assert known(pair.work("up")), "nobody hears it"
    said = pair.work("up", 600_000)
    assert [type(one) for one in said] == [Numbers]
    pair.carry(said, "down")
    pair.work("down")
    pair.carry(list(curious(pair.work("down", 60_000))), "up")
    pair.carry(pair.work("up"), "down")
    pair.work("down")
    assert pair.large == [7]


def test_who_gets_no_answer_asks_less_and_less_often() -> None:
    pair = Pair()
    times = [pair.clock.time for _ in range(400) if curious(pair.work("down", 20_000))]
    waits = [b - a for a, b in itertools.pairwise(times)]
    assert waits[0] < 100_000 and max(waits) <= 2_020_000 and waits == sorted(waits)


def test_rows_go_over_a_lazy_link_when_somebody_reads() -> None:
    pair = Pair(lazy=True)
    pair.begin()
    pair.publish(1, 7)
    said = pair.work("up")
    assert said and all(isinstance(one, Numbers) for one in said)
    pair.carry(said, "down")
    assert not curious(pair.work("down", 60_000)), "it is known that there is something: enough"
    pair.nodes["down"].want("Large")
    (question,) = curious(pair.work("down"))
    assert question.wish is Wish.ROWS
    pair.carry([question], "up")
    pair.carry(pair.work("up"), "down")
    pair.work("down")
    assert pair.large == [7]
    (later,) = curious(pair.work("down", 31_000_000))
    assert later.wish is Wish.NUMBERS, "nobody has read it for a while"


def test_what_is_final_is_wanted_no_more() -> None:
    pair = Pair()
    pair.begin()
    pair.nodes["up"].broker.commit([batch("M", [(1, 1, 7)]), Silence("M", 900)])
    pair.carry(pair.work("up"), "down")
    (question,) = curious(pair.work("down"))
    assert question.wish is Wish.NOTHING
    pair.carry([question], "up")
    pair.work("up")
    assert not pair.work("up", 2_000_000) and not pair.work("down", 5_000_000)
    (row,) = pair.nodes["down"].broker.views["Large"].rows
    assert row[1] == 7 and pair.nodes["down"].broker.horizons == {"M": 900}


def test_brokers_of_another_file_are_not_believed() -> None:
    pair = Pair()
    pair.begin()
    part = pair.nodes["down"].part
    (name,) = part.imports
    pair.carry([Numbers(name, "another", "log", 99)], "down")
    pair.work("down")
    status = pair.nodes["down"].status()
    assert status["of_another_file"] == ["up"] and status["imports"][name]["heard"] < 99


TWICE = {"Twice": "SELECT b, total * 2 AS twice FROM Sold WHERE total < 100"}


def test_a_view_is_added_where_all_is_that_it_needs() -> None:
    pair = Pair()
    pair.begin()
    pair.publish(1, 7)
    pair.carry(pair.work("up"), "down")
    pair.work("down")
    broker = pair.nodes["down"].broker
    served_now = broker.load(TWICE)
    broker.commit([ChangeViews(TWICE)])
    broker.evaluate()
    made = CatchUp(served_now, broker.env.disk, Interpreted)
    made.up_to(broker.log.durable)
    broker.change(served_now, made.evaluations, made.rows)
    pair.publish(2, 4)
    pair.carry(pair.work("up"), "down")
    pair.work("down")
    assert pair.large == [11]
    assert [row[:2] for row in broker.views["Twice"].rows] == [(1, 22)]
    disk = broker.env.disk
    assert isinstance(disk, CrashingDisk)
    again = opened(pair.parts["down"], disk, pair.clock)
    assert [row[:2] for row in again.views["Twice"].rows] == [(1, 22)]


def test_a_view_that_needs_more_than_is_sent_is_refused() -> None:
    with pytest.raises(UsageError, match="needs M of the broker up, which is not sent here"):
        Pair().nodes["down"].broker.load({"Raw": "SELECT t, sold FROM M"})
