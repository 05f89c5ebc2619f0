"""All that a broker has of the world: a clock, a disk, and numbers that nobody can guess.

Nothing else in this folder asks for the time or opens a file, so that a test can put another
world in its place: one that crashes at any write, and then has lost what was not made durable.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from millstream.errors import UsageError
from millstream.locks import FolderLock, InUse


class Disk(Protocol):
    """A folder of files that grow at their ends."""

    def names(self, ending: str = ".log") -> list[str]:
        """All files that end so, sorted."""
        ...

    def read(self, name: str) -> bytes: ...

    def size(self, name: str) -> int: ...

    def append(self, name: str, data: bytes) -> None:
        """Write at the end of a file, which begins to exist if it does not."""
        ...

    def sync(self, name: str) -> None:
        """Return when all that was appended, and the file's name, will outlast a crash."""
        ...

    def cut(self, name: str, size: int) -> None:
        """Leave only the first bytes of a file, durably."""
        ...

    def remove(self, name: str) -> None:
        """Forget a file, if it is there; after a crash it may be there again."""
        ...

    def close(self) -> None: ...


class Clock(Protocol):
    def now(self) -> int:
        """Microseconds since 1970."""
        ...


@dataclass(frozen=True)
class Env:
    """The world of one broker."""

    disk: Disk
    clock: Clock
    #: Makes a name that no other log has.
    new_identity: Callable[[], str] = field(default=lambda: secrets.token_hex(8))


class MachineClock:
    """The clock of this machine."""

    def now(self) -> int:
        return time.time_ns() // 1000


class FolderDisk:
    """Mutable: a folder of this machine, of which one process has the use."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = FolderLock(folder, "lock")
        except InUse as other:
            raise UsageError(f'the log "{folder}" is in use by process {other.holder}') from None
        except OSError as error:
            reason = error.strerror or str(error)
            raise UsageError(f"this folder cannot be used: {reason}", place=str(folder)) from None
        self._files: dict[str, int] = {}

    def names(self, ending: str = ".log") -> list[str]:
        return sorted(p.name for p in self.folder.glob(f"*{ending}"))

    def read(self, name: str) -> bytes:
        return (self.folder / name).read_bytes()

    def size(self, name: str) -> int:
        return (self.folder / name).stat().st_size

    def append(self, name: str, data: bytes) -> None:
        file = self._file(name)
        view = memoryview(data)
        while view:  # a disk that fills up takes a part first, and then says so
            view = view[os.write(file, view) :]

    def sync(self, name: str) -> None:
        os.fdatasync(self._file(name))

    def cut(self, name: str, size: int) -> None:
        file = self._file(name)
        os.ftruncate(file, size)
        os.fsync(file)

    def remove(self, name: str) -> None:
        if name in self._files:
            os.close(self._files.pop(name))
        (self.folder / name).unlink(missing_ok=True)

    def _file(self, name: str) -> int:
        if name not in self._files:
            path = self.folder / name
            is_new = not path.exists()
            self._files[name] = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            if is_new:
                self._sync_names()
        return self._files[name]

    def _sync_names(self) -> None:
        folder = os.open(self.folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def close(self) -> None:
        for file in self._files.values():
            with contextlib.suppress(OSError):  # what was acknowledged is durable already
                os.close(file)
        self._files.clear()
        self._lock.close()
