"""Rounds that are under way at the same time, and pass what keeps state in their order."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class NoTurn(Exception):
    """A round before this one has failed, or nobody wants any more."""


class Turns:
    """Mutable: for each of several places, whose turn it is there."""

    def __init__(self, places: int) -> None:
        self._next = [0] * places
        #: Those with a greater number do not pass any more.
        self._last = sys.maxsize
        self._changed = threading.Condition()

    @contextmanager
    def turn(self, place: int, number: int) -> Iterator[None]:
        """Wait until all with a smaller number have been here; others wait meanwhile."""
        with self._changed:
            self._changed.wait_for(lambda: number > self._last or self._next[place] == number)
            if number > self._last:
                raise NoTurn
        yield
        with self._changed:
            self._next[place] += 1
            self._changed.notify_all()

    def stop_after(self, number: int) -> None:
        """Those with a greater number wait no longer, and do not pass.

        All others pass as ever, so that what failed first is what is told.
        """
        with self._changed:
            self._last = min(self._last, number)
            self._changed.notify_all()

    def stop(self) -> None:
        """Nobody waits any longer, and nobody passes."""
        self.stop_after(-1)
