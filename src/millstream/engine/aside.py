"""Work that is done beside the work of the caller, one piece at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Aside:
    """Mutable: a piece of work in a thread of its own, and how it ended."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._fault: BaseException | None = None

    def start(self, work: Callable[[], None]) -> None:
        """Begin a piece of work when the one before it is over."""
        self.wait()
        # Whoever leaves without waiting does not want to be held up.
        self._thread = threading.Thread(target=self._run, args=(work,), daemon=True)
        self._thread.start()

    @property
    def has_failed(self) -> bool:
        return self._fault is not None

    def end(self) -> None:
        """Until nothing is left to do, whatever comes of it."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def wait(self) -> None:
        """Until nothing is left to do; what went wrong is raised here, once."""
        self.end()
        fault, self._fault = self._fault, None
        if fault is not None:
            raise fault

    def _run(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as fault:  # noqa: BLE001 - raised again by whoever waits
            self._fault = fault
