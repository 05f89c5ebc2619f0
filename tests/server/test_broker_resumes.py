"""Resumes at random: what was told, and what is told behind any token, together are the view."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import httpx
import pytest

from tests.server.broker_harness import events, lines, running

ASKED = ("/views/Sold", "/views/Rest", "/views/Rest?where=k%20%3D%202%20AND%20rest%20%3E%203",
         "/views/Sold?where=total%20%3E%209%20AND%20n%20%3D%202")  # fmt: skip
Rows = Counter[tuple[Any, ...]]


def resumed(client: httpx.Client, address: str, token: str | None, rows: Rows) -> tuple[str, Rows]:
    """What one has who comes back with a token, when all is told; and the token behind it."""
    path, _, words = address.partition("?")
    made, last = Counter(rows), ""
    headers = {} if token is None else {"Last-Event-ID": token}
    with events(client, f"{path}/changes?{words}", headers=headers) as told:
        for kind, behind, data in told:
            last = behind
            if kind == "reset":
                made.clear()
            made.update(tuple(row.items()) for row in data.get("rows", ()))
            for change in data.get("changes", ()):
                made[tuple(change["row"].items())] += change["weight"]
            if kind == "live":
                break
    assert all(count >= 0 for count in made.values()), "what goes was there"
    return last, +made


@dataclass
class World:
    """Mutable: who publishes at random, and what came of all that was asked."""

    client: httpx.Client
    chance: random.Random
    tick: int = 0
    #: Tokens, and what was known behind them.
    heard: dict[str, list[tuple[str, Rows]]] = field(default_factory=dict)

    def publish(self) -> int:
        """A row of one of the streams, and the position it has."""
        self.tick += 1
        ids = {"b": self.tick} if self.chance.random() < 0.5 else {"t": self.tick}
        if "b" in ids:
            row = {**ids, "k": self.chance.randrange(4), "bid": self.chance.randrange(1, 99)}
        else:
            of = self.chance.randrange(1, self.tick + 1)
            row = {**ids, "b": of, "sold": self.chance.randrange(9)}
        reply = self.client.post(f"/streams/{'B' if 'b' in ids else 'M'}", content=lines(row))
        return int(reply.json()["position"])

    def resume(self) -> None:
        position = max((self.publish() for _ in range(self.chance.choice((0, 1, 1, 5)))), default=0)
        address = self.chance.choice(ASKED)
        places = self.heard.setdefault(address, [])
        old = [places[-1] if self.chance.random() < 0.5 else self.chance.choice(places)
               ] if places else []  # fmt: skip
        token, rows = old[0] if old else (None, Counter())
        asked = {"position": position} if position else {}
        reply = self.client.get(address.partition("?")[0], params={**words(address), **asked})
        now: Rows = Counter(tuple(row.items()) for row in reply.json()["rows"])
        behind, made = resumed(self.client, address, token, rows)
        assert made == now, (self.tick, address, token)
        places.append((behind, made))
        if self.chance.random() < 0.02:
            del places[:-1]


def words(address: str) -> dict[str, str]:
    return dict(parse_qsl(address.partition("?")[2]))


def resume_often(folder: Path, count: int, seed: int) -> None:
    """Few changes of the past are kept, so that some who come back are told the whole state."""
    with running(folder) as (client, run):
        for view in run.broker.views.values():
            view.kept = 300
        world = World(client, random.Random(seed))
        for _ in range(count):
            world.resume()


def test_whoever_comes_back_has_the_view(tmp_path: Path) -> None:
    resume_often(tmp_path, 250, 1)


@pytest.mark.proof
@pytest.mark.parametrize("seed", range(10))
def test_ten_thousand_who_come_back_have_the_view(tmp_path: Path, seed: int) -> None:
    resume_often(tmp_path, 1_000, seed)
