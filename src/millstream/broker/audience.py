"""Those who listen to a view: which of them a changed row is for, and what each has still to hear.

Conditions that ask for values (`issue = 'IBM' AND price = 7`) are found by these values, so that a
row meets only those that may want it, however many listen. Who asks the same is one question,
which is answered once.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from millstream.broker.asking import AskedRows
from millstream.broker.evaluate import Changes
from millstream.calculus.types import Row, Value

if TYPE_CHECKING:
    from millstream.broker.cursor import Subscriber

#: So many changed rows are kept for one who is slow; then they are found again in the view.
_KEPT = 64


class Selection:
    """Mutable: what has changed for all who ask one question, as far as not all have heard it."""

    def __init__(self, asked: AskedRows, position: int) -> None:
        self.asked = asked
        self.listening: set[Subscriber] = set()
        #: Who has not heard all of what is kept.
        self.behind: set[Subscriber] = set()
        #: Nothing is missing after `floor`.
        self.floor = position
        self._past: deque[tuple[int, Changes]] = deque()
        self._size = 0

    def __len__(self) -> int:
        """How many changed rows are kept."""
        return self._size

    def take(self, position: int, changes: Changes) -> None:
        self._past.append((position, changes))
        self._size += len(changes)
        self.behind |= self.listening
        while self._size > _KEPT and len(self._past) > 1:
            self.floor, gone = self._past.popleft()
            self._size -= len(gone)

    def begin(self, position: int) -> None:
        """Nothing before this is remembered."""
        self._past.clear()
        self._size = 0
        self.floor = position
        self.behind |= self.listening

    def since(self, position: int) -> Changes | None:
        """What has changed for the question since a position; None if that is not known here."""
        if position < self.floor:
            return None
        made: Changes = {}
        for at, changes in self._past:
            if at > position:
                for row, weight in changes.items():
                    made[row] = made.get(row, 0) + weight
        return {row: weight for row, weight in made.items() if weight}

    def is_near(self, position: int) -> bool:
        """Whether no more than a few rows have changed since a position."""
        return position >= self.floor and self._size <= _KEPT

    def heard(self, subscriber: Subscriber, position: int) -> None:
        """One of them knows all up to a position, which is the last one."""
        self.behind.discard(subscriber)
        if not self.behind:
            self._past.clear()
            self._size = 0
            self.floor = position


class Audience:
    """Mutable: the questions that are listened to, by the values that they ask for."""

    def __init__(self) -> None:
        self._selections: dict[str, Selection] = {}
        self._by_values: dict[tuple[int, ...], dict[Row, list[Selection]]] = {}
        #: Who has something to hear since this was last asked.
        self._woken: set[Subscriber] = set()

    def __len__(self) -> int:
        """How many questions there are."""
        return len(self._selections)

    def join(self, subscriber: Subscriber, position: int) -> Selection:
        asked = subscriber.asked
        selection = self._selections.get(asked.digest)
        if selection is None:
            selection = self._selections[asked.digest] = Selection(asked, position)
            table = self._by_values.setdefault(asked.pinned_columns, {})
            table.setdefault(asked.pinned_values, []).append(selection)
        selection.listening.add(subscriber)
        return selection

    def leave(self, subscriber: Subscriber) -> None:
        asked = subscriber.asked
        self._woken.discard(subscriber)
        selection = self._selections.get(asked.digest)
        if selection is None:
            return
        selection.listening.discard(subscriber)
        selection.behind.discard(subscriber)
        if not selection.listening:
            del self._selections[asked.digest]
            table = self._by_values[asked.pinned_columns]
            table[asked.pinned_values].remove(selection)
            if not table[asked.pinned_values]:
                del table[asked.pinned_values]

    def take(self, position: int, changes: Changes) -> None:
        """A view has changed, which some will have to hear."""
        if not self._selections:
            return
        found: dict[Selection, Changes] = {}
        for columns, table in self._by_values.items():
            for row, weight in changes.items():
                values: tuple[Value, ...] = tuple([row[n] for n in columns])
                for selection in table.get(values, ()):
                    if selection.asked.lets_in(row):
                        seen = selection.asked.seen(row)
                        some = found.setdefault(selection, {})
                        some[seen] = some.get(seen, 0) + weight
        for selection, some in found.items():
            told = {row: weight for row, weight in some.items() if weight}
            if told:
                selection.take(position, told)
                self._woken |= selection.listening

    def begin(self, position: int) -> None:
        """What was before this is not remembered in the view either."""
        for selection in self._selections.values():
            selection.begin(position)
            self._woken |= selection.listening

    def woken(self) -> set[Subscriber]:
        woken, self._woken = self._woken, set()
        return woken
