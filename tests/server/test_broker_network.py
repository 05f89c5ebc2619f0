"""Four brokers as processes of their own: figure 6 of the paper, with one that is killed."""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.server.broker_harness import BOTH, events, lines
from tests.server.harness import wait_until

FOLDER = Path(__file__).parents[2] / "examples" / "smile" / "trade_floor"
LINK = "link-token-0123456789"
NAMES = ("buys", "sells", "matches", "floor")


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Floor:
    """Mutable: the brokers of Trade-Floor, each a process."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "trade_floor.smile"
        text = (FOLDER / "trade_floor.smile").read_text()
        self.file.write_text(re.sub(r" FROM '[a-z.]+'", " SLACK 1 HOUR", text))
        brokers = (FOLDER / "brokers.toml").read_text()
        self.urls = {}
        for number, (name, port) in enumerate(zip(NAMES, free_ports(4), strict=True), 8101):
            brokers = brokers.replace(f":{number}", f":{port}")
            self.urls[name] = f"http://127.0.0.1:{port}"
        (folder / "brokers.toml").write_text(brokers)
        self.tokens = folder / "tokens"
        self.tokens.write_text(f"{BOTH} read, publish, admin\n")
        self.tokens.chmod(0o600)
        self.processes: dict[str, subprocess.Popen[str]] = {}
        self.client = httpx.Client(headers={"Authorization": f"Bearer {BOTH}"}, timeout=60)

    def start(self, name: str) -> None:
        command = [sys.executable, "-m", "millstream", "serve", str(self.file), "--broker", name,
                   "--tokens", str(self.tokens)]  # fmt: skip
        environment = {**os.environ, "MILLSTREAM_LINK_TOKEN": LINK}
        self.processes[name] = subprocess.Popen(command, env=environment, text=True)

    def kill(self, name: str) -> None:
        self.processes[name].send_signal(signal.SIGKILL)
        self.processes[name].wait(60)

    def stop(self) -> None:
        for process in self.processes.values():
            if process.poll() is None:
                process.terminate()
        for process in self.processes.values():
            process.wait(60)
        self.client.close()

    def publish(self, name: str, stream: str, sequence: int, row: dict[str, Any]) -> None:
        """Until it is acknowledged."""
        path = f"{self.urls[name]}/streams/{stream}?publisher=p&sequence={sequence}"

        def is_there() -> bool:
            with suppress(httpx.HTTPError):
                reply = self.client.post(path, content=lines(row))
                if reply.status_code == 200:
                    assert reply.json()["rows"][0]["fate"] in ("accepted", "duplicate"), reply.text
                    return True
            return False

        wait_until(is_there, 60)

    def rows(self, name: str, view: str) -> list[dict[str, Any]] | None:
        with suppress(httpx.HTTPError):
            reply = self.client.get(f"{self.urls[name]}/views/{view}")
            if reply.status_code == 200:
                found: list[dict[str, Any]] = reply.json()["rows"]
                return found
        return None


@contextmanager
def floor(folder: Path, *names: str) -> Iterator[Floor]:
    made = Floor(folder)
    try:
        for name in names or NAMES:
            made.start(name)
        yield made
    finally:
        made.stop()


def settled(ask: Callable[[], Any], wanted: Any, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    found = ask()
    while found != wanted and time.monotonic() < end:
        time.sleep(0.1)
        found = ask()
    assert found == wanted


class Book:
    """Mutable: what was published, and what can be matched by it."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.bids: dict[str, dict[int, tuple[str, int, int]]] = {"buy": {}, "sell": {}}
        self.traded: dict[tuple[str, int], int] = {}
        self.count = 0

    def next(self) -> tuple[str, str, dict[str, Any]]:
        """The next row: at which broker, of which stream, and what it is."""
        self.count += 1
        tick = 1_000 * self.count
        what = self.chance.choice(("buy", "sell", "match"))
        if what == "match" and all(self.bids.values()):
            ids = {side: self.chance.choice(list(some)) for side, some in self.bids.items()}
            shares = self.chance.randrange(1, 60)
            for side, number in ids.items():
                self.traded[side, number] = self.traded.get((side, number), 0) + shares
            match = {"t": tick, "buyid": ids["buy"], "sellid": ids["sell"], "#traded": shares}
            return "matches", "Matches", match
        side = "sell" if what == "sell" else "buy"
        bid = self.chance.choice("AB"), self.chance.randrange(10, 12), 100
        self.bids[side][tick] = bid
        row = {f"{side}id": tick, "issue": bid[0], "price": bid[1], "#bid": bid[2]}
        return f"{side}s", f"{side.title()}Bids", row

    def left(self, side: str) -> dict[int, tuple[str, int, int]]:
        made = {}
        for number, (issue, price, shares) in self.bids[side].items():
            rest = shares - self.traded.get((side, number), 0)
            if rest > 0:
                made[number] = issue, price, rest
        return made

    def matchable(self) -> set[tuple[int, int, int, int]]:
        return {
            (buy, sell, a[2], b[2])
            for buy, a in self.left("buy").items()
            for sell, b in self.left("sell").items()
            if a[:2] == b[:2]
        }


def matchable(made: Floor) -> set[tuple[int, int, int, int]] | None:
    rows = made.rows("floor", "Matchable")
    if rows is None:
        return None
    names = ("buyid", "sellid", "buyremaining", "sellremaining")
    return {tuple(row[n] for n in names) for row in rows}


def test_each_broker_that_is_killed_is_made_good(tmp_path: Path) -> None:
    kill_some(tmp_path, ["matches", "floor", "buys", "sells"], seed=1)


@pytest.mark.proof
@pytest.mark.parametrize("seed", range(45))
def test_brokers_that_are_killed_are_made_good(tmp_path: Path, seed: int) -> None:
    kill_some(tmp_path, random.Random(seed).choices(NAMES, k=8), seed)


def kill_some(folder: Path, killed: list[str], seed: int) -> None:
    book = Book(seed)
    with floor(folder) as made:
        for name in [*killed, ""]:
            for _ in range(15):
                broker, stream, row = book.next()
                made.publish(broker, stream, book.count, row)
            if name:
                made.kill(name)
                made.start(name)
        settled(lambda: matchable(made), book.matchable())
        left = made.rows("buys", "RemainingBuy")
        assert left is not None
        shown = {r["buyid"]: (r["issue"], r["price"], r["buyremaining"]) for r in left}
        assert shown == book.left("buy")


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGKILL])
def test_all_are_started_together_and_end_together(tmp_path: Path, ending: signal.Signals) -> None:
    made = Floor(tmp_path)
    command = [sys.executable, "-m", "millstream", "serve", str(made.file), "--all",
               "--tokens", str(made.tokens)]  # fmt: skip
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        for name in NAMES:
            wait_until(lambda name=name: is_up(made, name), 60)
        bid = {"issue": "A", "price": 1, "#bid": 5}
        made.publish("buys", "BuyBids", 1, {"buyid": 1, **bid})
        made.publish("sells", "SellBids", 1, {"sellid": 2, **bid})
        settled(lambda: matchable(made), {(1, 2, 5, 5)})
        process.send_signal(ending)
        assert process.wait(60) == (0 if ending == signal.SIGINT else -signal.SIGKILL)
        for name in NAMES:
            wait_until(lambda name=name: not is_up(made, name), 60)
    finally:
        process.terminate()
        process.wait(60)
        assert process.stderr is not None
        process.stderr.close()
        made.stop()


def is_up(made: Floor, name: str) -> bool:
    try:
        return made.client.get(f"{made.urls[name]}/status").status_code == 200
    except httpx.HTTPError:
        return False


@pytest.mark.slow
def test_a_lost_log_is_told_though_nothing_else_comes(tmp_path: Path) -> None:
    with floor(tmp_path, "buys", "matches") as made:
        bid = {"buyid": 1, "issue": "A", "price": 1, "#bid": 9}
        made.publish("buys", "BuyBids", 1, bid)
        made.publish("matches", "Matches", 1, {"t": 2, "buyid": 1, "sellid": 1, "#traded": 4})
        settled(lambda: [r["buyremaining"] for r in made.rows("buys", "RemainingBuy") or []], [5])
        with events(made.client, f"{made.urls['buys']}/views/RemainingBuy/changes") as told:
            assert [next(told)[0] for _ in range(2)] == ["state", "live"]
            made.kill("matches")
            shutil.rmtree(tmp_path / ".millstream" / "serve-trade_floor-matches")
            made.start("matches")
            kinds = [kind for kind, _, _ in told]
            assert kinds[-1] == "lost" and "reset" not in kinds


def test_who_asks_the_wrong_broker_is_told_so(tmp_path: Path) -> None:
    with floor(tmp_path) as made:
        wait_until(lambda: made.rows("floor", "Matchable") is not None, 60)
        url = made.urls["floor"]
        reply = made.client.post(f"{url}/streams/BuyBids", content=lines({"buyid": 1}))
        assert reply.status_code == 404 and "at the broker buys" in reply.text
        reply = made.client.get(f"{url}/views/RemainingBuy")
        assert reply.status_code == 404 and made.urls["buys"] in reply.text
        reply = made.client.put(f"{url}/views/Mine", content="SELECT t FROM Matches")
        assert reply.status_code == 400 and "Matches of the broker matches" in reply.text
        reply = made.client.post(f"{url}/links/buys", json=[])
        assert reply.status_code == 403, "only brokers have the token of links"
        own = {"Authorization": f"Bearer {LINK}"}
        assert made.client.post(f"{url}/links/buys", json=[], headers=own).status_code == 200
        assert made.client.post(f"{url}/links/buys", json=[{}], headers=own).status_code == 400
        assert made.client.get(f"{url}/views/Matchable", headers=own).status_code == 403
        links = made.client.get(f"{url}/status").json()["links"]
        assert links["broker"] == "floor"
        assert {one["from"] for one in links["imports"].values()} == {"buys", "sells"}
