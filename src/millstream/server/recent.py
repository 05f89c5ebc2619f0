"""Replies that are not worked out again: what was asked of the newest version of a cube.

Many ask the same, and between two batches the answer is the same. One who asks what another is
waiting for waits for the same answer. What was asked of a version will be asked of the next one:
it is worked out before that one can be asked, so that few wait for more than their turn.
"""

from __future__ import annotations

import asyncio
from asyncio import Future
from collections.abc import Callable, Hashable
from time import perf_counter

from millstream.kernels.cube.versions import Version
from millstream.olap.store import CubeStore
from millstream.server.routes import Reply

Made = tuple[bytes, Reply]
#: Works out a reply from a version.
Make = Callable[[Version], Made]
#: So many bytes of replies are held for each cube.
MOST_BYTES = 1 << 25
#: A version is not held back for longer than it takes to work out some replies in this time.
MOST_SECONDS = 0.05


class Recent:
    """Mutable: replies by cube and by what was asked.

    Only the event loop touches it, but for `make_ready`, which hands over to it what it has made.
    """

    def __init__(self) -> None:
        self._of: dict[str, _OfVersion] = {}
        self._ready: dict[str, _OfVersion] = {}

    def _newest(self, store: CubeStore) -> _OfVersion:
        name, version = store.cube.name, store.version
        known = self._of.get(name)
        if known is None or known.version is not version:
            ready = self._ready.get(name)
            is_ready = ready is not None and ready.version is version
            known = ready if ready is not None and is_ready else _OfVersion(version)
            self._of[name] = known
        return known

    def get(self, store: CubeStore, key: Hashable) -> Future[Made] | None:
        return self._newest(store).get(key)

    def put(self, store: CubeStore, key: Hashable, reply: Future[Made], again: Make) -> None:
        """Hold a reply that will be of this version, or of a later one."""
        self._newest(store).put(key, reply, again)

    def make_ready(self, store: CubeStore, version: Version) -> None:
        """Work out what was asked of the version of now for one that follows it."""
        name = store.cube.name
        known = self._of.get(name)
        if known is None or known.version is not store.version:
            return  # nobody has asked anything
        ready = _OfVersion(version)
        end = perf_counter() + MOST_SECONDS
        for key, again in known.asked():
            if perf_counter() > end:
                break
            try:
                ready.made[key] = again(version), again
            except Exception:  # noqa: BLE001, S112 - whoever asks again is told
                continue
        self._ready[name] = ready


class _OfVersion:
    """Mutable: the replies to what was asked of a version."""

    def __init__(self, version: Version) -> None:
        self.version = version
        #: What was made before anybody asked for it.
        self.made: dict[Hashable, tuple[Made, Make]] = {}
        self._replies: dict[Hashable, Future[Made]] = {}
        self._again: dict[Hashable, Make] = {}
        self._bytes = 0

    def get(self, key: Hashable) -> Future[Made] | None:
        if (ready := self.made.pop(key, None)) is not None:
            reply: Future[Made] = asyncio.get_running_loop().create_future()
            reply.set_result(ready[0])
            self.put(key, reply, ready[1])
            return reply
        return self._replies.get(key)

    def put(self, key: Hashable, reply: Future[Made], again: Make) -> None:
        self._replies[key] = reply
        self._again[key] = again
        reply.add_done_callback(lambda made: self._done(key, made))

    def asked(self) -> list[tuple[Hashable, Make]]:
        """What was asked, and how it is made of another version."""
        return list(self._again.items())

    def _done(self, key: Hashable, reply: Future[Made]) -> None:
        """What has failed is tried again when it is asked again."""
        if reply.cancelled() or reply.exception() is not None:
            self._forget(key)
            return
        self._bytes += len(reply.result()[0])
        if self._bytes > MOST_BYTES:
            self._forget(key)
            self._bytes -= len(reply.result()[0])

    def _forget(self, key: Hashable) -> None:
        self._replies.pop(key, None)
        self._again.pop(key, None)
