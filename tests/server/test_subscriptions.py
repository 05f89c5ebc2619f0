"""Subscriptions: replayed changes are the answer, whoever comes back misses nothing."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from millstream.server.serving import Serving
from tests.server.harness import READER, Process, add_file, project, running, wait_until

SECOND = 1_000_000
CUBE = "/cubes/Sales_cube"
QUERY = {"rows": ["kind", "shop"], "measures": ["n", "total", "most"], "grain": "Second"}
Cells = Counter[str]


@contextmanager
def socket(url: str, said: dict[str, Any] | None = None) -> Iterator[ClientConnection]:
    address = f"{url.replace('http', 'ws')}{CUBE}/subscribe"
    headers = {"Authorization": f"Bearer {READER}"}
    with connect(address, additional_headers=headers) as listening:
        if said is not None:
            listening.send(json.dumps(said))
        yield listening


def replay(cells: Cells, message: dict[str, Any]) -> None:
    """Take in a message, which must never take away what is not there."""
    if message["type"] == "snapshot":
        cells.clear()
        cells.update(json.dumps(c, sort_keys=True) for c in message["cells"])
    for change in message.get("changes", ()):
        key = json.dumps(change["cell"], sort_keys=True)
        cells[key] += change["weight"]
        assert cells[key] >= 0
        if not cells[key]:
            del cells[key]


def asked(client: httpx.Client) -> tuple[int, Cells]:
    answer = client.post(f"{CUBE}/query", json=QUERY).json()
    return answer["version"], Counter(json.dumps(c, sort_keys=True) for c in answer["cells"])


def second(number: int, rng: random.Random) -> list[tuple[Any, ...]]:
    times = sorted(rng.randrange(SECOND) for _ in range(rng.randrange(1, 20)))
    return [
        (number * SECOND + t, rng.choice("pq"), rng.choice("kl"), rng.choice([1, 2, None]),
         rng.randrange(9)) for t in times
    ]  # fmt: skip


@pytest.fixture
def following(tmp_path: Path) -> Iterator[tuple[Path, httpx.Client, Serving]]:
    project(tmp_path, [(0, "p", "k", 1, 1)])
    with running(tmp_path, follow=True) as (client, serving):
        yield tmp_path, client, serving


def test_replayed_changes_are_the_answer_also_after_coming_back(
    following: tuple[Path, httpx.Client, Serving],
) -> None:
    folder, client, _ = following
    rng = random.Random(3)
    url = str(client.base_url).rstrip("/")
    cells: Cells = Counter()
    position: int | None = None
    number = 0
    for _ in range(4):
        said = {"query": QUERY} if position is None else {"query": QUERY, "after": position}
        with socket(url, said) as listening:
            if position is not None:
                first = json.loads(listening.recv(20))
                assert first == {"type": "resumed", "position": position}
            for _ in range(rng.randrange(1, 4)):
                number += 1
                add_file(folder, f"{number:03}.csv", second(number, rng))
                version, want = until_there(client, number - 1)
                while position is None or position < version:
                    message = json.loads(listening.recv(20))
                    assert message.get("after", position) == position
                    replay(cells, message)
                    position = message["position"]
                if position == version:
                    assert cells == want
        # What comes while nobody listens is told to who comes back.
        number += 1
        add_file(folder, f"{number:03}.csv", second(number, rng))
        until_there(client, number - 1)


def until_there(client: httpx.Client, number: int) -> tuple[int, Cells]:
    """The answer once it has cells of a second."""
    wait_until(lambda: any(f":{number:02}.0" in cell for cell in asked(client)[1]))
    return asked(client)


def settled(client: httpx.Client) -> Cells:
    """The answer once it is the same for a while."""
    answers = [asked(client)[1]]

    def is_settled() -> bool:
        answers.append(asked(client)[1])
        return len(answers) > 10 and all(one == answers[-1] for one in answers[-10:])

    wait_until(is_settled, 60)
    return answers[-1]


def third(cells: Cells) -> set[str]:
    """The cells of the third second."""
    return {cell for cell, count in cells.items() if count and ":03.0" in cell}


def test_who_asks_for_what_is_gone_begins_anew(
    following: tuple[Path, httpx.Client, Serving],
) -> None:
    _, client, _ = following
    said = {"query": QUERY, "after": 10**9}
    with socket(str(client.base_url).rstrip("/"), said) as listening:
        assert json.loads(listening.recv(20))["type"] == "reset"
        assert json.loads(listening.recv(20))["type"] == "snapshot"


GARBAGE: list[tuple[bytes | str, int]] = [
    ("{", 1008),
    ("[]", 1008),
    (b"\x00\xff", 1008),
    ('{"query": {"rows": ["nobody"]}}', 1008),
    ('{"query": {"totals": true}}', 1008),
    ('{"query": {}, "after": "x"}', 1008),
    ("x" * 100_000, 1009),
]


def close_code(listening: ClientConnection) -> int | None:
    """With what a server ends a subscription."""
    while True:
        try:
            listening.recv(20)
        except ConnectionClosed as closed:
            return None if closed.rcvd is None else closed.rcvd.code


@pytest.mark.parametrize(("said", "code"), GARBAGE)
def test_garbage_ends_a_subscription_and_no_other(
    following: tuple[Path, httpx.Client, Serving], said: bytes | str, code: int
) -> None:
    _, client, _ = following
    url = str(client.base_url).rstrip("/")
    with socket(url, {"query": QUERY}) as other, socket(url) as listening:
        listening.send(said)
        assert close_code(listening) == code
        assert json.loads(other.recv(20))["type"] == "snapshot"


@pytest.mark.slow
def test_a_listener_goes_on_after_the_server_was_killed(tmp_path: Path) -> None:
    rng = random.Random(5)
    project(tmp_path, second(0, rng))
    server = Process(tmp_path, "--follow")
    cells: Cells = Counter()
    try:
        wait_until(lambda: server.client.get("/status").json()["status"] == "running")
        with socket(server.url, {"query": QUERY}) as listening:
            message = json.loads(listening.recv(20))
            replay(cells, message)
        for number in range(1, 4):
            add_file(tmp_path, f"{number:03}.csv", second(number, rng))
        server.kill()
        server = Process(tmp_path, "--follow")
        wait_until(lambda: server.client.get("/status").json()["status"] == "running")
        with socket(server.url, {"query": QUERY, "after": message["position"]}) as again:
            add_file(tmp_path, "004.csv", second(4, rng))
            while not any(":03.0" in cell for cell in cells):
                replay(cells, json.loads(again.recv(60)))
            until_there(server.client, 3)
            want = settled(server.client)
            while third(cells) != third(want):
                replay(cells, json.loads(again.recv(60)))
    finally:
        server.stop()
