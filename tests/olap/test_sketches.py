"""Distinct values and quantiles of questions, beside what they mean."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np

from millstream.calculus.aggregation import Aggregation
from millstream.calculus.cube import Cubify, Vertex
from millstream.calculus.grains import Grain
from millstream.calculus.sketches import WHOLE, distinct_nearly, quantile_of
from millstream.calculus.terms import Column
from millstream.calculus.types import NUMBER, TEXT, QueueType, Schema
from millstream.engine.storage.files import LocalFiles
from millstream.olap.answer import answer
from millstream.olap.groups import Limits
from millstream.olap.program import ServedCube
from millstream.olap.question import read_question
from millstream.olap.store import CubeStore
from millstream.plan.batch import Batch, vector_of

SCHEMA = Schema.of(part=TEXT, kind=TEXT, shop=TEXT, buyer=TEXT, amount=NUMBER)
GRAIN, WINDOW = Grain(10), 4
AMOUNT, BUYER = Column("amount", NUMBER), Column("buyer", TEXT)
CUBE = ServedCube(
    "c",
    Cubify(
        (("part", "kind"), ("shop",)),
        (Aggregation("n", "count"), Aggregation("buyers", "distinct", BUYER),
         Aggregation("nearly", "approx_distinct", BUYER),
         Aggregation("middle", "quantile", AMOUNT, at=WHOLE // 2),
         Aggregation("high", "quantile", AMOUNT, at=9 * WHOLE // 10)),
        GRAIN, WINDOW,
        (Vertex(("part", "shop"), GRAIN), Vertex(("kind",), GRAIN), Vertex(("shop",), GRAIN)), (),
        history=6,
    ),
    SCHEMA,
    "c.rows",
)  # fmt: skip
PATIENT = Limits(seconds=600)
Row = tuple[int, str, str, str, str | None, float | None]


def rows_of(count: int, seed: int) -> list[Row]:
    rng = random.Random(seed)
    made, time = [], 0
    for number in range(count):
        time += rng.randrange(2) + (number % 7 == 0)  # batches have times of their own
        part = rng.choice("pqrs")
        buyer = rng.choice([None, *map(str, range(12))])
        amount = rng.choice([None, -3.5, 0.0, rng.expovariate(0.01), rng.expovariate(0.01)])
        made.append((time, part, "k" if part < "r" else "l", rng.choice("xy"), buyer, amount))
    return made


def filled(store: CubeStore, rows: list[Row], first: int = 0) -> None:
    for number, start in enumerate(range(0, len(rows), 7)):
        if number >= first:
            batch = rows[start : start + 7]
            vectors = tuple(
                vector_of(f.type, [r[n] for r in batch]) for n, f in enumerate(SCHEMA, 1)
            )
            times = np.array([r[0] for r in batch], np.int64)
            store.write_batch(number, Batch(QueueType(SCHEMA), times, vectors))
            store.advance(number, batch[-1][0])


def told(rows: list[Row]) -> tuple[Any, ...]:
    buyers = [r[4] for r in rows if r[4] is not None]
    amounts = [(r[5], 1) for r in rows if r[5] is not None]
    middle, high = (quantile_of(amounts, at) for at in (WHOLE // 2, 9 * WHOLE // 10))
    return len(rows), len(set(buyers)), distinct_nearly(buyers), middle, high


def asked(store: CubeStore, question: dict[str, Any]) -> Any:
    return answer(store.version, read_question(question, CUBE.function, SCHEMA), PATIENT)


def shown(cell: dict[str, Any], suffix: str = "") -> tuple[Any, ...]:
    names = ("n", "buyers", "nearly", "middle", "high")
    return tuple(cell[name + suffix] for name in names)


def inside(rows: list[Row], now: int) -> list[Row]:
    return [r for r in rows if now - WINDOW <= r[0] // 10 <= now]


def check(store: CubeStore, rows: list[Row]) -> None:
    now = rows[-1][0] // 10
    window = inside(rows, now)
    for by, place in (("part", 1), ("kind", 2), ("shop", 3)):
        made = asked(store, {"rows": [by], "totals": True})
        cells = made.cells.records()
        assert [c[by] for c in cells] == sorted({str(r[place]) for r in window})
        for cell in cells:
            assert shown(cell) == told([r for r in window if r[place] == cell[by]])
        assert [shown(t) for t in made.totals[0].records()] == [told(window)]


def test_sketches_of_questions_are_what_they_mean() -> None:
    store, rows = CubeStore(CUBE), rows_of(400, 1)
    for last in (3, 60, 61, 250, 400):
        again = CubeStore(CUBE)
        filled(again, rows[:last])
        check(again, rows[:last])
    filled(store, rows)
    now = rows[-1][0] // 10
    window = inside(rows, now)
    (rest,) = asked(store, {"rows": ["part"], "limit": 1, "others": True}).cells.records()[1:]
    assert shown(rest) == told([r for r in window if r[1] != "p"])
    (cell,) = asked(store, {"where": {"kind": "k", "shop": ["x"]}}).cells.records()
    assert shown(cell) == told([r for r in window if r[2] == "k" and r[3] == "x"])
    for cell in asked(store, {"rows": ["shop"], "grain": "10 us"}).cells.records():
        parts = {c["time"] for c in asked(store, {"grain": "10 us"}).cells.records()}
        assert cell["time"] in parts
    (cell,) = asked(
        store, {"time": {"last": "20 us"}, "compare": {"earlier": "20 us"}}
    ).cells.records()
    assert shown(cell) == told([r for r in rows if now - 1 <= r[0] // 10 <= now])
    assert shown(cell, "_before") == told([r for r in rows if now - 3 <= r[0] // 10 <= now - 2])
    highest = asked(store, {"rows": ["part"], "measures": [], "order": ["-buyers"]}).cells
    counts = [
        len({r[4] for r in window if r[1] == p and r[4]}) for p in highest.vectors[0].to_list()
    ]
    assert counts == sorted(counts, reverse=True)


def test_sketches_go_on_after_a_restart(tmp_path: Path) -> None:
    files, rows = LocalFiles(tmp_path), rows_of(400, 2)
    store = CubeStore(CUBE, files)
    store.open("job", fresh=True)
    filled(store, rows[:350])
    again = CubeStore(CUBE, files)
    first = again.open("job", fresh=False)
    assert first == store.wanted_from > 0
    filled(again, rows, first)
    check(again, rows)
