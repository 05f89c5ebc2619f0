"""Cells with one kind of content, of all vertices that are kept: measures, or a tally."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from millstream.kernels.cube.cells import Measures
from millstream.kernels.cube.grouping import Block, Grouping
from millstream.kernels.cube.loops import Rows
from millstream.kernels.cube.outputs import Route
from millstream.kernels.cube.runs import Runs
from millstream.kernels.cube.stores import CellTable, Partitions
from millstream.kernels.relational.accumulators import CellValues
from millstream.kernels.runtime.kernel import Composed
from millstream.plan.batch import Array

#: For each vertex the ways to it, from the places of those before it.
Routes = Sequence[list[tuple[int, Route]]]


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
    values = CellValues(*(array[a:b] for array in rows.values))
    return Rows(values, rows.extremes[a:b], rows.known[a:b])


class Layer(Composed):
    """Mutable: the active cells, and the partitions of all vertices that are kept.

    Active are the cells of the finest vertex; where versions are asked for, those of all.
    """

    def __init__(
        self, measures: Measures, widths: Sequence[int], hidden: int, *, is_asked: bool
    ) -> None:
        """`widths` are those of codes of members, after which come `hidden` ones."""
        self.measures = measures
        self.hidden = hidden
        self.grouping = Grouping(measures)
        self.partitions = [Partitions(width + hidden, measures) for width in widths]
        self.active = CellTable(widths[0] + hidden, measures)
        #: In place of the active cells, for each vertex.
        self.runs = [Runs(width + hidden, measures) for width in widths] if is_asked else []
        if is_asked:
            # Partitions that are over are written down one by one, by who asks.
            self.parts = {"runs": self.runs[0]}
        else:
            self.parts = {"active": self.active} | {
                f"kept{n}": partitions for n, partitions in enumerate(self.partitions)
            }

    def added(self, width: int) -> Partitions:
        """The partitions of one vertex more."""
        self.partitions.append(Partitions(width + self.hidden, self.measures))
        return self.partitions[-1]

    def run_along(self, width: int, place: int, route: Route) -> None:
        """The active cells of one vertex more, from those of another one."""
        made = Runs(width + self.hidden, self.measures)
        for run in self.runs[place].runs:
            given = self.measures.unpacked(run)
            block = Block(given, np.array([0, len(given)]))
            made.add(self.grouping.of_cells(route.codes(given.codes), block).cells)
        self.runs.append(made)

    def forget(self, place: int) -> None:
        """Keep a vertex no longer."""
        partitions = self.partitions.pop(place)
        partitions.drop_until(max(partitions.parts, default=0))
        self.runs.pop(place).clear()

    def run_anew(self, widths: Sequence[int], routes: Routes) -> None:
        """The active cells of all vertices, from those of the finest one."""
        if self.runs:
            self.runs = self.runs[:1]
            for width, ways in zip(widths[1:], routes[1:], strict=True):
                self.run_along(width, *min(ways, key=lambda way: len(self.runs[way[0]])))

    def add_rows(self, codes: Array, rows: Rows, routes: Routes) -> None:
        """Rows of the active partition."""
        if not self.runs:
            self.active.add_rows(codes, rows)
            return
        block = self.grouping.of_rows(codes, np.array([0, len(codes)]), rows)
        for runs, made in zip(self.runs, self._rolled_up(block, routes), strict=True):
            runs.add(made.cells)

    def finished(self) -> Block:
        """The active cells of the finest vertex, which are active no longer."""
        if self.runs:
            cells = self.runs[0].finished()
            for runs in self.runs[1:]:
                runs.clear()
        else:
            cells = self.active.cells()
            self.active.clear()
        return Block(cells, np.array([0, len(cells)]))

    def complete(self, indexes: list[int], finest: Block, routes: Routes) -> None:
        """Partitions are over: every vertex gets its cells from the smallest that has them."""
        for partitions, block in zip(self.partitions, self._rolled_up(finest, routes), strict=True):
            partitions.push(indexes, block)

    def _rolled_up(self, finest: Block, routes: Routes) -> list[Block]:
        made = [finest]
        for ways in routes[1:]:
            place, route = min(ways, key=lambda way: len(made[way[0]]))
            given = made[place]
            made.append(self.grouping.of_cells(route.codes(given.cells.codes), given))
        return made

    def drop_until(self, index: int) -> None:
        for partitions in self.partitions:
            partitions.drop_until(index)
