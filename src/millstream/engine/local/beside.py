"""Reading ahead and writing behind: both let the rounds between them go on meanwhile.

Chunks come and batches go in the order in which they would without, and what goes wrong is
raised where it would be: by who takes a chunk, by who writes, or at the end.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from queue import Full, Queue

from millstream.connectors.chunks import Chunk, Writer
from millstream.plan.batch import Batch

#: How many chunks wait; more would only fill memory.
_WAITING = 2
#: How many rows wait to be written. Not how many batches: beside large ones there are those of
#: single instants, for which nobody should wait.
_ROWS_WAITING = 1 << 20
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
            message = self._read.get()
            if isinstance(message, BaseException):
                raise message
            if message is None:
                return
            yield message

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

    def _tell(self, message: _Told) -> bool:
        while not self._is_stopped.is_set():
            try:
                self._read.put(message, timeout=_PATIENCE)
            except Full:
                continue
            return True
        return False


class WriteBehind:
    """Mutable: one thread that writes for several writers, in the order it is told."""

    def __init__(self) -> None:
        self._tasks: deque[tuple[Writer, Batch] | None] = deque()
        self._rows = 0
        self._changed = threading.Condition()
        self._fault: BaseException | None = None
        self._thread: threading.Thread | None = None

    def write(self, writer: Writer, batch: Batch) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="millstream-write", daemon=True)
            self._thread.start()
        self._raise()
        with self._changed:
            self._changed.wait_for(lambda: self._rows < _ROWS_WAITING)
            self._tasks.append((writer, batch))
            self._rows += len(batch)
            self._changed.notify_all()

    def finish(self) -> None:
        """Until all is written; what went wrong is raised here, once."""
        self._end()
        self._raise()

    def stop(self) -> None:
        """Write nothing more of what waits; afterwards nobody uses the writers."""
        with self._changed:
            self._tasks.clear()
        self._end()

    def _end(self) -> None:
        if self._thread is not None:
            with self._changed:
                self._tasks.append(None)
                self._changed.notify_all()
            self._thread.join()
            self._thread = None

    def _raise(self) -> None:
        fault, self._fault = self._fault, None
        if fault is not None:
            raise fault

    def _run(self) -> None:
        has_failed = False
        while (task := self._next()) is not None:
            # After a fault the rest is taken and not written, so that nobody waits for ever.
            try:
                if not has_failed:
                    task[0].write(task[1])
            except BaseException as fault:  # noqa: BLE001 - raised again by whoever writes next
                self._fault, has_failed = fault, True
            with self._changed:
                self._rows -= len(task[1])
                self._changed.notify_all()

    def _next(self) -> tuple[Writer, Batch] | None:
        with self._changed:
            self._changed.wait_for(lambda: bool(self._tasks))
            return self._tasks.popleft()


def write_at_once(writer: Writer, batch: Batch) -> None:
    """For small runs, which wait for nobody."""
    writer.write(batch)


Write = Callable[[Writer, Batch], None]
