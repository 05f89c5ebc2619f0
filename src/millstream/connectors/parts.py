"""Output while following: numbered files, each complete when it appears.

A job that follows its input never ends, so its output cannot be one file that appears at
the end. `out.csv` becomes `out-000001.csv`, `out-000002.csv` and so on.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from millstream.connectors.location import Location
from millstream.connectors.write import Shape, open_writer
from millstream.plan.batch import Batch


class PartsWriter:
    """Mutable: counts the files; numbers go on after those that are there.

    An engine that can run a batch twice says which file it is by `begin`.
    """

    def __init__(self, location: Location, shape: Shape) -> None:
        assert location.path is not None
        self._location = location
        self._path = location.path
        self._shape = shape
        self._number = 0
        self._begun: int | None = None

    def begin(self, number: int) -> None:
        """The next file has this number, and replaces one that is there."""
        self._begun = number

    def write(self, batch: Batch) -> None:
        if not len(batch):
            return
        writer = open_writer(replace(self._location, path=self._next_path()), self._shape)
        try:
            writer.write(batch)
        except BaseException:
            writer.abort()
            raise
        writer.close()

    def _next_path(self) -> Path:
        name, dot, ending = self._path.name.partition(".")
        while True:
            self._number = self._number + 1 if self._begun is None else self._begun
            path = self._path.with_name(f"{name}-{self._number:06}{dot}{ending}")
            if self._begun is not None or not path.exists():
                self._begun = None
                return path

    def close(self) -> None:
        """Every file is closed as soon as it is written."""

    def abort(self) -> None:
        """What has appeared is complete and stays."""
