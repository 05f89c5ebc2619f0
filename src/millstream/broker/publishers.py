"""Which batches of a publisher have come: a batch that comes again is not taken again."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from dataclasses import dataclass, field, replace

from millstream.broker.journal import Journal
from millstream.broker.ticks import Judged

#: Of so many batches of a publisher, the last ones, it is known what they held, and of those
#: with the last so many rows what was answered.
REMEMBERED, REMEMBERED_ROWS = 10_000, 100_000


@dataclass(frozen=True, slots=True)
class Answered:
    """What a batch held, as a digest, and what was answered to it, if that is still known."""

    digest: bytes
    position: int
    judged: tuple[Judged, ...] | None


class Seen:
    """Mutable: numbers that have come, as ranges."""

    def __init__(self) -> None:
        self.firsts: list[int] = []
        self.lasts: list[int] = []

    def __contains__(self, number: int) -> bool:
        at = bisect_right(self.firsts, number) - 1
        return at >= 0 and number <= self.lasts[at]

    def add(self, number: int) -> None:
        at = bisect_right(self.firsts, number)
        joins_before = at > 0 and self.lasts[at - 1] == number - 1
        joins_after = at < len(self.firsts) and self.firsts[at] == number + 1
        if joins_before and joins_after:
            self.lasts[at - 1] = self.lasts.pop(at)
            self.firsts.pop(at)
        elif joins_before:
            self.lasts[at - 1] = number
        elif joins_after:
            self.firsts[at] = number
        else:
            self.firsts.insert(at, number)
            self.lasts.insert(at, number)

    def remove(self, number: int) -> None:
        at = bisect_right(self.firsts, number) - 1
        first, last = self.firsts.pop(at), self.lasts.pop(at)
        for one, other in ((number + 1, last), (first, number - 1)):
            if one <= other:
                self.firsts.insert(at, one)
                self.lasts.insert(at, other)

    def gaps(self) -> list[tuple[int, int]]:
        """Ranges that are missing between those that have come."""
        pairs = zip(self.lasts, self.firsts[1:], strict=False)
        return [(last + 1, first - 1) for last, first in pairs]


@dataclass
class Publisher:
    """Mutable: the batches of one publisher."""

    seen: Seen = field(default_factory=Seen)
    answered: dict[int, Answered] = field(default_factory=dict)
    #: Sequences whose fates of rows are known, the oldest first, and how many rows these are.
    _told: deque[int] = field(default_factory=deque)
    _rows: int = 0

    def add(self, sequence: int, answer: Answered, journal: Journal) -> None:
        self.seen.add(sequence)
        journal.note(lambda: self.seen.remove(sequence))
        self.answered[sequence] = answer
        journal.note(lambda: self.answered.pop(sequence))
        self._told.append(sequence)
        journal.note(self._told.pop)
        rows = len(answer.judged or ())
        self._rows += rows
        journal.note(lambda: self._count(-rows))

    def _count(self, rows: int) -> None:
        self._rows += rows

    def forget(self) -> None:
        """Only the last answers are kept; that a batch has come is never forgotten."""
        while self._rows > REMEMBERED_ROWS and len(self._told) > 1:
            oldest = self._told.popleft()
            known = self.answered.get(oldest)
            if known is not None and known.judged is not None:
                self._rows -= len(known.judged)
                self.answered[oldest] = replace(known, judged=None)
        while len(self.answered) > REMEMBERED:
            self.answered.pop(next(iter(self.answered)))
