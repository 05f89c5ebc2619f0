"""Who waits for news of views in the event loop, and is woken from the thread that makes them.

Those for whom rows have changed are woken at once, all by one call, and no more often than they can
make something of it. How far time has come is told to all others too, but to no more than so many
a second, in turn: with thousands of them it would cost more than what they listen for. For the same
reason nobody has a clock of his own: who has been silent for long is woken here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field

#: So many are woken a second without a row for them, at so many times.
_A_SECOND, _TIMES = 1_000, 50
#: Changes that come so soon after each other are told together.
PAUSE_SECONDS = 0.005
#: How long silence lasts before a sign of life, and how often one looks who is silent.
QUIET_SECONDS, _LOOK_SECONDS = 10.0, 2.0


@dataclass(slots=True)
class Waiting:
    """Mutable: one who waits, and when and with which news it was last woken."""

    number: int
    at: float
    #: Tells what is new without waking anybody, if it can; asked only if the one is idle.
    tell_at_once: Callable[[], bool] | None = None
    news: asyncio.Event = field(default_factory=asyncio.Event)
    is_idle: bool = False

    async def wait(self) -> None:
        self.is_idle = True
        await self.news.wait()
        self.is_idle = False
        self.news.clear()

    def wake(self) -> None:
        if not (self.is_idle and self.tell_at_once is not None and self.tell_at_once()):
            self.is_idle = False
            self.news.set()


class Waking:
    """Mutable: all who wait in one loop; who was woken last stands last."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: dict[Hashable, Waiting] = {}
        self._number = 0
        #: Who is to be woken next, from when on that may be, and whether it will be.
        self._due: dict[Hashable, None] = {}
        self._next = 0.0
        self._is_due = False
        self._is_at_it = False
        self._is_looking = False

    def __len__(self) -> int:
        return len(self._waiting)

    # --- in the loop ---

    def add(self, who: Hashable, tell_at_once: Callable[[], bool] | None = None) -> Waiting:
        loop = self._loop = asyncio.get_running_loop()
        waiting = self._waiting[who] = Waiting(self._number, loop.time(), tell_at_once)
        if not self._is_looking:
            self._is_looking = True
            loop.call_later(_LOOK_SECONDS, self._look)
        return waiting

    def remove(self, who: Hashable) -> None:
        self._waiting.pop(who, None)

    # --- from any thread ---

    def wake(self, some: Iterable[Hashable]) -> None:
        """These at once, and all others soon."""
        if self._loop is not None and self._waiting:
            with suppress(RuntimeError):  # the loop may have ended
                self._loop.call_soon_threadsafe(self._wake, list(some))

    def wake_all(self) -> None:
        if self._waiting:
            self.wake(list(self._waiting))

    def _wake(self, some: list[Hashable]) -> None:
        self._due.update(dict.fromkeys(some))
        if self._is_due:
            return
        loop = asyncio.get_running_loop()
        if loop.time() >= self._next:
            self._wake_due()
        else:
            self._is_due = True
            loop.call_at(self._next, self._wake_due)

    def _wake_due(self) -> None:
        self._is_due = False
        now = asyncio.get_running_loop().time()
        self._next = now + PAUSE_SECONDS
        self._number += 1
        due, self._due = self._due, {}
        for who in due:
            self._wake_one(who, now)
        if not self._is_at_it:
            self._wake_others()

    def _wake_one(self, who: Hashable, now: float) -> None:
        one = self._waiting.pop(who, None)
        if one is not None:
            one.number, one.at = self._number, now
            self._waiting[who] = one
            one.wake()

    def _wake_others(self) -> None:
        loop = asyncio.get_running_loop()
        for _ in range(_A_SECOND // _TIMES):
            who = next(iter(self._waiting), None)
            self._is_at_it = who is not None and self._waiting[who].number < self._number
            if not self._is_at_it:
                return
            self._wake_one(who, loop.time())
        loop.call_later(1 / _TIMES, self._wake_others)

    def _look(self) -> None:
        """Wake those who have been silent for long, so that a sign of life is given."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        while self._waiting:
            who, longest = next(iter(self._waiting.items()))
            if longest.at > now - QUIET_SECONDS:
                break
            self._wake_one(who, now)
        self._is_looking = bool(self._waiting)
        if self._is_looking:
            loop.call_later(_LOOK_SECONDS, self._look)
