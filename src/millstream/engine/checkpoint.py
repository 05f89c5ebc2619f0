"""The checkpoint of a job: who uses it, for which program, and what can be deleted.

A checkpoint is a cache of the input: it may be deleted, and the job computes it again.
"""

from __future__ import annotations

import json
import shutil
import uuid
from pathlib import Path
from typing import Any

from millstream.engine.history import HISTORY, fold
from millstream.engine.manifest import Manifest, last_manifest, manifest_name, read_manifest
from millstream.engine.stage import parsed
from millstream.engine.storage.codec import DamagedState
from millstream.engine.storage.files import NotedFiles
from millstream.engine.storage.records import missing, read_record, write_record
from millstream.errors import PlanError, UsageError
from millstream.locks import FolderLock, InUse

#: How many snapshots are kept: the one before the last is there if the last is damaged.
KEPT_SNAPSHOTS = 2
REBUILD = "--rebuild computes everything again from the input"
#: Spark may run the last batches again.
KEPT_PLANS = 12
#: What kernels keep and how; another number is another way, which this one cannot go on from.
FORMAT = 9
#: Where the log is read again to lay the work out anew.
RELAYOUT = "relayout"
#: What a job keeps in its checkpoint; what else lies there is somebody else's.
_OWN_FOLDERS = ("spark", "state", "batches", "sources", "exchange", "outputs", "claims", "inputs",
                "told", RELAYOUT)  # fmt: skip
#: Where the state is, until the work is laid out anew.
STATE = "state"

Record = dict[str, Any]


class Checkpoint:
    """Mutable: holds the lock of a checkpoint's folder while a job runs."""

    def __init__(self, folder: Path, *, is_durable: bool = True) -> None:
        self.folder = folder
        self.files = NotedFiles(folder, is_durable=is_durable)
        self._lock: FolderLock | None = None
        self._tidied = 0
        #: What sinks know the job by, in all its runs on this checkpoint.
        self.identity = ""
        #: The folder of its state.
        self.state = STATE
        #: The first batch of its layout; what is known of earlier ones is that of another.
        self.since = 0

    def made(self) -> Record | None:
        """How it was made, if it is there, whole and of this version."""
        try:
            record = self._job()
        except PlanError:
            return None  # told when it is opened, unless it is to be rebuilt
        return record if record is not None and record.get("format") == FORMAT else None

    def open(self, layout: Record, *, rebuild: bool, written: str | None = None) -> None:
        """Lock the folder; refuse one that another run uses or another program made.

        `layout` is the program as it is run, and how it is laid out; `written` the program before
        it was optimised, if it was.
        """
        self.lock()
        if rebuild:
            self.clear()
        record = self._job()
        if record is None:
            record = {"format": FORMAT, **layout, "identity": uuid.uuid4().hex, "written": written}
            write_record(self.files, "job", record)
        self._check(record, layout["program"], layout["shape"])
        self.identity = record["identity"]
        self.state, self.since = record.get("state", STATE), record.get("since", 0)

    def _check(self, record: Record, program: str, shape: str) -> None:
        if record.get("format") != FORMAT:
            made_by = "another version of Millstream"
        elif record["program"] != program:
            made_by = f"another program: {_first_difference(record['program'], program)}"
        elif record["shape"] != shape:
            made_by = "another version of Millstream"
        else:
            return
        self.close()
        raise PlanError(f'the checkpoint "{self.folder}" was made by {made_by}', hint=REBUILD)

    def lock(self) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as reason:
            raise UsageError(f'the checkpoint "{self.folder}" cannot be made: {reason.strerror}',
                             hint="name a folder that you may write to") from None  # fmt: skip
        try:
            self._lock = FolderLock(self.folder, "lock")
        except InUse as other:
            raise UsageError(
                f'the checkpoint "{self.folder}" is in use by process {other.holder}'
            ) from None

    def clear(self) -> None:
        """Delete all that is ours; killed in between, what is left is no job and is refused."""
        self.files.delete("job")
        for name in _OWN_FOLDERS:
            if (self.folder / name).exists():
                shutil.rmtree(self.folder / name)

    def _job(self) -> Record | None:
        names = set(self.files.names("."))
        if "job" not in names and names.isdisjoint(_OWN_FOLDERS):
            return None
        try:
            record: Record = read_record(self.files, "job")
        except DamagedState as reason:
            self.close()
            raise PlanError(str(reason), hint=REBUILD, place=str(self.folder)) from None
        return record

    def close(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def last(self) -> Manifest | None:
        """The manifest of the newest batch that is over, as it is under the layout there is now."""
        last, job = last_manifest(self.files), self._job()
        if last is None or job is None or job.get("since") != last["version"] + 1:
            return last
        return {**last, **job["manifest"]}

    def new_state(self) -> str:
        """The name of an empty folder for the state of another layout."""
        _, _, number = (self.made() or {}).get("state", STATE).partition("-")
        name = f"{STATE}/layout-{int(number or 0) + 1}"
        shutil.rmtree(self.folder / name, ignore_errors=True)
        return name

    def lay_out_anew(self, layout: Record, state: str, manifest: Record) -> None:
        """From now on the job is laid out in another way; `manifest` is what differs in the last.

        The state of that is in a folder of its own. This is done with one file, or is not.
        """
        job, last = self._job(), last_manifest(self.files)
        assert job is not None, self.folder
        assert last is not None, self.folder
        since = last["version"] + 1
        record = {**job, **layout, "state": state, "since": since, "manifest": manifest}
        write_record(self.files, "job", record)

    def take_up(self, stages: int, last: Manifest) -> None:
        """Make ready for the batch after the last one that is over.

        Deletes state of a batch that was not finished: it names rows on their way by files
        that another number of partitions writes anew.
        """
        for name in ("claims", RELAYOUT):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        for name in ("exchange", "outputs"):
            for half_written in (self.folder / name).glob(".*.tmp"):
                half_written.unlink(missing_ok=True)
        version = last["version"]
        plans = [n for n in self.files.names("sources") if n.endswith(".plan")]
        if plans and _number(plans[-1]) > last["sources"]:
            # A batch is planned when the one before it is over.
            raise DamagedState(missing(manifest_name(version + 1)))
        oldest = max(self._oldest(stages, version), self.since - 1, 0)
        for number in range(oldest, version + 1):
            self.files.restore(read_manifest(self.files, number)["notes"])
        self._forget_other_states()
        for stage in range(stages):
            folder = f"{self.state}/stage-{stage}"
            for name in self.files.names(folder):
                written, _, _, kind = parsed(name)
                if written > (version + 1 if kind == "snapshot" else version):
                    self.files.delete(f"{folder}/{name}")

    def _forget_other_states(self) -> None:
        """Delete the state of layouts that the job does not have any more."""
        others = [name for name in self.files.names(STATE) if f"{STATE}/{name}" != self.state]
        for name in others:
            if self.state != STATE or not name.startswith("stage-"):
                shutil.rmtree(self.folder / STATE / name)

    def tidy(self, stages: int, last: Manifest, wanted_from: int) -> None:
        """Delete what no batch after the last one will ask for again.

        Of results a sink may still want those from some batch on.
        """
        version = last["version"]
        self._delete_older("claims", version)
        self._tidy_sources(last["sources"] - KEPT_PLANS)
        oldest = self._oldest(stages, version)
        if oldest <= self._tidied:
            return
        self._tidied = oldest
        for stage in range(stages):
            self._delete_older(f"{self.state}/stage-{stage}", oldest)
        kept = read_manifest(self.files, oldest - 1)
        for name in self.files.names("exchange"):
            is_read = ".in-" in name  # named by its plan, not by its batch
            if _number(name) < (kept["sources"] if is_read else oldest):
                self.files.delete(f"exchange/{name}")
        results = min(oldest - 1, wanted_from)
        self._delete_older("outputs", results)
        self._delete_older("batches", results)

    def _oldest(self, stages: int, version: int) -> int:
        return min((self._oldest_version(stage) for stage in range(stages)), default=version)

    def _oldest_version(self, stage: int) -> int:
        """The version of the last snapshot but one: the last may turn out to be damaged."""
        names = [parsed(n) for n in self.files.names(f"{self.state}/stage-{stage}")]
        snapshots = sorted({version for version, _, _, kind in names if kind == "snapshot"})
        return snapshots[-KEPT_SNAPSHOTS] if len(snapshots) >= KEPT_SNAPSHOTS else 0

    def _delete_older(self, folder: str, oldest: int) -> None:
        for name in self.files.names(folder):
            if _number(name) < oldest:
                self.files.delete(f"{folder}/{name}")

    def _tidy_sources(self, oldest: int) -> None:
        fold(self.files, oldest)
        names = self.files.names("sources")
        lists = [n for n in names if n.endswith(".taken")]
        for name in names:
            is_newest_list = bool(lists) and name == lists[-1]
            if _number(name) < oldest and not is_newest_list and not name.endswith(HISTORY):
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
    return "its lines have another order"
