"""Cells with one kind of content, of all vertices that are kept: measures, or a tally."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from millstream.kernels.cube.cells import Measures
from millstream.kernels.cube.grouping import Block, Grouping
from millstream.kernels.cube.loops import Rows
from millstream.kernels.cube.outputs import Route
from millstream.kernels.cube.stores import CellTable, Partitions
from millstream.kernels.relational.accumulators import Values
from millstream.kernels.runtime.kernel import Composed
from millstream.plan.batch import Array


@dataclass(frozen=True, slots=True)
class Feed:
    """The rows of a round on their way into a layer; where each partition begins, and the end."""

    codes: Array
    edges: Array
    rows: Rows

    def parts(self, first: int, last: int) -> tuple[Array, Array, Rows]:
        """Some of the partitions: codes, edges and rows."""
        edges = self.edges[first : last + 1]
        a, b = int(edges[0]), int(edges[-1])
        return self.codes[a:b], edges - a, sliced(self.rows, a, b)


def sliced(rows: Rows, a: int, b: int) -> Rows:
    values = Values(*(array[a:b] for array in rows.values))
    return Rows(values, rows.extremes[a:b], rows.known[a:b])


class Layer(Composed):
    """Mutable: the active cells of the finest vertex, and the partitions of all vertices."""

    def __init__(self, measures: Measures, widths: Sequence[int], hidden: int) -> None:
        """`widths` are those of codes of members, after which come `hidden` ones."""
        self.measures = measures
        self.hidden = hidden
        self.grouping = Grouping(measures)
        self.active = CellTable(widths[0] + hidden, measures)
        self.partitions = [Partitions(width + hidden, measures) for width in widths]
        self.parts = {"active": self.active} | {
            f"kept{n}": partitions for n, partitions in enumerate(self.partitions)
        }

    def added(self, width: int) -> Partitions:
        """The partitions of one vertex more."""
        self.partitions.append(Partitions(width + self.hidden, self.measures))
        return self.partitions[-1]

    def finished(self) -> Block:
        """The active cells, which are active no longer."""
        cells = self.active.cells()
        self.active.clear()
        return Block(cells, np.array([0, len(cells)]))

    def complete(
        self, indexes: list[int], finest: Block, routes: Sequence[list[tuple[int, Route]]]
    ) -> None:
        """Partitions are over: every vertex gets its cells from the smallest that has them."""
        made = [finest]
        for ways in routes[1:]:
            place, route = min(ways, key=lambda way: len(made[way[0]]))
            given = made[place]
            made.append(self.grouping.of_cells(route.codes(given.cells.codes), given))
        for partitions, block in zip(self.partitions, made, strict=True):
            partitions.push(indexes, block)
