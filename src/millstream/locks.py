"""The lock of a folder, which goes with the process that holds it, however that ends."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path


class InUse(Exception):
    """Another holds the lock; `holder` is the number of its process, where that is known."""

    def __init__(self, holder: str) -> None:
        super().__init__(holder)
        self.holder = holder


class FolderLock:
    """Mutable: held from when it is made until it is closed.

    With a `file` the lock lies in a file of that name, which tells who holds it; without one in the
    folder itself, so that nothing is seen there.
    """

    def __init__(self, folder: Path, file: str | None = None) -> None:
        path = folder if file is None else folder / file
        flags = os.O_RDONLY | os.O_DIRECTORY if file is None else os.O_RDWR | os.O_CREAT
        #: Of the folder, or of the file in it.
        self.handle = os.open(path, flags, 0o666)
        try:
            fcntl.flock(self.handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = "" if file is None else os.read(self.handle, 100).decode().strip()
            self.close()
            raise InUse(holder or "unknown") from None
        if file is not None:
            os.ftruncate(self.handle, 0)
            os.write(self.handle, str(os.getpid()).encode())

    def close(self) -> None:
        if self.handle >= 0:
            os.close(self.handle)
            self.handle = -1
