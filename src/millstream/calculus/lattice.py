"""The lattice of groupings: a vertex takes one level, or none, of each dimension.

Vertices are numbered by how many dimensions they have, then by which, then by their levels,
fine before coarse: 0 is `all`, and of four dimensions with one level 15 is the finest.
Numbers are counted out, never listed: a lattice may have 2^40 vertices.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

#: The level of each dimension, fine to coarse from 0; None where it takes none.
Levels = tuple[int | None, ...]


@dataclass(frozen=True)
class Lattice:
    """`heights` has the number of levels of each dimension."""

    heights: tuple[int, ...]

    def __len__(self) -> int:
        return prod(h + 1 for h in self.heights)

    @cached_property
    def _counts(self) -> list[list[int]]:
        """How many vertices take some number of the dimensions from each one on."""
        size = len(self.heights)
        counts = [[1] + [0] * size for _ in range(size + 1)]
        for first in reversed(range(size)):
            for taken in range(1, size + 1):
                without, beside = counts[first + 1][taken], counts[first + 1][taken - 1]
                counts[first][taken] = without + self.heights[first] * beside
        return counts

    def number(self, levels: Levels) -> int:
        """The number of a vertex."""
        chosen = [d for d, level in enumerate(levels) if level is not None]
        number = sum(self._counts[0][: len(chosen)])
        first, ways = 0, 1
        for left, dimension in zip(reversed(range(len(chosen))), chosen, strict=True):
            # Those that take an earlier dimension here come before, with all their levels.
            for earlier in range(first, dimension):
                number += ways * self.heights[earlier] * self._counts[earlier + 1][left]
            ways *= self.heights[dimension]
            first = dimension + 1
        place = 0
        for dimension in chosen:
            place = place * self.heights[dimension] + (levels[dimension] or 0)
        return number + place

    def vertex(self, number: int) -> Levels:
        """The vertex of a number."""
        if not 0 <= number < len(self):
            raise IndexError(number)
        taken = 0
        while number >= self._counts[0][taken]:
            number -= self._counts[0][taken]
            taken += 1
        chosen: list[int] = []
        dimension, ways = 0, 1
        while len(chosen) < taken:
            with_it = ways * self.heights[dimension]
            size = with_it * self._counts[dimension + 1][taken - len(chosen) - 1]
            if number < size:
                chosen.append(dimension)
                ways = with_it
            else:
                number -= size
            dimension += 1
        levels: list[int | None] = [None] * len(self.heights)
        for one in reversed(chosen):
            number, levels[one] = divmod(number, self.heights[one])
        return tuple(levels)


def is_as_fine(levels: Levels, asked: Levels) -> bool:
    """Whether the groups of one vertex can be put together to those of another."""
    return all(
        theirs is None or (ours is not None and ours <= theirs)
        for ours, theirs in zip(levels, asked, strict=True)
    )
