"""Compiling the loops of a plan in another process, which leaves them in the cache.

That process is given how the kernels are made and some of the rows that they will work on, makes
the kernels and runs them. Meanwhile it tells at which step it is.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

from millstream.calculus.graph import Input
from millstream.connectors.location import Location
from millstream.connectors.read import open_reader
from millstream.errors import MillstreamError
from millstream.kernels import watch
from millstream.kernels.runtime.consolidate import consolidate
from millstream.plan.batch import Array, Batch

#: What kernels are given in a round: the rows of each queue, the mark, and its instants.
Given = tuple[dict[str, Batch], int, dict[str, Array]]
#: An input, and where it is read.
Read = tuple[Input, Location]

#: It is started by hand: `multiprocessing` would run the script of whoever calls us once more.
_START = (
    "import sys; sys.path[:] = {path!r}; "
    "from millstream.engine.local.compile_aside import work; work({pipe}, {parent})"
)
_TOLD_EVERY = 0.2


class CompileAside:
    """Mutable: a process that compiles; it ends when it is done, or with us."""

    def __init__(
        self, make: Callable[[], Any], rounds: Sequence[Given], read: Sequence[Read] = ()
    ) -> None:
        self._pipe, theirs = Pipe()
        start = _START.format(path=sys.path, pipe=theirs.fileno(), parent=os.getpid())
        with theirs:
            # Ctrl-C is for us; we end it then.
            self._process = subprocess.Popen(  # noqa: S603 - our own code, of nobody's words
                [sys.executable, "-c", start], pass_fds=(theirs.fileno(),), start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
        self._thread = threading.Thread(
            target=self._talk, args=(make, list(rounds), list(read)), daemon=True
        )
        self._thread.start()

    def is_over(self) -> bool:
        return self._process.poll() is not None

    def wait(self, seconds: float) -> None:
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return

    def close(self) -> None:
        """Nobody wants the rest; what it has compiled stays in the cache."""
        if not self.is_over():
            self._process.kill()
        self._process.wait()
        self._thread.join()
        watch.aside = None

    def _talk(self, *message: Any) -> None:
        with self._pipe as pipe:
            try:
                pipe.send(message)
                while True:
                    watch.aside = watch.At(*pipe.recv())
            except (EOFError, OSError):
                return  # it has ended
            except Exception:  # noqa: BLE001 - a callable of Python that cannot be sent
                self._process.kill()  # then it is compiled here


def work(pipe: int, parent: int) -> None:
    """What the other process does."""
    os.nice(1)
    connection = Connection(pipe)
    make, rounds, read = connection.recv()
    threading.Thread(target=_tell, args=(connection, parent), daemon=True).start()
    runner = make()
    for arrivals, mark, ticks in rounds:
        for queues in runner.round(arrivals, mark, ticks):
            for batch in queues.values():
                if batch.type.is_relation:
                    consolidate(batch)  # only that it has been compiled matters
    runner.close()
    for one, location in read:
        with suppress(MillstreamError), closing(open_reader(location, one)) as reader:
            next(reader.chunks(), None)


def _tell(connection: Connection[Any, Any], parent: int) -> None:
    """Say how far it is, as long as there is somebody to be told; it never goes back.

    Several rounds are run, and nearly all is compiled in the first.
    """
    furthest = 0
    while os.getppid() == parent:
        if watch.here is not None:
            furthest = max(furthest, watch.here.step)
            connection.send((furthest, watch.here.steps))
        time.sleep(_TOLD_EVERY)
    os._exit(1)
