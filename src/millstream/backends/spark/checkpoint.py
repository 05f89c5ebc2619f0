"""The checkpoint of a job: who uses it, for which program, and what can be deleted.

A checkpoint is a cache of the input: it may be deleted, and the job computes it again.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from pathlib import Path
from typing import IO

from millstream.backends.spark.worker import parsed
from millstream.errors import PlanError, UsageError
from millstream.state.codec import DamagedState
from millstream.state.files import LocalFiles
from millstream.state.records import read_record, write_record

#: How many snapshots are kept: the one before the last is there if the last is damaged.
KEPT_SNAPSHOTS = 2
REBUILD = "--rebuild computes everything again from the input"
#: Spark may run the last batches again.
KEPT_PLANS = 12


class Checkpoint:
    """Mutable: holds the lock of a checkpoint's folder while a job runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files = LocalFiles(folder)
        self._lock: IO[str] | None = None

    def open(self, fingerprint: str, program: str, *, rebuild: bool) -> None:
        """Lock the folder; refuse one that another run uses or another program made."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._take_lock()
        if rebuild:
            self._clear()
        found = self._job()
        if found is None:
            write_record(self.files, "job", {"fingerprint": fingerprint, "program": program})
        elif found["fingerprint"] != fingerprint:
            changed = _first_difference(found["program"], program)
            self.close()
            raise PlanError(
                f'the checkpoint "{self.folder}" was made by another program: {changed}',
                hint=REBUILD,
            )

    def _take_lock(self) -> None:
        file = (self.folder / "lock").open("a+")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read().strip() or "unknown"
            file.close()
            raise UsageError(
                f'the checkpoint "{self.folder}" is in use by process {holder}'
            ) from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        self._lock = file

    def _clear(self) -> None:
        for path in self.folder.iterdir():
            if path.name == "lock":
                continue
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()

    def _job(self) -> dict[str, str] | None:
        names = set(self.files.names("."))
        if "job" not in names and not names & {"spark", "state", "outputs", "sources"}:
            return None
        try:
            found: dict[str, str] = read_record(self.files, "job")
        except DamagedState as reason:
            self.close()
            raise PlanError(str(reason), hint=REBUILD, place=str(self.folder)) from None
        return found

    def close(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def tidy(self, stages: int, number: int) -> None:
        """Delete what no batch after `number` will ask for again."""
        self._tidy_sources(number - KEPT_PLANS)
        for stage in range(stages):
            folder = f"state/stage-{stage}"
            names = self.files.names(folder)
            snapshots = sorted({parsed(n)[0] for n in names if parsed(n)[3] == "snapshot"})
            if len(snapshots) < KEPT_SNAPSHOTS:
                continue
            oldest = snapshots[-KEPT_SNAPSHOTS]
            for name in names:
                if parsed(name)[0] < oldest:
                    self.files.delete(f"{folder}/{name}")

    def _tidy_sources(self, oldest: int) -> None:
        names = self.files.names("sources")
        lists = [n for n in names if n.endswith(".taken")]
        for name in names:
            is_newest_list = bool(lists) and name == lists[-1]
            if int(name.split(".")[0]) < oldest and not is_newest_list:
                self.files.delete(f"sources/{name}")


def _first_difference(old: str, new: str) -> str:
    """The first line that has changed, in words."""
    before, after = old.splitlines(), new.splitlines()
    for line in after:
        if line not in before:
            return f"now there is {json.dumps(line)}"
    for line in before:
        if line not in after:
            return f"there was {json.dumps(line)}"
    return "the number of buckets has changed"
