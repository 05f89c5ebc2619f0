"""Replies that are not worked out again: what was asked of the newest version of a cube.

Many ask the same, and between two batches the answer is the same. One who asks what another is
waiting for waits for the same answer.
"""

from __future__ import annotations

from asyncio import Future
from collections.abc import Hashable

from millstream.kernels.cube.versions import Version
from millstream.olap.store import CubeStore
from millstream.server.routes import Reply

Made = tuple[bytes, Reply]
#: So many bytes of replies are held for each cube.
MOST_BYTES = 1 << 25


class Recent:
    """Mutable: replies by cube and by what was asked. Only the event loop touches it."""

    def __init__(self) -> None:
        self._of: dict[str, _OfVersion] = {}

    def get(self, store: CubeStore, key: Hashable) -> Future[Made] | None:
        known = self._of.get(store.cube.name)
        return None if known is None or known.version is not store.version else known.get(key)

    def put(self, store: CubeStore, key: Hashable, reply: Future[Made]) -> None:
        """Hold a reply that will be of this version, or of a later one."""
        known = self._of.get(store.cube.name)
        if known is None or known.version is not store.version:
            known = self._of[store.cube.name] = _OfVersion(store.version)
        known.put(key, reply)


class _OfVersion:
    """Mutable: the replies to what was asked of a version."""

    def __init__(self, version: Version) -> None:
        self.version = version
        self._replies: dict[Hashable, Future[Made]] = {}
        self._bytes = 0

    def get(self, key: Hashable) -> Future[Made] | None:
        return self._replies.get(key)

    def put(self, key: Hashable, reply: Future[Made]) -> None:
        self._replies[key] = reply
        reply.add_done_callback(lambda made: self._done(key, made))

    def _done(self, key: Hashable, reply: Future[Made]) -> None:
        """What has failed is tried again when it is asked again."""
        if reply.cancelled() or reply.exception() is not None:
            self._replies.pop(key, None)
            return
        self._bytes += len(reply.result()[0])
        if self._bytes > MOST_BYTES:
            self._replies.pop(key, None)
            self._bytes -= len(reply.result()[0])
