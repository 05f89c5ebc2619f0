"""Who waits for news of views in the event loop, and is woken from the thread that makes them.

Those for whom rows have changed are woken at once, all by one call. How far time has come is told
to all others too, but to no more than so many a second, in turn: with thousands of them it would
cost more than what they listen for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field

#: So many are woken a second without a row for them, at so many times.
_A_SECOND, _TIMES = 1_000, 50


@dataclass(slots=True)
class _Waiting:
    """Mutable: one who waits, and the number of the news that it was last woken for."""

    number: int
    news: asyncio.Event = field(default_factory=asyncio.Event)


class Waking:
    """Mutable: all who wait in one loop; who was woken last stands last."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: dict[Hashable, _Waiting] = {}
        self._number = 0
        self._is_at_it = False

    def __len__(self) -> int:
        return len(self._waiting)

    # --- in the loop ---

    def add(self, who: Hashable) -> asyncio.Event:
        self._loop = asyncio.get_running_loop()
        self._waiting[who] = _Waiting(self._number)
        return self._waiting[who].news

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
        self._number += 1
        for who in some:
            self._wake_one(who)
        if not self._is_at_it:
            self._wake_others()

    def _wake_one(self, who: Hashable) -> None:
        one = self._waiting.pop(who, None)
        if one is not None:
            one.number = self._number
            one.news.set()
            self._waiting[who] = one

    def _wake_others(self) -> None:
        for _ in range(_A_SECOND // _TIMES):
            who = next(iter(self._waiting), None)
            self._is_at_it = who is not None and self._waiting[who].number < self._number
            if not self._is_at_it:
                return
            self._wake_one(who)
        asyncio.get_running_loop().call_later(1 / _TIMES, self._wake_others)
