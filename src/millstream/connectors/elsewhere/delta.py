"""Tables of Delta Lake: `delta:folder`, or `delta:s3://bucket/table`.

In: the table as it is, then what every later version adds. Out: a batch is one version, which
carries the number of the batch, so that one that comes twice changes nothing.
"""

from __future__ import annotations

import io
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from millstream.calculus.types import Kind
from millstream.connectors.elsewhere.address import Elsewhere, shown
from millstream.connectors.elsewhere.extras import optional
from millstream.connectors.elsewhere.spool import Spool
from millstream.connectors.location import Format, Location
from millstream.connectors.shelf import new_job
from millstream.connectors.write import Shape, fields_of, open_writer
from millstream.errors import RunError, UsageError
from millstream.plan.batch import Batch

_OURS = "results of Millstream"
#: After so many batches without rows a version without rows says that they are over.
_EMPTY_BATCHES = 100
#: What a version tells of its changes beside the columns.
_CHANGE = ("_change_type", "_commit_version", "_commit_timestamp")


@contextmanager
def _told(place: str) -> Iterator[None]:
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        raise RunError(
            f"the table says: {shown(str(error)).split(chr(10))[0]}", place=place
        ) from None
    except Exception as error:
        if type(error).__module__.startswith(("deltalake", "_internal")):
            reason = shown(str(error)).split("\n", 1)[0]
            raise RunError(f"the table says: {reason}", place=place) from None
        raise


class DeltaBringer:
    """Mutable: how far the versions of a table have been brought."""

    def __init__(self, place: Elsewhere, spool: Spool, text: str, *, is_following: bool) -> None:
        self._delta = optional("deltalake", "delta")
        self._spool = spool
        self._text = text
        if not self._delta.DeltaTable.is_deltatable(place.path):
            raise UsageError("there is no table of Delta Lake here", place=text)
        with _told(text):
            self._table = self._delta.DeltaTable(place.path)

    def fetch(self) -> bool:
        with _told(self._text):
            self._table.update_incremental()
            last = self._table.version()
            known = self._spool.position()
            if known is None:
                self._bring(self._table.to_pyarrow_table(), last)
                return False
            if known > last:
                raise RunError(f"the table is at version {last}, and {known} was read",
                               place=self._text)  # fmt: skip
            for version in range(known + 1, last + 1):
                self._bring(self._added(version), version)
        return False

    def _added(self, version: int) -> Any:
        """The rows that a version adds; what is rewritten without a change is none."""
        reader = self._table.load_cdf(starting_version=version, ending_version=version)
        changes = pa.table(reader.read_all())
        kinds = set(pc.unique(changes["_change_type"]).to_pylist())
        if kinds - {"insert"}:
            raise RunError(
                f"version {version} takes rows away or changes them", place=self._text,
                hint="only tables that rows are added to can be an input",
            )  # fmt: skip
        return changes.drop_columns([name for name in _CHANGE if name in changes.column_names])

    def _bring(self, table: Any, version: int) -> None:
        file = io.BytesIO()
        pq.write_table(table, file)
        self._spool.add(file.getvalue(), version, ending=".parquet")

    def close(self) -> None:
        """A table holds nothing open."""


class DeltaWriter:
    """Mutable: see `BatchWriter`; as a plain writer the whole result is one version."""

    def __init__(self, location: Location, output: str, shape: Shape) -> None:
        assert location.elsewhere is not None
        for field in fields_of(shape):
            if field.type.kind is Kind.DURATION:
                raise UsageError(f'column "{field.name}" is a duration, which Delta Lake has not',
                                 place=location.text)  # fmt: skip
        self._delta = optional("deltalake", "delta")
        self._path = location.elsewhere.path
        self._text = location.text
        self._output = output
        self._shape = shape
        self._job: str | None = None
        self._next = 0
        #: The first batch that the table may not know of: one without rows leaves no trace.
        self.wanted_from = 0
        self._is_replacing = False
        with _told(location.text):
            self._refuse_foreign_table()
        self._made = Path(tempfile.mkdtemp(prefix="millstream-delta-"))
        self._staged = replace(location, format=Format.PARQUET, elsewhere=None)
        self._whole: Any = None

    def _refuse_foreign_table(self) -> None:
        if self._delta.DeltaTable.is_deltatable(self._path):
            if self._delta.DeltaTable(self._path).metadata().description != _OURS:
                raise UsageError("this table holds rows that are not results of Millstream",
                                 place=self._text, hint="choose a new one")  # fmt: skip

    def open(self, job: str, *, fresh: bool) -> int:
        self._job = f"{job} {self._output}"
        known = None
        with _told(self._text):
            if not fresh and self._delta.DeltaTable.is_deltatable(self._path):
                known = self._delta.DeltaTable(self._path).transaction_version(self._job)
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
        """The rows that are staged, as one version with its number."""
        assert self._job is not None
        numbered = self._delta.Transaction(self._job, number)
        with _told(self._text), pq.ParquetFile(self._made / "rows") as file:
            rows = pa.RecordBatchReader.from_batches(file.schema_arrow, file.iter_batches())
            self._delta.write_deltalake(
                self._path, rows, mode="overwrite" if self._is_replacing else "append",
                schema_mode="overwrite" if self._is_replacing else None, description=_OURS,
                commit_properties=self._delta.CommitProperties(app_transactions=[numbered]),
            )  # fmt: skip
        self._is_replacing = False
        self.wanted_from = number + 1
