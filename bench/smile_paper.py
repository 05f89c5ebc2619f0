"""The experiment of the paper: matches a second on one broker, on four, and with PostgreSQL."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from smile_postgres import database, programs
from smile_served import TOKEN, TRADE_FLOOR, Served

#: What the paper says of one broker.
PAPER = 87.1
SECONDS = 13.0
_NAMES = ("buys", "sells", "matches", "floor")


def driven(seconds: float, *places: str) -> dict[str, Any]:
    """Bidders and a matcher in a process of their own."""
    program = Path(__file__).parent / "smile_market.py"
    done = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, str(program), str(seconds), *places], check=True, text=True,
        stdout=subprocess.PIPE, env={**os.environ, "MILLSTREAM_TOKEN": TOKEN},
    )  # fmt: skip
    made: dict[str, Any] = json.loads(done.stdout)
    return made


@contextmanager
def four(folder: Path, loss: float = 0.0) -> Iterator[list[str]]:
    """The addresses of the four brokers of figure 6, each a process, when their views are ready.

    Of the messages between them so many are lost, and as many come twice.
    """
    text = (TRADE_FLOOR.parent / "brokers.toml").read_text()
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in _NAMES]
    ports = [one.getsockname()[1] for one in sockets]
    for one, number in zip(sockets, ports, strict=True):
        one.close()
        text = text.replace(f":{8101 + ports.index(number)}", f":{number}")
    (folder / "brokers.toml").write_text(text)
    file = folder / "trade_floor.smile"
    file.write_text(re.sub(r" FROM '[a-z.]+'", "", TRADE_FLOOR.read_text()))
    tokens = folder / "tokens"
    tokens.touch(0o600)
    tokens.write_text(f"{TOKEN} read, publish, admin\n")
    command = [sys.executable, str(Path(__file__).parent / "smile_lossy.py"), str(loss), "serve",
               str(file), "--tokens", str(tokens), "--broker"]  # fmt: skip
    env = {**os.environ, "MILLSTREAM_LINK_TOKEN": TOKEN}
    processes = [
        subprocess.Popen([*command, name], stderr=subprocess.DEVNULL, env=env)  # noqa: S603
        for name in _NAMES
    ]
    try:
        addresses = [f"http://127.0.0.1:{port}" for port in ports]
        end = time.monotonic() + 300
        while not all(map(_is_compiled, addresses)):
            assert time.monotonic() < end
            time.sleep(0.2)
        yield addresses
    finally:
        for one in processes:
            one.terminate()
        for one in processes:
            one.wait(60)


def _is_compiled(address: str) -> bool:
    asked = urllib.request.Request(  # noqa: S310 - a broker of our own
        f"{address}/status", headers={"Authorization": f"Bearer {TOKEN}"}
    )
    try:
        with urllib.request.urlopen(asked, timeout=30) as reply:  # noqa: S310
            return bool(json.loads(reply.read())["views"] == "compiled")
    except (urllib.error.URLError, OSError):
        return False


def paper(scale: float) -> list[dict[str, Any]]:
    """Matches a second, by the driver of the paper in a process of its own.

    On one broker, on the four of figure 6, and on PostgreSQL with triggers, if that is installed.
    The bars are 100 times the 87.1 of the paper on one broker, more on four, and 2.9 times what
    PostgreSQL does.
    """
    seconds = SECONDS * scale
    made: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        served = Served(Path(folder))
        try:
            served.wait_until_compiled()
            made.append({"on": "one broker", **driven(seconds, *[served.address] * 4)})
        finally:
            served.stop()
    with tempfile.TemporaryDirectory() as folder, four(Path(folder)) as addresses:
        made.append({"on": "four brokers", **driven(seconds, *addresses)})
    where = programs()
    if where is not None:
        with database(where) as address:
            made.append({"on": "PostgreSQL", **driven(seconds, address)})
    return [{**one, "of the paper's": round(one["matches/s"] / PAPER, 1)} for one in made]


def loss(scale: float) -> list[dict[str, Any]]:
    """Matches a second on four brokers, when each message between them may be lost, or come twice.

    The driver is that of the paper. The bar is half of what is done without loss.
    """
    made: list[dict[str, Any]] = []
    for share in (0.0, 0.1):
        with tempfile.TemporaryDirectory() as folder, four(Path(folder), share) as addresses:
            made.append({"lost": share, **driven(SECONDS * scale, *addresses)})
    clean = made[0]["matches/s"]
    return [{**one, "of the clean rate": round(one["matches/s"] / clean, 2)} for one in made]


BENCHMARKS = {"smile_paper": paper, "smile_loss": loss}
