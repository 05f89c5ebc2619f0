"""Rows to many raw files: each goes to the one that a column of it names."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from millstream.calculus.graph import Input
from millstream.connectors.location import Location
from millstream.connectors.write import QueueWriter, Shape, open_writer
from millstream.errors import RunError, UsageError
from millstream.plan.batch import Batch

#: So many files may be open at once.
_MOST_FILES = 500


class SplitWriter:
    """Mutable: a writer for every file so far; all of them appear when this is closed."""

    def __init__(self, location: Location, shape: Shape, *, is_following: bool) -> None:
        if isinstance(shape, Input) or location.by not in shape.schema:
            raise UsageError(f'there is no column "{location.by}"', place=location.text)
        if is_following:
            raise UsageError("files that rows name cannot be written while inputs are followed",
                             place=location.text, hint="give the output one file")  # fmt: skip
        self._location, self._column = location, location.by
        schema = type(shape.schema)(tuple(f for f in shape.schema if f.name != location.by))
        self._shape = replace(shape, schema=schema)
        self._writers: dict[str, QueueWriter] = {}

    def write(self, batch: Batch) -> None:
        at = batch.schema.names.index(self._column)
        names = np.array(batch.columns[at].to_list(), object)
        columns = (*batch.columns[:at], *batch.columns[at + 1 :])
        rest = replace(batch, type=self._shape, columns=columns)
        for name in dict.fromkeys(names.tolist()):
            self._writer(name).write(rest.take(np.flatnonzero(names == name)))

    def _writer(self, name: str) -> QueueWriter:
        if name not in self._writers:
            folder = self._location.path
            assert folder is not None
            if len(self._writers) == _MOST_FILES:
                raise RunError(f"more than {_MOST_FILES} files are written at once",
                               place=self._location.text)  # fmt: skip
            path = folder / Path(name)
            self._writers[name] = open_writer(
                replace(self._location, path=path, text=f"raw:{path}", by=None), self._shape
            )
        return self._writers[name]

    def close(self) -> None:
        for writer in self._writers.values():
            writer.close()

    def abort(self) -> None:
        for writer in self._writers.values():
            writer.abort()
