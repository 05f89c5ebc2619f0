"""Jobs of Spark's that can be interrupted while somebody waits for them."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self


class Jobs:
    """Mutable: runs jobs in a thread of its own, so that whoever waits can be interrupted."""

    def __init__(self, context: Any) -> None:
        self._context = context
        self._thread = ThreadPoolExecutor(1, "millstream-jobs")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.shutdown(wait=False)

    def done(self, work: Callable[[], list[Any]], name: str) -> list[Any]:
        """What a job gives; interrupted, it is cancelled."""

        def run() -> list[Any]:
            self._context.setJobGroup(name, "millstream", interruptOnCancel=False)
            return work()

        job = self._thread.submit(run)
        try:
            return job.result()
        except KeyboardInterrupt:
            self._context.cancelJobGroup(name)
            raise
