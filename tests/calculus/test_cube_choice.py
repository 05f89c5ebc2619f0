"""Choosing vertices: by the formulas, as in the literature, and near the best there is."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.calculus.lattice import Lattice, is_as_fine
from millstream.calculus.library.cube_choice import (
    Choosing,
    Costs,
    Measured,
    by_measure,
    choose,
    frequencies,
    greedy,
    size_of_vertex,
    sizes_of_levels,
)
from tests.calculus.test_cube_file import SALES, cube, faults_of

#: Harinarayan, Rajaraman and Ullman 1996: which vertex can be put together to which, and its rows.
EDGES = {"a": "bc", "b": "de", "c": "ef", "d": "g", "e": "gh", "f": "h", "g": "", "h": ""}
ROWS = dict(zip("abcdefgh", (100, 50, 75, 20, 30, 40, 1, 10), strict=True))


def behind(vertex: str) -> set[str]:
    return {vertex}.union(*(behind(v) for v in EDGES[vertex]))


def test_the_example_of_1996_chooses_b_f_and_d() -> None:
    costs = np.array(
        [[ROWS[v] if q in behind(v) else np.inf for v in ROWS] for q in ROWS], np.float64
    )
    chosen = greedy(costs, 0, list(ROWS.values()), number=3, cells=None)
    assert ["b", "f", "d"] == ["abcdefgh"[n] for n in chosen]


def total(costs: Costs, chosen: tuple[int, ...]) -> float:
    return float(costs[:, list(chosen)].min(axis=1).sum())


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.integers(1, 2), min_size=2, max_size=3),
    st.lists(st.integers(1, 50), min_size=6, max_size=6),
    st.integers(1, 3),
)
def test_greedy_has_63_percent_of_the_best_benefit(
    heights: list[int], sizes: list[int], number: int
) -> None:
    lattice = Lattice(tuple(heights))
    ordered = [sorted(sizes[n : n + h], reverse=True) for n, h in enumerate(heights)]
    vertices = [lattice.vertex(n) for n in range(len(lattice))]
    cells = [size_of_vertex(v, ordered) for v in vertices]
    costs = np.array([[cells[v] if is_as_fine(given, wanted) else np.inf
                       for v, given in enumerate(vertices)] for wanted in vertices])  # fmt: skip
    finest = lattice.number((0,) * len(heights))
    chosen = greedy(costs, finest, cells, number=number, cells=None)
    start = total(costs, (finest,))
    best = min(total(costs, (finest, *c)) for c in combinations(range(len(vertices)), number))
    assert start - total(costs, (finest, *chosen)) >= 0.63 * (start - best)


def test_storage_is_never_exceeded_and_a_vertex_of_its_own_is_worth_twice() -> None:
    lattice, sizes = Lattice((1, 1)), ((10,), (4,))
    chosen = choose(lattice, sizes, Choosing("Optimized", "MaxStorage", cells=13))
    assert sum(size_of_vertex(v, sizes) for v in chosen) <= 13
    # Asked for alike, the small vertex saves more than the large one.
    assert (None, 0) == chosen[0]


def test_modes_take_vertices_in_their_order() -> None:
    lattice, sizes = Lattice((1, 1)), ((10,), (4,))
    all_, first, second = (None, None), (0, None), (None, 0)

    def chosen(mode: str, number: int = 2, **more: object) -> object:
        return choose(lattice, sizes, Choosing(mode, number=number, **more))  # type: ignore[arg-type]

    assert (all_, second) == chosen("SmallestVertices")
    assert (first, second) == chosen("LargestVertices")
    assert (second, first) == chosen("Frequency", asked="Custom", frequencies=(1, 5, 3))
    assert chosen("Random", seed=3) == chosen("Random", seed=3)
    assert (all_, second) == chosen("SmallestVertices", number=3, cells=14)


@pytest.mark.parametrize(
    ("mode", "least", "most"),
    [("Rand", 1, 1000), ("AllHigh", 750, 1000), ("AllLow", 1, 250), ("OneDimHigh", 1, 1000)],
)
def test_frequencies_lie_where_their_mode_says(mode: str, least: int, most: int) -> None:
    asked = frequencies(Choosing(asked=mode, seed=7), 16)
    assert (16, 0) == (len(asked), asked[0])
    assert all(least <= f <= most for f in asked[1:])
    assert mode != "OneDimHigh" or (max(asked) == 1000 and sorted(asked)[-2] <= 500)


def test_frequencies_fall_or_rise_by_number() -> None:
    falling, rising = (frequencies(Choosing(asked=m), 16)[1:] for m in ("CoarseHigh", "FineHigh"))
    assert sorted(falling, reverse=True) == falling and sorted(rising) == rising


def test_sizes_that_nobody_tells_are_estimated() -> None:
    assert ((100, 10), (100,)) == sizes_of_levels((2, 1), None)
    assert ((50, 5), (7,)) == sizes_of_levels((2, 1), ((50,), (7,)))
    assert ((50, 20), (7,)) == sizes_of_levels((2, 1), ((50, 20), (7,)))


CONFIG = """\
Dimensions = productID, supplierID, customerID
DimensionSizes = 100, 20, 300
TimeGrain = Minute
CWindow = 60
OutputVertices = none
"""


def test_a_configuration_chooses() -> None:
    made = cube(CONFIG + "MMode = Optimized\nOptMethod = NumVertices\nMVerticesNum = 3\n")
    assert 4 == len(made.kept) and made.finest == made.kept[0]
    few = cube(CONFIG + "MMode = SmallestVertices\nMVerticesNum = 2\n")
    assert [(), ("supplierID",)] == [v.attributes for v in few.kept[1:]]


def test_a_budget_says_by_what_it_is_spent() -> None:
    budget = "MMode = Optimized\nMaxStorageNumTuples = 500\n"
    assert cube(CONFIG + budget + "OptMethod = MaxStorage\n") == cube(CONFIG + budget)
    (fault,) = faults_of(CONFIG + "MMode = Optimized\n")
    assert "MVerticesNum = ... or MaxStorageNumTuples = ... or MaxMemory = ..." in fault


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ("MMode = Optimised\n", "Did you mean"),
        ("MMode = Optimized\nOptMethod = MaxStorage\nMVerticesNum = 3\n", "needs a budget"),
        ("MMode = Frequency\nMVerticesNum = 2\nRFMode = Custom\nRefFrequencies = 1, 2\n",
         "here are 2 frequencies for 7 vertices"),
        ("MMode = LargestVertices\nMaxStorageNumTuples = 3\n", "no vertex fits this budget"),
    ],
)  # fmt: skip
def test_choices_that_cannot_be_are_told(lines: str, told: str) -> None:
    (fault,) = faults_of(CONFIG + lines)
    assert told in fault


def test_a_lattice_of_2_to_the_40_is_not_chosen_from() -> None:
    from millstream.calculus.types import TEXT, Field, Schema

    names = [f"d{n}" for n in range(40)]
    schema = Schema((*SALES.fields, *(Field(n, TEXT) for n in names)))
    text = f"Dimensions = {' | '.join(names)}\nTimeGrain = Second\nCWindow = 5\n"
    assert 40 == len(cube(text, schema).dimensions)
    (fault,) = faults_of(text + "MMode = Random\nMVerticesNum = 3\n", schema)
    assert "1,099,511,627,776 vertices, too many to choose from" in fault


def test_what_costs_more_to_keep_than_it_saves_is_not_kept() -> None:
    """The finest vertex, one that is asked for often, one hardly ever, one that has no room."""
    vertices = [(0, 0), (0, None), (None, 0), (None, None)]
    known = [Measured(1000, 100, 40, 0), Measured(50, 5, 36, 2.0), Measured(60, 6, 36, 0.01),
             Measured(1, 1, 10**6, 9.0)]  # fmt: skip
    assert [1] == by_measure(vertices, known, 4000)
    assert [1, 3] == by_measure(vertices, known, 2 * 10**6)
    assert [] == by_measure(vertices, known, 100)


def test_a_choice_by_measure_fits_its_memory() -> None:
    text = (
        "Dimensions = productID | supplierID\nDimensionSizes = 100 | 10\nTimeGrain = Second\n"
        "CWindow = 60\nMMode = Optimized\nOptMethod = Measured\n"
    )
    asked = "RFMode = AllHigh\n"
    assert ["config.conf:5:1: Optimized needs a budget"] == [
        fault.split("\n")[0] for fault in faults_of(text, SALES)
    ]
    small = cube(text + asked + "MaxMemory = 500\n")
    assert [("supplierID",)] == [v.attributes for v in small.kept[1:]]
    large = cube(text + asked + "MaxMemory = 64 MB\n")
    assert [("productID",), ("supplierID",)] == sorted(v.attributes for v in large.kept[1:])
