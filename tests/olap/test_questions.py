"""Questions drawn at random, beside what they mean: cells, their order, totals and columns."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from millstream.calculus.aggregation import Aggregation
from millstream.calculus.cube import Cubify, Vertex
from millstream.calculus.grains import Grain
from millstream.calculus.terms import Column
from millstream.calculus.types import BOOLEAN, INTEGER, NUMBER, TEXT, TIME, QueueType, Schema
from millstream.olap.answer import Answer, answer
from millstream.olap.groups import Limits
from millstream.olap.plain import plain_version
from millstream.olap.program import ServedCube
from millstream.olap.question import QuestionError, read_question
from millstream.olap.store import CubeStore
from millstream.plan.batch import Batch, vector_of
from millstream.values.instants import render_time
from tests.olap.plain_answers import Plain, is_near
from tests.seeds import TODAY, campaign

SECOND = 1_000_000
DAY = 86_400 * SECOND


@dataclass(frozen=True)
class Calendar:
    """A grain of cubes, coarser ones with what an earlier period can be away, steps of rows."""

    grain: Grain
    coarser: dict[str, list[Any]]
    last: list[Any]
    steps: list[int]

    def start(self, index: int) -> int:
        return int(self.grain.start(index))


CALENDARS = [
    Calendar(Grain(60 * SECOND), {"Minute": [1, "2 Minutes"], "2 Minutes": [2, "4 Minutes"],
                                  "5 Minutes": [5]},
             [2, "3 Minutes", 100], [0, 1, SECOND, 7 * SECOND, 20 * SECOND]),
    Calendar(Grain(DAY), {"Day": [1, "2 Days"], "2 Days": [4]}, [3, "2 Days"],
             [0, 1, 3600 * SECOND, 5 * 3600 * SECOND, DAY]),
    Calendar(Grain(0, 1), {"Month": [2, "1 Month"]}, [1, "2 Months", 9],
             [0, DAY, 3 * DAY, 11 * DAY, 40 * DAY]),
]  # fmt: skip
SCHEMA = Schema.of(
    street=TEXT, town=TEXT, shop=INTEGER, day=TIME, is_new=BOOLEAN, size=NUMBER, buyer=TEXT,
    amount=INTEGER, weight=NUMBER,
)  # fmt: skip
DIMENSIONS = (("street", "town"), ("shop",), ("day",), ("is_new",), ("size",))
FINEST = tuple(levels[0] for levels in DIMENSIONS)
MEASURES = (
    Aggregation("total", "sum", Column("amount", INTEGER)), Aggregation("n", "count"),
    Aggregation("least", "min", Column("weight", NUMBER)),
    Aggregation("most", "max", Column("amount", INTEGER)),
    Aggregation("mean", "avg", Column("weight", NUMBER)),
    Aggregation("heavy", "sum", Column("weight", NUMBER)),
    Aggregation("spread", "variance", Column("size", NUMBER)),
    Aggregation("buyers", "distinct", Column("buyer", TEXT)),
)  # fmt: skip
PATIENT = Limits(seconds=600)
WINDOW, HISTORY = 6, 5
#: The cube begins at a time that is no whole hour.
START = 1_700_000_040 * SECOND


def members(rng: random.Random) -> dict[str, Any]:
    """The attributes of a row: texts that need care, nulls, and a street with two towns."""
    street = rng.choice(["Ä", "a", "", "b'; --", "%", None, "z"])
    town = rng.choice(["x", "y"]) if street == "z" else {None: None, "": "x"}.get(street, "w")
    return {
        "street": street, "town": town, "shop": rng.choice([1, 2, -3, None]),
        "day": rng.choice([START, START - 86_400 * SECOND, None]),
        "is_new": rng.choice([True, False, None]), "size": rng.choice([0.5, -1.0, 2.0, None]),
    }  # fmt: skip


def rows_of(count: int, rng: random.Random, steps: list[int]) -> list[dict[str, Any]]:
    made, time = [], START
    for _ in range(count):
        time += rng.choice(steps)
        made.append(members(rng) | {
            "_time": time, "buyer": rng.choice(["p", "q", "r", None]),
            "amount": rng.choice([None, 0, 1, 1, -5, 7]),
            "weight": rng.choice([None, 0.1, 0.2, 0.5, -2.0, 1e15]),
        })  # fmt: skip
    return made


def filled(cube: ServedCube, rows: list[dict[str, Any]], rng: random.Random) -> CubeStore:
    store, start, number = CubeStore(cube), 0, 0
    while start < len(rows):
        stop = start + rng.randrange(1, 40)
        while stop < len(rows) and rows[stop]["_time"] == rows[stop - 1]["_time"]:
            stop += 1
        own = rows[start:stop]
        store.write_batch(number, batch_of(own))
        store.advance(number, own[-1]["_time"])
        start, number = stop, number + 1
    return store


def batch_of(rows: list[dict[str, Any]]) -> Batch:
    vectors = tuple(vector_of(f.type, [r[f.name] for r in rows]) for f in SCHEMA)
    return Batch(QueueType(SCHEMA), np.array([r["_time"] for r in rows], np.int64), vectors)


def cube_of(rng: random.Random, grain: Grain) -> ServedCube:
    names = ["town", "street", "shop", "day", "is_new", "size"]
    kept = []
    for _ in range(rng.randrange(5)):
        chosen = dict.fromkeys(rng.sample(names, rng.randrange(4)))
        if {"town", "street"} <= chosen.keys():
            del chosen["town"]
        order = [a for levels in DIMENSIONS for a in levels if a in chosen]
        kept.append(Vertex(tuple(order), grain))
    vertices = tuple(dict.fromkeys([Vertex(FINEST, grain), *kept]))
    function = Cubify(DIMENSIONS, MEASURES, grain, WINDOW, vertices, (), history=HISTORY)
    return ServedCube("c", function, SCHEMA, "c.rows")


def where_of(rng: random.Random) -> dict[str, Any]:
    some: dict[str, Any] = {
        "street": rng.choice(["a", ["a", None, "none such"], {"not": ["a", ""]}, {"like": "%"},
                              {"like": "_"}, {"from": "a", "to": "z"}, {"not": None}]),
        "town": rng.choice([None, "w", ["x", "y"]]),
        "shop": rng.choice([1, [], {"from": 1}, {"not": [1, None]}, {"to": 1}]),
        "day": rng.choice([render_time(START), {"from": START}, {"not": None}]),
        "is_new": rng.choice([True, [False, None]]),
        "size": rng.choice([2, [0.5, -1], {"from": 0, "to": 2.0}]),
    }  # fmt: skip
    return {name: some[name] for name in rng.sample(list(some), rng.choice([0, 0, 1, 1, 2]))}


def question_of(rng: random.Random, now: int, calendar: Calendar) -> dict[str, Any]:
    names = ["street", "town", "shop", "day", "is_new", "size"]
    chosen = rng.sample(names, rng.randrange(4))
    split = rng.choice([0, 0, 0, 1]) if chosen else 0
    rows, columns = chosen[split:], chosen[:split]
    made: dict[str, Any] = {"rows": rows, "where": where_of(rng)}
    if columns:
        made["columns"] = columns
    if rng.random() < 0.5:
        made["measures"] = rng.sample([m.name for m in MEASURES], rng.randrange(4))
    if rng.random() < 0.4:
        made["grain"] = rng.choice(list(calendar.coarser))
    if rng.random() < 0.3:
        first, end = render_time(calendar.start(now - 3)), calendar.start(now - 1)
        lasts = [{"last": last} for last in calendar.last]
        made["time"] = rng.choice([*lasts, {"from": first}, {"to": end}])
    if rng.random() < 0.2:
        made["as_of"] = calendar.start(now - rng.randrange(3)) + rng.choice([0, 17])
    orders = [*rows, *columns, *(["time"] if "grain" in made else [])]
    orders += [m.name for m in MEASURES]
    if rng.random() < 0.6 and orders:
        made["order"] = [rng.choice(["", "-"]) + n for n in rng.sample(orders, min(2, len(orders)))]
    if rows and rng.random() < 0.4:
        made |= {"limit": rng.randrange(1, 4), "others": rng.random() < 0.6}
    made["totals"] = rng.random() < 0.3
    if rows and rng.random() < 0.3:
        made["share"] = rng.choice([True, ["n"], ["heavy"]])
    if rng.random() < 0.3:
        first_grain = next(iter(calendar.coarser))
        earlier = calendar.coarser[made.get("grain", first_grain)]
        made["compare"] = {"earlier": rng.choice(earlier)}
    return made


def told(cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Members that are times as texts."""
    return [
        {k: render_time(v) if k == "day" and v is not None else v for k, v in cell.items()}
        for cell in cells
    ]


def assert_same(expected: list[dict[str, Any]], made: list[dict[str, Any]], about: Any) -> None:
    assert len(expected) == len(made), (about, expected, made)
    for want, have in zip(expected, made, strict=True):
        assert want.keys() == have.keys(), (about, want, have)
        wrong = {k: (want[k], have[k]) for k in want if not is_near(want[k], have[k])}
        assert not wrong, (about, wrong)


def assert_alike(made: Answer, plain: Answer, about: Any) -> None:
    """What is asked of rows is what is asked of their cells, by the same vertex."""
    one, other = made.record(), plain.record()
    for name in ("as_of", "asked", "answered_by", "columns"):
        assert one.get(name) == other.get(name), (about, name)
    for name in ("cells", "totals"):
        assert_same(one.get(name, []), other.get(name, []), about)


def unpivoted(made: Any, question: Any, plain: Plain) -> None:
    """Each cell stands where its members say, and nowhere else; rows are as without columns."""
    fixed = [*question.rows, *(["time"] if question.grain else [])]
    order = tuple(one for one in question.order if one.name not in question.columns)
    in_order = told(plain.answer(replace(question, columns=(), order=order)))
    shown = [*fixed, *(["others"] if question.has_others else [])]
    records = made.cells.records()
    assert [[r[n] for n in shown] for r in records] == [[r[n] for n in shown] for r in in_order]
    is_shown = {tuple(str(r[n]) for n in fixed) for r in records if r.get("others") is None}
    rows = {
        tuple(str(row[n]) for n in fixed): row for row in records if row.get("others") is None
    }  # fmt: skip
    wanted = {}
    left_out: dict[Any, int] = {}
    for cell in told(plain.answer(replace(question, limit=None, has_others=False))):
        members_ = tuple(str(cell[n]) for n in question.columns)
        if tuple(str(cell[n]) for n in fixed) not in is_shown:
            parent = tuple(str(cell[n]) for n in fixed if n != question.rows[-1])
            left_out[parent, members_] = left_out.get((parent, members_), 0) + (cell.get("n") or 0)
            continue
        for name, value in cell.items():
            if name not in (*fixed, *question.columns):
                key = tuple(str(cell[n]) for n in fixed)
                wanted[key, members_, name] = value
    for header in made.headers:
        members_ = tuple(str(v) for _, v in header.members)
        for key, row in rows.items():
            want = wanted.pop((key, members_, header.measure), None)
            assert is_near(want, row[header.name])
    assert not wanted
    for row in (r for r in records if r.get("others") is not None):
        parent = tuple(str(row[n]) for n in fixed if n != question.rows[-1])
        for header in (h for h in made.headers if h.measure == "n"):
            members_ = tuple(str(v) for _, v in header.members)
            assert (row[header.name] or 0) == left_out.pop((parent, members_), 0)


def check(seed: int, questions: int) -> None:
    rng = random.Random(seed)
    calendar = rng.choice(CALENDARS)
    cube = cube_of(rng, calendar.grain)
    rows = rows_of(rng.choice([5, 60, 400]), rng, calendar.steps)
    store = filled(cube, rows, rng)
    mark = rows[-1]["_time"]
    plain = Plain(cube.function, rows, mark)
    few = plain_version(cube, [batch_of(rows)], mark)
    now = int(calendar.grain.index(mark))
    for _ in range(questions):
        asked = question_of(rng, now, calendar)
        question = read_question(asked, cube.function, SCHEMA)
        try:
            made = answer(store.version, question, PATIENT)
            assert_alike(made, answer(few, question, PATIENT), asked)
        except QuestionError as error:
            if "before what is kept" not in str(error):
                raise
            continue
        if question.columns:
            unpivoted(made, question, plain)
            continue
        whole = told(plain.answer(question))
        assert_same(whole, made.cells.records(), asked)
        if question.has_totals:
            without = replace(question, order=(), limit=None, has_others=False, share=())
            totals = [row for table in made.totals for row in table.records()]
            assert_same(told(plain.totals(without)), totals, asked)


@pytest.mark.parametrize("seed", [1, 2, 3, TODAY])
def test_answers_are_what_questions_mean(seed: int) -> None:
    check(seed, 40)


@pytest.mark.proof
@pytest.mark.parametrize("number", campaign(300, 10))
def test_many_answers_are_what_questions_mean(number: int) -> None:
    for seed in range(10):
        check(100 * number + seed, 60)


def test_few_rows_are_answered_by_the_vertices_that_a_store_keeps() -> None:
    """By the partitions of time, whatever grain a vertex was named with."""
    calendar = CALENDARS[0]
    finest, hourly = Vertex(FINEST, calendar.grain), Vertex(("town",), Grain(3600 * SECOND))
    by_minute = replace(hourly, grain=calendar.grain)
    cube = Cubify(DIMENSIONS, MEASURES, calendar.grain, 60, (finest, hourly, by_minute), ())
    served = ServedCube("c", cube, SCHEMA, "c.rows")
    kept = [k.vertex for k in plain_version(served, [], None).kept]
    assert [finest, by_minute] == kept == [k.vertex for k in CubeStore(served).version.kept]
