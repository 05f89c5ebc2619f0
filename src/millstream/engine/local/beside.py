"""Reading ahead and writing behind: both let the rounds between them go on meanwhile.

Chunks come and batches go in the order in which they would without, and what goes wrong is
raised where it would be: by who takes a chunk, by who writes, or at the end.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from queue import Empty, Full, Queue

from millstream.connectors.chunks import Chunk, Writer
from millstream.plan.batch import Batch

#: How many chunks or batches wait; more would only fill memory.
_WAITING = 2
#: In seconds: how soon who waits in vain notices that nobody wants anything any more.
_PATIENCE = 0.05

_Told = Chunk | BaseException | None


class ReadAhead:
    """Mutable: the chunks of a reader, read in a thread of its own; None ends them."""

    def __init__(self, chunks: Iterator[Chunk]) -> None:
        self._chunks = chunks
        self._read: Queue[_Told] = Queue(_WAITING)
        self._is_stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="millstream-read", daemon=True)
        self._thread.start()

    def __iter__(self) -> Iterator[Chunk]:
        while True:
            told = self._read.get()
            if isinstance(told, BaseException):
                raise told
            if told is None:
                return
            yield told

    def stop(self) -> None:
        """Read no more; afterwards nobody uses the reader."""
        self._is_stopped.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            for chunk in self._chunks:
                if not self._tell(chunk):
                    return
        except BaseException as fault:  # noqa: BLE001 - raised again by whoever takes the chunk
            self._tell(fault)
            return
        self._tell(None)

    def _tell(self, told: _Told) -> bool:
        while not self._is_stopped.is_set():
            try:
                self._read.put(told, timeout=_PATIENCE)
            except Full:
                continue
            return True
        return False


class WriteBehind:
    """Mutable: one thread that writes for several writers, in the order it is told."""

    def __init__(self) -> None:
        self._tasks: Queue[tuple[Writer, Batch] | None] = Queue(_WAITING)
        self._fault: BaseException | None = None
        self._thread: threading.Thread | None = None

    def write(self, writer: Writer, batch: Batch) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="millstream-write", daemon=True)
            self._thread.start()
        self._raise()
        self._tasks.put((writer, batch))

    def finish(self) -> None:
        """Until all is written; what went wrong is raised here, once."""
        self._end()
        self._raise()

    def stop(self) -> None:
        """Write nothing more of what waits; afterwards nobody uses the writers."""
        while True:
            try:
                self._tasks.get_nowait()
            except Empty:
                break
        self._end()

    def _end(self) -> None:
        if self._thread is not None:
            self._tasks.put(None)
            self._thread.join()
            self._thread = None

    def _raise(self) -> None:
        fault, self._fault = self._fault, None
        if fault is not None:
            raise fault

    def _run(self) -> None:
        has_failed = False
        while (task := self._tasks.get()) is not None:
            # After a fault the rest is taken and not written, so that nobody waits for ever.
            if has_failed:
                continue
            try:
                task[0].write(task[1])
            except BaseException as fault:  # noqa: BLE001 - raised again by whoever writes next
                self._fault, has_failed = fault, True


def write_at_once(writer: Writer, batch: Batch) -> None:
    """For small runs, which wait for nobody."""
    writer.write(batch)


Write = Callable[[Writer, Batch], None]
