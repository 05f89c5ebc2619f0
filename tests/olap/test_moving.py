"""Members that move while one asks for them: as of past steps it is known what was before."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from millstream import api
from millstream.calculus.types import QueueType
from millstream.connectors.memory import MemoryWriter
from millstream.engine.storage.files import LocalFiles
from millstream.olap.answer import answer
from millstream.olap.groups import Limits
from millstream.olap.plain import plain_version
from millstream.olap.planning import levels_of
from millstream.olap.program import ServedCube, served
from millstream.olap.question import read_question
from millstream.olap.store import CubeStore
from millstream.plan.batch import Batch, vector_of
from tests.olap.plain_answers import Plain

PATIENT = Limits(seconds=600)
SECOND = 1_000_000
CONF = """
Dimensions = customer, segment, area, country | shop
DimensionNames = who, where
Changing = who: CUSTOMER(customer) type 1
TimeGrain = Second
CWindow = 4
History = 4
MVertices = segment | shop
MaxMemory = 1 MB
OutputVertices = {outputs}
Measures = total: sum(amount), n: count(), most: max(amount)
"""
PROJECT = """
[stream.Sales]
source = "sales.csv"
columns = { customer = "text", segment = "text", shop = "integer", amount = "integer" }

[stream.CUSTOMER]
source = "customers.csv"
columns = { customer = "text", country = "text", area = "text" }
"""
CUBE = """
[cube.c]
over = "Sales"
config = "cube.conf"
"""
QUERY = """
[node.q]
cql = "cube.cql"
"""
#: Versions as a stream, and as a relation of which rows go too.
STREAM = """
CREATE STREAM Sales (customer TEXT, segment TEXT, shop INTEGER, amount INTEGER);
CREATE STREAM CUSTOMER (customer TEXT, country TEXT, area TEXT);
CREATE CUBE c FROM Sales WITH 'cube.conf';
"""
RELATION = """
CREATE STREAM Sales (customer TEXT, segment TEXT, shop INTEGER, amount INTEGER);
CREATE STREAM CUSTOMER (customer TEXT, country TEXT, area TEXT);
CREATE VIEW Latest AS SELECT * FROM CUSTOMER [PARTITION BY customer ROWS 1];
CREATE CUBE c FROM Sales WITH 'cube.conf';
"""
Row = dict[str, Any]


def drawn(rng: random.Random, count: int) -> tuple[list[Row], list[Row]]:
    """Facts, and versions of members; some have none, and some come before or after."""
    facts, versions, time = [], [], 0
    for _ in range(count):
        time += rng.choice([0, 1, 40_000, 300_000])
        who = rng.choice(["a", "b", "c", "d", None])
        if rng.random() < 0.7:
            facts.append({"_time": time, "customer": who, "segment": rng.choice("st"),
                          "shop": rng.choice([1, 2]), "amount": rng.randrange(9)})  # fmt: skip
        else:
            versions.append({"_time": time, "customer": who, "area": rng.choice(["n", "s", None]),
                             "country": rng.choice("xy")})  # fmt: skip
    return facts, versions


def project(folder: Path, outputs: str = "all") -> ServedCube:
    (folder / "millstream.toml").write_text(PROJECT + CUBE)
    (folder / "cube.conf").write_text(CONF.format(outputs=outputs))
    _, (cube,) = served(api.compile(folder).program, ())
    return cube


def batches(
    cube: ServedCube, facts: list[Row], versions: list[Row], rng: random.Random
) -> Iterator[Batch]:
    """Both in the order of their times, cut anywhere between two instants."""
    told = [row | {".versions": 0, ".gone": False} for row in versions]
    rows = sorted([*facts, *told], key=lambda row: (row["_time"], row.get(".versions", -1)))
    start = 0
    while start < len(rows):
        stop = min(len(rows), start + rng.randrange(1, 12))
        while stop < len(rows) and rows[stop]["_time"] == rows[stop - 1]["_time"]:
            stop += 1
        own = rows[start:stop]
        columns = tuple(vector_of(f.type, [r.get(f.name) for r in own]) for f in cube.brought)
        times = np.array([r["_time"] for r in own], np.int64)
        yield Batch(QueueType(cube.brought), times, columns)
        start = stop


def at(facts: list[Row], versions: list[Row], time: int) -> list[Row]:
    """The facts with the levels that members have at a time."""
    newest = {
        v["customer"]: v for v in versions if v["_time"] <= time and v["customer"] is not None
    }
    none = {"area": None, "country": None}
    return [none | newest.get(f["customer"], {}) | f for f in facts]


QUESTIONS: list[dict[str, Any]] = [
    {"rows": ["area"]}, {"rows": ["country", "area"], "grain": "Second"}, {"rows": ["segment"]},
    {"rows": ["segment", "area", "shop"]}, {"where": {"area": [None, "n"]}, "rows": ["customer"]},
    {"rows": ["area"], "where": {"country": "x", "segment": "s"}, "order": ["-total"], "limit": 1,
     "others": True},
]  # fmt: skip


def check(
    store: CubeStore, cube: ServedCube, came: list[Batch], facts: list[Row], versions: list[Row]
) -> None:
    mark = store.version.mark
    assert mark is not None
    few = plain_version(cube, came, mark)
    for asked in QUESTIONS:
        for back in (None, 0, 1, 3):
            step = (mark // SECOND - (back or 0)) * SECOND
            more = {} if back is None else {"as_of": step}
            question = read_question(asked | more, cube.function, cube.schema)
            rows = at(facts, versions, mark if back is None else step)
            want = Plain(cube.function, rows, mark).answer(question)
            for version in (store.version, few):
                assert want == answer(version, question, PATIENT).cells.records(), asked | more


@pytest.mark.parametrize("seed", [1, 2])
def test_facts_have_the_levels_of_now_or_of_the_step_that_is_asked_for(
    tmp_path: Path, seed: int
) -> None:
    rng = random.Random(seed)
    cube = project(tmp_path)
    facts, versions = drawn(rng, 250)
    files = LocalFiles(tmp_path / "kept")
    store = CubeStore(cube, files)
    store.open("job", fresh=True)
    given = list(batches(cube, facts, versions, rng))
    for number, batch in enumerate(given):
        for _ in range(100):  # so that more vertices are kept, by keys
            store.asked.count(levels_of(cube.function, ("area", "shop")))
        store.write_batch(number, batch)
        store.advance(number, int(batch.time[-1]))
        if number % 5 == 0:
            now = int(batch.time[-1])
            came = [[r for r in rows if r["_time"] <= now] for rows in (facts, versions)]
            check(store, cube, given[: number + 1], *came)
    assert ("customer", "shop") in [kept.vertex.attributes for kept in store.version.kept]
    again = CubeStore(cube, files)
    first = again.open("job", fresh=False)
    assert first == store.wanted_from > 0
    for number, batch in enumerate(given[first:], first):
        again.write_batch(number, batch)
        again.advance(number, int(batch.time[-1]))
    check(again, cube, given, facts, versions)


def write(path: Path, rows: list[Row]) -> None:
    names = list(rows[0])
    lines = [",".join("" if r[n] is None else str(r[n]) for n in names) for r in rows]
    path.write_text("\n".join([",".join(names), *lines]) + "\n")


@pytest.mark.parametrize("outputs", ["all", "area"])
@pytest.mark.parametrize("query", [None, STREAM, RELATION], ids=["project", "stream", "relation"])
def test_a_program_brings_versions_also_if_no_output_needs_them(
    tmp_path: Path, query: str | None, outputs: str
) -> None:
    facts, versions = drawn(random.Random(3), 120)
    project(tmp_path, outputs)
    write(tmp_path / "sales.csv", facts)
    write(tmp_path / "customers.csv", versions)
    if query is not None:
        (tmp_path / "millstream.toml").write_text(PROJECT + QUERY)
        (tmp_path / "cube.cql").write_text(query)
    if query is RELATION:
        conf = (tmp_path / "cube.conf").read_text().replace("CUSTOMER(", "Latest(")
        (tmp_path / "cube.conf").write_text(conf)
    compiled = api.compile(tmp_path)
    program, (cube,) = served(compiled.program, ())
    writer = MemoryWriter()
    done = replace(compiled, program=program).run(outputs={cube.output: writer}, engine="reference")
    store = CubeStore(cube)
    for batch in writer.batches:
        store.write(batch)
    store.advance(store.version.number + 1, done.report.mark)
    check(store, cube, writer.batches, facts, versions)
