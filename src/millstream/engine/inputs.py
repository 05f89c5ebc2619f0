"""Where tasks read the inputs of a job; what has no file is put into one of the checkpoint.

Rows that a program has in memory, and what comes through standard input, are their own log:
they are given again, from the first row on, in every run.
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from millstream.calculus.graph import Input
from millstream.connectors.chunks import Reader
from millstream.connectors.location import Format, Location, parse_location
from millstream.connectors.write import open_writer
from millstream.engine.job import Job
from millstream.errors import UsageError

_FOLDER = "inputs"
_PIPE_BYTES = 1 << 16


class Inputs:
    """Mutable: may have a thread that copies standard input."""

    def __init__(
        self, job: Job, checkpoint: Path, readable: tuple[Format, ...], *, is_kept: bool
    ) -> None:
        self.job = job
        #: Whether the checkpoint will be taken up by another run.
        self.is_kept = is_kept
        self.folder = checkpoint / _FOLDER
        self.readable = readable
        #: Standard input has come to its end.
        self.is_piped_out = threading.Event()

    def reachable(self, one: Input) -> tuple[Input, Location]:
        """Where a task can read an input."""
        location = self.job.locations.get(one.name)
        reader = self.job.readers[one.name]
        if location is None:
            return self._kept(one, reader)
        if location.path is None and location.format in (Format.CSV, Format.JSONL):
            return one, self._piped(one, location)
        if location.path is None and location.format not in self.readable:
            reader.chunks()  # says why not
        reader.close()
        return one, _anchored(location)

    def _kept(self, one: Input, reader: Reader) -> tuple[Input, Location]:
        self.folder.mkdir(exist_ok=True)
        target = parse_location(f"{_FOLDER}/{one.name}.parquet", self.folder.parent)
        writer = open_writer(target, one.type)
        for chunk in reader.chunks():
            writer.write(chunk.batch)
        writer.close()
        return replace(one, time=None), target

    def _piped(self, one: Input, location: Location) -> Location:
        """Standard input as it is, so that its rows are read, and rejected, like a file's."""
        self.folder.mkdir(exist_ok=True)
        path = self.folder / f"{one.name}.{location.format.value}"
        if self.job.is_following and self.is_kept:
            raise UsageError(
                "standard input cannot be followed with a checkpoint: what it has told is gone",
                hint="append it to a file, and follow that",
            )
        if self.job.is_following:
            copying = threading.Thread(
                target=self._copy_as_it_comes, args=(path.open("wb"),), daemon=True
            )
            copying.start()
        else:
            with path.open("wb") as file:
                shutil.copyfileobj(sys.stdin.buffer, file)
        return replace(location, path=path, base=self.folder.parent)

    def _copy_as_it_comes(self, file: BinaryIO) -> None:
        # Not through `sys.stdin`: a thread that waits there cannot be left behind at the end.
        last = b"\n"
        with file:
            while data := os.read(sys.stdin.fileno(), _PIPE_BYTES):
                file.write(data)
                file.flush()
                last = data[-1:]
            if last != b"\n":
                file.write(b"\n")  # nobody will end this line any more
        self.is_piped_out.set()


def _anchored(location: Location) -> Location:
    """The same place from wherever it is looked at."""
    base, path = location.base.resolve(), location.path
    if path is not None and path.is_relative_to(location.base):
        path = base / path.relative_to(location.base)
    return replace(location, base=base, path=path)
