"""Results in several files, and a hidden record beside them that says whose they are.

A file is complete when it appears, and its name says which batch it is of, so rows and the
number of their batch are committed together. What an earlier job left is taken away, last part
first, before the first part of a new job appears: whoever looks sees the beginning of one
result, never a mixture of two.
"""

from __future__ import annotations

import json
import os
import re
import secrets
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from millstream.connectors.location import Format
from millstream.connectors.sink import told
from millstream.errors import RunError, UsageError


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
class SpooledPart:
    number: int
    path: Path


class Shelf:
    """Mutable: the parts of one result. `pattern` finds the number in the name of a part."""

    def __init__(
        self, folder: Path, record: str, pattern: re.Pattern[str], format_: Format, name: str
    ) -> None:
        self.folder = folder
        self.current: Record | None = None
        self.next = 0
        self._record = folder / record
        self._pattern = pattern
        self._format = format_
        self._name = name

    def parts(self) -> list[SpooledPart]:
        """The parts that are there now, by number."""
        matched = ((p, self._pattern.fullmatch(p.name)) for p in self.folder.iterdir())
        return sorted(
            (SpooledPart(int(m[1]), p) for p, m in matched if m), key=lambda part: part.number
        )

    def open(self, job: str, *, fresh: bool) -> int:
        """The number of the first batch that is not there yet."""
        record = self.recorded()
        if record is None or record.job != job or record.is_replacing or fresh:
            # Written down now: after a crash before the first batch, nobody may take the
            # parts that are there for those of this job.
            start = secrets.token_hex(8)
            self._write(Record(job, self._format.value, start, is_replacing=True))
            self.next = 0
        else:
            self._check_format(record)
            self.current = record
            self.next = max([record.next, *(p.number + 1 for p in self.parts())])
        return self.next

    def _check_format(self, record: Record) -> None:
        if record.format != self._format.value:
            raise UsageError(
                f"this job has written {record.format} here, not {self._format.value}",
                place=self._name,
                hint=f"go on with {record.format}:{self._name.rpartition(':')[2]}",
            )

    def clear_for_new_parts(self) -> None:
        """Before the first part of a job: nothing of an earlier one may be left."""
        assert self.current is not None
        if not self.current.is_replacing:
            return
        for part in reversed(self.parts()):
            self.remove(part)
        self.sync()
        self._write(replace(self.current, is_replacing=False))

    def passed(self, number: int, *, is_empty: bool) -> None:
        """A batch is there; one without rows is written down, because no part tells of it."""
        assert self.current is not None
        self.next = number + 1
        if is_empty:
            self._write(replace(self.current, next=self.next))

    def sync(self) -> None:
        """A file that has appeared is durable only when its folder is."""
        handle = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def _write(self, record: Record) -> None:
        with told(self._name):
            self.store(json.dumps(asdict(record)).encode())
        self.current = record

    # --- where it lies ---

    def recorded(self) -> Record | None:
        """What is written down of this result."""
        return record_at(self._record)

    def store(self, record: bytes) -> None:
        beside = self._record.with_name(f"{self._record.name}.tmp")
        with beside.open("wb") as file:
            file.write(record)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(self._record)
        self.sync()

    def remove(self, part: SpooledPart) -> None:
        part.path.unlink()


def record_at(path: Path) -> Record | None:
    """The record of a result; None where no job has written yet."""
    try:
        return record_in_bytes(path.read_bytes(), str(path))
    except FileNotFoundError:
        return None


def record_in_bytes(data: bytes, place: str) -> Record:
    try:
        return Record(**json.loads(data))
    except (ValueError, TypeError):
        raise RunError(
            "this record of a folder of results is damaged",
            place=place,
            hint="delete the folder, and have the job computed again",
        ) from None


def new_job() -> str:
    """A run without a checkpoint is a job of its own."""
    return f"run-{secrets.token_hex(8)}"
