"""Who may ask, and what: every route of the table with every kind of token, host and origin."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from millstream.errors import UsageError
from millstream.server.app import ROUTES
from millstream.server.listen import bound
from millstream.server.routes import Route, TokenScope
from millstream.server.tokens import read_tokens
from tests.server.harness import PUBLISHER, READER, project, running

SECOND = 1_000_000
CUBE = "/cubes/Sales_cube"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    rows = [(n * SECOND, "p", "k", 1, n) for n in range(8)]
    with running(project(tmp_path_factory.mktemp("served"), rows)) as (client, _):
        yield client


def call(client: httpx.Client, route: Route, **headers: str) -> httpx.Response:
    path = route.path.replace("{cube}", "Sales_cube").replace("{step}", "pivot")
    if route.talk is not None:
        headers |= {
            "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
        }  # fmt: skip
    plain = httpx.Client(base_url=client.base_url, timeout=30)
    with plain:
        if route.method == "POST":
            return plain.post(path, json={}, headers=headers)
        return plain.get(path, headers=headers)


GUARDED = [r for r in ROUTES if r.scope is not TokenScope.OPEN]


@pytest.mark.parametrize("route", GUARDED, ids=lambda r: f"{r.method} {r.path}")
def test_no_route_answers_without_a_token_of_its_scope(client: httpx.Client, route: Route) -> None:
    assert call(client, route).status_code == 401
    for wrong in ("", "Bearer", "Bearer x", f"Bearer {READER}x", f"Basic {READER}", READER):
        assert call(client, route, Authorization=wrong).status_code == 401
    assert call(client, route, Authorization=f"Bearer {PUBLISHER}").status_code == 403
    in_url = httpx.get(f"{client.base_url}/cubes?token={READER}")
    assert in_url.status_code == 401


def test_open_routes_say_nothing_of_the_data(client: httpx.Client) -> None:
    for path in ("/", "/openapi.json"):
        reply = httpx.get(f"{client.base_url}{path}")
        assert reply.status_code == 200 and "Sales_cube" not in reply.text
    described = httpx.get(f"{client.base_url}/openapi.json").json()["paths"]
    assert {r.path for r in ROUTES if r.talk is None} <= described.keys()


HOSTS = ["evil.com", "127.0.0.1", "127.0.0.1:80", "127.0.0.1.evil.com", "LOCALHOST:1", ""]


@pytest.mark.parametrize("host", HOSTS)
def test_other_hosts_are_refused(client: httpx.Client, host: str) -> None:
    reply = client.get("/cubes", headers={"Host": host})
    assert reply.status_code in (400, 403)


def origins(port: int) -> list[str]:
    mine = f"http://127.0.0.1:{port}"
    return [
        "null", "http://evil.com", f"https://127.0.0.1:{port}", f"{mine}.evil.com", f"{mine}/",
        mine.upper(), "http://127.0.0.1", f"http://evil.com:{port}", f"{mine}, http://evil.com",
        f"http://127.0.0.1:{port}@evil.com", "", "http://xn--lcalhost-54a",
    ]  # fmt: skip


def test_pages_from_elsewhere_are_refused(client: httpx.Client) -> None:
    port = client.base_url.port
    assert port is not None
    mine = {"Origin": f"http://127.0.0.1:{port}"}
    assert client.get("/cubes", headers=mine).status_code == 200
    socket = next(r for r in ROUTES if r.talk is not None)
    for origin in origins(port):
        assert client.get("/cubes", headers={"Origin": origin}).status_code == 403, origin
        reply = call(client, socket, Origin=origin, Authorization=f"Bearer {READER}")
        assert reply.status_code == 403, origin


HOSTILE: list[tuple[Any, str]] = [
    ([], "expected an object"),
    ({"rows": 3}, "expected a list of names"),
    ({"rows": [["p"]]}, "expected a name"),
    ({"rows": ["produkt"]}, "unknown attribute"),
    ({"rows": ["product; DROP TABLE sales"]}, "unknown attribute"),
    ({"rows": ["__class__"]}, "unknown attribute"),
    ({"rows": ["product", "product"]}, "twice"),
    ({"rows": ["product"], "columns": ["product"]}, "in the rows and in the columns"),
    ({"measures": ["totl"]}, "unknown measure"),
    ({"grain": "Fortnight"}, "unknown grain"),
    ({"grain": "ms"}, "finer than TimeGrain"),
    ({"grain": "Hour"}, "longer than the c-window"),
    ({"grain": "999999999 Years"}, "longer than the c-window"),
    ({"where": {"shop": "one"}}, "to be an integer"),
    ({"where": {"shop": 10**30}}, "to be an integer"),
    ({"where": {"shop": {"like": "%"}}}, "is no text"),
    ({"where": {"shop": {"above": 1}}}, "unknown key"),
    ({"where": {"price": 1}}, "unknown attribute"),
    ({"time": {"from": 1_500_000}}, "within a partition"),
    ({"time": {"last": 0}}, "number of partitions"),
    ({"time": {"from": "yesterday"}}, "expected a time"),
    ({"time": {"from": -(10**12)}}, "before the window"),
    ({"as_of": 10**15}, "future"),
    ({"as_of": 0}, "steps back"),
    ({"as_of": True}, "expected a time"),
    ({"order": ["-amount"]}, "unknown name to order by"),
    ({"limit": -1, "rows": ["shop"]}, "whole number"),
    ({"limit": 1}, "there are none"),
    ({"others": True}, "limit"),
    ({"share": ["least"], "rows": ["shop"]}, "unknown sum or count"),
    ({"compare": {"earlier": "1 Month"}}, "months"),
    ({"compare": {"earlier": 10**9}}, "before what is kept"),
    ({"totals": "yes"}, "true or false"),
]


@pytest.mark.parametrize(("question", "message"), HOSTILE)
def test_questions_that_mean_nothing_are_told_so(
    client: httpx.Client, question: Any, message: str
) -> None:
    reply = client.post(f"{CUBE}/query", json=question)
    assert reply.status_code == 400
    told = reply.json()["faults"]
    assert any(message in fault["message"] + fault.get("hint", "") for fault in told), told


def test_all_that_is_wrong_is_told_at_once(client: httpx.Client) -> None:
    question = {"rows": ["shp"], "gain": "Second", "where": {"shop": "x"}, "limit": 0}
    faults = client.post(f"{CUBE}/query", json=question).json()["faults"]
    assert [f["at"] for f in faults] == ["question", "rows[0]", "limit", "where.shop"]
    assert 'Did you mean "shop"?' in faults[1]["hint"]


def test_what_is_too_much_is_refused(client: httpx.Client) -> None:
    def post(content: bytes, path: str = "query") -> httpx.Response:
        return client.post(f"{CUBE}/{path}", content=content)

    assert post(b"[" * 100_000).status_code == 413
    assert post(b"[" * 60_000).status_code == 400
    assert post(b'{"rows": "\xff"}').status_code == 400
    assert post(b'{"rows": ["\\ud800"]}').status_code == 400
    assert post(b"NaN").status_code == 400
    assert post(b"{}", "roll-over").status_code == 404
    assert client.get("/cubes/Sales").status_code == 404
    assert client.get("/cubes/../../etc/passwd").status_code == 404
    assert client.get(f"{CUBE}/lattice?from=-1").status_code == 400
    assert client.delete(CUBE).status_code == 405


def test_a_file_of_tokens_is_only_for_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_text(f"{READER} read, publish  # a person\n")
    with pytest.raises(UsageError, match="others can read"):
        read_tokens(path)
    path.chmod(0o600)
    assert read_tokens(path).scopes(READER) == frozenset({TokenScope.READ, TokenScope.PUBLISH})
    for text in ("short read\n", f"{READER}\n", f"{READER} wrte\n", "\n"):
        path.write_text(text)
        with pytest.raises(UsageError):
            read_tokens(path)


def test_answers_are_sent_at_once() -> None:
    """Of other sockets asyncio holds small answers back until those before are acknowledged."""
    with bound(0) as own:
        assert own.proto == socket.IPPROTO_TCP
