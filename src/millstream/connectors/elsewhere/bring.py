"""Rows from elsewhere on their way into a folder here, which is then read like any other."""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from millstream.connectors.elsewhere.address import OBJECTS
from millstream.connectors.elsewhere.extras import optional
from millstream.connectors.elsewhere.spool import Spool
from millstream.connectors.location import Format, Location
from millstream.errors import MillstreamError, UsageError

POLL_SECONDS = 0.2
#: A source that is away is asked again after so long.
_AGAIN_SECONDS = 2.0


class Bringer(Protocol):
    """Mutable: brings what a source has into a spool, each row once."""

    def fetch(self) -> bool:
        """Bring what has come; whether there is more at once."""
        ...

    def close(self) -> None: ...


_BRINGERS = {
    **dict.fromkeys(OBJECTS, "objects:ObjectsBringer"),
    "kafka": "kafka:KafkaBringer",
    "nats": "jetstream:JetStreamBringer",
    "http": "posted:PostedBringer",
    "delta": "delta:DeltaBringer",
    "iceberg": "iceberg:IcebergBringer",
}


def _say(message: str) -> None:
    sys.stderr.write(f"{message}\n")


class Bringing:
    """Mutable: one input from elsewhere; a thread while the run follows its inputs."""

    def __init__(
        self,
        location: Location,
        folder: Path,
        *,
        is_following: bool,
        say: Callable[[str], None] = _say,
    ) -> None:
        self._text = location.text
        self._say = say
        self._spool = Spool(folder, location.text)
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._bringer: Bringer | None = None
        self.location = replace(
            location, path=folder, base=folder, elsewhere=None, database=None,
            format=Format.JSONL if location.database is not None else location.format,
            brought_from=location.text,
        )  # fmt: skip
        try:
            self._bringer = _bringer(location, self._spool, is_following=is_following)
            while self._bringer.fetch() and not is_following:
                pass
        except BaseException:
            self.close()
            raise
        if is_following:
            self._thread = threading.Thread(target=self._follow, daemon=True)
            self._thread.start()

    @property
    def bringer(self) -> Bringer:
        assert self._bringer is not None
        return self._bringer

    def _follow(self) -> None:
        """Until the end; a source that is away is told once, and taken up when it is back."""
        said: str | None = None
        while not self._over.is_set():
            try:
                has_more = self.bringer.fetch()
            except MillstreamError as error:
                fault = error.faults[0]
                if said != fault.message:
                    self._say(f"warning: {self._text}: {fault.message}; it will be tried again")
                    said = fault.message
                self._over.wait(_AGAIN_SECONDS)
                continue
            if said is not None:
                self._say(f"{self._text}: rows come again")
                said = None
            if not has_more:
                self._over.wait(POLL_SECONDS)

    def close(self) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()
        if self._bringer is not None:
            self._bringer.close()
        self._spool.close()


def _bringer(location: Location, spool: Spool, *, is_following: bool) -> Bringer:
    if location.database is not None:
        optional("psycopg", "postgres")
        from millstream.connectors.elsewhere.postgres_changes import PostgresBringer

        return PostgresBringer(location, spool, location.text, is_following=is_following)
    place = location.elsewhere
    assert place is not None
    if place.scheme not in _BRINGERS:
        raise UsageError(f"{place.scheme}:// is for outputs, which are posted there",
                         place=location.text,
                         hint="http://127.0.0.1:8080/name takes rows that others post")  # fmt: skip
    module, _, name = _BRINGERS[place.scheme].partition(":")
    kind: Any = getattr(importlib.import_module(f"millstream.connectors.elsewhere.{module}"), name)
    bringer: Bringer = kind(place, spool, location.text, is_following=is_following)
    return bringer
