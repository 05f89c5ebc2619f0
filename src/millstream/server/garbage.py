"""Looking for garbage in a server with thousands of connections, where a full look takes a second.

Python looks through all that is there whenever a quarter has been added, and nobody is told
anything meanwhile. Nearly all of it are connections and rows that are held. So what has outlived
two looks is set aside, and all of it is looked through only when many connections have gone since,
which may have left something, or when it has become many times as much.
"""

from __future__ import annotations

import asyncio
import gc

from millstream.server.corked import CorkedHTTP

#: So many new objects are looked through, and the survivors of so many looks once more.
_YOUNG, _LOOKS = 10_000, 20
#: Python never looks through the rest by itself.
_NEVER = 1 << 30
#: How often what survived is set aside, in seconds.
_EVERY = 1.0
#: So many objects are never too many, nor is so many times what was looked through.
_FEW, _TIMES = 400_000, 8
#: So many connections may go, and one for so many objects, which is a half of those there are.
_GONE, _OBJECTS_EACH = 10_000, 400


class Garbage:
    """Mutable: how much was there when all was looked through."""

    def __init__(self) -> None:
        self._looked_through = _FEW
        self._looks = self._gone = 0

    def begin(self) -> None:
        """From now on, in the loop that runs."""
        gc.set_threshold(_YOUNG, _LOOKS, _NEVER)
        self._looks = self._survived()
        asyncio.get_running_loop().call_later(_EVERY, self._again)

    def _again(self) -> None:
        self.set_aside()
        asyncio.get_running_loop().call_later(_EVERY, self._again)

    def set_aside(self) -> None:
        """What has survived is no longer looked at, until it is too much."""
        if self._survived() == self._looks:
            return
        self._looks = self._survived()
        gc.freeze()
        count, gone = gc.get_freeze_count(), CorkedHTTP.gone
        is_much = count > _TIMES * self._looked_through
        if is_much or gone - self._gone > max(_GONE, count // _OBJECTS_EACH):
            gc.unfreeze()
            gc.collect()
            gc.freeze()
            self._looked_through, self._gone = max(gc.get_freeze_count(), _FEW), gone

    @staticmethod
    def _survived() -> int:
        """How often survivors have been looked through."""
        looks: int = gc.get_stats()[1]["collections"]
        return looks
