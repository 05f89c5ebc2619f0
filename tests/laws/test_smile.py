"""Laws 1, 2, 4 and 7 for views of SMILE that are made of each other at random.

However the input is cut, and whoever takes up a state that was written down, an engine tells
what the reference tells of the program as it was written; at rest that is what SQL says, and
what was once said to be final has stayed.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import duckdb
import pytest

from millstream.calculus.graph import Program
from millstream.engine.reference.feed import Event
from millstream.languages.smile.load import load
from millstream.optimiser.optimise import optimise
from millstream.source import Source
from tests.engine.written import written
from tests.generate_smile import STREAMS, Drawn, Made, drawn_program, drawn_rows
from tests.laws.runs import Rows, on_local, on_reference
from tests.laws.test_checkpoints import in_many_goes, in_one_go
from tests.laws.test_snapshots import forgetting
from tests.seeds import TODAY, campaign, in_turn

Data = dict[str, list[tuple[int, int, int]]]


def by_sql(drawn: Drawn, data: Data) -> dict[str, Counter[tuple[Any, ...]]]:
    """The rows of each view; of a tick that is taken the first row counts."""
    found: dict[str, Counter[tuple[Any, ...]]] = {}
    with duckdb.connect() as connection:
        for name, columns in STREAMS.items():
            connection.execute(f"CREATE TABLE {name} ({' BIGINT, '.join(columns)} BIGINT)")
            first = {row[0]: row for row in reversed(data[name])}
            for row in first.values():
                connection.execute(f"INSERT INTO {name} VALUES (?, ?, ?)", row)
        for statement in drawn.sql:
            connection.execute(statement)
        for view in drawn.views:
            if view.has_sql:
                shown = ", ".join((*view.kept, *view.numbers))
                rows = connection.execute(f"SELECT {shown} FROM {view.name}").fetchall()
                found[view.name] = Counter(rows)
    return found


def at_rest(program: Program, view: str, names: tuple[str, ...], rows: Rows) -> Any:
    schema = program.queue_types()[view].schema
    places = [schema.index(n) for n in names]
    bag: Counter[tuple[Any, ...]] = Counter()
    for _, weight, row in rows:
        bag[tuple(row[n] for n in places)] += weight
    return Counter({row: count for row, count in bag.items() if count})


def check_claims(program: Program, view: Made, rows: Rows) -> None:
    """What is final stays; values lie between their bounds, which become no wider."""
    names = program.queue_types()[view.name].schema.names
    bounded = [n for n in names if f"{n}_low" in names]
    by_key: dict[tuple[Any, ...], dict[str, Any]] = {}
    there: Counter[tuple[Any, ...]] = Counter()
    for _, weight, row in rows:
        told = dict(zip(names, row, strict=True))
        assert weight > 0 or not told.get("_final"), (view, told)
        for name in bounded:
            low, value, high = told[f"{name}_low"], told[name], told[f"{name}_high"]
            ends = [end for end in (low, value, high) if end is not None]
            assert ends == sorted(ends), (view, told)
        key = tuple(told[n] for n in view.kept)
        there[key] += weight
        if weight > 0 and "_steps" in names and view.has_key:
            assert there[key] == 1, (view, told)
            check_order(by_key.get(key, told), told, bounded)
            by_key[key] = told


def check_order(before: dict[str, Any], now: dict[str, Any], bounded: list[str]) -> None:
    """A later row has no fewer steps and no wider range."""
    assert now["_steps"] >= before["_steps"], (before, now)
    for name in bounded:
        for end, sign in ((f"{name}_low", 1), (f"{name}_high", -1)):
            if before[end] is not None:
                assert now[end] is not None and sign * now[end] >= sign * before[end], (before, now)


def program_of(seed: int, views: int) -> Program:
    return load(Source("generated.smile", drawn_program(seed, views).text())).program


def events_of(program: Program, data: Data) -> dict[str, list[Event]]:
    found: dict[str, list[Event]] = {}
    for one in program.inputs:
        if one.values is None:
            found[one.name] = [Event(row[0], row) for row in data[one.name]]
        else:
            found[one.name] = [Event(0, row) for row in one.values]
    return found


def agree(seed: int, views: int) -> None:
    chance = random.Random(seed)
    drawn, data = drawn_program(seed, views), drawn_rows(seed)
    program = load(Source("generated.smile", drawn.text())).program
    events = events_of(program, data)
    expected, _ = on_reference(program, events)
    for name, rows in by_sql(drawn, data).items():
        view = next(v for v in drawn.views if v.name == name)
        columns = (*view.kept, *view.numbers)
        assert rows == at_rest(program, name, columns, expected[name]), (name, drawn.text())
    for view in drawn.views:
        check_claims(program, view, expected[view.name])
    cuts = [chance.randint(1, 15) for _ in range(3)]
    assert expected == on_local(optimise(program), events, cuts)[0], drawn.text()
    with forgetting() as rounds:
        assert expected == on_local(program, events, cuts)[0], drawn.text()
    assert rounds


@pytest.mark.parametrize("seed", [*in_turn(range(6), 3), TODAY])
def test_views_are_the_same_however_they_are_cut_and_taken_up(seed: int) -> None:
    agree(seed, 3)


@pytest.mark.proof
@pytest.mark.parametrize("number", campaign(2_000, 10))
def test_more_views_are_the_same_however_they_are_cut_and_taken_up(number: int) -> None:
    for seed in range(10):
        agree(100 * number + seed, 5)


@pytest.mark.parametrize("seed", in_turn(range(3)))
def test_views_that_are_stopped_and_taken_up_tell_what_the_reference_tells(
    tmp_path: Any, seed: int
) -> None:
    program = program_of(seed, 2)
    chance = random.Random(seed)
    events = events_of(program, drawn_rows(seed, 20))
    given = {name: events[name] for name in STREAMS if name in events}
    locations = written(program, events, tmp_path, chance)
    locations = {name: locations[name] for name in given}
    expected = in_one_go(program, locations)
    assert expected == in_many_goes(program, locations, tmp_path / "checkpoint", chance)
