"""Files that are there whole or not at all.

A file is written under another name, made durable, and renamed. All access goes through
`Files`, so that a cluster can keep state on shared storage and tests can make it fail.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

#: What a system says when a disk is full.
FULL = "No space left on device"


class Growing(Protocol):
    """Mutable: a file in the making, which nobody sees."""

    def write(self, part: Any) -> None: ...

    def close(self) -> None:
        """Make it appear."""
        ...

    def abort(self) -> None: ...


class Files(Protocol):
    """A folder of files by relative name."""

    #: So few bytes are better told than written to a file of their own.
    small: int

    def write(self, name: str, data: bytes) -> None:
        """Make a file appear with all its bytes, replacing one of that name."""
        ...

    def growing(self, name: str) -> Growing:
        """The same for bytes that come one after another; it appears when it is closed."""
        ...

    def note(self, name: str, data: bytes) -> None:
        """The same for bytes that need not be durable before the batch is that they belong to."""
        ...

    def read(self, name: str) -> bytes: ...

    def part(self, name: str, start: int, size: int) -> Any:
        """Some bytes of a file, as a buffer that stays valid; fewer if it is shorter."""
        ...

    def names(self, folder: str) -> list[str]:
        """The names in a folder, sorted; none if there is no such folder."""
        ...

    def delete(self, name: str) -> None: ...


class LocalFiles:
    """Files below a folder of this machine, or of storage that is mounted like one.

    What is thrown away after use need not be durable.
    """

    small = 1 << 16

    def __init__(self, root: Path, *, is_durable: bool = True) -> None:
        self.root = root
        self._is_durable = is_durable

    def write(self, name: str, data: bytes) -> None:
        self._put(name, data, is_durable=self._is_durable)

    def growing(self, name: str) -> Growing:
        return _Temporary(self.root / name, is_durable=self._is_durable)

    def note(self, name: str, data: bytes) -> None:
        self.write(name, data)

    def _put(self, name: str, data: bytes, *, is_durable: bool) -> None:
        file = _Temporary(self.root / name, is_durable=is_durable)
        try:
            file.write(data)
            file.close()
        except BaseException:
            file.abort()
            raise

    def read(self, name: str) -> bytes:
        return (self.root / name).read_bytes()

    def part(self, name: str, start: int, size: int) -> Any:
        with pa.memory_map(str(self.root / name)) as file:
            if start > file.size():
                return pa.py_buffer(b"")
            file.seek(start)
            return file.read_buffer(size)

    def names(self, folder: str) -> list[str]:
        try:
            return sorted(p.name for p in (self.root / folder).iterdir() if p.name[0] != ".")
        except FileNotFoundError:
            return []

    def delete(self, name: str) -> None:
        (self.root / name).unlink(missing_ok=True)


class _Temporary:
    """Mutable: a file under another name until it is whole."""

    def __init__(self, path: Path, *, is_durable: bool) -> None:
        self._path = path
        self._is_durable = is_durable
        path.parent.mkdir(parents=True, exist_ok=True)
        self._temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
        self._file = self._temporary.open("wb")

    def write(self, part: Any) -> None:
        self._file.write(part)

    def close(self) -> None:
        if self._is_durable:
            self._file.flush()
            os.fsync(self._file.fileno())
        self._file.close()
        self._temporary.replace(self._path)
        if self._is_durable:
            _sync_folder(self._path.parent)

    def abort(self) -> None:
        with contextlib.suppress(OSError):
            self._file.close()
        with contextlib.suppress(OSError):
            self._temporary.unlink(missing_ok=True)


class NotedFiles(LocalFiles):
    """Mutable: remembers notes until they are taken.

    To make a file durable is to wait for the disk, twice. One process that writes several
    small files for a batch waits for the last of them only, which holds the others as notes.
    """

    small = 1 << 20

    def __init__(self, root: Path, *, is_durable: bool = True) -> None:
        super().__init__(root, is_durable=is_durable)
        self._notes: dict[str, bytes] = {}

    def note(self, name: str, data: bytes) -> None:
        if not self._is_durable or len(data) > 2 * self.small:
            self.write(name, data)
            return
        self._put(name, data, is_durable=False)
        self._notes[name] = data

    def taken_notes(self) -> dict[str, bytes]:
        """What has been noted since they were taken last."""
        notes, self._notes = self._notes, {}
        return notes

    def restore(self, notes: Mapping[str, bytes]) -> None:
        """Put back what may have been lost with the power."""
        for name, data in notes.items():
            self._put(name, data, is_durable=False)


def _sync_folder(folder: Path) -> None:
    """A rename is durable only when the folder is."""
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
