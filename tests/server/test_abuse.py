"""Questions that are too much, too slow or too early, and clients that take no answers."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import httpx
import pytest
import uvicorn

from millstream import api
from millstream.olap.groups import Limits
from millstream.server.app import ROUTES, make_app
from millstream.server.listen import bound, config_of
from millstream.server.routes import Bounds, TokenScope
from millstream.server.serving import ServeSettings, Serving
from millstream.server.tokens import Tokens
from tests.server.harness import READER, listening, project, running, wait_until

CUBE = "/cubes/Sales_cube"
ROWS = [(n * 100_000, "p", "k", n % 3, n) for n in range(30)]


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[httpx.Client, Serving]]:
    with running(project(tmp_path_factory.mktemp("served"), ROWS)) as both:
        yield both


@contextmanager
def hasty(serving: Serving, seconds: float) -> Iterator[str]:
    """The same server with all routes bound to so many seconds; answers its host."""
    own = bound(0)
    host = f"127.0.0.1:{own.getsockname()[1]}"
    routes = tuple(replace(r, bounds=Bounds(seconds=seconds)) for r in ROUTES)
    tokens = Tokens({READER: frozenset({TokenScope.READ})})
    server = uvicorn.Server(config_of(make_app(serving, tokens, frozenset({host}), routes)))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [own]}, daemon=True)
    thread.start()
    wait_until(lambda: server.started)
    try:
        yield host
    finally:
        server.should_exit = True
        thread.join(20)


def test_an_answer_with_too_many_cells_is_refused(
    asked: tuple[httpx.Client, Serving], monkeypatch: pytest.MonkeyPatch
) -> None:
    client, _ = asked
    for name in ("cells", "groups", "read"):
        monkeypatch.setattr("millstream.server.cubes.Limits", partial(Limits, **{name: 2}))
        # No two are equal, so none is answered by what is known already.
        question = {"rows": ["product", "shop"], "limit": 50 + len(name)}
        reply = client.post(f"{CUBE}/query", json=question)
        assert reply.status_code == 413, reply.text
        assert "more than 2" in reply.json()["error"] and reply.json()["faults"][0]["hint"]


def test_a_question_that_takes_too_long_is_refused(
    asked: tuple[httpx.Client, Serving], monkeypatch: pytest.MonkeyPatch
) -> None:
    client, _ = asked
    monkeypatch.setattr("millstream.server.cubes.Limits", lambda **_: Limits(seconds=-1.0))
    reply = client.post(f"{CUBE}/query", json={"rows": ["shop"], "limit": 60})
    assert reply.status_code == 408 and "takes longer" in reply.json()["error"]
    monkeypatch.undo()  # and it is tried again when it is asked again
    assert client.post(f"{CUBE}/query", json={"rows": ["shop"], "limit": 60}).status_code == 200


def test_a_body_that_does_not_come_is_not_waited_for(asked: tuple[httpx.Client, Serving]) -> None:
    _, serving = asked
    with hasty(serving, 0.2) as host:
        name, port = host.split(":")
        with socket.create_connection((name, int(port)), timeout=60) as slow:
            slow.sendall(
                f"POST {CUBE}/query HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {READER}\r\n"
                "Content-Length: 50\r\n\r\n{".encode()
            )
            assert slow.recv(100).startswith(b"HTTP/1.1 408 ")


def test_who_takes_no_answers_holds_up_nobody(asked: tuple[httpx.Client, Serving]) -> None:
    client, _ = asked
    host, port = client.base_url.host, client.base_url.port
    request = (
        f"GET {CUBE}/lattice HTTP/1.1\r\nHost: {host}:{port}\r\n"
        f"Authorization: Bearer {READER}\r\n\r\n"
    ).encode()
    slow = []
    try:
        for _ in range(20):
            one = socket.create_connection((str(host), int(port or 0)), timeout=60)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
            one.sendall(50 * request)
            slow.append(one)
        for _ in range(5):
            assert client.post(f"{CUBE}/query", json={"rows": ["shop"]}).status_code == 200
    finally:
        for one in slow:
            one.close()


def test_until_the_state_is_there_again_one_is_asked_to_wait(tmp_path: Path) -> None:
    serving = Serving(api.compile(project(tmp_path, ROWS)), ServeSettings())
    with listening(serving) as client:  # its run has not been started
        for reply in (client.get("/cubes"), client.post(f"{CUBE}/query", json={})):
            assert reply.status_code == 503 and reply.headers["Retry-After"] == "1"
        assert client.get("/status").json()["status"] == "recovering"


def test_before_the_first_row_answers_are_empty(tmp_path: Path) -> None:
    with running(project(tmp_path)) as (client, _):
        for question in ({}, {"rows": ["shop"], "grain": "Second", "totals": True, "limit": 2}):
            reply = client.post(f"{CUBE}/query", json=question)
            assert reply.status_code == 200 and reply.json()["cells"] == []
            assert reply.json()["as_of"] is None
        assert client.get(f"{CUBE}/members?attribute=kind").json()["members"] == []
        assert client.get(f"{CUBE}/lattice").status_code == 200
