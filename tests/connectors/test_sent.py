"""Results that are sent: posted to an address, and written to a topic."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import millstream
from millstream.connectors.elsewhere import kafka_out, post
from millstream.errors import MillstreamError
from tests.connectors.test_elsewhere import PROGRAM, Cluster, line

confluent_kafka = pytest.importorskip("confluent_kafka")


def rows(first: int, last: int) -> list[dict[str, Any]]:
    return [json.loads(line(n)) for n in range(first, last)]


def folder_of(path: Path, first: int, last: int) -> str:
    """An input that grows: one more file."""
    path.mkdir(exist_ok=True)
    lines = "".join(f"{line(n)}\n" for n in range(first, last))
    (path / f"{first:03}.jsonl").write_text(lines)
    return f"{path}/"


class Receiver:
    """Mutable: a server that keeps what is posted, and answers as it is told to."""

    def __init__(self) -> None:
        self.posts: list[tuple[str, str, bytes]] = []
        self.headers: dict[str, str] = {}
        self.answers: list[int] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status = receiver.answers.pop(0) if receiver.answers else 200
                if status == 200:
                    receiver.posts.append((self.path, self.headers["Idempotency-Key"], body))
                    receiver.headers = dict(self.headers)
                self.send_response(status)
                self.end_headers()
                self.wfile.write(b"no such hook" if status == 404 else b"")

            def log_message(self, *_: object) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def numbers(self) -> list[int]:
        return [json.loads(one)["n"] for _, _, body in self.posts for one in body.splitlines()]

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    monkeypatch.setattr(post, "_WAITS", (0.0, 0.0))
    one = Receiver()
    yield one
    one.close()


def send(place: str, given: Any, **options: Any) -> None:
    millstream.compile(text=PROGRAM).run(
        {"trades": given}, {"out": place}, engine="local", **options
    )


def test_each_row_is_posted_alone(receiver: Receiver) -> None:
    receiver.answers = [503, 429]  # which passes
    send(f"{receiver.address}/hook?v=1", rows(0, 3))
    assert [0, 1, 2] == receiver.numbers()
    assert ["/hook?v=1"] * 3 == [path for path, _, _ in receiver.posts]
    assert 3 == len({key for _, key, _ in receiver.posts})
    assert "application/json" == receiver.headers["Content-Type"]


def test_many_rows_go_together_and_who_sends_them_is_told(receiver: Receiver) -> None:
    place = receiver.address.replace("//", "//me:a%20b@")
    send(f"{place}/hook?format=jsonl", rows(0, 3))
    assert 1 == len(receiver.posts)
    assert [0, 1, 2] == receiver.numbers()
    assert "Basic bWU6YSBi" == receiver.headers["Authorization"]


def test_what_was_posted_is_not_posted_again(receiver: Receiver, tmp_path: Path) -> None:
    kept = {"checkpoint": tmp_path / "ck"}
    for first in (0, 3, 3):
        send(f"{receiver.address}/hook", folder_of(tmp_path / "in", first, first + 3), **kept)
    assert list(range(6)) == receiver.numbers()


def test_a_batch_that_may_be_missing_is_posted_again_under_the_same_key(
    receiver: Receiver, tmp_path: Path
) -> None:
    kept = {"checkpoint": tmp_path / "ck"}
    place = f"{receiver.address}/hook"
    receiver.answers = [200, 404]
    with pytest.raises(MillstreamError, match="404 Not Found: no such hook"):
        send(place, folder_of(tmp_path / "in", 0, 3), **kept)
    assert [0] == receiver.numbers()
    send(place, f"{tmp_path / 'in'}/", **kept)
    assert [0, 0, 1, 2] == receiver.numbers()
    keys = [key for _, key, _ in receiver.posts]
    assert keys[0] == keys[1] and 3 == len(set(keys))


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("http://127.0.0.1:9/hook", "could not be posted: Connection refused"),
        ("http://no.such.host.invalid/hook", "could not be posted"),
        ("http://127.0.0.1:9/hook?format=xml", 'cannot be posted as "xml"'),
        ("https://hooks.example.org", "names no path behind its host"),
        ("https:///hook", "names no host"),
        ("http://127.0.0.1:x/hook", '"x" is no port'),
        ("http://127.0.0.1:99999/hook", '"99999" is no port'),
    ],
)
def test_what_is_wrong_with_an_address_is_said(
    place: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(post, "_WAITS", ())
    with pytest.raises(MillstreamError, match=message):
        send(place, rows(0, 1))


def test_the_address_of_a_webhook_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(post, "_WAITS", ())
    with pytest.raises(MillstreamError) as caught:
        send("https://127.0.0.1:9/services/T0/SECRET?sig=SECRET", rows(0, 1))
    assert "SECRET" not in str(caught.value)
    assert "https://127.0.0.1:9/***" in str(caught.value)
    with pytest.raises(MillstreamError, match="is for outputs"):
        millstream.compile(text=PROGRAM).run({"trades": "https://127.0.0.1:9/x"}, engine="local")


# --- Kafka ---


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    return Cluster()


def messages(cluster: Cluster, topic: str) -> list[tuple[bytes | None, int]]:
    """The keys and numbers of what is committed, by number."""
    settings = {"bootstrap.servers": cluster.address, "group.id": "test",
                "enable.partition.eof": True, "log_level": 0}  # fmt: skip
    consumer = confluent_kafka.Consumer(settings)
    waiting = set(consumer.list_topics(topic, timeout=30).topics[topic].partitions)
    consumer.assign([confluent_kafka.TopicPartition(topic, n, 0) for n in waiting])
    found: list[tuple[bytes | None, int]] = []
    while waiting:
        message = consumer.poll(30)
        if message.error() is None:
            found.append((message.key(), json.loads(message.value())["n"]))
        else:
            waiting.discard(message.partition())
    consumer.close()
    return sorted(found, key=lambda pair: pair[1])


def test_a_result_is_one_transaction_with_keys(cluster: Cluster) -> None:
    send(f"kafka://{cluster.address}/whole?key=n", rows(0, 4))
    assert [(str(n).encode(), n) for n in range(4)] == messages(cluster, "whole")


def test_a_topic_goes_on_where_it_was(cluster: Cluster, tmp_path: Path) -> None:
    kept = {"checkpoint": tmp_path / "ck"}
    for first in (0, 3, 3):
        given = folder_of(tmp_path / "in", first, first + 3)
        send(f"kafka://{cluster.address}/more", given, **kept)
    assert [(None, n) for n in range(6)] == messages(cluster, "more")


def test_a_batch_that_is_committed_is_not_sent_again(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker keeps the offsets of a transaction; that of librdkafka does not, so we do."""
    offsets: dict[str, int] = {}
    made = kafka_out.KafkaWriter._made

    class Producer:
        def __init__(self, real: Any, name: str) -> None:
            self.real, self.name = real, name

        def __getattr__(self, name: str) -> Any:
            return getattr(self.real, name)

        def send_offsets_to_transaction(self, places: Any, group: Any, seconds: float) -> None:
            self.real.send_offsets_to_transaction(places, group, seconds)
            offsets[self.name] = places[0].offset

    class Consumer(Producer):
        def committed(self, places: Any, seconds: float) -> Any:
            (one,) = self.real.committed(places, seconds)
            one.offset = offsets.get(self.name, one.offset)
            return [one]

    def noted(self: Any, kind: str, settings: dict[str, Any]) -> Any:
        real = made(self, kind, settings)
        if "transactional.id" in settings:
            return Producer(real, settings["transactional.id"])
        return Consumer(real, settings["group.id"]) if kind == "Consumer" else real

    monkeypatch.setattr(kafka_out.KafkaWriter, "_made", noted)
    kept = {"checkpoint": tmp_path / "ck"}
    given = folder_of(tmp_path / "in", 0, 3)
    send(f"kafka://{cluster.address}/once", given, **kept)
    (tmp_path / "ck" / "told" / "last").unlink()  # as if the run had been killed before
    send(f"kafka://{cluster.address}/once", given, **kept)
    assert [(None, n) for n in range(3)] == messages(cluster, "once")
    assert [1] == list(offsets.values())


def test_what_is_wrong_with_a_topic_of_results_is_said(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_out, "_REACH_SECONDS", 2.0)
    for place, message in (
        (f"kafka://{cluster.address}/t?key=m", 'has no column "m"'),
        (f"kafka://{cluster.address}/t?format=avro", "messages are written as JSON"),
        (f"kafka://{cluster.address}/t?colour=red", 'unknown setting "colour"'),
        (f"kafka://{cluster.address}/t?security.protocol=red", "librdkafka says"),
        ("kafka://127.0.0.1:9/t?sasl.password=SECRET", "Kafka cannot be reached: .*refused"),
        ("kafka://me:SECRET@127.0.0.1:9/t", "Kafka has no users before the host"),
        ("kafka://127.0.0.1:port/t", '"port" is no port'),
        ("kafka://127.0.0.1:9,:9/t", "names no host"),
    ):
        with pytest.raises(MillstreamError, match=message) as caught:
            send(place, rows(0, 1))
        assert "SECRET" not in str(caught.value)


def test_a_user_before_a_host_is_told_to_nats_and_shown_to_nobody() -> None:
    from millstream.connectors.location import parse_location

    location = parse_location("nats://me:SECRET@127.0.0.1:4222/T", Path())
    assert location.elsewhere is not None
    assert "me:SECRET" == location.elsewhere.user
    assert "SECRET" not in repr(location)
