"""Rounds that are under way at the same time, and pass what keeps state in their order."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Stopped(Exception):
    """A round before this one has failed, or nobody wants any more."""


class Turns:
    """Mutable: for each of several places, whose turn it is there."""

    def __init__(self, places: int) -> None:
        self._next = [0] * places
        self._is_stopped = False
        self._changed = threading.Condition()

    @contextmanager
    def turn(self, place: int, number: int) -> Iterator[None]:
        """Wait until all with a smaller number have been here; others wait meanwhile."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_stopped or self._next[place] == number)
            if self._is_stopped:
                raise Stopped
        try:
            yield
        except BaseException:
            self.stop()
            raise
        with self._changed:
            self._next[place] += 1
            self._changed.notify_all()

    def stop(self) -> None:
        """Nobody waits any longer, and nobody passes."""
        with self._changed:
            self._is_stopped = True
            self._changed.notify_all()
