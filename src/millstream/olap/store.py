"""The store of a cube: a sink that knows its batches, and the versions that can be asked.

Rows and the number of their batch appear together, as a version. What is kept on disk is the
state after some batch; the batches after it are delivered again by the engine, which keeps them
for as long as they are wanted.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import replace
from time import monotonic
from typing import Any

import numpy as np

from millstream.calculus.cube import Cubify, Vertex
from millstream.calculus.lattice import Levels
from millstream.calculus.types import QueueType
from millstream.engine.storage.codec import DamagedState
from millstream.engine.storage.files import Files
from millstream.engine.storage.records import read_record, write_record
from millstream.kernels.cube.cube import CubeKernel
from millstream.kernels.cube.versions import Version, Versions
from millstream.kernels.runtime.kernel import Round
from millstream.olap.choosing import AskedVertices, choose_again
from millstream.olap.moving import Movements, by_keys, facts_of
from millstream.olap.planning import attributes_of, keyed, levels_of
from millstream.olap.program import ServedCube
from millstream.plan.batch import Batch, concat_batches

#: How many versions can be gone on from, for how long, and how much memory is spent on that.
KEPT_VERSIONS, KEPT_SECONDS, KEPT_BYTES = 256, 120.0, 1 << 29
#: The state is written after so many batches at least, and when half as many rows came as it has
#: members and active cells. Partitions that are over are written once.
_SNAPSHOT_EVERY = 20
_FORMAT = 2
#: Vertices are chosen again so often while a window passes.
_CHOICES = 4

_NO_TICKS = np.zeros(0, np.int64)


def kept_vertices(function: Cubify) -> tuple[Vertex, ...]:
    """Vertices are kept by the partitions of time, whatever grain they were named with."""
    return tuple(dict.fromkeys(replace(v, grain=function.grain) for v in function.kept))


def kernel_of(cube: ServedCube) -> CubeKernel:
    """A kernel that keeps the partitions of the history too, and has no outputs."""
    function = by_keys(cube.function)
    whole = replace(
        function, kept=kept_vertices(function), outputs=(),
        window=function.window + function.history,
    )  # fmt: skip
    return CubeKernel(whole, (QueueType(facts_of(cube)),), 0, is_asked=True)


def _movements_of(cube: ServedCube) -> Movements | None:
    return Movements(cube.function, facts_of(cube)) if cube.function.moving else None


class CubeStore:
    """Mutable: written to by one thread, asked by many. See `BatchWriter`."""

    def __init__(self, cube: ServedCube, files: Files | None = None) -> None:
        self.cube = cube
        self._files = files
        self._kernel = kernel_of(cube)
        self._versions = Versions(self._kernel)
        self._movements = _movements_of(cube)
        self._job = ""
        self._coming: list[Batch] = []
        self._mark: int | None = None
        self._since = self._rows = 0
        #: The first batch that would be needed again if this ended now.
        self.wanted_from = 0
        #: Partitions that are on the disk; those of the program's vertices.
        self._written: set[int] = set()
        self._program_kept = len(self._kernel.kept)
        self.asked = AskedVertices()
        self._chosen_at: int | None = None
        #: When each version was made, and the bytes that it did not share with the one before.
        self._last: deque[tuple[float, int, Version]] = deque()
        self._news = threading.Condition()
        self._listeners: list[Callable[[], None]] = []
        #: What is done with a version before it can be asked.
        self.make_ready: Callable[[Version], object] = lambda _: None
        self.version = self._publish(-1)

    # --- what an engine calls ---

    def open(self, job: str, *, fresh: bool) -> int:
        """Go on from the state that is kept, if it is this job's."""
        self._job = job
        if fresh or self._files is None or not self._take_up(self._files):
            self._forget_files()
            return 0
        self._versions = Versions(self._kernel)
        self._publish(self.wanted_from - 1)
        return self.wanted_from

    @property
    def _name(self) -> str:
        return f"server/{self.cube.name}.cells"

    @property
    def _folder(self) -> str:
        return f"server/{self.cube.name}.parts"

    def _take_up(self, files: Files) -> bool:
        """The state that is kept, if it is this job's and whole."""
        try:
            state: dict[str, Any] = read_record(files, self._name)
            if state.get("format") != _FORMAT or state["job"] != self._job:
                return False
            kernel = kernel_of(self.cube)
            kernel.restore(state["kernel"])
            for index in state["partitions"]:
                kernel.put_back(index, read_record(files, f"{self._folder}/{index}"))
            movements = _movements_of(self.cube)
            if movements is not None:
                movements.restore(state["moved"])
        except DamagedState:
            return False  # the engine says whether it can be computed again
        self._kernel, self._mark, self._movements = kernel, state["mark"], movements
        self._written = set(state["partitions"])
        self.wanted_from = state["version"] + 1
        return True

    def _forget_files(self) -> None:
        self._written.clear()
        if self._files is not None:
            self._files.delete(self._name)
            for name in self._files.names(self._folder):
                self._files.delete(f"{self._folder}/{name}")

    def write_batch(self, number: int, batch: Batch, more: Iterable[Batch] = ()) -> None:
        """The rows of a batch, which can be seen when time has passed up to its end."""
        self._coming = [batch, *more]

    def write(self, batch: Batch) -> None:
        """Rows of a run without batches: all instants up to the last of them are complete."""
        self._coming.append(batch)
        if len(batch):
            self.advance(self.version.number + 1, int(batch.time[-1]))

    def advance(self, number: int, mark: int | None) -> None:
        """A batch is over: all is known up to a mark."""
        batch = concat_batches(self._coming, QueueType(self.cube.brought))
        self._coming = []
        if mark is not None and (self._mark is None or mark > self._mark):
            self._mark = mark
            if self._movements is not None:
                batch = self._movements.taken(batch)
                self._movements.forget(mark)
            self._kernel.process((batch,), Round(mark, _NO_TICKS))
            self._rows += len(batch)
            if self.cube.function.memory:
                self._choose_again(mark)
        self._publish(number)
        self._since += 1
        if self._files is not None and self._since >= _SNAPSHOT_EVERY:
            active = sum(len(layer.runs[0]) for layer in self._kernel.layers)
            members = sum(h.members[0].bound for h in self._kernel.scene.hierarchies)
            members += 0 if self._movements is None else len(self._movements)
            if active + members <= 2 * self._rows:
                self._keep(self._files, number)

    def _choose_again(self, mark: int) -> None:
        """Now and then vertices are chosen by what was asked for since the last time."""
        now = int(self.cube.function.grain.index(mark))
        if self._chosen_at is None or now < self._chosen_at:
            self._chosen_at = now
        passed = now - self._chosen_at
        if passed >= max(1, self.cube.function.window // _CHOICES):
            asked = self._by_keys(self.asked.taken_lately())
            choose_again(self._kernel, self._program_kept, asked, passed)
            self._chosen_at = now

    def _by_keys(self, asked: Counter[Levels]) -> Counter[Levels]:
        """How often vertices of what is kept were asked for: what moves is asked of keys."""
        cube, made = self.cube.function, Counter[Levels]()
        for levels, count in asked.items():
            names = keyed(cube, attributes_of(cube, levels))
            made[levels_of(self._kernel.function, names)] += count
        return made

    def _keep(self, files: Files, number: int) -> None:
        """Write down what is not there yet; what no longer counts goes when that has been done."""
        there = list(self._kernel.kept[0].partitions.parts)
        for index in there:
            if index not in self._written:
                state = self._kernel.partition_state(index, self._program_kept)
                write_record(files, f"{self._folder}/{index}", state)
        state = {
            "format": _FORMAT, "job": self._job, "version": number, "mark": self._mark,
            "kernel": self._kernel.snapshot(), "partitions": there,
            "moved": None if self._movements is None else self._movements.snapshot(),
        }  # fmt: skip
        write_record(files, self._name, state)
        for index in self._written - set(there):
            files.delete(f"{self._folder}/{index}")
        self._written = set(there)
        self._since = self._rows = 0
        self.wanted_from = number + 1

    def close(self) -> None:
        """What has been published can be asked for as long as somebody holds this."""

    def abort(self) -> None:
        """The same."""

    # --- what those who ask call ---

    def _publish(self, number: int) -> Version:
        version = self._versions.make(number, self._mark, self.cube.function)
        if self._movements is not None:
            version = self._movements.with_levels(version)
        own = version.bytes_beyond(self._last[-1][2] if self._last else None)
        self.make_ready(version)
        with self._news:
            self.version = version
            now = monotonic()
            self._last.append((now, own, version))
            while len(self._last) > 1 and (
                len(self._last) > KEPT_VERSIONS
                or self._last[0][0] < now - KEPT_SECONDS
                or sum(size for _, size, _ in self._last) > KEPT_BYTES
            ):
                self._last.popleft()
            listeners = list(self._listeners)
        for tell in listeners:
            tell()
        return version

    def version_of(self, number: int) -> Version | None:
        """A version that others have seen, if it is still here."""
        with self._news:
            return next((v for *_, v in self._last if v.number == number), None)

    def listen(self, tell: Callable[[], None]) -> Callable[[], None]:
        """Have somebody told of every new version; answers what ends that."""
        with self._news:
            self._listeners.append(tell)

        def end() -> None:
            with self._news:
                self._listeners.remove(tell)

        return end
