"""The client in Python and on the command line: it sends and listens until it is done."""

from __future__ import annotations

import http.client
import itertools
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from millstream.cli.main import main
from millstream.client import Client, Event, Refused
from tests.server.broker_harness import BOTH, running
from tests.server.harness import wait_until


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    with running(tmp_path) as (client, _):
        yield str(client.base_url)


def test_a_publisher_counts_and_a_subscriber_hears(url: str) -> None:
    client = Client(url, BOTH)
    desk = client.publisher("desk")
    assert desk.publish("B", [{"b": 1, "k": 1, "bid": 9}]) == [{"fate": "accepted", "tick": 1}]
    desk.publish("M", [{"t": 2, "b": 1, "sold": 4}])
    assert desk.sequence == 3
    wait_until(lambda: [r["rest"] for r in client.rows("Rest", ranges=True)] == [5])
    client.silence("B", 1)
    with pytest.raises(Refused, match="there is no view") as refused:
        next(client.subscribe("Rset"))
    assert refused.value.status == 404
    with pytest.raises(Refused, match="a token is needed"):
        Client(url, "wrong-token-0123456789").rows("Rest")


def test_what_is_lost_on_the_way_is_sent_and_heard_again(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []
    client = Client(url, BOTH, waited.append)
    right = Client.published
    losses = itertools.count()

    def losing(self: Client, *given: object) -> object:
        made = right(self, *given)  # type: ignore[arg-type]
        if next(losses) < 2:
            raise http.client.RemoteDisconnected("gone")
        return made

    monkeypatch.setattr(Client, "published", losing)
    assert client.publisher("p").publish("M", [{"t": 5, "b": 1, "sold": 4}]) == [
        {"fate": "duplicate", "tick": 5}]  # fmt: skip
    assert waited == [0.1, 0.2]
    right_events = Client._events

    def breaking(self: Client, path: str, after: str | None) -> Iterator[Event]:
        yield from itertools.islice(right_events(self, path, after), 2)
        raise ConnectionResetError

    monkeypatch.setattr(Client, "_events", breaking)
    wait_until(lambda: bool(client.rows("Sold")))
    heard = client.subscribe("Sold")
    assert [next(heard).kind for _ in range(2)] == ["state", "live"]
    monkeypatch.undo()
    client.publisher("q").publish("M", [{"t": 6, "b": 1, "sold": 1}])
    changes = next(e for e in heard if e.kind == "changes")
    assert [c["row"]["total"] for c in changes.data["changes"]] == [4, 5]


def test_publish_and_subscribe_as_commands(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MILLSTREAM_TOKEN", BOTH)
    rows = tmp_path / "sold.csv"
    rows.write_text("t,b,sold\n1970-01-01T00:00:01Z,7,3\n2,7,x\n")
    assert main(["publish", url, "M", str(rows), "--publisher", "p", "--batch", "1"]) == 0
    told = capsys.readouterr().err
    assert "1 accepted, 1 rejected; next sequence of p: 3" in told and "sold: expected" in told
    client = Client(url, BOTH)
    wait_until(lambda: bool(client.rows("Sold")))
    assert main(["subscribe", url, "Sold", "--once", "--where", "total = 3"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert json.loads(line)["total"] == 3
    monkeypatch.delenv("MILLSTREAM_TOKEN")
    assert main(["subscribe", url, "Sold", "--once"]) == 2
    assert "a token is needed" in capsys.readouterr().err
