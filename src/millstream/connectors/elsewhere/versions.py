"""Tables that have versions: a batch is one version, which carries the number of the batch.

So one that comes twice changes nothing. What kind of table it is, a subclass knows.

With `?state` the table has each row that stands once, as one of PostgreSQL has it:

    columns..., _count, _row      how often it stands; `_row` tells equal rows, nulls included

and a batch of changes is merged into it by `_row`.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from millstream.calculus.terms import canonical
from millstream.calculus.types import TIME_COLUMN, WEIGHT_COLUMN, Kind, QueueType
from millstream.connectors.location import Format, Location
from millstream.connectors.shelf import new_job
from millstream.connectors.write import Shape, fields_of, open_writer
from millstream.errors import UsageError
from millstream.plan.batch import Batch

OURS = "results of Millstream"
COUNT, ROW = "_count", "_row"
#: After so many batches without rows a version without rows says that they are over.
_EMPTY_BATCHES = 100


class VersionWriter(ABC):
    """Mutable: see `BatchWriter`; as a plain writer the whole result is one version."""

    #: What such tables are called.
    kind: str

    def __init__(self, location: Location, output: str, shape: Shape) -> None:
        for field in fields_of(shape):
            if field.type.kind is Kind.DURATION:
                message = f'column "{field.name}" is a duration, which {self.kind} has not'
                raise UsageError(message, place=location.text)
        if location.is_state and not (isinstance(shape, QueueType) and shape.is_relation):
            raise UsageError(f'"{output}" is a stream, which has no state', place=location.text,
                             hint="leave state out: its rows are never taken back")  # fmt: skip
        self._is_state = location.is_state
        self._text = location.text
        self._output = output
        self._shape = shape
        self._job: str | None = None
        self._next = 0
        #: The first batch of which the table may not know: those without rows make no version.
        self.wanted_from = 0
        self._is_replacing = False
        self._made = Path(tempfile.mkdtemp(prefix="millstream-version-"))
        self._staged = replace(location, format=Format.PARQUET, elsewhere=None)
        self._whole: Any = None

    @abstractmethod
    def _last(self, job: str) -> int | None:
        """The number of the last batch of a job that the table has."""

    @abstractmethod
    def _put(self, number: int, rows: Any, *, is_replacing: bool) -> None:
        """Rows as one version with a number, in the place of all others or beside them."""

    @abstractmethod
    def _merge(self, number: int, changes: Any) -> None:
        """Rows of a state with how much their counts change, as one version with a number."""

    def open(self, job: str, *, fresh: bool) -> int:
        self._job = f"{job} {self._output}"
        known = None if fresh else self._last(self._job)
        self._next = self.wanted_from = 0 if known is None else known + 1
        self._is_replacing = known is None
        return self._next

    def write_batch(self, number: int, batch: Batch, more: Iterable[Batch] = ()) -> None:
        if number < self._next:
            return
        is_due = number - self.wanted_from >= _EMPTY_BATCHES
        if len(batch) or self._is_replacing or is_due:
            writer = self._writer()
            try:
                for one in chain((batch,), more):
                    writer.write(one)
            except BaseException:
                writer.abort()
                raise
            writer.close()
            self._commit(number)
        self._next = number + 1

    def write(self, batch: Batch) -> None:
        if self._job is not None:
            if len(batch) or self._is_replacing:
                self.write_batch(self._next, batch)
            return
        if self._whole is None:
            self._whole = self._writer()
        self._whole.write(batch)

    def close(self) -> None:
        if self._job is None and self._made.exists():
            whole = self._whole or self._writer()
            self._whole = None
            whole.close()
            self.open(new_job(), fresh=True)
            self._commit(0)
        self.abort()

    def abort(self) -> None:
        if self._whole is not None:
            self._whole.abort()
        shutil.rmtree(self._made, ignore_errors=True)

    def _writer(self) -> Any:
        return open_writer(replace(self._staged, path=self._made / "rows"), self._shape, self._text)

    def _commit(self, number: int) -> None:
        """The rows that are staged, as one version."""
        with pq.ParquetFile(self._made / "rows") as file:
            rows = pa.RecordBatchReader.from_batches(file.schema_arrow, file.iter_batches())
            changes = counted(rows) if self._is_state else None
            if changes is None:
                self._put(number, rows, is_replacing=self._is_replacing)
            elif self._is_replacing or not len(changes):
                self._put(number, changes.to_reader(), is_replacing=self._is_replacing)
            else:
                self._merge(number, changes)
        self._is_replacing = False
        self.wanted_from = number + 1


def counted(changes: Any) -> Any:
    """Changes as the rows of a state, each once, with how much their counts change."""
    columns = [n for n in changes.schema.names if n not in (TIME_COLUMN, WEIGHT_COLUMN)]
    counts: dict[str, int] = {}
    first: dict[str, int] = {}
    tables, seen = [], 0
    for batch in changes:
        rows = zip(*(batch[name].to_pylist() for name in columns), strict=True)
        for place, (row, weight) in enumerate(
            zip(rows, batch[WEIGHT_COLUMN].to_pylist(), strict=True)
        ):
            key = _digest(row)
            counts[key] = counts.get(key, 0) + weight
            first.setdefault(key, seen + place)
        tables.append(batch.select(columns))
    keys = [key for key, count in counts.items() if count]
    schema = pa.schema([changes.schema.field(name) for name in columns])
    rows = pa.Table.from_batches(tables, schema).take(
        pa.array([first[k] for k in keys], pa.int64())
    )
    rows = rows.append_column(COUNT, pa.array([counts[k] for k in keys], pa.int64()))
    return rows.append_column(ROW, pa.array(keys, pa.string()))


def _digest(row: Sequence[Any]) -> str:
    text = json.dumps([canonical(v) for v in row], default=str)
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
