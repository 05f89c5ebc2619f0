"""What is known of the ticks of a stream, and what becomes of a row that comes for one.

All ticks up to the *horizon* are known, as rows or silent. Above it those are known that rows have
taken. A row for a tick that is known to be silent is late: nothing that was said is taken back.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from millstream.broker.journal import Journal
from millstream.calculus.types import INT64_MAX, START_OF_TIME
from millstream.languages.served import ServedStream

#: Ticks may lie so far ahead of the clock: one wrong row must not silence all others.
FURTHEST = 24 * 3600 * 1_000_000


class Fate(Enum):
    """What became of a row."""

    ACCEPTED = "accepted"
    DUPLICATE = "duplicate"
    LATE = "late"
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True)
class Judged:
    """The fate of a row, its tick if it has one, and why it is not accepted."""

    fate: Fate
    tick: int | None = None
    reason: str | None = None

    def record(self) -> dict[str, object]:
        made: dict[str, object] = {"fate": self.fate.value}
        if self.tick is not None:
            made["tick"] = self.tick
        return made if self.reason is None else made | {"reason": self.reason}


class TakenTicks:
    """Mutable: ticks that have rows. The next free one is soon found, however many lie together."""

    def __init__(self, ticks: Iterable[int] = ()) -> None:
        #: By tick a later one before which no other is free.
        self._later = {tick: tick + 1 for tick in ticks}

    def __len__(self) -> int:
        return len(self._later)

    def __iter__(self) -> Iterator[int]:
        return iter(self._later)

    def __contains__(self, tick: int) -> bool:
        return tick in self._later

    def add(self, tick: int) -> None:
        self._later[tick] = tick + 1

    def forget(self, tick: int) -> None:
        """One that will not be asked for again, nor any before it."""
        self._later.pop(tick, None)

    def take_back(self, ticks: Iterable[int]) -> None:
        self._later = {tick: tick + 1 for tick in self._later.keys() - set(ticks)}

    def free(self, tick: int) -> int:
        """The first from here on that has no row."""
        later, passed = self._later, []
        while (following := later.get(tick)) is not None:
            passed.append(tick)
            tick = following
        for one in passed:
            later[one] = tick
        return tick


class Ticks:
    """Mutable: the knowledge of one stream."""

    def __init__(self, stream: ServedStream) -> None:
        self.stream = stream
        self.horizon = START_OF_TIME
        self.largest: int | None = None
        #: Ticks above the horizon that have rows, and the same as a heap.
        self.taken = TakenTicks()
        self._order: list[int] = []
        self.counts: Counter[str] = Counter()

    @property
    def is_over(self) -> bool:
        """Whether no tick of it is open any more."""
        return self.stream.until is not None and self.horizon >= self.stream.until

    @property
    def open(self) -> int | None:
        """How many ticks are not known yet, if they have an end."""
        until = self.stream.until
        return None if until is None else max(0, until - self.horizon - len(self.taken))

    # --- what is decided ---

    def judge(self, tick: int | None, now: int, promised: TakenTicks) -> Judged:
        """The fate of a row, when others of its batch have been promised their ticks."""
        if tick is None:
            tick = self._next(max(now, (self.largest or 0) + 1, self.horizon + 1), promised)
        elif tick <= self.horizon:
            reason = f"the ticks up to {self.horizon} are known"
            return Judged(Fate.LATE, tick, reason)
        elif tick > now + FURTHEST:
            hours = FURTHEST // 3_600_000_000
            reason = f"{self.stream.key}: {tick} is more than {hours} hours in the future"
            return Judged(Fate.REJECTED, tick, reason)
        elif tick in self.taken or tick in promised:
            if not self.stream.shifts_ties:
                return Judged(Fate.REJECTED, tick, f"{self.stream.key}: {tick} is taken")
            tick = self._next(tick, promised)
        until = self.stream.until
        if tick > (INT64_MAX >> 1 if until is None else until):
            return Judged(Fate.REJECTED, None, f"{self.stream.name} has no later tick")
        return Judged(Fate.ACCEPTED, tick)

    def _next(self, tick: int, promised: TakenTicks) -> int:
        while tick in self.taken or tick in promised:
            tick = promised.free(self.taken.free(tick))
        return tick

    # --- what is known then ---

    def take(self, ticks: list[int], journal: Journal) -> None:
        """Rows at ticks; what lies a slack behind the largest is known with them."""
        if not ticks:
            return
        before = self.largest
        journal.note(lambda: setattr(self, "largest", before))
        self.largest = max(ticks) if before is None else max(before, *ticks)
        self._put(ticks)
        journal.note(lambda: self.taken.take_back(ticks))
        self.silence(self.largest - self.stream.slack - 1, journal)

    def silence(self, through: int, journal: Journal) -> None:
        """No row comes any more for the ticks up to here."""
        if self.stream.until is not None and through >= self.stream.until:
            through = self.stream.until
        through = self.taken.free(through + 1) - 1
        if through <= self.horizon:
            return
        before = self.horizon
        gone: list[int] = []
        while self._order and self._order[0] <= through:
            tick = heapq.heappop(self._order)
            if tick in self.taken:  # else it was taken back
                self.taken.forget(tick)
                gone.append(tick)
        journal.note(lambda: self._put(gone))
        journal.note(lambda: setattr(self, "horizon", before))
        self.horizon = through

    def _put(self, ticks: list[int]) -> None:
        for tick in ticks:
            self.taken.add(tick)
            heapq.heappush(self._order, tick)

    def snapshot(self) -> dict[str, Any]:
        return {"horizon": self.horizon, "largest": self.largest, "counts": dict(self.counts),
                "taken": np.array(sorted(self.taken), np.int64)}  # fmt: skip

    def restore(self, state: Mapping[str, Any]) -> None:
        self.horizon, self.largest = state["horizon"], state["largest"]
        self.counts = Counter(state["counts"])
        self._order = state["taken"].tolist()  # what is sorted is a heap
        self.taken = TakenTicks(self._order)

    def count(self, fates: Counter[str], journal: Journal) -> None:
        self.counts += fates
        journal.note(lambda: self.counts.subtract(fates))

    def overdue(self, now: int) -> int | None:
        """Up to where a heartbeat declares silence now, if it says enough that is new."""
        length = self.stream.heartbeat
        if length is None or self.is_over:
            return None
        through = now - length
        return through if through > self.horizon + length // 4 else None
