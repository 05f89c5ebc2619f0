"""Following a folder: files are read as they appear, each once.

A file is taken when it has not changed between two looks, or has not been changed for
that long already (so that a file moved into place need not wait). New files found by one
look are taken in order of their time of change and name, those taken later after them.

Nothing here may stop a service: a file that cannot be read, and one that is changed
after it was taken, become rejected rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from millstream.calculus.graph import Input
from millstream.connectors.chunks import Chunk, Reader, Rejected
from millstream.connectors.location import Location, files_now
from millstream.connectors.read import file_opener
from millstream.errors import MillstreamError
from millstream.plan.batch import empty_batch

#: Time of change in nanoseconds, and size.
Mark = tuple[int, int]


class Watcher:
    """Mutable: knows which files have been taken.

    `poll` looks once; `chunks` looks every `interval` seconds until `stopped`. `taken`
    are files that an earlier run has read.
    """

    def __init__(
        self,
        location: Location,
        input_: Input,
        *,
        chunk_rows: int | None = None,
        interval: float = 1.0,
        stopped: Callable[[], bool] = lambda: False,
        sleep: Callable[[float], object] = time.sleep,
        clock: Callable[[], float] = time.time,
        taken: Iterable[Path] = (),
    ) -> None:
        self._location = location
        self._type = input_.type
        self._open_one = file_opener(location, input_, chunk_rows)
        self._interval = interval
        self._stopped = stopped
        self._sleep = sleep
        self._clock = clock
        self._taken: dict[Path, Mark | None] = dict.fromkeys(taken)
        self._growing: dict[Path, Mark] = {}
        self._current: Reader | None = None

    @property
    def taken(self) -> tuple[Path, ...]:
        """The files that have been read, in that order."""
        return tuple(self._taken)

    def chunks(self) -> Iterator[Chunk]:
        while not self._stopped():
            yield from self.poll()
            if not self._stopped():
                self._sleep(self._interval)

    def poll(self) -> Iterator[Chunk]:
        """The chunks of the files that are ready now."""
        marks = {path: mark for path in files_now(self._location) if (mark := _mark(path))}
        yield from self._changed(marks)
        new = {path: mark for path, mark in marks.items() if path not in self._taken}
        ready = [path for path, mark in new.items() if self._is_whole(path, mark)]
        self._growing = {path: mark for path, mark in new.items() if path not in ready}
        for path in sorted(ready, key=lambda p: (new[p][0], p.name, p)):
            self._taken[path] = new[path]
            yield from self._read(path)

    def _is_whole(self, path: Path, mark: Mark) -> bool:
        return self._growing.get(path) == mark or self._clock() - mark[0] / 1e9 >= self._interval

    def _read(self, path: Path) -> Iterator[Chunk]:
        try:
            self._current = self._open_one(path)
            yield from self._current.chunks()
        except MillstreamError as error:
            yield self._rejection(path, error.faults[0].message)
        finally:
            self.close()

    def _changed(self, marks: dict[Path, Mark]) -> Iterator[Chunk]:
        for path, mark in marks.items():
            before = self._taken.get(path)
            if before is not None and before != mark:
                self._taken[path] = mark
                yield self._rejection(path, "changed after it was read; write to a new file")

    def _rejection(self, path: Path, reason: str) -> Chunk:
        row = Rejected(self._location.name_of(path), 1, reason, "")
        return Chunk(empty_batch(self._type), (row,))

    def close(self) -> None:
        if self._current is not None:
            self._current.close()
            self._current = None


def _mark(path: Path) -> Mark | None:
    """None if the file has gone between the listing and the look."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size
