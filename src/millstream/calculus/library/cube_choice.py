"""Which vertices of a cube to keep, by what it would cost to ask for the others.

The size |v| of a vertex is the product of the sizes of its levels. With f how often a vertex q is
asked for, W the window, r rows per grain and a = |q|/|v0|, to keep q up to date and to answer it
from v costs

    1/2 (r ra/2 + ra)  +  1/2 c f W r |v|/|v0|        c = 1 if v is q, else 2

of which the first half is equal for every choice, as are W and r: they have no say here.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import prod

import numpy as np
import numpy.typing as npt

from millstream.calculus.lattice import Lattice, Levels, is_as_fine

#: To choose is to compare all vertices with all: of more than these a person must choose.
MOST_VERTICES = 2048
#: What is taken for the size of a dimension that no one tells, and how much smaller levels are.
_USUAL_SIZE, _COARSER = 100, 10

MODES = ("Custom", "Optimized", "Frequency", "Random", "SmallestVertices", "LargestVertices")
METHODS = ("MaxStorage", "NumVertices", "Measured")
#: By what each budget is spent.
BUDGETS = {
    "MVerticesNum": "NumVertices", "MaxStorageNumTuples": "MaxStorage", "MaxMemory": "Measured",
}  # fmt: skip
FREQUENCIES = ("Custom", "Rand", "AllHigh", "AllLow", "CoarseHigh", "FineHigh", "OneDimHigh")
_HIGHEST = 1000

Costs = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Choosing:
    """How vertices are chosen: up to a number of them, or to a number of cells in all."""

    mode: str = "Custom"
    method: str = "NumVertices"
    number: int | None = None
    cells: int | None = None
    asked: str | None = None
    frequencies: tuple[int, ...] = ()
    seed: int = 0
    #: Bytes that the vertices beside the finest may have.
    memory: int | None = None


def sizes_of_levels(
    heights: Sequence[int], given: Sequence[Sequence[int]] | None
) -> tuple[tuple[int, ...], ...]:
    """How many members each level of each dimension has; of coarser levels fewer."""
    finest = [one[0] for one in given] if given else [_USUAL_SIZE] * len(heights)
    known = given or [()] * len(heights)
    return tuple(
        tuple(one)
        if len(one) == height
        else tuple(max(1, size // _COARSER**level) for level in range(height))
        for one, size, height in zip(known, finest, heights, strict=True)
    )


def size_of_vertex(levels: Levels, sizes: Sequence[Sequence[int]]) -> int:
    return prod(s[level] for s, level in zip(sizes, levels, strict=True) if level is not None)


def frequencies(choosing: Choosing, count: int) -> list[int]:
    """How often each vertex is asked for, by its number; the first one of none is never."""
    chance = random.Random(choosing.seed)
    others = range(1, count)
    match choosing.asked:
        case "Custom":
            asked = list(choosing.frequencies)
        case "Rand":
            asked = [chance.randint(1, _HIGHEST) for _ in others]
        case "AllHigh":
            asked = [chance.randint(750, _HIGHEST) for _ in others]
        case "AllLow":
            asked = [chance.randint(1, 250) for _ in others]
        case "CoarseHigh":
            asked = [max(1, _HIGHEST * (count - n) // count) for n in others]
        case "FineHigh":
            asked = [max(1, _HIGHEST * n // count) for n in others]
        case "OneDimHigh":
            asked = [chance.randint(1, 500) for _ in others]
            asked[chance.randrange(len(asked))] = _HIGHEST
        case _:
            asked = [1 for _ in others]
    return [0, *asked]


def greedy(
    costs: Costs, first: int, sizes: Sequence[int], *, number: int | None, cells: int | None
) -> list[int]:
    """Vertices one by one, each the one with which asking for all costs least.

    `costs[q, v]` is what it costs to answer q from v, infinite if v cannot.
    """
    chosen: list[int] = []
    now = costs[:, first]
    left = cells
    while number is None or len(chosen) < number:
        able = [
            v
            for v in range(len(sizes))
            if v != first and v not in chosen and (left is None or sizes[v] <= left)
        ]
        if not able:
            break
        totals = np.minimum(now[:, None], costs[:, able]).sum(axis=0)
        best = able[int(np.argmin(totals))]
        chosen.append(best)
        now = np.minimum(now, costs[:, best])
        left = None if left is None else left - sizes[best]
    return chosen


@dataclass(frozen=True, slots=True)
class Measured:
    """What is known of a vertex: its cells, a byte count of each, and how often it is asked for.

    All is for one grain of time: `come` are the cells that a partition has of it.
    """

    cells: int
    come: float
    bytes: int
    asked: float


def by_measure(
    vertices: Sequence[Levels], known: Sequence[Measured], memory: int, kept: Sequence[int] = ()
) -> list[int]:
    """Vertices that are worth it, one by one, the one first that saves most for its bytes.

    To answer costs as many cells as are read. To keep a vertex costs those of the smallest that has
    them whenever a partition is over, and that may be more than is ever saved. The first vertex
    is the finest, and always kept; so are those that are kept already, whatever they cost.
    """
    chosen = [0, *kept]
    left = memory
    while True:
        nearest = [
            min(
                (c for c in chosen if is_as_fine(vertices[c], wanted)), key=lambda c: known[c].cells
            )
            for wanted in vertices
        ]
        best, most = None, 0.0
        for number, one in enumerate(known):
            size = one.cells * one.bytes
            if number in chosen or size > left:
                continue
            saved = sum(
                of.asked * max(0, known[nearest[q]].cells - one.cells)
                for q, of in enumerate(known)
                if is_as_fine(vertices[number], vertices[q])
            )
            worth = (saved - known[nearest[number]].come) / max(size, 1)
            if worth > most:
                best, most = number, worth
        if best is None:
            return chosen[1 + len(kept) :]
        chosen.append(best)
        left -= known[best].cells * known[best].bytes


#: What is kept of a cell beside the numbers of its members: rows, and a sum or an extreme.
_BYTES_OF_CELL, _BYTES_OF_MEMBER = 24, 4


def _by_estimates(
    vertices: list[Levels], cells: list[int], asked: list[int], finest: int, choosing: Choosing
) -> list[int]:
    """By measure, before anything has been measured: cells as they would all be there."""
    order = [finest, *(n for n in range(len(vertices)) if n != finest)]
    known = [
        Measured(
            cells[n], cells[n],
            _BYTES_OF_CELL + _BYTES_OF_MEMBER * sum(level is not None for level in vertices[n]),
            asked[n],
        )
        for n in order
    ]  # fmt: skip
    chosen = by_measure([vertices[n] for n in order], known, choosing.memory or 0)
    return [order[n] for n in chosen]


def choose(
    lattice: Lattice, sizes: Sequence[Sequence[int]], choosing: Choosing
) -> tuple[Levels, ...]:
    """The vertices to keep beside the finest one."""
    vertices = [lattice.vertex(n) for n in range(len(lattice))]
    cells = [size_of_vertex(v, sizes) for v in vertices]
    asked = frequencies(choosing, len(vertices))
    finest = lattice.number((0,) * len(lattice.heights))
    if choosing.mode == "Optimized" and choosing.method == "Measured":
        numbers = _by_estimates(vertices, cells, asked, finest, choosing)
    elif choosing.mode == "Optimized":
        costs = _costs(vertices, cells, asked, doubles=choosing.method == "MaxStorage")
        numbers = greedy(costs, finest, cells, number=choosing.number, cells=choosing.cells)
    else:
        numbers = _in_order(choosing, cells, asked, finest)
    return tuple(vertices[n] for n in numbers)


def _costs(vertices: list[Levels], cells: list[int], asked: list[int], *, doubles: bool) -> Costs:
    """What each vertex costs to answer from each; from another one twice, where that counts."""
    costs = np.full((len(vertices), len(vertices)), np.inf)
    for q, wanted in enumerate(vertices):
        for v, given in enumerate(vertices):
            if is_as_fine(given, wanted):
                costs[q, v] = (2 if doubles and q != v else 1) * asked[q] * cells[v]
    return costs


def _in_order(choosing: Choosing, cells: list[int], asked: list[int], finest: int) -> list[int]:
    """All vertices in the order of a mode, for as long as they fit the budget."""
    numbers = [n for n in range(len(cells)) if n != finest]
    match choosing.mode:
        case "Frequency":
            numbers.sort(key=lambda n: -asked[n])
        case "SmallestVertices":
            numbers.sort(key=lambda n: cells[n])
        case "LargestVertices":
            numbers.sort(key=lambda n: -cells[n])
        case _:
            random.Random(choosing.seed).shuffle(numbers)
    numbers = numbers[: choosing.number]
    if choosing.cells is None:
        return numbers
    sums = accumulate(cells[n] for n in numbers)
    return [n for n, total in zip(numbers, sums, strict=True) if total <= choosing.cells]
