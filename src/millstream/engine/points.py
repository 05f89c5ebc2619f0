"""Points at which a test may kill a run, as a crash of the machine would."""

from __future__ import annotations

import os
import signal
from pathlib import Path

#: `POINT@VERSION:FILE`; the file holds the group of processes to kill, and is removed then.
VARIABLE = "MILLSTREAM_KILL_AT"


def reached(point: str, version: int) -> None:
    """Kill the whole group of processes, once, if a test has asked for it here.

    Workers are in a group of their own; one that has reached its point goes no further.
    """
    wanted = os.environ.get(VARIABLE)
    if wanted is None:
        return
    where, _, armed = wanted.partition(":")
    if where != f"{point}@{version}":
        return
    file = Path(armed)
    try:
        group = file.read_text()
        file.unlink()
    except FileNotFoundError:
        return  # it has happened already, or is not wanted any more
    os.killpg(int(group), signal.SIGKILL)
    os.killpg(0, signal.SIGKILL)
