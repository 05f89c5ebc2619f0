"""The rows of a view now, and what has changed in it of late."""

from __future__ import annotations

from collections import deque

from millstream.broker.audience import Audience
from millstream.broker.evaluate import Changes
from millstream.languages.served import ServedView

#: So many changed rows of the past are kept for those who come back.
KEPT = 100_000


class Contradiction(Exception):
    """A row went that was not there: a fault of ours."""


class ViewRows:
    """Mutable: a view as of a position of the log. Positions are numbers of records."""

    def __init__(self, view: ServedView, kept: int = KEPT) -> None:
        self.view = view
        self.audience = Audience()
        self.rows: Changes = {}
        self.position = 0
        #: What changed, by the position it changed at; after `floor` nothing is missing.
        self.past: deque[tuple[int, Changes]] = deque()
        self.floor = 0
        #: Where it last changed.
        self.changed = 0
        self.kept = kept
        self._size = 0

    def take(self, position: int, changes: Changes) -> None:
        """All that has changed up to a position."""
        for row, weight in changes.items():
            count = self.rows.get(row, 0) + weight
            if count < 0:
                raise Contradiction(f"{self.view.name}: a row went that was not there: {row}")
            if count:
                self.rows[row] = count
            else:
                self.rows.pop(row, None)
        self.position = position
        if changes:
            self.changed = position
            self.past.append((position, changes))
            self._size += len(changes)
            self.audience.take(position, changes)
        while self._size > self.kept:
            self.floor, gone = self.past.popleft()
            self._size -= len(gone)

    def begin(self, position: int) -> None:
        """Nothing before this is remembered."""
        self.past.clear()
        self._size = 0
        self.floor = self.position = self.changed = position
        self.audience.begin(position)

    def is_near(self, position: int, most: int) -> bool:
        """Whether no more than so many rows have come and gone since a position."""
        count = 0
        for at, changes in reversed(self.past):
            count += len(changes)
            if at <= position:
                return True
            if count > most:
                return False
        return position >= self.floor

    def since(self, position: int, through: int | None = None) -> Changes | None:
        """What has changed since a position, taken together; None if that is not known.

        Up to another position, if one is named.
        """
        if not self.floor <= position <= self.position:
            return None
        made: Changes = {}
        for at, changes in reversed(self.past):
            if at <= position:
                break
            if through is not None and at > through:
                continue
            for row, weight in changes.items():
                made[row] = made.get(row, 0) + weight
        return {row: weight for row, weight in made.items() if weight}
