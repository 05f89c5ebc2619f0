"""Stores: an answer is of one version, whatever is written meanwhile; and a store can go on."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from millstream.calculus.aggregation import Aggregation
from millstream.calculus.cube import Cubify, Vertex
from millstream.calculus.grains import Grain
from millstream.calculus.terms import Column
from millstream.calculus.types import NUMBER, TEXT, QueueType, Schema
from millstream.engine.storage.files import LocalFiles
from millstream.olap.answer import answer
from millstream.olap.groups import Limits
from millstream.olap.program import ServedCube
from millstream.olap.question import read_question
from millstream.olap.store import CubeStore
from millstream.plan.batch import Batch, vector_of

SCHEMA = Schema.of(part=TEXT, shop=TEXT, amount=NUMBER)
GRAIN, WINDOW = Grain(10), 4
AMOUNT = Column("amount", NUMBER)
CUBE = ServedCube(
    "c",
    Cubify(
        (("part",), ("shop",)),
        (Aggregation("total", "sum", AMOUNT), Aggregation("n", "count"),
         Aggregation("most", "max", AMOUNT)),
        GRAIN, WINDOW, (Vertex(("part", "shop"), GRAIN), Vertex(("shop",), GRAIN)), (),
    ),
    SCHEMA,
    "c.rows",
)  # fmt: skip
#: On a busy machine compiling takes its time.
PATIENT = Limits(seconds=600)
Row = tuple[int, str, str, float]
#: Amounts whose sums need more than two floats.
AMOUNTS = (1e16, -1e16, 1e-20, 0.5, 3.0, 1e300)


def batch_of(rows: list[Row]) -> Batch:
    import numpy as np

    columns = [[r[n] for r in rows] for n in (1, 2, 3)]
    vectors = tuple(vector_of(f.type, c) for f, c in zip(SCHEMA, columns, strict=True))
    return Batch(QueueType(SCHEMA), np.array([r[0] for r in rows], np.int64), vectors)


def batches(count: int, seed: int) -> list[list[Row]]:
    rng = random.Random(seed)
    made, time = [], 0
    for _ in range(count):
        rows = []
        for _ in range(rng.randrange(6)):
            time += rng.randrange(6)
            rows.append((time, rng.choice("pqr"), rng.choice("xy"), rng.choice(AMOUNTS)))
        time += 1
        made.append(rows)
    return made


def grouped(rows: Iterable[Row], mark: int, by: tuple[int, ...]) -> dict[Any, Any]:
    """The cells of the window that ends with the partition of a mark."""
    now = mark // 10
    groups: dict[Any, list[Fraction]] = {}
    for row in rows:
        if now - WINDOW <= row[0] // 10 <= now:
            groups.setdefault(tuple(row[n] for n in by), []).append(Fraction(row[3]))
    return {k: (float(sum(v)), len(v), float(max(v))) for k, v in groups.items()}


def asked(store_version: Any, by: list[str]) -> dict[Any, Any]:
    question = read_question({"rows": by}, CUBE.function, SCHEMA)
    cells = answer(store_version, question, PATIENT).cells.records()
    return {tuple(c[n] for n in by): (c["total"], c["n"], c["most"]) for c in cells}


BY = {("part",): (1,), ("shop",): (2,), ("part", "shop"): (1, 2), (): ()}


def test_a_version_stays_as_it_is_when_its_partitions_are_dropped() -> None:
    """Wide sums of partitions that leave the window are given back, not taken from versions."""
    store = CubeStore(CUBE)
    amounts = (1e300, 1e16, 1e-20, 1e300)
    store.write_batch(0, batch_of([(n, "p", "x", amount) for n, amount in enumerate(amounts)]))
    store.advance(0, 3)
    store.advance(1, 11)
    version = store.version
    for number in range(2, 12):
        store.write_batch(number, batch_of([(10 * number, "q", "y", 1e300)]))
        store.advance(number, 10 * number)
    assert asked(version, ["part"]) == {("p",): (2e300, 4, 1e300)}


def test_answers_are_of_one_version_while_others_are_written() -> None:
    store, rows, marks = CubeStore(CUBE), batches(120, 1), []
    mark = 0
    for one in rows:
        mark = max(mark + 1, one[-1][0] if one else 0)
        marks.append(mark)
    wrong: list[object] = []
    is_over = threading.Event()

    def ask() -> None:
        rng = random.Random(2)
        while not is_over.is_set() or rng.random() < 0.9:
            version = store.version
            if version.number < 0:
                continue
            by = rng.choice(list(BY))
            came = [r for batch in rows[: version.number + 1] for r in batch]
            want = grouped(came, marks[version.number], BY[by])
            if asked(version, list(by)) != want:
                wrong.append((version.number, by, asked(version, list(by)), want))

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for number, one in enumerate(rows):
        store.write_batch(number, batch_of(one))
        store.advance(number, marks[number])
    is_over.set()
    for thread in threads:
        thread.join()
    assert not wrong


def written(store: CubeStore, rows: list[list[Row]], first: int, last: int) -> None:
    """Batches one after the other, each up to the time of its last row."""
    marks = marks_of(rows)
    for number in range(first, last):
        store.write_batch(number, batch_of(rows[number]))
        store.advance(number, marks[number])


def marks_of(rows: list[list[Row]]) -> list[int]:
    marks, mark = [], 0
    for one in rows:
        mark = max(mark + 1, one[-1][0] if one else 0)
        marks.append(mark)
    return marks


def test_a_store_goes_on_from_what_it_has_kept(tmp_path: Path) -> None:
    rows = batches(130, 3)
    files = LocalFiles(tmp_path)
    store = CubeStore(CUBE, files)
    assert store.open("job", fresh=True) == 0
    first = 0
    for last in (50, 90, 130):  # each time it goes on from its last state
        written(store, rows, first, last)
        assert 0 < store.wanted_from <= last
        again = CubeStore(CUBE, files)
        first = again.open("job", fresh=False)
        assert first == store.wanted_from
        written(again, rows, first, last)
        came = [r for batch in rows[:last] for r in batch]
        for by, places in BY.items():
            want = grouped(came, marks_of(rows)[last - 1], places)
            assert want and asked(again.version, list(by)) == want
        assert again.version.number == store.version.number == last - 1
        store, first = again, last
    # Of each partition in the window that is over there is one file, and no other.
    there = {int(name) for name in files.names("server/c.parts")}
    assert there and len(there) <= WINDOW + 1
    assert CubeStore(CUBE, files).open("another job", fresh=False) == 0
    assert CubeStore(CUBE, files).open("job", fresh=False) == 0  # it is gone
    assert not files.names("server/c.parts")


def test_a_partition_that_is_damaged_is_computed_again(tmp_path: Path) -> None:
    rows, files = batches(60, 4), LocalFiles(tmp_path)
    store = CubeStore(CUBE, files)
    store.open("job", fresh=True)
    written(store, rows, 0, 60)
    name = files.names("server/c.parts")[0]
    files.write(f"server/c.parts/{name}", b"nothing")
    assert CubeStore(CUBE, files).open("job", fresh=False) == 0


def test_versions_share_what_they_have() -> None:
    """Rows that come again and again cost each version the cells that they change."""
    long, finest = Grain(1000), CUBE.function.finest
    function = replace(CUBE.function, grain=long, kept=(replace(finest, grain=long),))
    store = CubeStore(replace(CUBE, function=function))
    for number in range(40):
        names = [f"p{n}" for n in range(200)] if not number else ["p0", "p1"]
        store.write_batch(number, batch_of([(number, name, "x", 1.0) for name in names]))
        store.advance(number, number)
    versions = [store.version_of(number) for number in range(1, 40)]
    large = {id(v.kept[0].layers[0].active[0]) for v in versions if v is not None}
    assert len(large) < 5
    assert asked(store.version, ["part"])[("p0",)] == (40.0, 40, 1.0)


def test_a_store_that_is_asked_all_the_time_says_what_one_says_that_is_asked_at_the_end() -> None:
    """Cells stay in order from one version to the next, whatever comes and goes."""
    questions = [{"rows": ["part", "shop"], **more} for more in ({}, {"grain": str(GRAIN)})]
    for seed in range(4):
        often, once = CubeStore(CUBE), CubeStore(CUBE)
        for number, rows in enumerate(batches(40, seed)):
            for store in (often, once):
                store.write_batch(number, batch_of(rows))
                store.advance(number, rows[-1][0] if rows else None)
            for question in questions:
                answered(often, question)
        for question in questions:
            assert answered(once, question) == answered(often, question)


def answered(store: CubeStore, question: dict[str, Any]) -> list[dict[str, Any]]:
    asked = read_question(question, CUBE.function, SCHEMA)
    return answer(store.version, asked, PATIENT).cells.records()
