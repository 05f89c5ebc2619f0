"""Rows on their way to a place that has no files: one line of JSON for each, in a file here.

A run that fails has sent nothing of what its last batch made.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from millstream.connectors.location import Format, Location
from millstream.connectors.write import Shape, open_writer
from millstream.plan.batch import Batch


class Staged:
    """Mutable: the rows that have been written and not yet sent."""

    def __init__(self, location: Location, shape: Shape) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="millstream-sent-"))
        self._file = self._folder / "rows.jsonl"
        self._location = replace(location, format=Format.JSONL, elsewhere=None, path=self._file)
        self._shape = shape
        self._writer: Any = None

    @property
    def is_open(self) -> bool:
        return self._folder.exists()

    def write(self, batch: Batch) -> None:
        if self._writer is None:
            self._writer = open_writer(self._location, self._shape, self._location.text)
        self._writer.write(batch)

    def lines(self, batch: Batch | None = None, more: Iterable[Batch] = ()) -> Iterator[bytes]:
        """Each row as a line, of what has been written before and of these; none stays."""
        for one in chain(() if batch is None else (batch,), more):
            self.write(one)
        if self._writer is None:
            return
        self._writer.close()
        self._writer = None
        with self._file.open("rb") as file:
            for line in file:
                yield line.rstrip(b"\n")
        self._file.unlink()

    def close(self) -> None:
        if self._writer is not None:
            self._writer.abort()
            self._writer = None
        shutil.rmtree(self._folder, ignore_errors=True)
