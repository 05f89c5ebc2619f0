"""Which vertices a running cube keeps beside those of its program: by what is asked of it."""

from __future__ import annotations

import threading
from collections import Counter
from math import prod

from millstream.calculus.cube import Vertex
from millstream.calculus.lattice import Levels, is_as_fine
from millstream.calculus.library.cube_choice import Measured, by_measure
from millstream.kernels.cube.cube import CubeKernel
from millstream.olap.planning import attributes_of

#: So many of the vertices that are asked for most are thought of.
_MOST = 64


class AskedVertices:
    """Mutable: how often each vertex was asked for, in all and since the last choice."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._all: Counter[Levels] = Counter()
        self._lately: Counter[Levels] = Counter()

    def count(self, levels: Levels) -> None:
        with self._lock:
            self._all[levels] += 1
            self._lately[levels] += 1

    def all(self) -> Counter[Levels]:
        with self._lock:
            return Counter(self._all)

    def taken_lately(self) -> Counter[Levels]:
        """Those since the last time; half of what was is remembered."""
        with self._lock:
            made = Counter(self._lately)
            self._lately = Counter({k: v // 2 for k, v in made.items() if v > 1})
        return made


def choose_again(
    kernel: CubeKernel, program: int, asked: Counter[Levels], partitions: float
) -> bool:
    """Keep what is worth it, and give up what is not; whether anything has changed.

    The first vertices are the program's, and stay. `asked` counts questions in so many partitions.
    """
    cube = kernel.function
    own = [cube.levels(one.vertex) for one in kernel.kept[:program]]
    added = [cube.levels(one.vertex) for one in kernel.kept[program:]]
    often = [levels for levels, _ in asked.most_common(_MOST)]
    vertices = list(dict.fromkeys([*own, *added, *often]))
    sizes = {cube.levels(one.vertex): len(one.partitions) for one in kernel.kept}
    there = max(1, len(kernel.kept[0].partitions.parts))
    known = [
        _measured(kernel, levels, sizes, there, asked[levels] / max(partitions, 1.0))
        for levels in vertices
    ]
    chosen = by_measure(vertices, known, cube.memory, range(1, len(own)))
    wanted = [Vertex(attributes_of(cube, vertices[n]), cube.grain) for n in chosen]
    before = [one.vertex for one in kernel.kept[program:]]
    for vertex in before:
        if vertex not in wanted:
            kernel.forget(vertex)
    for vertex in wanted:
        if vertex not in before:
            kernel.keep(vertex)
    return set(before) != set(wanted)


def _measured(
    kernel: CubeKernel, levels: Levels, sizes: dict[Levels, int], there: int, asked: float
) -> Measured:
    """What a vertex has if it is kept; else at most what its members and its cells allow."""
    cells = sizes.get(levels)
    if cells is None:
        members = [
            hierarchy.members[level].bound
            for hierarchy, level in zip(kernel.scene.hierarchies, levels, strict=True)
            if level is not None
        ]
        made_of = min(size for other, size in sizes.items() if is_as_fine(other, levels))
        cells = min(made_of, prod(members) * there)
    finest = kernel.kept[0].partitions
    bytes_ = -(-finest.bytes // max(len(finest), 1))
    return Measured(cells, cells / there, bytes_, asked)
