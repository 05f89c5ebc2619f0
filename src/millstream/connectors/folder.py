"""A folder of results: one file per batch, each complete when it appears.

    results/part-000000012.parquet     the rows of batch 12
    results/.millstream.json           which job they are of

A part is written beside under a hidden name, made durable and renamed, so the name of the
file commits the rows and the number of their batch together. What an earlier job left is
taken away, last part first, before the first part of a new job appears: whoever looks sees
the beginning of one result, never a mixture of two.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import secrets
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from millstream.connectors.location import Format, Location
from millstream.connectors.sink import check_folder_of, told
from millstream.connectors.write import QueueWriter, Shape, fields_of, open_writer
from millstream.errors import RunError, UsageError, listing
from millstream.plan.batch import Batch

RECORD = ".millstream.json"
_PART = re.compile(r"part-(\d{9,})\.(parquet|csv|jsonl)")
_STAGED = re.compile(r"\.+part-\d{9,}\..*")
#: A part of a run that numbers its own parts is full after so many rows.
_ROWS_OF_A_PART = 1 << 20


@dataclass(frozen=True, slots=True)
class Record:
    """Whose parts are in a folder. While replacing, they are still those of the job before.

    `start` is another one whenever a job starts from nothing. `next` is the number after the
    last batch without rows, of which no part tells.
    """

    job: str
    format: str
    start: str
    is_replacing: bool
    next: int = 0


@dataclass(frozen=True, slots=True)
class Part:
    number: int
    path: Path


def parts_in(folder: Path) -> list[Part]:
    """The parts that are there now, by number."""
    matched = ((p, _PART.fullmatch(p.name)) for p in folder.iterdir())
    return sorted((Part(int(m[1]), p) for p, m in matched if m), key=lambda part: part.number)


def record_in(folder: Path) -> Record | None:
    """The record of a folder; None where no job has written yet."""
    path = folder / RECORD
    try:
        return Record(**json.loads(path.read_bytes()))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError):
        raise RunError(
            "this record of a folder of results is damaged",
            place=str(path),
            hint="delete the folder, and have the job computed again",
        ) from None


class FolderWriter:
    """Mutable: holds the lock of a folder. See `BatchWriter`.

    As a plain writer it makes the whole result appear on `close`, or, while following,
    each batch as it is written.
    """

    def __init__(self, location: Location, shape: Shape, *, is_following: bool = False) -> None:
        fields_of(shape)
        path = location.path
        assert path is not None
        self._folder = Path(os.path.realpath(path))
        self._name = location.text
        self._format: Format = location.format_of_parts
        self._parts = replace(location, format=self._format, text=location.text.rstrip("/"))
        self._shape = shape
        self._is_following = is_following
        self._record: Record | None = None
        self._next = 0
        self._whole: _Staging | None = None
        self._is_new = not self._folder.exists()
        self._handle: int | None = None
        with told(self._name):
            self._handle = self._taken()
        try:
            self._refuse_foreign_files()
            self._forget_what_was_staged()
        except BaseException:
            self.abort()
            raise

    # --- as a sink of numbered batches ---

    def open(self, job: str, *, fresh: bool) -> int:
        record = record_in(self._folder)
        if record is None or record.job != job or record.is_replacing or fresh:
            # Written down now: after a crash before the first batch, nobody may take the
            # parts that are there for those of this job.
            start = secrets.token_hex(8)
            self._write_record(Record(job, self._format.value, start, is_replacing=True))
            self._next = 0
        else:
            self._check_format(record)
            self._record = record
            self._next = max([record.next, *(p.number + 1 for p in parts_in(self._folder))])
        return self._next

    def write_batch(self, number: int, batch: Batch) -> None:
        if number < self._next:
            return
        staging = _Staging(self._parts, self._folder, self._shape, self._name)
        try:
            if len(batch):
                staging.write(number, batch)
            self._publish(staging)
        except BaseException:
            staging.abort()
            raise
        self._next = number + 1
        if not len(batch):
            assert self._record is not None
            self._write_record(replace(self._record, next=self._next))

    def _publish(self, staging: _Staging) -> None:
        """From here on, seen and durable; the result of an earlier job goes only now."""
        staging.finish()
        with told(self._name):
            self._clear_for_new_parts()
            if staging.has_parts:
                staging.publish()
                self._sync()

    # --- as a plain writer ---

    def write(self, batch: Batch) -> None:
        if self._record is None and self._is_following:
            self.open(_new_job(), fresh=True)
        if self._record is not None:
            self.write_batch(self._next, batch)
            return
        if self._whole is None:
            self._whole = _Staging(self._parts, self._folder, self._shape, self._name)
        if len(batch):
            self._whole.add(batch)

    def close(self) -> None:
        if self._handle is None:
            return
        try:
            if self._record is None and not self._is_following:
                self.open(_new_job(), fresh=True)
                self._publish(
                    self._whole or _Staging(self._parts, self._folder, self._shape, self._name)
                )
        except BaseException:
            self.abort()
            raise
        self._release()

    def abort(self) -> None:
        if self._handle is None:
            return
        if self._whole is not None:
            self._whole.abort()
        if self._is_new and self._record is None:
            with suppress(OSError):  # somebody has put something into it
                self._folder.rmdir()
        self._release()

    # --- the folder ---

    def _taken(self) -> int:
        """The folder, made if need be and locked against other runs and other outputs."""
        if self._folder.exists() and not self._folder.is_dir():
            raise UsageError("expected a folder, this is a file", place=self._name)
        check_folder_of(self._folder, self._name)
        self._folder.mkdir(exist_ok=True)
        handle = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            raise UsageError(
                "another run, or another output of this one, writes to this folder",
                place=self._name,
            ) from None
        return handle

    def _release(self) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def _sync(self) -> None:
        assert self._handle is not None
        os.fsync(self._handle)

    def _refuse_foreign_files(self) -> None:
        visible = sorted(p.name for p in self._folder.iterdir() if not p.name.startswith("."))
        is_ours = record_in(self._folder) is not None
        foreign = [name for name in visible if not is_ours or not _PART.fullmatch(name)]
        if foreign:
            raise UsageError(
                f"this folder holds files that are not results of Millstream: {listing(foreign)}",
                place=self._name,
                hint="choose a folder that is empty or not there yet",
            )

    def _forget_what_was_staged(self) -> None:
        """What a killed run has left half written."""
        for path in list(self._folder.iterdir()):
            if _STAGED.fullmatch(path.name):
                path.unlink()

    def _check_format(self, record: Record) -> None:
        if record.format != self._format.value:
            raise UsageError(
                f"this job has written {record.format} here, not {self._format.value}",
                place=self._name,
                hint=f"go on with {record.format}:{self._parts.name_of(self._folder)}/",
            )

    def _clear_for_new_parts(self) -> None:
        """Before the first part of a job: nothing of an earlier one may be left."""
        assert self._record is not None
        if not self._record.is_replacing:
            return
        for part in reversed(parts_in(self._folder)):
            part.path.unlink()
        self._sync()
        self._write_record(replace(self._record, is_replacing=False))

    def _write_record(self, record: Record) -> None:
        beside = self._folder / f"{RECORD}.tmp"
        with told(self._name):
            with beside.open("wb") as file:
                file.write(json.dumps(asdict(record)).encode())
                file.flush()
                os.fsync(file.fileno())
            beside.replace(self._folder / RECORD)
            self._sync()
        self._record = record


class _Staging:
    """Mutable: parts under hidden names, complete on disk before the first is published."""

    def __init__(self, location: Location, folder: Path, shape: Shape, name: str) -> None:
        self._location = location
        self._folder = folder
        self._name = name
        self._shape = shape
        self._writer: QueueWriter | None = None
        self._rows = 0
        self._staged: list[Path] = []

    def write(self, number: int, batch: Batch) -> None:
        """A part of its own."""
        # Some programs take names with a dot for others, but none takes this ending.
        path = self._folder / f".part-{number:09}.{self._location.format.value}.tmp"
        self._writer = open_writer(replace(self._location, path=path), self._shape, self._name)
        self._staged.append(path)
        self._writer.write(batch)
        self._rows = len(batch)

    def add(self, batch: Batch) -> None:
        """Further rows for the last part, until it is full."""
        if self._writer is not None and self._rows < _ROWS_OF_A_PART:
            self._writer.write(batch)
            self._rows += len(batch)
        else:
            self.finish()
            self.write(len(self._staged), batch)

    def finish(self) -> None:
        """Bring the part that is open to the disk."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    @property
    def has_parts(self) -> bool:
        return bool(self._staged)

    def publish(self) -> None:
        for path in self._staged:
            path.replace(path.with_name(path.name.removeprefix(".").removesuffix(".tmp")))
        self._staged = []

    def abort(self) -> None:
        if self._writer is not None:
            self._writer.abort()
        for path in self._staged:
            path.unlink(missing_ok=True)


def _new_job() -> str:
    """A run without a checkpoint is a job of its own."""
    return f"run-{secrets.token_hex(8)}"
