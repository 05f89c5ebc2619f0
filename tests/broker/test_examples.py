"""The examples, published in any order: in the end a broker shows what a run shows."""

from __future__ import annotations

import csv
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import millstream
from millstream.broker.asking import asked
from millstream.broker.core import Accepted, Publish, Silence, digest_of
from millstream.broker.parsing import rows_of_lines
from millstream.broker.ticks import Fate
from tests.broker.world import CrashingDisk, SetClock, opened, served
from tests.server.broker_harness import lines

ROOT = Path(__file__).parents[2] / "examples" / "smile"
NOW = 1_800_000_000_000_000
NUMBERS = {"integer": int, "number": float}


def rows_in(path: Path, types: dict[str, str]) -> list[dict[str, Any]]:
    with path.open(newline="") as file:
        return [
            {n: NUMBERS.get(types[n], str)(text) for n, text in row.items()}
            for row in csv.DictReader(file)
        ]


@pytest.mark.parametrize("folder", sorted(p for p in ROOT.iterdir()), ids=lambda p: p.name)
def test_a_broker_shows_what_a_run_shows(folder: Path) -> None:
    file = folder / f"{folder.name}.smile"
    finished = millstream.compile(file).run(engine="reference")
    text = file.read_text().replace(" FROM '", " SLACK 9 DAYS FROM '")
    program = served(text)
    broker = opened(program, CrashingDisk(), SetClock(NOW))
    sources = millstream.compile(file).sources
    chance = random.Random(3)
    coming: list[tuple[str, dict[str, Any]]] = []
    for name, stream in program.streams.items():
        types = {f.name: str(f.type) for f in stream.input.type.schema}
        coming += [(name, row) for row in rows_in(Path(str(sources[name].path)), types)]
    chance.shuffle(coming)
    for name, row in coming:
        body = lines(row)
        given = rows_of_lines(program.streams[name], body)
        (answer,) = broker.commit([Publish(name, given, digest_of(name, body))])
        assert isinstance(answer, Accepted) and answer.judged[0].fate is not Fate.LATE
        if chance.random() < 0.5:
            broker.evaluate()
    end = max(t for ticks in broker.knowledge.ticks.values() for t in ticks.taken)
    broker.commit([Silence(name, end) for name in program.streams])
    broker.evaluate()
    for name, view in broker.views.items():
        wanted = asked(view.view)
        shown = wanted.records(wanted.shown(view.rows))
        names = list(shown[0]) if shown else []
        state = finished.state(name)
        expected = Counter(tuple(row[n] for n in names) for row in state)
        assert len(state) == len(shown)
        assert Counter(tuple(row[n] for n in names) for row in shown) == expected, name
