"""What leaves a cube: the cells of a vertex as a relation, told as consolidated changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from millstream.calculus.cube import Cubify, Vertex
from millstream.calculus.cube_parts import part_columns
from millstream.calculus.lattice import Levels
from millstream.calculus.types import TIME, QueueType
from millstream.kernels.cube.cells import Cells, Measures
from millstream.kernels.cube.grouping import Block, Grouping
from millstream.kernels.cube.hierarchies import Hierarchy
from millstream.kernels.cube.loops import Rows
from millstream.kernels.cube.parts import keys_told_in_parts, told_in_parts
from millstream.kernels.cube.stores import CellTable, Partitions
from millstream.kernels.cube.tallies import CellTally, as_one
from millstream.plan.batch import Array, Batch, Vector, concat_batches, empty_batch


class Scene:
    """Mutable: a cube and the members of its dimensions."""

    def __init__(self, function: Cubify, hierarchies: Sequence[Hierarchy]) -> None:
        self.function = function
        self.hierarchies = hierarchies
        vertices = {*function.kept, *function.outputs}
        self._levels = {vertex: function.levels(vertex) for vertex in vertices}

    def know(self, vertex: Vertex) -> None:
        self._levels[vertex] = self.function.levels(vertex)

    def levels(self, vertex: Vertex) -> Levels:
        """Which level of each dimension a vertex has."""
        return self._levels[vertex]


class Route:
    """How the codes of cells become those of a coarser vertex."""

    def __init__(self, scene: Scene, given: Vertex, wanted: Vertex, *, is_plain: bool) -> None:
        self.places: list[int] = []
        self.is_plain = is_plain
        #: How many columns the codes have; what comes after them stays as it is.
        self.width = len(given.attributes)
        #: The columns that have other numbers there, with their levels before and after.
        self.changed: list[tuple[int, Hierarchy, int, int]] = []
        #: Whether cells stay apart that were apart.
        self.is_exact = given.attributes == wanted.attributes
        place = 0
        levels = zip(scene.hierarchies, scene.levels(given), scene.levels(wanted), strict=True)
        for hierarchy, level, target in levels:
            if level is None:
                continue
            if target is not None:
                is_value = is_plain and target < len(hierarchy.names) - 1
                self.is_exact &= not is_value
                if level != target or is_value:
                    self.changed.append((len(self.places), hierarchy, level, target))
                self.places.append(place)
            place += 1

    def codes(self, codes: Array, *, bucket: int | Array | None = None) -> Array:
        """The codes at the end of the route, and beside them a part of time if one is given."""
        width = len(self.places)
        hidden = codes[:, self.width :]
        beside = width + (bucket is not None)
        made = np.empty((len(codes), beside + hidden.shape[1]), np.int64)
        for column, place in enumerate(self.places):
            made[:, column] = codes[:, place]
        for column, hierarchy, level, target in self.changed:
            numbers = made[:, column]
            made[:, column] = hierarchy.coarser(numbers, level, target, is_plain=self.is_plain)
        if bucket is not None:
            made[:, width] = bucket
        made[:, beside:] = hidden
        return made


class _Said(NamedTuple):
    """Changes of cells: when, of which, how many, and their measures."""

    time: Array
    codes: Array
    weight: Array
    words: Array
    valid: Array


class Output:
    """Mutable: the cells of a vertex in the window, and what was said of them in this round.

    Without a type nothing is said: so vertices of a coarser grain are kept.
    """

    def __init__(
        self, scene: Scene, measures: Measures, vertex: Vertex, type_: QueueType | None,
        tallies: Sequence[CellTally] = (),
    ) -> None:  # fmt: skip
        self.scene = scene
        self.tallies = tallies
        self.measures = measures
        self.vertex = vertex
        self.type = type_
        finest = scene.function.finest
        self.from_rows = Route(scene, finest, vertex, is_plain=type_ is not None)
        #: From vertices that are kept by partitions, by their places among these.
        self.routes: list[tuple[int, Route]] = []
        self.is_live = scene.function.is_live and type_ is not None
        #: Codes of members, or of values if they leave; and the part of time.
        self.table = CellTable(len(vertex.attributes) + 1, measures)
        #: Whether cells come and go whole: then none is kept here.
        function = scene.function
        is_of_partitions = vertex.grain == function.grain or function.is_in_parts
        self.is_passing = type_ is not None and not self.is_live and is_of_partitions
        self.part_columns = part_columns(function.measures) if function.is_in_parts else None
        self.said: list[_Said] = []
        #: Of parts: times, codes, weights, and columns.
        self.parts_said: list[tuple[Array, Array, Array, list[Vector]]] = []

    def bucket(self, index: int) -> int:
        """The part of time, at the grain of the vertex, that a partition lies in."""
        start = self.scene.function.grain.start(index)
        return int(self.vertex.grain.index(start))

    def of(self, cells: Cells | None, route: Route, index: int) -> Cells | None:
        """Cells of another vertex in a partition as changes of this one."""
        if cells is None:
            return None
        codes = route.codes(cells.codes, bucket=self.bucket(index))
        return Cells(codes, cells.numbers)

    def tallied(self, partitions: Partitions, route: Route, indexes: Sequence[int]) -> Block:
        """What was counted in some partitions, by the cells of this vertex."""
        given = partitions.span(indexes)
        buckets = [self.bucket(i) for i in indexes]
        bucket = np.repeat(np.array(buckets, np.int64), np.diff(given.edges))
        together = as_one(route.codes(given.cells.codes, bucket=bucket), given)
        return Grouping(partitions.measures).of_cells(together.cells.codes, together)

    def move(
        self, time: int, come: Cells | None, gone: Cells | None, left: list[Cells],
        tallied: tuple[list[Block], list[Block]] = ([], []),
    ) -> None:  # fmt: skip
        """At one instant cells come and others leave, whose part of time then has what is left.

        What is counted by hidden keys is given as it was before and as it is after.
        """
        if come is None and gone is None:
            return
        ids_come = self._ids(come)
        ids_gone = self._ids(gone)
        touched = np.unique(np.concatenate([ids_come, ids_gone]))
        was_there = self.table.numbers.rows[touched] > 0
        before, after = tallied
        old = self._told(touched, before) if self.type else None
        numbers = self.table.numbers
        if gone is not None:
            self.measures.merge(gone.numbers, ids_gone, numbers, sign=-1)
            numbers.known[ids_gone] = False
            for cells in left:
                self.measures.merge_extremes(cells.numbers, self._ids(cells), numbers)
        if come is not None:
            self.measures.merge(come.numbers, ids_come, numbers)
        if old is not None:
            self._say(time, touched, was_there, old, after)
        self.table.drop(touched)

    def _told(self, ids: Array, tallied: Sequence[Block]) -> tuple[Array, Array]:
        """The measures of some cells."""
        words, valid = self.measures.told(self.table.numbers, ids)
        cells = self.table.codes(ids), np.array([0, len(ids)])
        for tally, block in zip(self.tallies, tallied, strict=True):
            tally.tell_cells(cells, block, words, valid)
        return words, valid

    def flow(self, time: Array, codes: Array, rows: Rows, index: int) -> None:
        """Rows of one partition come, instant by instant."""
        ids = self.table.ids(self.from_rows.codes(codes, bucket=self.bucket(index)))
        changes = self.measures.tell_instants(rows, time, ids, self.table.numbers)
        groups = self.table.codes(changes.groups)
        self.said.append(_Said(changes.time, groups, changes.weight, changes.words, changes.valid))

    def pass_by(
        self, blocks: Sequence[Block], route: Route, indexes: Sequence[int], later: int, weight: int
    ) -> None:
        """Say that cells come, or go, so many partitions after their own.

        They are given as they are kept at the beginning of a route, those of tallies after them.
        """
        block, *counted = (self._along(given, route, of) for given, of in zip(
            blocks, (self.measures, *(t.measures for t in self.tallies)), strict=True))  # fmt: skip
        numbers, ids = block.cells.numbers, np.arange(len(block))
        times, codes = self._placed(block, indexes, later)
        if self.part_columns is not None:
            cells, vectors = told_in_parts(self.measures, self.part_columns, numbers)
            weights = np.full(len(cells), weight)
            self.parts_said.append((times[cells], codes[cells], weights, vectors))
            for tally, one in zip(self.tallies, counted, strict=True):
                hidden, weights = one.cells.codes[:, -1], weight * one.cells.numbers.rows
                vectors = keys_told_in_parts(self.measures, self.part_columns, tally, hidden)
                self.parts_said.append((*self._placed(one, indexes, later), weights, vectors))
        else:
            words, valid = self.measures.told(numbers, ids)
            for tally, one in zip(self.tallies, counted, strict=True):
                tally.tell_cells((block.cells.codes, block.edges), one, words, valid)
            if weight > 0:
                self.measures.count_faults(numbers, ids, valid)
            self.said.append(_Said(times, codes, np.full(len(ids), weight), words, valid))
        if block.cells.numbers is not blocks[0].cells.numbers:
            self.measures.forget(numbers, ids)

    def _placed(self, block: Block, indexes: Sequence[int], later: int) -> tuple[Array, Array]:
        """When cells come or go, and their codes with the part of time and no hidden key."""
        buckets = np.array([self.bucket(i) for i in indexes], np.int64)
        index, sizes = np.asarray(indexes, np.int64), np.diff(block.edges)
        codes = block.cells.codes[:, : len(self.vertex.attributes)]
        times = np.asarray(self.scene.function.grain.start(index + later), np.int64)
        return np.repeat(times, sizes), np.column_stack([codes, np.repeat(buckets, sizes)])

    def _along(self, given: Block, route: Route, measures: Measures) -> Block:
        """Cells as they are at the end of a route; to tell of a wide sum may change it."""
        codes = route.codes(given.cells.codes)
        if route.is_exact and not given.cells.has_wide_sums:
            return Block(Cells(codes, given.cells.numbers), given.edges)
        return Grouping(measures).of_cells(codes, given)

    def _ids(self, cells: Cells | None) -> Array:
        return np.zeros(0, np.int64) if cells is None else self.table.ids(cells.codes)

    def _say(
        self, time: int, ids: Array, was_there: Array, old: tuple[Array, Array],
        tallied: Sequence[Block],
    ) -> None:  # fmt: skip
        """The rows that go and those that come, but for cells that are as they were."""
        numbers = self.table.numbers
        is_there = numbers.rows[ids] > 0
        new = self._told(ids, tallied)
        is_same = ((new[0] == old[0]) & (new[1] == old[1])).all(axis=1) & was_there & is_there
        going, coming = was_there & ~is_same, is_there & ~is_same
        self.measures.count_faults(numbers, ids[coming], new[1][coming])
        chosen = np.concatenate([ids[going], ids[coming]])
        words = np.concatenate([old[0][going], new[0][coming]])
        valid = np.concatenate([old[1][going], new[1][coming]])
        weight = np.repeat(np.array([-1, 1]), [going.sum(), coming.sum()])
        times = np.full(len(chosen), time)
        self.said.append(_Said(times, self.table.codes(chosen), weight, words, valid))

    def _dimensions(self) -> list[tuple[Hierarchy, int]]:
        """The dimensions that the vertex has, and at which level."""
        levels = self.scene.levels(self.vertex)
        pairs = zip(self.scene.hierarchies, levels, strict=True)
        return [(h, level) for h, level in pairs if level is not None]

    def _groups(self, codes: Array) -> list[Vector]:
        """The attributes of cells, and when their part of time begins."""
        columns = [h.vector(level, codes[:, n]) for n, (h, level) in enumerate(self._dimensions())]
        return [*columns, Vector(TIME, self.vertex.grain.start(codes[:, -1]))]

    def _order(self, said: _Said) -> Array:
        """Changes by time, what goes before what comes, each by the values of their columns.

        No two of those of an instant have the same attributes, part of time and sign.
        """
        keys = [said.time, said.weight]
        for n, (hierarchy, level) in enumerate(self._dimensions()):
            keys.append(hierarchy.ranks(level)[said.codes[:, n]])
        return order_of_keys([*keys, said.codes[:, -1]])

    def told(self) -> Batch:
        """What was said since the last time, consolidated but for parts."""
        assert self.type is not None
        if self.parts_said:
            return self._parts_told(self.type)
        if not self.said:
            return empty_batch(self.type)
        said = _Said(*(np.concatenate(arrays) for arrays in zip(*self.said, strict=True)))
        self.said = []
        order = self._order(said)
        said = _Said(*(array[order] for array in said))
        columns = (*self._groups(said.codes), *self.measures.vectors(said.words, said.valid))
        return Batch(self.type, said.time, columns, said.weight)

    def _parts_told(self, type_: QueueType) -> Batch:
        batches = [
            Batch(type_, times, (*self._groups(codes), *vectors), weights)
            for times, codes, weights, vectors in self.parts_said
        ]
        self.parts_said = []
        whole = concat_batches(batches, type_)
        return whole.take(np.argsort(whole.time, kind="stable"))


def order_of_keys(keys: Sequence[Array]) -> Array:
    """The order of rows that differ in their keys, of which the first counts most."""
    joined = np.zeros(len(keys[0]), np.int64)
    room = 63
    for key in keys:
        steps = key - (key.min() if len(key) else 0)
        if key is keys[0]:
            # Times are often multiples of something long.
            steps = steps // max(int(np.gcd.reduce(steps)), 1)
        bits = int(steps.max(initial=0)).bit_length()
        room -= bits
        if room < 0:
            return np.lexsort(keys[::-1])
        joined = (joined << bits) | steps
    return np.argsort(joined)
