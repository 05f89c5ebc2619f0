"""Publishing and subscribing over HTTP."""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import orjson
import pyarrow as pa
import pytest
from websockets.sync.client import connect

from millstream.server.broker_run import BrokerRun
from millstream.server.brokers import BROKER_ROUTES, LARGEST_BATCH
from millstream.server.routes import Route, TokenScope
from tests.server.broker_harness import BOTH, events, lines, running
from tests.server.harness import PUBLISHER, READER, wait_until

HOUR = 3_600_000_000


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[httpx.Client, BrokerRun]]:
    with running(tmp_path_factory.mktemp("broker")) as made:
        yield made


@pytest.fixture(scope="module")
def client(served: tuple[httpx.Client, BrokerRun]) -> httpx.Client:
    return served[0]


def call(client: httpx.Client, route: Route, token: str | None) -> int:
    path = route.path.replace("{stream}", "B").replace("{view}", "Sold")
    headers = {} if token is None else {"Authorization": token}
    if route.talk is not None:
        headers |= {
            "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
        }  # fmt: skip
    with httpx.Client(base_url=client.base_url, timeout=30) as plain:
        content = b"{}" if route.method == "POST" else None
        return plain.request(route.method, path, headers=headers, content=content).status_code


@pytest.mark.parametrize("route", BROKER_ROUTES, ids=lambda r: f"{r.method} {r.path}")
def test_every_route_wants_a_token_of_its_scope(client: httpx.Client, route: Route) -> None:
    if route.scope is TokenScope.OPEN:
        assert call(client, route, None) == 200
        return
    position = client.get("/status").json()["position"]
    for token in (None, "", "Bearer x", f"Bearer {BOTH}x", BOTH):
        assert call(client, route, token) == 401
    other = PUBLISHER if route.scope is TokenScope.READ else READER
    assert call(client, route, f"Bearer {other}") == 403
    assert client.get("/status").json()["position"] == position


def test_rows_are_told_their_fates_and_views_their_changes(tmp_path: Path) -> None:
    with running(tmp_path) as (client, _):
        path = "/views/Rest/changes?ranges=1&mask=1"
        with events(client, path) as told:
            assert [next(told)[0] for _ in range(2)] == ["state", "live"]
            body = lines({"b": 5, "k": 1, "bid": 10}, {"b": 6, "k": 1, "bid": -1}, {"b": "x"})
            reply = client.post("/streams/B?publisher=p&sequence=1", content=body).json()
            assert [r["fate"] for r in reply["rows"]] == ["accepted", "rejected", "rejected"]
            assert reply["rows"][1]["reason"] == "bid: -1 is below 0"
            kind, _, data = next(told)
            row = {"b": 5, "k": 1, "rest": 10, "rest_low": None, "rest_high": 10,
                   "_steps": 1, "_final": False, "_mask": "t"}  # fmt: skip
            assert (kind, data) == ("changes", {"changes": [{"weight": 1, "row": row}]})
            client.post("/streams/M", content=lines({"t": 9, "b": 5, "sold": 4}))
            changes = [(c["weight"], c["row"]["rest"]) for c in _changes(told)]
            assert changes == [(-1, 10), (1, 6)]
        wait_until(lambda: client.get("/views/Rest").json()["rows"][0]["rest"] == 6)
        again = client.post("/streams/B?publisher=p&sequence=1", content=body).json()
        assert [r["fate"] for r in again["rows"]] == ["duplicate", "rejected", "rejected"]
        other = client.post("/streams/B?publisher=p&sequence=1", content=b"{}")
        assert other.status_code == 409
        counts = client.get("/status").json()["streams"]["B"]
        assert (counts["accepted"], counts["rejected"], counts["duplicate"]) == (1, 2, 3)
        assert 'millstream_rows_total{stream="B",fate="accepted"} 1' in client.get("/metrics").text


def _changes(told: Iterator[tuple[str, str, Any]]) -> list[Any]:
    changes: list[Any] = next(d for kind, _, d in told if kind == "changes")["changes"]
    return changes


def test_who_comes_back_is_told_what_has_changed(client: httpx.Client) -> None:
    with events(client, "/views/Sold/changes") as told:
        token = next(t for kind, t, _ in told if kind == "live")
    client.post("/streams/M", content=lines({"t": 100, "b": 77, "sold": 3}))
    wait_until(lambda: any(r["b"] == 77 for r in client.get("/views/Sold").json()["rows"]))
    for path, headers in ((f"?after={token}", {}), ("", {"Last-Event-ID": token})):
        with events(client, f"/views/Sold/changes{path}", headers=headers) as told:
            kind, _, data = next(told)
            assert kind == "changes" and [c["row"]["b"] for c in data["changes"]] == [77]
    with events(client, "/views/Sold/changes?after=nonsense") as told:
        assert [kind for kind, _, _ in itertools.islice(told, 3)] == ["reset", "state", "live"]


def test_a_condition_selects_rows(client: httpx.Client) -> None:
    client.post("/streams/M", content=lines({"t": 201, "b": 81, "sold": 3}, {"t": 202, "b": 82}))
    wait_until(lambda: any(r["b"] == 81 for r in client.get("/views/Sold").json()["rows"]))
    rows = client.get(
        "/views/Sold", params={"where": "total = 3 AND n = 1 AND integer(b) > 80"}
    ).json()["rows"]
    assert [r["b"] for r in rows] == [81]


def test_arrow_is_a_batch_too(client: httpx.Client) -> None:
    table = pa.table({"t": pa.array([301, None], pa.int64()).cast(pa.timestamp("us", tz="UTC")),
                      "b": pa.array([91, 91]).cast(pa.timestamp("us", tz="UTC")),
                      "sold": [1, -1]})  # fmt: skip
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    kind = {"Content-Type": "application/vnd.apache.arrow.stream"}
    reply = client.post("/streams/M", content=sink.getvalue(), headers=kind)
    assert [r["fate"] for r in reply.json()["rows"]] == ["accepted", "rejected"]
    assert client.post("/streams/M", content=b"no", headers=kind).status_code == 400


def test_a_websocket_tells_the_same(client: httpx.Client) -> None:
    url = str(client.base_url).replace("http", "ws")
    headers = {"Authorization": f"Bearer {BOTH}"}
    with connect(f"{url}/views/Sold/subscribe", additional_headers=headers) as socket:
        kinds = [orjson.loads(socket.recv())["type"] for _ in range(2)]
        assert kinds == ["state", "live"]
        client.post("/streams/M", content=lines({"t": 401, "b": 95, "sold": 1}))
        told = iter(lambda: orjson.loads(socket.recv()), None)
        changes = next(m for m in told if m["type"] == "changes")
        assert changes["changes"][0]["row"]["b"] == 95 and changes["token"]
    with connect(f"{url}/views/None/subscribe", additional_headers=headers) as socket:
        assert "there is no view" in orjson.loads(socket.recv())["error"]
    with connect(f"{url}/views/Sold/subscribe?wher=n", additional_headers=headers) as socket:
        assert 'nobody knows "wher"' in orjson.loads(socket.recv())["error"]


@pytest.mark.parametrize(("method", "path", "body", "status", "message"), [
    ("POST", "/streams/Bb", b"", 404, "there is no stream"),
    ("POST", "/streams/B?publisher=p", b"", 400, "numbered by its publisher"),
    ("POST", "/streams/B?publisher=p&sequence=-1", b"", 400, "numbered by its publisher"),
    ("POST", "/streams/B?publisher=p&sequence=99999999999999999999", b"", 400, "numbered"),
    ("POST", "/streams/B/silence", b"{}", 400, "expected a tick"),
    ("POST", "/streams/B/silence", b"[", 400, "expected a tick"),
    ("POST", "/streams/B/silence", b'{"through": 9000000000000000000}', 400, "up to now"),
    ("GET", "/views/Solde", b"", 404, "there is no view"),
    ("GET", "/views/Sold?where=x%3E1", b"", 400, "unknown column"),
    ("GET", "/views/Sold?final=only", b"", 400, "can ever become final"),
    ("GET", "/views/Sold?final=x", b"", 400, "neither all nor only"),
    ("GET", "/views/Sold?ranges=x", b"", 400, "ranges is 1 or 0"),
    ("GET", "/views/Sold?wher=n%3E1", b"", 400, 'nobody knows "wher"'),
    ("GET", "/views/Sold/changes?where=n%3E1&where=n%3E2", b"", 400, "stands twice"),
    ("POST", "/streams/B?publisher=p&sequenc=1", b"", 400, 'nobody knows "sequenc"'),
])  # fmt: skip
def test_what_is_wrong_is_told(
    client: httpx.Client, method: str, path: str, body: bytes, status: int, message: str
) -> None:
    reply = client.request(method, path, content=body)
    assert (reply.status_code, message in reply.json()["error"]) == (status, True), reply.text


def test_bodies_and_lines_have_an_end(client: httpx.Client) -> None:
    assert client.post("/streams/B", content=b" " * (LARGEST_BATCH + 1)).status_code == 413
    long = b'{"b": 1, "k": 1, "bid": 1, "more": "' + b"x" * (1 << 20) + b'"}'
    (row,) = client.post("/streams/B", content=long).json()["rows"]
    assert row["fate"] == "rejected" and "longer than" in row["reason"]


def test_too_many_rows_at_once_are_sent_away(
    served: tuple[httpx.Client, BrokerRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("millstream.server.broker_run.MOST_WAITING", 1)
    reply = served[0].post("/streams/B", content=b"{}\n{}")
    assert reply.status_code == 429 and reply.headers["Retry-After"] == "1"


def test_the_page_has_all_routes(client: httpx.Client) -> None:
    page = httpx.get(f"{client.base_url}/").text
    assert all(route.path in page for route in BROKER_ROUTES)
