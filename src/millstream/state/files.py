"""Files that are there whole or not at all.

A file is written under another name, made durable, and renamed. All access goes through
`Files`, so that a cluster can keep state on shared storage and tests can make it fail.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from pathlib import Path
from typing import Protocol


class Files(Protocol):
    """A folder of files by relative name."""

    def write(self, name: str, data: bytes) -> None:
        """Make a file appear with all its bytes, replacing one of that name."""
        ...

    def read(self, name: str) -> bytes: ...

    def names(self, folder: str) -> list[str]:
        """The names in a folder, sorted; none if there is no such folder."""
        ...

    def delete(self, name: str) -> None: ...


class LocalFiles:
    """Files below a folder of this machine, or of storage that is mounted like one."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, name: str, data: bytes) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
        try:
            with temporary.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise
        _sync_folder(path.parent)

    def read(self, name: str) -> bytes:
        return (self.root / name).read_bytes()

    def names(self, folder: str) -> list[str]:
        try:
            return sorted(p.name for p in (self.root / folder).iterdir() if p.name[0] != ".")
        except FileNotFoundError:
            return []

    def delete(self, name: str) -> None:
        (self.root / name).unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    """A rename is durable only when the folder is."""
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
