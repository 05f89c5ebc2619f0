"""A cube as it is after some batch: cells and members that nobody changes any more.

Partitions that are over, and runs of cells of the active one, are shared by all versions that have
them. So a question is answered from one version, whatever comes meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow.compute as pc

from millstream.calculus.cube import Cubify, Vertex
from millstream.calculus.lattice import Lattice, Levels
from millstream.kernels.cube.cells import Measures, Packed
from millstream.kernels.cube.cube import CubeKernel
from millstream.kernels.cube.hierarchies import Hierarchy
from millstream.kernels.cube.stretches import Ranking, Stretch, Stretches
from millstream.kernels.cube.tallies import CellTally
from millstream.kernels.runtime.hashing import frozen
from millstream.kernels.windows.sums import Wides
from millstream.plan.batch import Array, Vector, concat_vectors


@dataclass(frozen=True)
class Members:
    """The members of a dimension.

    `values` has those of each level; `plain` for each level the numbers of its members among
    the values of the same and of coarser ones.
    """

    names: tuple[str, ...]
    values: tuple[Vector, ...]
    plain: tuple[tuple[Array, ...], ...]
    _orders: dict[int, Array] = field(default_factory=dict, compare=False)
    _ranks: dict[int, Array] = field(default_factory=dict, compare=False)
    _places: dict[tuple[int, int], Array] = field(default_factory=dict, compare=False)

    def order(self, level: int) -> Array:
        """The values of a level in order, null last."""
        made = self._orders.get(level)
        if made is None:
            values = self.values[level].to_arrow()
            made = frozen(np.asarray(pc.sort_indices(values)).astype(np.int64))
            self._orders[level] = made
        return made

    def ranks(self, level: int) -> Array:
        """Where each value of a level comes in order, null last."""
        made = self._ranks.get(level)
        if made is None:
            order = self.order(level)
            made = np.empty(len(order), np.int64)
            made[order] = np.arange(len(order))
            self._ranks[level] = made
        return made

    def places(self, level: int, wanted: int) -> Array:
        """For each member of a level, where its value at a coarser one comes in order."""
        made = self._places.get((level, wanted))
        if made is None:
            made = self.ranks(wanted)[self.numbers(level, wanted)]
            self._places[level, wanted] = made
        return made

    def numbers(self, level: int, wanted: int) -> Array:
        """For each member of a level, which value it has at a coarser one."""
        return self.plain[level][wanted - level]


@dataclass(frozen=True)
class LayerCells:
    """The cells of a vertex with one kind of content: of partitions, and of the active one."""

    parts: dict[int, Packed]
    size: int
    stretches: Stretches
    active: tuple[Packed, ...]
    active_index: int | None

    def between(
        self, first: int, last: int, ranking: Ranking, *, is_together: bool, has_active: bool
    ) -> tuple[Stretch, Stretch]:
        """The cells of some partitions, each apart or put together to one, and active ones."""
        over = self.stretches.get(self.parts, first, last, ranking, is_together=is_together)
        index = self.active_index
        is_asked = has_active and index is not None and first <= index <= last
        return over, self.stretches.active(self.active if is_asked else (), index or 0)

    def count(self, first: int, last: int) -> int:
        parts, index = self.parts, self.active_index
        active = self.active_size if index is not None and first <= index <= last else 0
        if not parts or (first <= next(iter(parts)) and next(reversed(parts)) <= last):
            return self.size + active
        return active + sum(len(p) for i, p in self.parts.items() if first <= i <= last)

    @property
    def active_size(self) -> int:
        return sum(map(len, self.active))

    @property
    def bytes(self) -> int:
        return sum(packed.bytes for packed in (*self.parts.values(), *self.active))


@dataclass(frozen=True)
class KeptCells:
    """A vertex that is kept: the cells of its measures, and after them those of each tally."""

    vertex: Vertex
    levels: Levels
    number: int
    layers: tuple[LayerCells, ...]

    def count(self, first: int, last: int) -> int:
        return self.layers[0].count(first, last)

    @property
    def size(self) -> int:
        return self.layers[0].size + self.layers[0].active_size

    @property
    def bytes(self) -> int:
        return sum(layer.bytes for layer in self.layers)


class Remembered:
    """Mutable: what was made of the version that was asked last; of others nothing is held."""

    #: So many things are remembered.
    _MOST = 32

    def __init__(self) -> None:
        self._of: tuple[Version | None, dict[Hashable, Any]] = None, {}

    def get(self, version: Version, what: Hashable) -> Any:
        """What was made of a version, or None."""
        known, made = self._of
        return made.get(what) if known is version else None

    def put(self, version: Version, what: Hashable, made: object) -> None:
        if self._of[0] is not version:
            self._of = version, {}
        if len(self._of[1]) < self._MOST:
            self._of[1][what] = made


@dataclass(frozen=True)
class Version:
    """What a cube is after a batch; `mark` is the time up to which all is known."""

    number: int
    mark: int | None
    function: Cubify
    members: tuple[Members, ...]
    kept: tuple[KeptCells, ...]
    measures: Measures
    wides: Wides
    tallies: tuple[CellTally, ...]
    #: The members as they were at a past time, if they change otherwise than by new ones.
    members_at: Callable[[int | None], tuple[Members, ...]] | None = None
    remembered: Remembered = field(default_factory=Remembered, compare=False)

    def as_of(self, time: int | None) -> Version:
        """The version with the members of a time."""
        if self.members_at is None or time is None:
            return self
        return replace(self, members=self.members_at(time))

    def reading(self) -> Measures:
        """What tells of cells of this version, and changes nothing that others see."""
        return self.measures.apart(self.wides)

    def bytes_beyond(self, before: Version | None) -> int:
        """The memory of the finest cells that the version before does not have."""
        total = 0
        for number, mine in enumerate(self.kept[0].layers):
            theirs = None if before is None else before.kept[0].layers[number]
            parts = {} if theirs is None else theirs.parts
            runs = () if theirs is None else theirs.active
            total += sum(p.bytes for i, p in mine.parts.items() if i not in parts)
            total += sum(run.bytes for run in mine.active if not any(run is r for r in runs))
        return total

    @property
    def partition(self) -> int | None:
        """The partition of now."""
        return None if self.mark is None else int(self.function.grain.index(self.mark))


class Versions:
    """Mutable: makes versions of a kernel, one after the other."""

    def __init__(self, kernel: CubeKernel) -> None:
        self.kernel = kernel
        self._members: list[Members | None] = [None] * len(kernel.scene.hierarchies)
        self._stretches: dict[Vertex, list[Stretches]] = {}
        self._remembered = Remembered()

    def make(self, number: int, mark: int | None, function: Cubify) -> Version:
        kernel = self.kernel
        self._members = [
            _members(h, before)
            for h, before in zip(kernel.scene.hierarchies, self._members, strict=True)
        ]
        there = {one.vertex for one in kernel.kept}
        self._stretches = {v: known for v, known in self._stretches.items() if v in there}
        kept = tuple(self._kept(place, function) for place in range(len(kernel.kept)))
        return Version(
            number, mark, function, tuple(m for m in self._members if m is not None), kept,
            kernel.measures, kernel.measures.copied_wides(), tuple(kernel.tallies),
            remembered=self._remembered,
        )  # fmt: skip

    def _kept(self, place: int, function: Cubify) -> KeptCells:
        kernel, vertex = self.kernel, self.kernel.kept[place].vertex
        if vertex not in self._stretches:
            width = len(vertex.attributes)
            self._stretches[vertex] = [
                Stretches(layer.measures, width + layer.hidden, is_finest=place == 0)
                for layer in kernel.layers
            ]
        layers = tuple(
            LayerCells(
                dict(layer.partitions[place].parts), len(layer.partitions[place]), stretches,
                layer.runs[place].runs, kernel.active_index,
            )
            for layer, stretches in zip(kernel.layers, self._stretches[vertex], strict=True)
        )  # fmt: skip
        levels = function.levels(vertex)
        lattice = Lattice(tuple(len(own) for own in function.dimensions))
        return KeptCells(vertex, levels, lattice.number(levels), layers)


def _members(hierarchy: Hierarchy, before: Members | None) -> Members:
    """The members of now; what was there before is not looked at again."""
    levels = range(len(hierarchy.names))
    if before is not None and all(
        hierarchy.members[level].bound == len(before.plain[level][0]) for level in levels
    ):
        return before
    plain: list[Sequence[Array]] = [
        [hierarchy.plain_numbers(level, wanted) for wanted in levels[level:]] for level in levels
    ]
    values = [
        _values(hierarchy, level, None if before is None else before.values[level])
        for level in levels
    ]
    return Members(hierarchy.names, tuple(values), tuple(tuple(p) for p in plain))


def _values(hierarchy: Hierarchy, level: int, before: Vector | None) -> Vector:
    known = 0 if before is None else len(before)
    new = np.arange(known, hierarchy.values[level].bound)
    if before is not None and not len(new):
        return before
    made = hierarchy.vector(level, new)
    if made.is_text:
        # As plain texts, so that no question need make them so.
        made = Vector(made.type, made.to_arrow())
    return made if before is None or not known else concat_vectors([before, made])
