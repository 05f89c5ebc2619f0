"""The folder into which rows from elsewhere are brought, as files that are whole or not there.

Engines read that folder as they read any other, so rows from elsewhere are taken exactly once
where those of files are: a file is taken once by its name, and a position elsewhere is written down
before the file that reaches it appears. In a checkpoint the folder outlives the run.

    000000000012.jsonl.gz      rows
    .000000000012.position     how far the source has been taken with them
    .000000000011.taken        that there were rows, which nobody needs any more

What has been taken is deleted, but for the last one: a place without files would not be one.
"""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

from millstream.errors import UsageError
from millstream.locks import FolderLock, InUse

_SEGMENT = ".jsonl.gz"
_TAKEN = ".taken"


class Spool:
    """Mutable: holds the lock of its folder."""

    def __init__(self, folder: Path, name: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        try:
            self._lock = FolderLock(folder)
        except InUse:
            raise UsageError("another run takes the rows of this input", place=name) from None
        for path in folder.glob(".*.tmp"):
            path.unlink()  # what a killed run has left half written
        self.next = 1 + max((int(name[:12]) for name in self._segments()), default=-1)

    def _segments(self) -> list[str]:
        """The names of all that there are, and of those that were."""
        names = [p.name for p in self.folder.iterdir()]
        taken = [n.removeprefix(".").removesuffix(_TAKEN) for n in names if n.endswith(_TAKEN)]
        return [*(n for n in names if n[:12].isdigit()), *taken]

    @property
    def marks(self) -> set[str]:
        """What segments are marked with."""
        return {name.removesuffix(_SEGMENT)[13:] for name in self._segments()} - {""}

    def position(self) -> Any:
        """How far the source has been taken by the last segment that is there; None before any."""
        if self.next == 0:
            return None
        return json.loads((self.folder / f".{self.next - 1:012}.position").read_bytes())

    def add_lines(self, lines: bytes, position: Any = None, mark: str = "") -> None:
        self.add(gzip.compress(lines, 1, mtime=0), position, f"-{mark}" if mark else "", _SEGMENT)

    def add(self, data: bytes, position: Any, mark: str = "", ending: str = "") -> None:
        """A segment that appears as a whole, and the position after it, both durable."""
        if position is not None:
            self._write(f".{self.next:012}.position", json.dumps(position).encode())
        self._write(f"{self.next:012}{mark}{ending}", data)
        old = self.folder / f".{self.next - 2:012}.position"
        old.unlink(missing_ok=True)
        self.next += 1

    def _write(self, name: str, data: bytes) -> None:
        beside = self.folder / f".{name.lstrip('.')}.tmp"
        with beside.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(self.folder / name)
        os.fsync(self._lock.handle)

    def close(self) -> None:
        self._lock.close()


def forget_segment(path: Path) -> None:
    """Delete a segment whose rows nobody needs any more, unless it is the last one.

    Its name may be all that says what has been brought, so that stays.
    """
    later = (p for p in path.parent.iterdir() if p.name[:12].isdigit() and p.name > path.name)
    if path.exists() and any(later):
        (path.parent / f".{path.name}{_TAKEN}").touch()
        path.unlink()
