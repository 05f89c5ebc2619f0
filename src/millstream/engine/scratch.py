"""A folder for what only one process needs.

It goes with the process; what one that was killed has left is removed by the next one.
"""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PREFIX = "millstream-run-"
#: What the path of a socket may have on every system, and what its name takes.
_LONGEST_SOCKET = 100
_SOCKET_NAME = 45


def scratch_folder() -> Path:
    """The folder of this process; Java, which outlives sessions, keeps its files in it too."""
    return _made_for(os.getpid())


@functools.cache
def _made_for(process: int) -> Path:
    _forget_abandoned(Path(tempfile.gettempdir()))
    folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{process}-")).resolve()
    atexit.register(_remove, folder, process)
    return folder


@contextmanager
def checkpoint_folder(given: str | Path | None) -> Iterator[Path]:
    """The checkpoint of a run: the one that was given, or one that goes with the run."""
    if given is not None:
        yield Path(given).resolve()
        return
    folder = Path(tempfile.mkdtemp(dir=scratch_folder()))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _remove(folder: Path, process: int) -> None:
    if os.getpid() == process:  # not in a process that was forked from it
        shutil.rmtree(folder, ignore_errors=True)


def has_room_for_sockets(folder: Path) -> bool:
    return len(os.fsencode(folder)) + _SOCKET_NAME <= _LONGEST_SOCKET


def _forget_abandoned(place: Path) -> None:
    for folder in place.glob(f"{_PREFIX}*"):
        owner = folder.name.removeprefix(_PREFIX).partition("-")[0]
        if owner.isdigit() and not _is_running(int(owner)):
            shutil.rmtree(folder, ignore_errors=True)  # that of another user stays


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True  # another user's, or no number of a process: not ours to remove
    return True
