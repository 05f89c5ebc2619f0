"""Choices of vertices beside an oracle that works the formulas out as they are written.

Nothing of what chooses is used here but the draws of random frequencies, whose bounds are checked:
vertices are numbered by how many dimensions they have, by which, and by level; costs are whole,
with the half that is equal for every choice, and integers.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product
from math import prod

import pytest

from millstream.calculus.cube import Cubify
from millstream.calculus.library.cube_choice import Choosing, frequencies
from millstream.calculus.types import INTEGER, TEXT, Field, Schema
from tests.calculus.test_cube_file import cube

#: The level, fine to coarse, of each dimension; None where a vertex has none.
Vertex = tuple[int | None, ...]


@dataclass(frozen=True)
class Case:
    """A lattice by the sizes of its levels, how often its vertices are asked for, and rows."""

    sizes: tuple[tuple[int, ...], ...]
    window: int
    rows: int

    @cached_property
    def vertices(self) -> list[Vertex]:
        """All of them, in the order of their numbers."""
        made: list[Vertex] = []
        places = range(len(self.sizes))
        for count in range(len(self.sizes) + 1):
            for chosen in combinations(places, count):
                for levels in product(*(range(len(self.sizes[p])) for p in chosen)):
                    at = dict(zip(chosen, levels, strict=True))
                    made.append(tuple(at.get(p) for p in places))
        return made

    def cells(self, vertex: Vertex) -> int:
        return prod(s[v] for s, v in zip(self.sizes, vertex, strict=True) if v is not None)

    @property
    def finest(self) -> Vertex:
        return (0,) * len(self.sizes)

    def by_storage(self, wanted: Vertex, given: Vertex, asked: int) -> int:
        """Four times |v0| the cost: 1/2 (r ra/2 + ra) + 1/2 c f W r |v|/|v0|."""
        c = 1 if given == wanted else 2
        upkeep = (self.rows * self.rows + 2 * self.rows) * self.cells(wanted)
        return upkeep + 2 * c * asked * self.window * self.rows * self.cells(given)

    def by_number(self, _: Vertex, given: Vertex, asked: int) -> int:
        """|v0| times the cost: (n/|v0|) |v| f."""
        return self.rows * self.window * self.cells(given) * asked

    def greedy(
        self, asked: list[int], *, number: int | None = None, cells: int | None = None
    ) -> list[Vertex]:
        cost = self.by_number if cells is None else self.by_storage
        able = {
            v: [(n, cost(q, v, asked[n])) for n, q in enumerate(self.vertices) if _answers(v, q)]
            for v in self.vertices
        }
        least = dict(able[self.finest])
        chosen: list[Vertex] = []
        left = 10**30 if cells is None else cells
        while number is None or len(chosen) < number:
            totals = {
                v: sum({**least, **{n: min(c, least[n]) for n, c in costs}}.values())
                for v, costs in able.items()
                if v != self.finest and v not in chosen and self.cells(v) <= left
            }
            if not totals:
                break
            best = min(totals, key=lambda v: totals[v])
            chosen.append(best)
            left -= self.cells(best)
            least |= {n: min(c, least[n]) for n, c in able[best]}
        return chosen

    def in_order(self, order: list[Vertex], number: int | None, cells: int | None) -> list[Vertex]:
        chosen: list[Vertex] = []
        for vertex in order:
            spent = sum(map(self.cells, [*chosen, vertex]))
            if len(chosen) == number or (cells is not None and spent > cells):
                break
            chosen.append(vertex)
        return chosen

    @property
    def names(self) -> list[list[str]]:
        return [[f"d{d}_{level}" for level in range(len(s))] for d, s in enumerate(self.sizes)]

    def chosen(self, lines: str) -> list[Vertex]:
        """What a configuration keeps beside the finest vertex."""
        fields = [Field(n, TEXT) for levels in self.names for n in levels]
        text = (
            f"Dimensions = {' | '.join(', '.join(levels) for levels in self.names)}\n"
            f"DimensionSizes = {' | '.join(', '.join(map(str, s)) for s in self.sizes)}\n"
            f"TimeGrain = Second\nCWindow = {self.window}\nOutputVertices = none\n{lines}"
        )
        made: Cubify = cube(text, Schema((*fields, Field("amount", INTEGER))))
        assert set(made.kept[0].attributes) == {levels[0] for levels in self.names}
        return [
            tuple(next((n for n, a in enumerate(d) if a in v.attributes), None) for d in self.names)
            for v in made.kept[1:]
        ]


def _answers(given: Vertex, wanted: Vertex) -> bool:
    pairs = zip(given, wanted, strict=True)
    return all(w is None or (g is not None and g <= w) for g, w in pairs)


def case_of(rng: random.Random) -> Case:
    """Two to four dimensions, of which coarser levels have no more members than finer ones."""
    sizes = []
    for _ in range(rng.randrange(2, 5)):
        levels = [rng.randrange(2, 200)]
        for _ in range(rng.choice([0, 0, 1, 2])):
            levels.append(max(1, levels[-1] // rng.randrange(1, 6)))
        sizes.append(tuple(levels))
    made = Case(tuple(sizes), rng.randrange(1, 500), rng.choice([1, 100, 10**6]))
    return made if len(made.vertices) <= 36 else case_of(rng)


#: The bounds of frequencies; those that fall or rise are looked at apart.
BOUNDS = {"Rand": (1, 1000), "AllHigh": (750, 1000), "AllLow": (1, 250), "OneDimHigh": (1, 1000),
          "CoarseHigh": (1, 1000), "FineHigh": (1, 1000)}  # fmt: skip


def asked_of(case: Case, mode: str, rng: random.Random) -> tuple[str, list[int]]:
    """The lines that say how often vertices are asked for, and what they say."""
    count = len(case.vertices)
    if mode == "Custom":
        asked = [rng.choice([1, 5, 300, 1000]) for _ in range(count - 1)]
        return f"RFMode = Custom\nRefFrequencies = {', '.join(map(str, asked))}\n", [0, *asked]
    seed = rng.randrange(1, 100)
    first, *asked = frequencies(Choosing(asked=mode, seed=seed), count)
    low, high = BOUNDS[mode]
    assert first == 0 and all(low <= f <= high for f in asked)
    assert mode != "CoarseHigh" or asked == sorted(asked, reverse=True)
    assert mode != "FineHigh" or asked == sorted(asked)
    assert mode != "OneDimHigh" or (asked.count(1000), sorted(asked)[-2] <= 500) == (1, True)
    return f"RFMode = {mode}\nSeed = {seed}\n", [first, *asked]


@pytest.mark.parametrize("mode", ["Custom", *BOUNDS])
def test_choices_are_those_of_the_formulas(mode: str) -> None:
    for seed in range(6):
        rng = random.Random(seed)
        case = case_of(rng)
        lines, asked = asked_of(case, mode, rng)
        number, cells = rng.randrange(1, 6), rng.randrange(1, 3 * case.cells(case.finest))
        few, room = f"MVerticesNum = {number}\n", f"MaxStorageNumTuples = {cells}\n"
        numbered = case.chosen(f"MMode = Optimized\nOptMethod = NumVertices\n{few}{lines}")
        assert numbered == case.greedy(asked, number=number), (seed, case)
        stored = case.chosen(f"MMode = Optimized\nOptMethod = MaxStorage\n{room}{lines}")
        assert stored == case.greedy(asked, cells=cells), (seed, case)
        by_asked = dict(zip(case.vertices, asked, strict=True))
        others = [v for v in case.vertices if v != case.finest]
        orders = {
            "Frequency": sorted(others, key=lambda v: -by_asked[v]),
            "SmallestVertices": sorted(others, key=case.cells),
            "LargestVertices": sorted(others, key=lambda v: -case.cells(v)),
        }
        for name, order in orders.items():
            made = case.chosen(f"MMode = {name}\n{few}{lines}")
            assert made == case.in_order(order, number, None), (seed, name)
            if case.cells(order[0]) <= cells:  # else nothing fits, which is told as a fault
                made = case.chosen(f"MMode = {name}\n{room}{lines}")
                assert made == case.in_order(order, None, cells), (seed, name)
        drawn = case.chosen(f"MMode = Random\n{few}{lines}")
        assert drawn == case.chosen(f"MMode = Random\n{few}{lines}")
        assert len(set(drawn)) == len(drawn) == min(number, len(others))
        assert set(drawn) <= set(others)
