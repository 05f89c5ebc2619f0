"""Vertices that a running cube keeps by what is asked: no answer changes, and the budget holds."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

from millstream.calculus.cube import Cubify
from millstream.calculus.lattice import Levels
from millstream.engine.storage.files import LocalFiles
from millstream.olap.choosing import choose_again
from millstream.olap.store import CubeStore
from tests.olap.test_sketches import CUBE, check, filled, rows_of

#: By levels of parts and shops: what is asked for, and kept by no program.
PART, ALL = (0, None), (None, None)


def chosen_by(memory: int, kept: int = 1) -> Cubify:
    function = CUBE.function
    return replace(function, kept=function.kept[:kept], memory=memory)


def vertices(store: CubeStore) -> list[tuple[str, ...]]:
    return [kept.vertex.attributes for kept in store.version.kept]


def test_what_is_asked_for_often_is_kept_until_it_is_no_longer() -> None:
    store = CubeStore(replace(CUBE, function=chosen_by(1 << 20)))
    rows = rows_of(700, 3)
    filled(store, rows[:140])
    assert vertices(store) == [("part", "shop")]
    for _ in range(500):
        store.asked.count(PART)
        store.asked.count(ALL)
    filled(store, rows[:175], first=20)
    assert vertices(store)[0] == ("part", "shop") and set(vertices(store)[1:]) == {("part",), ()}
    check(store, rows[:175])
    filled(store, rows, first=25)  # nobody asks any more
    assert vertices(store) == [("part", "shop")]
    check(store, rows)


def test_a_budget_below_every_vertex_keeps_none() -> None:
    store = CubeStore(replace(CUBE, function=chosen_by(1)))
    rows = rows_of(280, 4)
    for _ in range(500):
        store.asked.count(PART)
    filled(store, rows)
    assert vertices(store) == [("part", "shop")]


def test_what_is_kept_changes_no_answer_and_is_not_written_down(tmp_path: Path) -> None:
    """Chosen at random after every few batches, with sketches, and over a restart."""
    files, rng, rows = LocalFiles(tmp_path), random.Random(5), rows_of(560, 5)
    store = CubeStore(replace(CUBE, function=chosen_by(1 << 20, kept=2)), files)
    store.open("job", fresh=True)
    kernel = store._kernel
    levels: list[Levels] = [(0, None), (1, None), (None, 0), (1, 0), (None, None)]
    for last in range(70, 561, 70):
        asked = Counter({one: rng.choice([0, 1000]) for one in levels})
        choose_again(kernel, 2, asked, 1.0)
        filled(store, rows[:last], first=(last - 70) // 7)
        check(store, rows[:last])
    assert store.wanted_from > 0
    again = CubeStore(store.cube, files)
    filled(again, rows, again.open("job", fresh=False))
    assert vertices(again)[:2] == [("part", "shop"), ("kind",)]
    check(again, rows)
