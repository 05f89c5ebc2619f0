"""Cubify: one pass over rows updates the finest vertex; all others follow from changes of cells.

Rows go into the cells of the active partition. When it is over, the vertices that are kept at
its grain get its cells from the nearest of them that has them; what is coarser in time takes
them in, and gives up those of the partition that leaves: sums subtract exactly, extremes are
put together anew from the partitions that are left of their part of time.
"""

from __future__ import annotations

from bisect import bisect_left
from functools import cached_property

import numpy as np

from millstream.calculus.aggregation import SKETCHES
from millstream.calculus.cube import Cubify, Vertex
from millstream.calculus.lattice import Lattice
from millstream.calculus.types import QueueType
from millstream.kernels.cube.cells import Cells, Measures
from millstream.kernels.cube.grouping import Block
from millstream.kernels.cube.hierarchies import Hierarchy
from millstream.kernels.cube.layers import Feed, Layer, Routes, sliced
from millstream.kernels.cube.outputs import Output, Route, Scene
from millstream.kernels.cube.runs import packed_state, restored_packed
from millstream.kernels.cube.stores import Partitions
from millstream.kernels.cube.tallies import CellTally
from millstream.kernels.relational.hidden_keys import hidden_keys_of
from millstream.kernels.runtime.kernel import Composed, Round, State, StatefulPart
from millstream.plan.batch import Batch

#: Cells of so many parts of the window are made together.
_SHARES = 4


def why_not(function: Cubify) -> str | None:
    """Why a cube has no kernel, or None if it has one."""
    tallied = sorted({m.function for m in function.measures if m.function in SKETCHES})
    if function.is_live and tallied:
        return f"a live cube tells {', '.join(tallied)} at every instant"
    return None


class _Kept:
    """A vertex that is kept by partitions: its cells, and those of each tally."""

    def __init__(self, vertex: Vertex, partitions: list[Partitions]) -> None:
        self.vertex = vertex
        self.partitions, *self.tallies = partitions
        #: From those before it that answer it, by their places.
        self.routes: list[tuple[int, Route]] = []


class CubeKernel(Composed):
    """Mutable: members, the active partition, the vertices that are kept, and the outputs."""

    def __init__(
        self, function: Cubify, input_types: tuple[QueueType, ...], output_count: int, *,
        is_asked: bool = False,
    ) -> None:  # fmt: skip
        types = function.output_types(input_types, output_count)
        schema = input_types[0].schema
        self.function = function
        self.measures = Measures(function.measures, schema)
        self.scene = Scene(function, [Hierarchy(d, schema) for d in function.dimensions])
        self.tallies = hidden_keys_of(function.measures, CellTally)
        first, *others = (v for v in function.kept if v.grain == function.grain)
        others.sort(key=lambda v: -len(v.attributes))
        vertices = (first, *others)
        self.layers = [
            Layer(measures, [len(v.attributes) for v in vertices], is_tally, is_asked=is_asked)
            for is_tally, measures in (
                (0, self.measures), *((1, tally.measures) for tally in self.tallies)
            )
        ]  # fmt: skip
        stores = zip(*(layer.partitions for layer in self.layers), strict=True)
        self.kept = [_Kept(v, list(of_it)) for v, of_it in zip(vertices, stores, strict=True)]
        self.active_index: int | None = None
        self.coarse = [
            Output(self.scene, self.measures, vertex, None)
            for vertex in function.kept
            if vertex.grain != function.grain
        ]
        self.outputs = [
            Output(self.scene, self.measures, vertex, type_, self.tallies)
            for vertex, type_ in zip(function.outputs, types, strict=True)
        ]
        self._find_routes()
        self.parts = self._parts()

    def _parts(self) -> dict[str, StatefulPart]:
        parts: dict[str, StatefulPart] = {"measures": self.measures}
        parts |= {f"dimension{n}": h for n, h in enumerate(self.scene.hierarchies)}
        parts |= {f"tally{n}": tally for n, tally in enumerate(self.tallies)}
        parts |= {f"layer{n}": layer for n, layer in enumerate(self.layers)}
        parts |= {f"coarse{n}": one.table for n, one in enumerate(self.coarse)}
        return parts | {f"output{n}": one.table for n, one in enumerate(self.outputs)}

    def _routes(self, vertex: Vertex, before: int, *, is_plain: bool) -> list[tuple[int, Route]]:
        """How to come to a vertex from those kept ones, up to some place, that answer it."""
        lattice = Lattice(tuple(len(levels) for levels in self.function.dimensions))
        able = [
            (lattice.number(self.scene.levels(one.vertex)), place)
            for place, one in enumerate(self.kept[:before])
            if self.function.answers(one.vertex, vertex)
        ]
        return [
            (place, Route(self.scene, self.kept[place].vertex, vertex, is_plain=is_plain))
            for _, place in sorted(able)
        ]

    def process(self, inputs: tuple[Batch, ...], round_: Round) -> tuple[Batch, ...]:
        coming = _Coming(self, inputs[0])
        steps = self._steps(coming, round_.mark)
        self._pass(self._take(coming, int(self.function.grain.index(round_.mark))), steps)
        moving = [one for one in (*self.outputs, *self.coarse) if not one.is_passing]
        for step in steps if moving else steps[-1:]:
            coming.tell_until(step)
            self._move(moving, step, coming)
            self._expire(step - self.function.window - 1)
        coming.tell_until(None)
        return tuple(output.told() for output in self.outputs)

    def _steps(self, coming: _Coming, mark: int) -> list[int]:
        """The partitions with whose beginning something completes or leaves, up to a mark."""
        window, finest = self.function.window, self.kept[0].partitions
        begun = {*coming.indexes, *([] if self.active_index is None else [self.active_index])}
        ends = {i + 1 for i in begun} | {i + window + 1 for i in (*finest.parts, *begun)}
        last = self.function.grain.index(mark)
        return sorted(e for e in ends if e <= last)

    # --- which vertices are kept ---

    def keep(self, vertex: Vertex) -> None:
        """Keep one vertex more, from now on: it is filled aside from the nearest, and then there.

        It is not written down: after a restart those of the program are kept.
        """
        self.scene.know(vertex)
        kept = _Kept(vertex, [layer.added(len(vertex.attributes)) for layer in self.layers])
        kept.routes = self._routes(vertex, len(self.kept), is_plain=False)
        indexes = list(self.kept[0].partitions.parts)
        nearest, route = self._nearest(kept)
        place = self.kept.index(nearest)
        pairs = zip(self.layers, (nearest.partitions, *nearest.tallies), strict=True)
        for layer, partitions in pairs:
            given = partitions.span(indexes)
            if indexes:
                block = layer.grouping.of_cells(route.codes(given.cells.codes), given)
                layer.partitions[-1].push(indexes, block)
            if layer.runs:
                layer.run_along(len(vertex.attributes), place, route)
        self.kept.append(kept)
        self._find_routes()

    def forget(self, vertex: Vertex) -> None:
        """Keep a vertex no longer, of a kernel that is asked; the finest one always stays."""
        place = next(n for n, one in enumerate(self.kept) if one.vertex == vertex)
        assert place > 0
        del self.kept[place]
        for layer in self.layers:
            layer.forget(place)
        self._find_routes()

    def _find_routes(self) -> None:
        for number, one in enumerate(self.kept):
            one.routes = self._routes(one.vertex, number, is_plain=False)
        for output in (*self.outputs, *self.coarse):
            is_plain = output.type is not None
            output.routes = self._routes(output.vertex, len(self.kept), is_plain=is_plain)

    # --- rows into cells ---

    def _take(self, coming: _Coming, active: int) -> list[int]:
        """Let in all rows; which partitions are over, if this one is the active one."""
        completed: list[int] = []
        begun = 0
        if self.active_index is not None:
            if self.active_index in coming.indexes[:1]:
                self._begin(coming, 0)
                begun = 1
            if self.active_index < active:
                completed.append(self.active_index)
                for layer in self.layers:
                    block = layer.finished()
                    layer.complete(completed[:], block, self._ways)
                self.active_index = None
        over = bisect_left(coming.indexes, active)
        # Cells that are made together lie together in memory, which goes when the last of them
        # leaves the window: so they are made by small parts of it.
        together = max(1, self.function.window // _SHARES)
        for first in range(begun, over, together):
            last = min(first + together, over)
            indexes = coming.indexes[first:last]
            for layer, feed in zip(self.layers, coming.feeds, strict=True):
                block = layer.grouping.of_rows(*feed.parts(first, last))
                layer.complete(indexes, block, self._ways)
            completed += indexes
        begun = max(begun, over)
        if begun < len(coming.indexes):
            self.active_index = coming.indexes[begun]
            self._begin(coming, begun)
        return completed

    def _begin(self, coming: _Coming, part: int) -> None:
        """Rows of a partition into the active cells."""
        for layer, feed in zip(self.layers, coming.feeds, strict=True):
            codes, _, rows = feed.parts(part, part + 1)
            layer.add_rows(codes, rows, self._ways)

    @property
    def _ways(self) -> Routes:
        return [one.routes for one in self.kept]

    # --- what becomes of outputs ---

    def _pass(self, completed: list[int], steps: list[int]) -> None:
        """Cells of partitions that come and go whole."""
        window, there = self.function.window, self.kept[0].partitions.parts
        gone = [i for step in steps if (i := step - window - 1) in there]
        for output in self.outputs:
            if output.is_passing:
                kept, route = self._nearest(output)
                for indexes, later, weight in ((gone, window + 1, -1), (completed, 1, 1)):
                    if indexes:
                        blocks = [p.span(indexes) for p in (kept.partitions, *kept.tallies)]
                        output.pass_by(blocks, route, indexes, later, weight)

    def _nearest(self, output: Output | _Kept) -> tuple[_Kept, Route]:
        """The smallest vertex that has the cells for another one, and the way from there."""
        place, route = min(output.routes, key=lambda way: len(self.kept[way[0]].partitions))
        return self.kept[place], route

    def _cells(self, output: Output, index: int) -> Cells | None:
        """The cells of a partition for an output."""
        kept, route = self._nearest(output)
        return output.of(kept.partitions.get(index), route, index)

    def _tallied(self, output: Output, step: int) -> tuple[list[Block], list[Block]]:
        """What was counted for the parts of time that a step changes, before it and after it."""
        if not self.tallies or output.type is None:
            return [], []
        kept, route = self._nearest(output)
        gone = step - self.function.window - 1
        buckets = {output.bucket(gone), output.bucket(step - 1)}
        near = [i for i in kept.partitions.parts if output.bucket(i) in buckets]
        before = [i for i in near if gone <= i < step - 1]
        after = [i for i in near if gone < i < step]
        return (
            [output.tallied(p, route, before) for p in kept.tallies],
            [output.tallied(p, route, after) for p in kept.tallies],
        )

    def _move(self, moving: list[Output], step: int, coming: _Coming) -> None:
        """What the beginning of a partition changes: one is complete, one leaves."""
        gone_index = step - self.function.window - 1
        time = int(self.function.grain.start(step))
        for one in moving:
            gone = self._cells(one, gone_index)
            left = [] if gone is None else self._left(one, gone_index, step)
            if one.is_live:
                coming.tell_first(step, one, gone, left)
            else:
                come = self._cells(one, step - 1)
                one.move(time, come, gone, left, self._tallied(one, step))
        coming.told = step

    def _left(self, output: Output, gone: int, step: int) -> list[Cells]:
        """What a step leaves of the part of time that a partition leaves."""
        if not self.measures.layout.extremes:
            return []
        bucket = output.bucket(gone)
        indexes = self.kept[0].partitions.parts
        there = [i for i in indexes if gone < i < step and output.bucket(i) == bucket]
        cells = [self._cells(output, i) for i in there]
        return [c for c in cells if c is not None]

    def _expire(self, index: int) -> None:
        for layer in self.layers:
            layer.drop_until(index)

    # --- state ---

    def snapshot(self) -> State:
        return super().snapshot() | {"active_index": self.active_index}

    def restore(self, state: State) -> None:
        super().restore(state)
        index = state["active_index"]
        self.active_index = None if index is None else int(index)
        for layer in self.layers:
            layer.run_anew([len(one.vertex.attributes) for one in self.kept], self._ways)

    def partition_state(self, index: int, count: int) -> State:
        """The cells of a partition that is over, of so many of the vertices that are kept."""
        return {
            f"{n}.{place}.{name}": array
            for n, layer in enumerate(self.layers)
            for place, partitions in enumerate(layer.partitions[:count])
            for name, array in packed_state(partitions.parts[index]).items()
        }

    def put_back(self, index: int, state: State) -> None:
        """A partition that was written down, after all that are there."""
        for n, layer in enumerate(self.layers):
            for place, partitions in enumerate(layer.partitions):
                start = f"{n}.{place}."
                own = {k.removeprefix(start): v for k, v in state.items() if k.startswith(start)}
                partitions.put_back(index, restored_packed(own))

    def faults(self) -> dict[str, int]:
        return self.measures.faults()


class _Coming:
    """Mutable: the rows of a round, by partitions, and how far they have been taken."""

    def __init__(self, kernel: CubeKernel, batch: Batch) -> None:
        self.kernel = kernel
        self.time = batch.time
        index = np.asarray(kernel.function.grain.index(batch.time))
        codes = [h.finest(batch) for h in kernel.scene.hierarchies]
        self.codes = np.stack(codes, axis=1) if len(batch) else np.zeros((0, len(codes)), np.int64)
        self.rows = kernel.measures.rows(batch)
        self.batch = batch
        edges = np.flatnonzero(np.diff(index)) + 1
        self.edges = np.concatenate([[0], edges, [len(batch)]]) if len(batch) else np.zeros(1, int)
        self.indexes: list[int] = index[self.edges[:-1]].tolist()
        #: How many partitions have been told, and of which step the rows that come with it.
        self.at = 0
        self.told: int | None = None

    @cached_property
    def feeds(self) -> list[Feed]:
        """What each layer takes in."""
        feeds = [Feed(self.codes, self.edges, self.rows)]
        for tally in self.kernel.tallies:
            keys, is_there = tally.keys(self.batch)
            chosen = np.flatnonzero(is_there)
            codes = np.column_stack([self.codes[chosen], keys[chosen]])
            rows = tally.measures.rows(self.batch.take(chosen))
            feeds.append(Feed(codes, np.searchsorted(chosen, self.edges), rows))
        return feeds

    def tell_until(self, step: int | None) -> None:
        """Tell live outputs of the rows of partitions before a step."""
        while self.at < len(self.indexes) and (step is None or self.indexes[self.at] < step):
            self._tell_live(self.indexes[self.at], *self.edges[self.at : self.at + 2].tolist())
            self.at += 1

    def _tell_live(self, index: int, a: int, b: int) -> None:
        """The instants of a partition, but for its first one, which a step may have told."""
        kernel = self.kernel
        live = [output for output in kernel.outputs if output.is_live]
        if not live:
            return
        if self.told == index:
            start = kernel.function.grain.start(index)
            a += int(np.searchsorted(self.time[a:b], start, "right"))
        if a < b:
            time = np.ascontiguousarray(self.time[a:b])
            for one in live:
                one.flow(time, self.codes[a:b], sliced(self.rows, a, b), index)

    def tell_first(self, step: int, output: Output, gone: Cells | None, left: list[Cells]) -> None:
        """What leaves with the beginning of a partition, and the rows that come at that instant."""
        start = int(self.kernel.function.grain.start(step))
        a = b = 0
        if self.at < len(self.indexes) and self.indexes[self.at] == step:
            a, b = self.edges[self.at : self.at + 2].tolist()
            b = a + int(np.searchsorted(self.time[a:b], start, "right"))
        self._tell(output, (a, b), step, start, gone, left)

    def _tell(
        self, output: Output, rows: tuple[int, int], index: int, time: int,
        gone: Cells | None, left: list[Cells],
    ) -> None:  # fmt: skip
        """Rows of a partition as cells of their own, which come at an instant."""
        kernel, (a, b) = self.kernel, rows
        come = None
        if b > a:
            numbers, ids = kernel.measures.numbers(b - a), np.arange(b - a)
            kernel.measures.add_rows(sliced(self.rows, a, b), ids, numbers)
            come = output.of(Cells(self.codes[a:b], numbers), output.from_rows, index)
        output.move(time, come, gone, left)
        if come is not None:
            kernel.measures.forget(come.numbers, np.arange(b - a))
