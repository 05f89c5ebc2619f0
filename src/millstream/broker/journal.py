"""What is undone if the log does not take it."""

from __future__ import annotations

from collections.abc import Callable


class Journal:
    """Mutable: how to take back every change since the last commit."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], object]] = []

    def note(self, undo: Callable[[], object]) -> None:
        self._undo.append(undo)

    def commit(self) -> None:
        self._undo.clear()

    def roll_back(self) -> None:
        for undo in reversed(self._undo):
            undo()
        self._undo.clear()
