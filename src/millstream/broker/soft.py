"""Soft checkpoints: what was known and shown as of a record of the log, so that it is not replayed.

    0000000000001234.soft      as of record 1234

Nobody waits for them, and they are never made durable: a checkpoint that is missing, unfinished or
damaged, of another log, of other streams or of other views changes no answer. Then the one before
it is taken, or the log from its beginning.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from millstream.broker.env import Disk
from millstream.broker.evaluate import Changes
from millstream.broker.evaluations import Evaluations, Maker, blob_of, rows_of_blob
from millstream.broker.knowledge import Knowledge
from millstream.broker.log import checksum_at
from millstream.cache import sources_digest
from millstream.calculus.text import render
from millstream.engine.storage.codec import DamagedState, decode, encode
from millstream.languages.served import Served

ENDING = ".soft"
#: A checkpoint is taken when the log has grown by so many bytes, and by as many as the last had.
LEAST = 4 << 20
#: The last of these are kept: the very last may be unfinished.
_KEPT = 2


@dataclass(frozen=True)
class Frozen:
    """The views at a moment, as copies that nobody changes."""

    served: Served
    make: Maker
    knowledge: Mapping[str, Any]
    evaluations: Mapping[str, Any]
    rows: Mapping[str, Changes]

    @property
    def position(self) -> int:
        return int(self.evaluations["position"])

    def encoded(self) -> bytes:
        views = self.served.relations
        return encode({
            "streams": streams_digest(self.served), "views": views_digest(self.served, self.make),
            "knowledge": Knowledge.written(self.knowledge), "evaluations": self.evaluations,
            "rows": {name: blob_of(views[name].schema, some) for name, some in self.rows.items()},
        })  # fmt: skip


@dataclass(frozen=True)
class Soft:
    """A checkpoint that fits a log and its streams."""

    views: str
    knowledge: Mapping[str, Any]
    evaluations: Mapping[str, Any]
    rows: Mapping[str, bytes]

    @property
    def position(self) -> int:
        return int(self.evaluations["position"])

    def fits(self, served: Served, make: Maker) -> bool:
        """Whether its views are these, and worked out in the same way."""
        return self.views == views_digest(served, make)

    def put_into(self, evaluations: Evaluations) -> dict[str, Changes]:
        """The rows of all views, which these evaluations go on from."""
        evaluations.knowledge.restore(self.knowledge)
        evaluations.restore(self.evaluations)
        views = evaluations.served.relations
        return {name: rows_of_blob(views[name].schema, blob) for name, blob in self.rows.items()}


class SoftLog:
    """Mutable: the checkpoints of a log, and when the next is due."""

    def __init__(self, disk: Disk, least: int = LEAST) -> None:
        self.disk = disk
        self.least = least
        #: How long the log was at the last checkpoint, and how long that was.
        self._log_size = 0
        self._size = 0
        #: The last position that has been written, and why one could not be.
        self.position = 0
        self.failed: str | None = None

    def latest(self, served: Served) -> Soft | None:
        """The last checkpoint that can be trusted."""
        streams = streams_digest(served)
        for name in reversed(self.disk.names(ENDING)):
            with suppress(DamagedState):
                state = decode(self.disk.read(name))
                if state.pop("streams") != streams:
                    continue
                soft = Soft(**state)
                if checksum_at(self.disk, soft.position) == soft.evaluations["checksum"]:
                    self.position = soft.position
                    return soft
        return None

    def is_due(self, log_size: int) -> bool:
        """With a least of 0 always."""
        return not self.least or log_size - self._log_size >= max(self.least, self._size)

    def begin(self, log_size: int) -> None:
        """What the log has by now need not be written soon."""
        self._log_size = log_size

    def write(self, frozen: Frozen, log_size: int) -> None:
        """Write a checkpoint, if the disk takes it; whoever reads it will see if it is whole."""
        name = f"{frozen.position:016}{ENDING}"
        self.begin(log_size)
        data = frozen.encoded()
        try:
            self.disk.remove(name)  # one that was not whole may be there
            self.disk.append(name, data)
        except OSError as error:
            self.failed = error.strerror or str(error)
            with suppress(OSError):  # it is not whole, so nobody will take it
                self.disk.remove(name)
            return
        self._size, self.position, self.failed = len(data), frozen.position, None
        for old in self.disk.names(ENDING)[:-_KEPT]:
            with suppress(OSError):  # it will be tried again
                self.disk.remove(old)


def streams_digest(served: Served) -> str:
    """What knowledge of a log depends on beside the log."""
    parts = [
        (s.name, s.key, s.slack, s.until, s.shifts_ties, str(s.input.type.schema))
        for _, s in sorted(served.streams.items())
    ]
    edition = served.part.edition if served.part else ""
    return hashlib.sha256(repr((parts, edition)).encode()).hexdigest()


def views_digest(served: Served, make: Maker) -> str:
    """What state is made by: both programs, and all code that runs them."""
    digest = hashlib.sha256(sources_digest() + make.__qualname__.encode())
    for program in (served.live, served.settled, served.later_live):
        digest.update(b"\0" if program is None else render(program).encode())
    if served.part is not None:
        digest.update(repr((sorted(served.part.horizons.items()), served.part.edition)).encode())
    return digest.hexdigest()
