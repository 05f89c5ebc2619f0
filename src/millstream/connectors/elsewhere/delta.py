"""Tables of Delta Lake: `delta:folder`, or `delta:s3://bucket/table`.

In: the table as it is, then what every later version adds. Out: a batch is one version, which
carries the number of the batch, so that one that comes twice changes nothing; with `?state` it is
merged into what stands.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from millstream.connectors.elsewhere.address import Elsewhere, shown
from millstream.connectors.elsewhere.extras import optional
from millstream.connectors.elsewhere.spool import Spool
from millstream.connectors.elsewhere.versions import COUNT, OURS, ROW, VersionWriter
from millstream.connectors.location import Location
from millstream.connectors.write import Shape
from millstream.errors import RunError, UsageError

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
        with _told(text):
            if not self._delta.DeltaTable.is_deltatable(place.path):
                raise UsageError("there is no table of Delta Lake here", place=text)
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


class DeltaWriter(VersionWriter):
    """Mutable: a version carries the number of its batch as a transaction of an application."""

    kind = "Delta Lake"

    def __init__(self, location: Location, output: str, shape: Shape) -> None:
        assert location.elsewhere is not None
        self._delta = optional("deltalake", "delta")
        self._path = location.elsewhere.path
        with _told(location.text):
            self._refuse_foreign_table(location.text)
        super().__init__(location, output, shape)

    def _refuse_foreign_table(self, text: str) -> None:
        if self._delta.DeltaTable.is_deltatable(self._path):
            if self._delta.DeltaTable(self._path).metadata().description != OURS:
                raise UsageError("this table holds rows that are not results of Millstream",
                                 place=text, hint="choose a new one")  # fmt: skip

    def _last(self, job: str) -> int | None:
        with _told(self._text):
            if not self._delta.DeltaTable.is_deltatable(self._path):
                return None
            known: int | None = self._delta.DeltaTable(self._path).transaction_version(job)
            return known

    def _put(self, number: int, rows: Any, *, is_replacing: bool) -> None:
        assert self._job is not None
        numbered = self._delta.Transaction(self._job, number)
        with _told(self._text):
            self._delta.write_deltalake(
                self._path, rows, mode="overwrite" if is_replacing else "append",
                schema_mode="overwrite" if is_replacing else None, description=OURS,
                commit_properties=self._delta.CommitProperties(app_transactions=[numbered]),
            )  # fmt: skip

    def _merge(self, number: int, changes: Any) -> None:
        assert self._job is not None
        numbered = self._delta.Transaction(self._job, number)
        columns = {name: f'changed."{name}"' for name in changes.column_names}
        new = f'there."{COUNT}" + changed."{COUNT}"'
        with _told(self._text):
            merging = self._delta.DeltaTable(self._path).merge(
                changes, f'there."{ROW}" = changed."{ROW}"', "changed", "there",
                commit_properties=self._delta.CommitProperties(app_transactions=[numbered]),
            )  # fmt: skip
            merging = merging.when_matched_delete(f"{new} = 0")
            merging = merging.when_matched_update({f'"{COUNT}"': new})
            merging.when_not_matched_insert({f'"{n}"': v for n, v in columns.items()}).execute()
