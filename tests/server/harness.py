"""A served project for tests: inside this process, or as a process of its own that is killed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import uvicorn

from millstream import api
from millstream.server.app import make_app
from millstream.server.listen import bound, config_of
from millstream.server.routes import TokenScope
from millstream.server.serving import RECOVERING, RUNNING, ServeSettings, Serving
from millstream.server.tokens import Tokens

READER, PUBLISHER = "reader-token-0123456789", "publisher-token-0123456789"
CONF = """
Dimensions = product, kind | shop
TimeGrain = Second
CWindow = 5
History = 3
MVertices = kind | shop
OutputVertices = all
Measures = total: sum(amount), n: count(), least: min(amount), most: max(amount), avg(amount)
"""
PROJECT = """
[stream.Sales]
source = "sales/*.csv"
columns = { product = "text", kind = "text", shop = "integer", amount = "integer" }

[cube.Sales_cube]
over = "Sales"
config = "cube.conf"
"""
HEADER = "_time,product,kind,shop,amount\n"


def project(folder: Path, rows: list[tuple[Any, ...]] = [], conf: str = CONF) -> Path:  # noqa: B006
    """A project with a cube over sales, in one file."""
    (folder / "sales").mkdir(parents=True, exist_ok=True)
    (folder / "millstream.toml").write_text(PROJECT)
    (folder / "cube.conf").write_text(conf)
    add_file(folder, "000.csv", rows)
    return folder


def add_file(folder: Path, name: str, rows: list[tuple[Any, ...]]) -> None:
    text = HEADER + "".join(",".join("" if v is None else str(v) for v in r) + "\n" for r in rows)
    aside = folder / f".{name}.new"
    aside.write_text(text)
    aside.rename(folder / "sales" / name)


def wait_until(holds: Any, seconds: float = 400.0) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "this takes too long"
        time.sleep(0.02)


@contextmanager
def running(folder: Path, **settings: Any) -> Iterator[tuple[httpx.Client, Serving]]:
    """A server inside this process, with its run in a thread; it is over or following."""
    serving = Serving(api.compile(folder), ServeSettings(checkpoint=folder / "ck", **settings))
    serving.start(lambda: None)
    follows = settings.get("follow", False)
    wait_until(lambda: serving.status not in ((RECOVERING,) if follows else (RECOVERING, RUNNING)))
    if serving.fault is not None:
        raise serving.fault
    try:
        with listening(serving) as client:
            yield client, serving
    finally:
        serving.stop()


@contextmanager
def listening(serving: Serving) -> Iterator[httpx.Client]:
    """A client of a server that listens on a port of its own."""
    own = bound(0)
    host = f"127.0.0.1:{own.getsockname()[1]}"
    tokens = Tokens(
        {READER: frozenset({TokenScope.READ}), PUBLISHER: frozenset({TokenScope.PUBLISH})}
    )
    server = uvicorn.Server(config_of(make_app(serving, tokens, frozenset({host}))))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [own]}, daemon=True)
    thread.start()
    wait_until(lambda: server.started)
    headers = {"Authorization": f"Bearer {READER}"}
    try:
        with httpx.Client(base_url=f"http://{host}", headers=headers, timeout=60) as client:
            yield client
    finally:
        server.should_exit = True
        thread.join(20)


class Process:
    """Mutable: `millstream serve` as a process of its own."""

    def __init__(self, folder: Path, *options: str) -> None:
        tokens = folder / "tokens"
        tokens.write_text(f"{READER} read\n")
        tokens.chmod(0o600)
        command = [sys.executable, "-m", "millstream", "serve", str(folder), "--port", "0",
                   "--tokens", str(tokens), *options]  # fmt: skip
        self.process = subprocess.Popen(
            command, stderr=subprocess.PIPE, text=True, env=os.environ | {"PYTHONUNBUFFERED": "1"}
        )
        assert self.process.stderr is not None
        line = self.process.stderr.readline()
        match = re.fullmatch(r"listening on (http://127\.0\.0\.1:\d+)\n", line)
        assert match is not None, line + self.process.stderr.read()
        self.url = match[1]
        self.client = httpx.Client(
            base_url=self.url, headers={"Authorization": f"Bearer {READER}"}, timeout=60
        )

    def ask(self, cube: str, question: Any) -> Any:
        reply = self.client.post(f"/cubes/{cube}/query", json=question)
        return reply.json() if reply.status_code == 200 else None

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self._end()

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self._end()

    def _end(self) -> int:
        self.client.close()
        self.process.wait(60)
        assert self.process.stderr is not None
        self.process.stderr.close()
        return self.process.returncode
