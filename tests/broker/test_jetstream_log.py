"""The log of a broker in NATS JetStream: it outlasts the folder, the server, and lost answers."""

from __future__ import annotations

import random
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from millstream.broker.core import Accepted, Broker, Refused
from millstream.broker.env import Env
from millstream.broker.jetstream_log import JetStreamDisk
from millstream.errors import UsageError
from tests.broker.world import SetClock, batch, served
from tests.connectors.test_jetstream import Server
from tests.server.harness import wait_until

TEXT = """CREATE STREAM S (t: time -> k: integer, x: shares, note: text) SLACK 1 SECOND;
          CREATE VIEW V (SELECT k, SUM(x) AS s FROM S GROUP BY k); subscriptions V;"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    one = Server(tmp_path_factory.mktemp("nats"))
    yield one
    one.process.kill()
    one.process.wait()


class Brokers:
    """Mutable: the brokers that a test has opened, which end with it."""

    def __init__(self) -> None:
        self.open: list[Broker] = []

    def opened(self, folder: Path, address: str, patience: float = 1.0) -> Broker:
        broker = Broker(Env(JetStreamDisk(folder, address, patience), SetClock()), served(TEXT))
        self.open.append(broker)
        broker.open()
        return broker

    def close(self) -> None:
        while self.open:
            self.open.pop().env.disk.close()


@pytest.fixture
def brokers() -> Iterator[Brokers]:
    made = Brokers()
    yield made
    made.close()


def sums(broker: Broker) -> dict[Any, Any]:
    broker.evaluate()
    names = broker.views["V"].view.schema.names
    return {row[names.index("k")]: row[names.index("s")] for row in broker.views["V"].rows}


def test_a_log_is_taken_up_with_its_folder_and_without(
    server: Server, brokers: Brokers, tmp_path: Path
) -> None:
    address, folder = f"{server.address}/FLOOR", tmp_path / "a"
    broker = brokers.opened(folder, address)
    broker.commit([batch("S", [(1, 1, 5, ""), (2, 2, 7, "")])])
    # More than one message of the server can have.
    many = [(10 + n, 3, 1, "x" * 500_000) for n in range(5)]
    (answer,) = broker.commit([batch("S", many, "desk", 1)])
    assert isinstance(answer, Accepted)
    identity = broker.identity
    brokers.close()
    for keeps_folder in (True, False):
        if not keeps_folder:
            shutil.rmtree(folder)
        broker = brokers.opened(folder, address)
        assert broker.identity == identity
        assert sums(broker) == {1: 5, 2: 7, 3: 5}
        (again,) = broker.commit([batch("S", many, "desk", 1)])
        assert isinstance(again, Accepted)
        assert again.position == answer.position
        brokers.close()


def test_a_lost_answer_is_no_second_message(
    server: Server, brokers: Brokers, tmp_path: Path
) -> None:
    broker = brokers.opened(tmp_path, f"{server.address}/LOST")
    disk = broker.env.disk
    assert isinstance(disk, JetStreamDisk)
    published, lost = disk._published, [True]

    async def once_lost(data: bytes, headers: dict[str, str]) -> int | None:
        number = await published(data, headers)
        if lost.pop() if lost else False:
            raise TimeoutError("the answer is lost")
        return number

    disk._published = once_lost  # type: ignore[method-assign]
    (answer,) = broker.commit([batch("S", [(1, 1, 5, "")])])
    assert isinstance(answer, Accepted)
    broker.commit([batch("S", [(2, 1, 1, "")])])
    brokers.close()
    shutil.rmtree(tmp_path)
    assert sums(brokers.opened(tmp_path, f"{server.address}/LOST")) == {1: 6}


def test_who_else_writes_is_found_out(server: Server, brokers: Brokers, tmp_path: Path) -> None:
    address = f"{server.address}/TWO"
    one, other = (
        brokers.opened(tmp_path / "one", address),
        brokers.opened(tmp_path / "other", address),
    )
    one.commit([batch("S", [(1, 1, 5, "")])])
    (answer,) = other.commit([batch("S", [(1, 1, 9, "")])])
    assert isinstance(answer, Refused)
    assert "somebody else writes to TWO" in answer.reason
    assert sums(other) == {}
    assert sums(one) == {1: 5}


def test_a_server_that_is_killed_is_waited_for(brokers: Brokers, tmp_path: Path) -> None:
    first = Server(tmp_path)
    port = first.address.rpartition(":")[2]
    broker = brokers.opened(tmp_path / "a", f"{first.address}/FLOOR", 30.0)
    broker.commit([batch("S", [(1, 1, 5, "")])])
    first.process.kill()
    first.process.wait()
    started: list[Server] = []

    def start() -> None:
        time.sleep(0.5)
        started.append(Server(tmp_path, port))

    later = threading.Thread(target=start)
    later.start()
    try:
        (answer,) = broker.commit([batch("S", [(2, 1, 2, "")])])
        assert isinstance(answer, Accepted)
        assert sums(broker) == {1: 7}
        brokers.close()
        shutil.rmtree(tmp_path / "a")
        assert sums(brokers.opened(tmp_path / "a", f"{first.address}/FLOOR")) == {1: 7}
    finally:
        later.join()
        started[0].process.kill()
        started[0].process.wait()


def kill_server_often(brokers: Brokers, folder: Path, kills: int, seed: int) -> None:
    """Batches one after the other, each until it is acknowledged, while the server is killed."""
    chance = random.Random(seed)
    one = [Server(folder)]
    address = f"{one[0].address}/OFTEN"
    port = one[0].address.rpartition(":")[2]
    broker = brokers.opened(folder / "a", address, 20.0)
    is_over = threading.Event()
    positions: list[int] = []

    def publish() -> None:
        while not is_over.is_set():
            number = len(positions) + 1
            (answer,) = broker.commit([batch("S", [(number, number % 3, 1, "")], "desk", number)])
            if isinstance(answer, Accepted):
                positions.append(answer.position)

    publisher = threading.Thread(target=publish)
    publisher.start()
    try:
        for _ in range(kills):
            count = len(positions)
            wait_until(lambda before=count: len(positions) > before)
            time.sleep(chance.random() * 0.3)
            one[0].process.kill()
            one[0].process.wait()
            one[0] = Server(folder, port)
        is_over.set()
        publisher.join(60)
        assert len(set(positions)) == len(positions) > kills
        assert sum(sums(broker).values()) == len(positions)
        brokers.close()
        shutil.rmtree(folder / "a")
        assert sum(sums(brokers.opened(folder / "a", address)).values()) == len(positions)
    finally:
        is_over.set()
        publisher.join(60)
        one[0].process.kill()
        one[0].process.wait()


def test_a_server_that_is_killed_under_load_loses_and_doubles_nothing(
    brokers: Brokers, tmp_path: Path
) -> None:
    kill_server_often(brokers, tmp_path, 2, 1)


@pytest.mark.proof
@pytest.mark.parametrize("seed", range(5))
def test_a_server_that_is_killed_twenty_times(brokers: Brokers, tmp_path: Path, seed: int) -> None:
    kill_server_often(brokers, tmp_path, 20, seed)


def test_folders_and_streams_of_others_are_left_alone(server: Server, tmp_path: Path) -> None:
    (tmp_path / "0000000000000001.log").write_bytes(b"a log")
    with pytest.raises(UsageError, match="a log of its own"):
        JetStreamDisk(tmp_path, f"{server.address}/MINE")
    assert [p.name for p in tmp_path.glob("*.log")] == ["0000000000000001.log"]
    server.make("theirs")
    server.publish("theirs.a", b"{}")
    with pytest.raises(UsageError, match="none of a log"):
        JetStreamDisk(tmp_path / "b", f"{server.address}/theirs")
