"""The store of a cube: a sink that knows its batches, and the versions that can be asked.

Rows and the number of their batch appear together, as a version. What is kept on disk is the
state after some batch; the batches after it are delivered again by the engine, which keeps them
for as long as they are wanted.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace
from time import monotonic
from typing import Any

import numpy as np

from millstream.calculus.types import QueueType
from millstream.engine.storage.codec import DamagedState
from millstream.engine.storage.files import Files
from millstream.engine.storage.records import read_record, write_record
from millstream.kernels.cube.cube import CubeKernel
from millstream.kernels.cube.versions import Version, Versions
from millstream.kernels.runtime.kernel import Round
from millstream.olap.program import ServedCube
from millstream.plan.batch import Batch, concat_batches

#: How many versions can be gone on from, and for how long.
KEPT_VERSIONS, KEPT_SECONDS = 256, 120.0
#: The state is written after so many batches at least, and when as many rows came as it has cells.
_SNAPSHOT_EVERY = 20
_FORMAT = 1

_NO_TICKS = np.zeros(0, np.int64)


def kernel_of(cube: ServedCube) -> CubeKernel:
    """A kernel that keeps the partitions of the history too, and has no outputs.

    Vertices are kept by the partitions of time, whatever grain they were named with.
    """
    function = cube.function
    kept = {replace(v, grain=function.grain): None for v in function.kept}
    whole = replace(
        function, kept=tuple(kept), outputs=(), window=function.window + function.history
    )
    return CubeKernel(whole, (QueueType(cube.schema),), 0)


class CubeStore:
    """Mutable: written to by one thread, asked by many. See `BatchWriter`."""

    def __init__(self, cube: ServedCube, files: Files | None = None) -> None:
        self.cube = cube
        self._files = files
        self._kernel = kernel_of(cube)
        self._versions = Versions(self._kernel)
        self._job = ""
        self._coming: list[Batch] = []
        self._mark: int | None = None
        self._since = self._rows = 0
        #: The first batch that would be needed again if this ended now.
        self.wanted_from = 0
        self._last: deque[tuple[float, Version]] = deque()
        self._news = threading.Condition()
        self._listeners: list[Callable[[], None]] = []
        self.version = self._publish(-1)
        self.bytes_on_disk = 0

    # --- what an engine calls ---

    def open(self, job: str, *, fresh: bool) -> int:
        """Go on from the state that is kept, if it is this job's."""
        self._job = job
        state = None if fresh or self._files is None else self._kept()
        if state is None or state["job"] != job:
            if self._files is not None:
                self._files.delete(self._name)
            return 0
        self._kernel.restore(state["kernel"])
        self._versions = Versions(self._kernel)
        self._mark = state["mark"]
        self.wanted_from = state["version"] + 1
        self._publish(state["version"])
        return self.wanted_from

    @property
    def _name(self) -> str:
        return f"server/{self.cube.name}.cells"

    def _kept(self) -> dict[str, Any] | None:
        assert self._files is not None
        try:
            state: dict[str, Any] = read_record(self._files, self._name)
        except DamagedState:
            return None  # the engine says whether it can be computed again
        return state if state.get("format") == _FORMAT else None

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
        batch = concat_batches(self._coming, QueueType(self.cube.schema))
        self._coming = []
        if mark is not None and (self._mark is None or mark > self._mark):
            self._mark = mark
            self._kernel.process((batch,), Round(mark, _NO_TICKS))
            self._rows += len(batch)
        self._publish(number)
        self._since += 1
        cells = sum(len(one.partitions) for one in self._kernel.kept)
        if self._files is not None and self._since >= _SNAPSHOT_EVERY and 4 * self._rows >= cells:
            self._keep(number)

    def _keep(self, number: int) -> None:
        assert self._files is not None
        state = {
            "format": _FORMAT, "job": self._job, "version": number, "mark": self._mark,
            "kernel": self._kernel.snapshot(),
        }  # fmt: skip
        write_record(self._files, self._name, state)
        self._since = self._rows = 0
        self.wanted_from = number + 1

    def close(self) -> None:
        """What has been published can be asked for as long as somebody holds this."""

    def abort(self) -> None:
        """The same."""

    # --- what those who ask call ---

    def _publish(self, number: int) -> Version:
        version = self._versions.make(number, self._mark, self.cube.function)
        with self._news:
            self.version = version
            now = monotonic()
            self._last.append((now, version))
            while len(self._last) > KEPT_VERSIONS or (
                len(self._last) > 1 and self._last[0][0] < now - KEPT_SECONDS
            ):
                self._last.popleft()
            listeners = list(self._listeners)
        for tell in listeners:
            tell()
        return version

    def version_of(self, number: int) -> Version | None:
        """A version that others have seen, if it is still here."""
        with self._news:
            return next((v for _, v in self._last if v.number == number), None)

    def listen(self, tell: Callable[[], None]) -> Callable[[], None]:
        """Have somebody told of every new version; answers what ends that."""
        with self._news:
            self._listeners.append(tell)

        def end() -> None:
            with self._news:
                self._listeners.remove(tell)

        return end
