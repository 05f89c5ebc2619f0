"""Requests that nobody should make: they are refused, nothing fails, and the broker goes on."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest

from tests.server.broker_harness import BOTH, lines, running
from tests.server.harness import wait_until

WORDS = [
    "Sold", "B", "M", "'", '"', "--", ";", "SELECT", "1e999", "\0", "ü", "../..", "%00", "final",
    "b > 1", "NULL", "(" * 50, "-1", "9" * 30, "é\n", "CASE", "x" * 5000, "total / 0 > 1",
    "coalesce(total, 1)", "1 = 1", "total IN (1, 2)", "NOT", "{}", "[]", "[[", "null",
]  # fmt: skip


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with running(tmp_path_factory.mktemp("abused")) as (client, _):
        yield client


def asked(client: httpx.Client, chance: random.Random) -> int:
    some = [chance.choice(WORDS) for _ in range(5)]
    words = [quote(word, safe="") for word in some]
    method, path = chance.choice([
        ("GET", f"/views/{words[0]}?where={words[1]}"),
        ("GET", f"/views/Sold?where={words[1]}%20{words[2]}&final={words[3]}&ranges={words[4]}"),
        ("GET", f"/views/Sold?where={words[1]}"),
        ("POST", f"/streams/{words[0]}?publisher={words[1]}&sequence={words[2]}"),
        ("POST", f"/streams/M?publisher={words[1]}&sequence={chance.randrange(5)}"),
        ("POST", "/streams/M"),
        ("POST", "/streams/M/silence"),
        ("PUT", f"/views/{words[0]}"),
        ("DELETE", f"/views/{words[0]}"),
    ])  # fmt: skip
    body = " ".join(some).encode() if chance.random() < 0.7 else chance.randbytes(50)
    kind = chance.choice(("application/json", "application/vnd.apache.arrow.stream", "x/y"))
    content = body if method in ("POST", "PUT") else None
    headers = {"Content-Type": kind}
    return client.request(method, path, content=content, headers=headers).status_code


def test_nothing_fails_whatever_is_asked(client: httpx.Client) -> None:
    chance = random.Random(11)
    statuses = [asked(client, chance) for _ in range(250)]
    assert {status for status in statuses if status >= 500} <= {503}, "being made"
    body = lines({"t": 999_999, "b": 4242, "sold": 7})
    assert client.post("/streams/M", content=body).json()["rows"][0]["fate"] == "accepted"
    where = {"where": "total = 7 AND integer(b) = 4242"}
    wait_until(lambda: len(client.get("/views/Sold", params=where).json()["rows"]) == 1)


def test_half_a_batch_is_no_batch(client: httpx.Client) -> None:
    """A publisher that dies within its request has published nothing."""
    position = client.get("/status").json()["position"]
    host, port = client.base_url.host, client.base_url.port
    assert port is not None
    for size in (0, 1, 40, 90):
        body = lines(*({"t": n, "b": 1, "sold": 1} for n in range(5000, 5005)))
        head = (
            f"POST /streams/M HTTP/1.1\r\nHost: {host}:{port}\r\nAuthorization: Bearer {BOTH}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        with socket.create_connection((host, port)) as connection:
            connection.sendall(head.encode() + body[:size])
    assert client.get("/status").json()["position"] == position


def test_a_token_is_never_written(tmp_path: Path) -> None:
    with running(tmp_path) as (client, _):
        client.post("/streams/M", content=lines({"t": 1, "b": 1, "sold": 1}))
        client.get("/views/Sold?where=" + quote(f"text = '{BOTH[:3]}'"))
    written = b"".join(p.read_bytes() for p in tmp_path.rglob("*") if p.is_file())
    assert written and BOTH.encode() not in written
