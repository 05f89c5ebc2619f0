"""Which batches of a publisher have come: a batch that comes again is not taken again."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from millstream.broker.journal import Journal
from millstream.broker.ticks import Fate, Judged

#: Of so many batches of a publisher, the last ones, it is known what they held, and of those
#: with the last so many rows what was answered.
REMEMBERED, REMEMBERED_ROWS = 10_000, 100_000
_FATES = tuple(Fate)
#: How long a digest is.
_DIGEST = 16


@dataclass(frozen=True, slots=True)
class Answered:
    """What a batch held, as a digest, and what was answered to it, if that is still known."""

    digest: bytes
    position: int
    judged: tuple[Judged, ...] | None


class Seen:
    """Mutable: numbers that have come, as ranges."""

    def __init__(self, firsts: list[int] | None = None, lasts: list[int] | None = None) -> None:
        self.firsts: list[int] = firsts or []
        self.lasts: list[int] = lasts or []

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
            oldest = next(iter(self.answered))
            gone = self.answered.pop(oldest)
            if self._told and self._told[0] == oldest:
                self._told.popleft()
                self._rows -= len(gone.judged or ())

    def snapshot(self) -> Publisher:
        """A copy that does not change any more."""
        seen = Seen(list(self.seen.firsts), list(self.seen.lasts))
        return Publisher(seen, dict(self.answered))

    def written(self) -> dict[str, Any]:
        """As columns; a batch whose answer is not known any more has -1 rows."""
        known = self.answered.values()
        judged = [j for one in known for j in one.judged or ()]
        return {
            "firsts": np.array(self.seen.firsts, np.int64),
            "lasts": np.array(self.seen.lasts, np.int64),
            "sequences": np.array(list(self.answered), np.int64),
            "digests": b"".join(one.digest for one in known),
            "positions": np.array([one.position for one in known], np.int64),
            "rows": np.array([-1 if o.judged is None else len(o.judged) for o in known], np.int64),
            "fates": np.array([_FATES.index(j.fate) for j in judged], np.uint8),
            "has_tick": np.array([j.tick is not None for j in judged], np.bool_),
            "ticks": np.array([j.tick or 0 for j in judged], np.int64),
            "reasons": {n: j.reason for n, j in enumerate(judged) if j.reason is not None},
        }

    @classmethod
    def read(cls, state: Mapping[str, Any]) -> Publisher:
        reasons = state["reasons"]
        columns = (state[name].tolist() for name in ("fates", "has_tick", "ticks"))
        judged = [
            Judged(_FATES[fate], tick if has else None, reasons.get(n))
            for n, (fate, has, tick) in enumerate(zip(*columns, strict=True))
        ]
        made = cls(Seen(state["firsts"].tolist(), state["lasts"].tolist()))
        columns = (state[name].tolist() for name in ("sequences", "positions", "rows"))
        begin = 0
        for n, (sequence, position, rows) in enumerate(zip(*columns, strict=True)):
            digest = state["digests"][_DIGEST * n : _DIGEST * (n + 1)]
            told = None if rows < 0 else tuple(judged[begin : begin + rows])
            made.answered[sequence] = Answered(digest, position, told)
            if told is not None:
                made._told.append(sequence)
                made._rows += rows
                begin += rows
        return made
