"""How long a message may take to be taken: one clock for all who are just being told something.

Nearly every message is taken at once. A timer for each would cost as much as the message.
"""

from __future__ import annotations

import asyncio
from types import TracebackType

#: How long a message may take to be taken.
TAKE_SECONDS = 30.0


class Patience:
    """Mutable: who is being told something, the longest first."""

    def __init__(self) -> None:
        self._since: dict[Taking, float] = {}
        self._is_looking = False

    def begin(self, taking: Taking) -> None:
        loop = asyncio.get_running_loop()
        self._since[taking] = loop.time()
        if not self._is_looking:
            self._is_looking = True
            loop.call_later(TAKE_SECONDS / 4, self._look)

    def end(self, taking: Taking) -> None:
        del self._since[taking]

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        for taking, since in self._since.items():
            if since > now - TAKE_SECONDS:
                break
            taking.give_up()
        self._is_looking = bool(self._since)
        if self._is_looking:
            loop.call_later(TAKE_SECONDS / 4, self._look)


class Taking:
    """Mutable: a task that tells each message in a `with`; TimeoutError if that takes too long."""

    def __init__(self, patience: Patience) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._patience, self._task = patience, task
        self._is_given_up = False

    def give_up(self) -> None:
        if not self._is_given_up:
            self._is_given_up = True
            self._task.cancel()

    def __enter__(self) -> None:
        self._patience.begin(self)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self._patience.end(self)
        if self._is_given_up and kind is asyncio.CancelledError and self._task.uncancel() == 0:
            raise TimeoutError from error
