"""Output while following: numbered files, each complete when it appears.

A job that follows its input never ends, so its output cannot be one file that appears at
the end. `out.csv` becomes `out-000001.csv`, `out-000002.csv` and so on, one for each batch that
has rows; `.out.csv.millstream.json` says which job they are of.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from itertools import chain

from millstream.connectors.location import Location
from millstream.connectors.shelf import Shelf, new_job, record_at
from millstream.connectors.sink import check_folder_of, told
from millstream.connectors.write import Shape, fields_of, open_writer
from millstream.errors import UsageError, listing
from millstream.plan.batch import Batch


class PartsWriter:
    """Mutable: knows which batches are there. See `BatchWriter`."""

    def __init__(self, location: Location, shape: Shape) -> None:
        fields_of(shape)
        assert location.path is not None
        self._location = location
        self._path = location.path
        self._shape = shape
        self._stem, dot, ending = self._path.name.partition(".")
        self._ending = f"{dot}{ending}"
        record = f".{self._path.name}.millstream.json"
        pattern = re.compile(rf"{re.escape(self._stem)}-(\d{{6,}}){re.escape(self._ending)}")
        self._name = location.name_of(self._path)
        check_folder_of(self._path, self._name)
        self._shelf = Shelf(self._path.parent, record, pattern, location.format, self._name)
        self._refuse_foreign_files(record)

    def _refuse_foreign_files(self, record: str) -> None:
        if record_at(self._path.parent / record) is not None:
            return
        foreign = [part.path.name for part in self._shelf.parts()]
        if foreign:
            raise UsageError(
                f"there are files already that no job is known to have written: {listing(foreign)}",
                place=self._name,
                hint="choose another name, or move them away",
            )

    def open(self, job: str, *, fresh: bool) -> int:
        """Files are numbered from one, batches from zero."""
        return max(0, self._shelf.open(job, fresh=fresh) - 1)

    def write_batch(self, number: int, batch: Batch, more: Iterable[Batch] = ()) -> None:
        if number + 1 < self._shelf.next:
            return
        with told(self._name):
            self._shelf.clear_for_new_parts()
            if len(batch):
                self._write_part(number + 1, chain((batch,), more))
                self._shelf.sync()
        self._shelf.passed(number + 1, is_empty=not len(batch))

    def _write_part(self, number: int, batches: Iterable[Batch]) -> None:
        path = self._path.with_name(f"{self._stem}-{number:06}{self._ending}")
        writer = open_writer(replace(self._location, path=path), self._shape)
        try:
            for batch in batches:
                writer.write(batch)
        except BaseException:
            writer.abort()
            raise
        writer.close()

    def write(self, batch: Batch) -> None:
        if self._shelf.current is None:
            self.open(new_job(), fresh=True)
        self.write_batch(max(0, self._shelf.next - 1), batch)

    def close(self) -> None:
        """Every file is closed as soon as it is written."""

    def abort(self) -> None:
        """What has appeared is complete and stays."""
