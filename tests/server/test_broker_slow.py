"""Who takes nothing is closed, and told why; whoever is refused leaves no trace in the terminal."""

from __future__ import annotations

import logging
import socket
import threading
from pathlib import Path

import httpx
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from millstream.server import patience, talking
from tests.server.broker_harness import BOTH, events, lines, running
from tests.server.harness import wait_until

TEXT = """
    CREATE STREAM B (b: time -> note: string) SLACK 1 HOUR;
    CREATE VIEW All (SELECT b, note FROM B);
    subscriptions All;
"""


def slow_socket(url: str) -> socket.socket:
    """Takes little at once."""
    host, _, port = url.removeprefix("http://").partition(":")
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    made.connect((host, int(port)))
    return made


def fill(client: httpx.Client, is_over: threading.Event) -> None:
    """Long rows, until somebody who takes none has been given up."""
    for _ in range(200):
        if is_over.wait(0.05):
            return
        client.post("/streams/B", content=lines({"note": "x" * 200_000})).raise_for_status()


def test_who_takes_nothing_is_closed_and_told_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "TAKE_SECONDS", 0.5)
    with running(tmp_path, TEXT) as (client, run):
        url = str(client.base_url).rstrip("/")
        slow = slow_socket(url)
        slow.sendall(
            f"GET /views/All/changes HTTP/1.1\r\nHost: {url.removeprefix('http://')}\r\n"
            f"Authorization: Bearer {BOTH}\r\n\r\n".encode()
        )
        headers = {"Authorization": f"Bearer {BOTH}"}
        own = slow_socket(url)
        with (
            slow,
            connect(url.replace("http", "ws") + "/views/All/subscribe", sock=own, max_queue=1,
                    additional_headers=headers, max_size=None, ping_interval=None,
                    compression=None) as told,
        ):  # fmt: skip
            wait_until(lambda: len(run.waking) == 2)
            is_over = threading.Event()
            filling = threading.Thread(target=fill, args=(client, is_over))
            filling.start()
            wait_until(lambda: len(run.waking) == 0, 60)
            is_over.set()
            filling.join()
            assert _code(told) == talking.TOO_SLOW
        with events(client, "/views/All/changes") as others:
            assert next(others)[0] == "state"


def _code(told: ClientConnection) -> int:
    """All that was written before it is taken first."""
    with pytest.raises(ConnectionClosed) as closed:
        all(iter(lambda: told.recv(timeout=20), None))
    assert closed.value.rcvd is not None, "there is no close frame"
    return closed.value.rcvd.code


def test_who_is_refused_is_not_written_about(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with running(tmp_path, TEXT) as (client, _), caplog.at_level(logging.ERROR):
        logging.getLogger("uvicorn.error").addHandler(caplog.handler)
        try:
            with pytest.raises(InvalidStatus, match="401"):
                connect(str(client.base_url).replace("http", "ws") + "/views/All/subscribe")
        finally:
            logging.getLogger("uvicorn.error").removeHandler(caplog.handler)
    assert not caplog.records
