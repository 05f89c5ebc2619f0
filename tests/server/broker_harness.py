"""A served broker for tests: inside this process, or as one of its own that is killed."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import orjson
import uvicorn

from millstream.server.app import make_app
from millstream.server.broker_run import BrokerRun
from millstream.server.brokers import BROKER_ROUTES
from millstream.server.listen import bound, config_of
from millstream.server.routes import TokenScope
from millstream.server.tokens import Tokens
from tests.broker.world import served
from tests.server.harness import PUBLISHER, READER, wait_until

BOTH = "both-token-0123456789"
TEXT = """
    CREATE STREAM B (b: time -> k: integer, bid: shares) SLACK 1 HOUR;
    CREATE STREAM M (t: time -> b: time, sold: shares) SLACK 1 HOUR;
    CREATE VIEW Sold (SELECT b, SUM(sold) AS total, COUNT(*) AS n FROM M GROUP BY b);
    CREATE VIEW Rest (SELECT b, k, bid - total AS rest FROM B JOIN Sold USING (b) WHERE rest > 0);
    subscriptions Sold, Rest;
"""


#: A kind, a token, and what is told.
Event = tuple[str, str, Any]


@contextmanager
def running(folder: Path, text: str = TEXT) -> Iterator[tuple[httpx.Client, BrokerRun]]:
    """A broker that interprets its views, and a client that may do all."""
    run = BrokerRun(served(text), folder, compiles=False)
    run.start(lambda: None)
    own = bound(0)
    host = f"127.0.0.1:{own.getsockname()[1]}"
    scopes = {
        READER: {TokenScope.READ},
        PUBLISHER: {TokenScope.PUBLISH},
        BOTH: {TokenScope.READ, TokenScope.PUBLISH, TokenScope.ADMIN},
    }
    tokens = Tokens({token: frozenset(some) for token, some in scopes.items()})
    app = make_app(run, tokens, frozenset({host}), BROKER_ROUTES)
    server = uvicorn.Server(config_of(app))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [own]}, daemon=True)
    thread.start()
    wait_until(lambda: server.started and run.broker.evaluations is not None)
    headers = {"Authorization": f"Bearer {BOTH}"}
    try:
        with httpx.Client(base_url=f"http://{host}", headers=headers, timeout=60) as client:
            yield client, run
    finally:
        server.should_exit = True
        thread.join(20)
        run.stop()


def lines(*rows: dict[str, Any]) -> bytes:
    return b"\n".join(orjson.dumps(row) for row in rows)


@contextmanager
def events(client: httpx.Client, path: str, **more: Any) -> Iterator[Iterator[Event]]:
    """Events as they come: kind, token, data."""
    with client.stream("GET", path, **more) as reply:
        assert reply.status_code == 200, reply.read()
        yield read_events(reply)


def read_events(reply: httpx.Response) -> Iterator[Event]:
    fields: dict[str, str] = {}
    for line in reply.iter_lines():
        if line and not line.startswith(":"):
            name, _, value = line.partition(": ")
            fields[name] = value
        elif fields:
            yield fields["event"], fields["id"], orjson.loads(fields["data"])
            fields = {}


class Process:
    """Mutable: `millstream serve FILE` as a process of its own."""

    def __init__(self, file: Path) -> None:
        tokens = file.parent / "tokens"
        tokens.write_text(f"{BOTH} read, publish\n")
        tokens.chmod(0o600)
        command = [sys.executable, "-m", "millstream", "serve", str(file), "--port", "0",
                   "--tokens", str(tokens)]  # fmt: skip
        self.client = httpx.Client()
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ)
        assert self.process.stderr is not None
        line = self.process.stderr.readline()
        match = re.fullmatch(r"listening on (http://127\.0\.0\.1:\d+)\n", line)
        if match is None:
            said = line + self.process.stderr.read()
            self._end()
            raise AssertionError(said)
        self.client = httpx.Client(
            base_url=match[1], headers={"Authorization": f"Bearer {BOTH}"}, timeout=60
        )

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self._end()

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self._end()

    def _end(self) -> int:
        self.process.wait(60)
        assert self.process.stderr is not None
        self.process.stderr.close()
        with contextlib.suppress(RuntimeError):  # somebody may still be listening
            self.client.close()
        return self.process.returncode
