"""A job laid out anew: other buckets, other places, other passes of the optimiser.

State cannot be cut afterwards, but it follows from the log. So the log is read again, up to where
the last batch has ended, by a job of its own in the checkpoint, whose results nobody hears: they
have been handed over. Its state then takes the place of the old one, by one file. Until then the
checkpoint is what it was, so a run may be killed at any moment. If the log is not there any more,
or gives something else than it did, the job goes on as it was.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from millstream.calculus.text import render
from millstream.engine.batches import Batches
from millstream.engine.checkpoint import RELAYOUT, STATE, Checkpoint
from millstream.engine.delivery import Delivery
from millstream.engine.history import history
from millstream.engine.job import Job, Progress, Report, no_progress
from millstream.engine.manifest import Manifest, last_manifest
from millstream.engine.points import reached
from millstream.engine.read_again import ReadAgain
from millstream.engine.settings import Settings
from millstream.engine.stage import parsed
from millstream.engine.storage.codec import DamagedState
from millstream.engine.storage.files import LocalFiles
from millstream.engine.storage.records import read_record, write_record
from millstream.plan.batch import Batch

#: For what that is done: what has been read for something else is of no use.
_PURPOSE = "purpose"
#: What of the rows of inputs is the same however the work is laid out.
_COUNTED = ("read", "processed", "waiting", "late", "rejected")

#: Runs batches to their end.
Launched = Callable[[Batches], object]


@dataclass(frozen=True)
class Relaid:
    """The job as it goes on, and what to say of that."""

    job: Job
    notes: tuple[str, ...] = ()

    def batches(self, progress: Progress, folder: Path, settings: Settings) -> Batches:
        batches = Batches(self.job, progress, folder, settings)
        batches.report.notes.extend(self.notes)
        return batches


def relaid(
    job: Job, progress: Progress, folder: Path, settings: Settings, launched: Launched
) -> Relaid:
    """The job with its checkpoint laid out as it would be now, if that was asked for."""
    checkpoint = Checkpoint(folder)
    made = checkpoint.made()
    if settings.rebuild or not settings.relayout or made is None:
        return Relaid(job)
    if job.written is None or made["written"] != render(job.written):
        return Relaid(job)  # of another program, which is told when it is opened
    checkpoint.lock()
    try:
        return _Relayout(job, progress, checkpoint, settings).done(launched)
    finally:
        checkpoint.close()


class _Relayout:
    """Mutable: the checkpoint of a job, while this has its lock."""

    def __init__(
        self, job: Job, progress: Progress, checkpoint: Checkpoint, settings: Settings
    ) -> None:
        self.job = job
        self.progress = progress
        self.checkpoint = checkpoint
        self.files = checkpoint.files
        self.folder = checkpoint.folder / RELAYOUT
        self.settings = replace(settings, relayout=False)
        #: The job as it would be begun now, without anybody to hear of its results.
        self.anew = replace(job, program=job.renewed or job.program)

    def done(self, launched: Launched) -> Relaid:
        last = self.checkpoint.last()
        if last is None:
            self.checkpoint.clear()  # nothing is over, so nothing is lost
            return Relaid(self.anew)
        stretches = history(self.files, last["sources"])
        log = ReadAgain(self.anew, self.files, stretches or [])
        batches = self._batches(log, self._purpose(last))
        if batches.layout_record().items() <= (self.checkpoint.made() or {}).items():
            return Relaid(self.anew)
        reason = self._why_not(log, is_known=stretches is not None)
        if reason is not None:
            return self._as_it_was(reason)
        rows = sum(counts["read"] for counts in last["counts"].values())
        note = f"the work is laid out anew: {rows:,} rows are read again, and nothing is told twice"
        self._tell(note)
        log.copy_again()
        try:
            launched(batches)
        finally:
            log.forget_copies()
        if not log.ends_here:
            return Relaid(self.job)  # it was stopped, and goes on another time
        if (other := self._difference(last, batches)) is not None:
            shutil.rmtree(self.folder)
            return self._as_it_was(f"read again, the inputs give {other}")
        self._adopt(batches, last)
        return Relaid(self.anew, (note,))

    def _why_not(self, log: ReadAgain, *, is_known: bool) -> str | None:
        """Why the log cannot be read again."""
        for name, one in self.job.locations.items():
            if one.native is not None:
                return f'Spark itself reads "{name}"'
        if not is_known:
            return "the checkpoint does not say any more what was read"
        gone = log.what_is_gone()
        return None if gone is None else f"{gone} is not there any more"

    def _purpose(self, last: Manifest) -> dict[str, Any]:
        return {
            "program": render(self.anew.program), "version": last["version"],
            "buckets": self.settings.buckets, "together": self.settings.is_together,
        }  # fmt: skip

    def _batches(self, log: ReadAgain, purpose: dict[str, Any]) -> Batches:
        """The log in batches of its own; those of a run that was killed go on."""
        files = LocalFiles(self.folder)
        try:
            is_begun = read_record(files, _PURPOSE) == purpose
        except DamagedState:
            is_begun = False
        if not is_begun:
            shutil.rmtree(self.folder, ignore_errors=True)
            write_record(files, _PURPOSE, purpose)
        job = replace(self._unheard(files), is_following=True)
        return Batches(job, no_progress, self.folder, self.settings, log)

    def _unheard(self, files: LocalFiles) -> Job:
        writers = {name: Unheard(files) for name in self.anew.program.outputs}
        return replace(self.anew, writers=writers, late_writers={}, on_rejected=None)

    def _difference(self, last: Manifest, batches: Batches) -> str | None:
        """What has come of the log that had not come of it before, in words."""
        report = Report.for_program(self.anew.program)
        delivery = Delivery(self._unheard(self.files), batches.layout, self.files, report)
        delivery.open("", last["version"])
        anew = batches.last
        for name, rows in delivery.written.items():
            if rows != (now := batches.delivery.written[name]):
                return f'{now:,} rows of "{name}", not {rows:,}'
        for name, counts in last["counts"].items():
            for what in _COUNTED:
                if counts[what] != (now := anew["counts"][name][what]):
                    return f'{now:,} rows of "{name}" that are {what}, not {counts[what]:,}'
        is_same = all(last[what] == anew[what] for what in ("mark", "log"))
        return None if is_same else "other times"

    def _adopt(self, batches: Batches, last: Manifest) -> None:
        """Put the state that was made in the place of the old one."""
        since, end = last["version"] + 1, batches.last["version"] + 1
        state = self.checkpoint.new_state()
        for number in range(len(batches.layout.stages)):
            there = self.folder / STATE / f"stage-{number}"
            here = f"{state}/stage-{number}"
            for name in LocalFiles(there).names("."):
                version, partition, of, kind = parsed(name)
                if kind == "snapshot" and version == end:
                    target = f"{here}/{since:09}.{partition}of{of}.snapshot"
                    self.files.write(target, (there / name).read_bytes())
        reached("before-laid-out", last["version"])
        made = batches.last
        changed = {key: made[key] for key in ("ahead", "faults", "read_faults", "state")}
        changed |= {"deltas": 0, "since": 0}
        self.checkpoint.lay_out_anew(batches.layout_record(), state, changed)
        reached("after-laid-out", last["version"])
        shutil.rmtree(self.folder)

    def _as_it_was(self, reason: str) -> Relaid:
        note = f"the work stays laid out as it was: {reason}"
        return Relaid(self.job, (note,))

    def _tell(self, note: str) -> None:
        report = Report.for_program(self.anew.program)
        report.is_taken_up = True
        report.notes.append(note)
        self.progress(report)


class Unheard:
    """A sink that is given what others have, and forgets it; it knows the batches that are over."""

    def __init__(self, files: LocalFiles) -> None:
        self._files = files

    def open(self, job: str, *, fresh: bool) -> int:
        last = last_manifest(self._files)
        return 0 if last is None else int(last["version"]) + 1

    def write_batch(self, number: int, batch: Batch, more: Iterable[Batch] = ()) -> None:
        """Who delivers counts the rows."""

    def write(self, batch: Batch) -> None:
        """Likewise."""

    def close(self) -> None:
        """Nothing is open."""

    def abort(self) -> None:
        """Nothing is there."""
