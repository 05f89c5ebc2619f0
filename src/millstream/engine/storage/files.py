"""Files that are there whole or not at all.

A file is written under another name, made durable, and renamed. All access goes through
`Files`, so that a cluster can keep state on shared storage and tests can make it fail.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa


class Files(Protocol):
    """A folder of files by relative name."""

    def write(self, name: str, data: bytes) -> None:
        """Make a file appear with all its bytes, replacing one of that name."""
        ...

    def write_parts(self, name: str, parts: Sequence[Any]) -> None:
        """The same for bytes that are in several places."""
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
    """Files below a folder of this machine, or of storage that is mounted like one."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, name: str, data: bytes) -> None:
        self.write_parts(name, (data,))

    def write_parts(self, name: str, parts: Sequence[Any]) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
        try:
            with temporary.open("wb") as file:
                for part in parts:
                    file.write(part)
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


def _sync_folder(folder: Path) -> None:
    """A rename is durable only when the folder is."""
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
