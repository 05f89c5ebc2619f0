"""The checkpoint of a job: who uses it, for which program, and what can be deleted.

A checkpoint is a cache of the input: it may be deleted, and the job computes it again.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import uuid
from pathlib import Path
from typing import IO, Any

from millstream.engine.spark.manifest import read_manifest
from millstream.engine.spark.worker import parsed
from millstream.engine.storage.codec import DamagedState
from millstream.engine.storage.files import LocalFiles
from millstream.engine.storage.records import read_record, write_record
from millstream.errors import PlanError, UsageError

#: How many snapshots are kept: the one before the last is there if the last is damaged.
KEPT_SNAPSHOTS = 2
REBUILD = "--rebuild computes everything again from the input"
#: Spark may run the last batches again.
KEPT_PLANS = 12
#: What kernels keep and how; another number is another way, which this one cannot go on from.
FORMAT = 4


class Checkpoint:
    """Mutable: holds the lock of a checkpoint's folder while a job runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files = LocalFiles(folder)
        self._lock: IO[str] | None = None
        self._tidied = 0
        #: What sinks know the job by, in all its runs on this checkpoint.
        self.identity = ""

    def made_by(self) -> str | None:
        """The fingerprint of what has made it, if it is there and whole."""
        try:
            job = self._job()
        except PlanError:
            return None  # told when it is opened, unless it is to be rebuilt
        return None if job is None else job["fingerprint"]

    def open(self, fingerprint: str, program: str, *, rebuild: bool) -> None:
        """Lock the folder; refuse one that another run uses or another program made."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._take_lock()
        if rebuild:
            self._clear()
        job = self._job()
        if job is None:
            job = {"format": FORMAT, "fingerprint": fingerprint, "program": program,
                     "identity": uuid.uuid4().hex}  # fmt: skip
            write_record(self.files, "job", job)
        elif job.get("format") != FORMAT:
            self.close()
            raise PlanError(
                f'the checkpoint "{self.folder}" was made by another version of Millstream',
                hint=REBUILD,
            )
        elif job["fingerprint"] != fingerprint:
            changed = _first_difference(job["program"], program)
            self.close()
            raise PlanError(
                f'the checkpoint "{self.folder}" was made by another program: {changed}',
                hint=REBUILD,
            )
        self.identity = job["identity"]

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

    def newest_commit(self) -> int:
        """The number of the last batch that is over for Spark; a manifest comes before it."""
        names = self.files.names("spark/commits")
        return max((int(name) for name in names if name.isdigit()), default=-1)

    def _clear(self) -> None:
        """Delete everything; killed in between, what is left is no job and is refused."""
        self.files.delete("job")
        for path in self.folder.iterdir():
            if path.name == "lock":
                continue
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()

    def _job(self) -> dict[str, Any] | None:
        names = set(self.files.names("."))
        if "job" not in names and not names & {"spark", "state", "batches", "sources"}:
            return None
        try:
            job: dict[str, Any] = read_record(self.files, "job")
        except DamagedState as reason:
            self.close()
            raise PlanError(str(reason), hint=REBUILD, place=str(self.folder)) from None
        return job

    def close(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def clear_claims(self) -> None:
        """Claims belong to the tasks of one run."""
        shutil.rmtree(self.folder / "claims", ignore_errors=True)

    def forget_unfinished(self, stages: int, version: int) -> None:
        """Delete state after `version`, of a batch that was not finished.

        It names rows on their way by files that another number of partitions writes anew.
        """
        for stage in range(stages):
            folder = f"state/stage-{stage}"
            for name in self.files.names(folder):
                number, _, _, kind = parsed(name)
                if number > (version + 1 if kind == "snapshot" else version):
                    self.files.delete(f"{folder}/{name}")

    def tidy(self, stages: int, version: int, seq: int, *, keeps_results: bool) -> None:
        """Delete what no batch after `version`, whose plan was `seq`, will ask for again."""
        self._delete_older("claims", version)
        self._tidy_sources(seq - KEPT_PLANS)
        oldest = min((self._oldest_version(stage) for stage in range(stages)), default=version)
        if oldest <= self._tidied:
            return
        self._tidied = oldest
        for stage in range(stages):
            self._delete_older(f"state/stage-{stage}", oldest)
        kept = read_manifest(self.files, oldest - 1)
        for name in self.files.names("exchange"):
            is_read = ".in-" in name  # named by its plan, not by its batch
            if _number(name) < (kept["sources"] if is_read else oldest):
                self.files.delete(f"exchange/{name}")
        if not keeps_results:
            self._delete_older("outputs", oldest - 1)
            self._delete_older("batches", oldest - 1)

    def _oldest_version(self, stage: int) -> int:
        """The version of the last snapshot but one: the last may turn out to be damaged."""
        names = [parsed(n) for n in self.files.names(f"state/stage-{stage}")]
        snapshots = sorted({version for version, _, _, kind in names if kind == "snapshot"})
        return snapshots[-KEPT_SNAPSHOTS] if len(snapshots) >= KEPT_SNAPSHOTS else 0

    def _delete_older(self, folder: str, oldest: int) -> None:
        for name in self.files.names(folder):
            if _number(name) < oldest:
                self.files.delete(f"{folder}/{name}")

    def _tidy_sources(self, oldest: int) -> None:
        names = self.files.names("sources")
        lists = [n for n in names if n.endswith(".taken")]
        for name in names:
            is_newest_list = bool(lists) and name == lists[-1]
            if _number(name) < oldest and not is_newest_list:
                self.files.delete(f"sources/{name}")


def _number(name: str) -> int:
    return int(name.partition(".")[0])


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
