"""A folder of results: one file per batch, each complete when it appears.

    results/part-000000012.parquet     the rows of batch 12
    results/.millstream.json           which job they are of

A part is written beside under a hidden name, made durable and renamed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path

from millstream.connectors.location import Format, Location
from millstream.connectors.shelf import Record, Shelf, SpooledPart, new_job, record_at
from millstream.connectors.sink import check_folder_of, told
from millstream.connectors.write import QueueWriter, Shape, fields_of, open_writer
from millstream.errors import UsageError, listing
from millstream.locks import FolderLock, InUse
from millstream.plan.batch import Batch

RECORD = ".millstream.json"
PART = re.compile(r"part-(\d{9,})\.(parquet|csv|jsonl)")
_STAGED = re.compile(r"\.+part-\d{9,}\..*")
#: A part of a run that numbers its own parts is full after so many rows.
ROWS_OF_A_PART = 1 << 20


def parts_in(folder: Path) -> list[SpooledPart]:
    """The parts that are there now, by number."""
    return Shelf(folder, RECORD, PART, Format.PARQUET, str(folder)).parts()


def record_in(folder: Path) -> Record | None:
    """The record of a folder; None where no job has written yet."""
    return record_at(folder / RECORD)


class FolderWriter:
    """Mutable: holds the lock of a folder. See `BatchWriter`.

    As a plain writer it makes the whole result appear on `close`.
    """

    def __init__(self, location: Location, shape: Shape) -> None:
        fields_of(shape)
        path = location.path
        assert path is not None
        self._folder = Path(os.path.realpath(path))
        self._name = location.text
        format_ = location.format_of_parts
        self._shelf = Shelf(self._folder, RECORD, PART, format_, location.text)
        self._parts = replace(location, format=format_, text=location.text.rstrip("/"))
        self._shape = shape
        self._whole: _Staging | None = None
        self._is_new = not self._folder.exists()
        self._lock: FolderLock | None = None
        with told(self._name):
            self._lock = self._taken()
        try:
            self._refuse_foreign_files()
            self._forget_what_was_staged()
        except BaseException:
            self.abort()
            raise

    # --- as a sink of numbered batches ---

    def open(self, job: str, *, fresh: bool) -> int:
        return self._shelf.open(job, fresh=fresh)

    def write_batch(self, number: int, batch: Batch, more: Iterable[Batch] = ()) -> None:
        if number < self._shelf.next:
            return
        staging = self._staging()
        try:
            if len(batch):
                staging.write(number, chain((batch,), more))
            self._publish(staging)
        except BaseException:
            staging.abort()
            raise
        self._shelf.passed(number, is_empty=not len(batch))

    def _staging(self) -> _Staging:
        return _Staging(self._parts, self._folder, self._shape, self._name)

    def _publish(self, staging: _Staging) -> None:
        """From here on, seen and durable; the result of an earlier job goes only now."""
        staging.finish()
        with told(self._name):
            self._shelf.clear_for_new_parts()
            if staging.has_parts:
                staging.publish()
                self._shelf.sync()

    # --- as a plain writer ---

    def write(self, batch: Batch) -> None:
        if self._shelf.current is not None:
            self.write_batch(self._shelf.next, batch)
            return
        if self._whole is None:
            self._whole = self._staging()
        if len(batch):
            self._whole.add(batch)

    def close(self) -> None:
        if self._lock is None:
            return
        try:
            if self._shelf.current is None:
                self.open(new_job(), fresh=True)
                self._publish(self._whole or self._staging())
        except BaseException:
            self.abort()
            raise
        self._release()

    def abort(self) -> None:
        if self._lock is None:
            return
        if self._whole is not None:
            self._whole.abort()
        if self._is_new and self._shelf.current is None:
            with suppress(OSError):  # somebody has put something into it
                self._folder.rmdir()
        self._release()

    # --- the folder ---

    def _taken(self) -> FolderLock:
        """The folder, made if need be and locked against other runs and other outputs."""
        if self._folder.exists() and not self._folder.is_dir():
            raise UsageError("expected a folder, this is a file", place=self._name)
        check_folder_of(self._folder, self._name)
        self._folder.mkdir(exist_ok=True)
        try:
            return FolderLock(self._folder)
        except InUse:
            raise UsageError(
                "another run, or another output of this one, writes to this folder",
                place=self._name,
            ) from None

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _refuse_foreign_files(self) -> None:
        visible = sorted(p.name for p in self._folder.iterdir() if not p.name.startswith("."))
        is_ours = record_in(self._folder) is not None
        foreign = [name for name in visible if not is_ours or not PART.fullmatch(name)]
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

    def write(self, number: int, batches: Iterable[Batch]) -> None:
        """A part of its own."""
        # Some programs take names with a dot for others, but none takes this ending.
        path = self._folder / f".part-{number:09}.{self._location.format.value}.tmp"
        self._writer = open_writer(replace(self._location, path=path), self._shape, self._name)
        self._staged.append(path)
        self._rows = 0
        for batch in batches:
            self._writer.write(batch)
            self._rows += len(batch)

    def add(self, batch: Batch) -> None:
        """Further rows for the last part, until it is full."""
        if self._writer is not None and self._rows < ROWS_OF_A_PART:
            self._writer.write(batch)
            self._rows += len(batch)
        else:
            self.finish()
            self.write(len(self._staged), (batch,))

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
