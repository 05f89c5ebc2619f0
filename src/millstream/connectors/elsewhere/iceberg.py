"""Tables of Iceberg: `iceberg:lake/shop.trades`, or `iceberg:shop.trades?catalog=prod`.

The first is a table of a catalog that lies beside its data, in the file `lake/catalog.db`; an
output makes it. The second is one of a catalog that pyiceberg knows by its own settings
(`~/.pyiceberg.yaml`, `PYICEBERG_CATALOG__PROD__URI` and so on), where credentials are too.

In: the table as it is, then what every later snapshot adds. Out: a batch is one snapshot, which
carries the number of the batch; with `?state` it is merged into what stands.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from millstream.connectors.elsewhere.address import Elsewhere, shown
from millstream.connectors.elsewhere.extras import optional
from millstream.connectors.elsewhere.spool import Spool
from millstream.connectors.elsewhere.versions import COUNT, OURS, ROW, VersionWriter
from millstream.connectors.location import Location
from millstream.connectors.write import Shape
from millstream.errors import MillstreamError, RunError, UsageError

_CATALOG = "catalog.db"
#: What a snapshot carries: the job and the number of its batch.
_JOB, _BATCH = "millstream-job", "millstream-batch"
#: Where nothing has been written to a table yet.
_NO_SNAPSHOT = 0


@contextmanager
def _told(place: str) -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what pyiceberg has to say of its own code
        try:
            yield
        except MillstreamError:
            raise
        except (OSError, pa.ArrowException, ValueError) as error:
            reason = shown(str(error)).partition("\n")[0]
            raise RunError(f"the table says: {reason}", place=place) from None
        except Exception as error:
            if type(error).__module__.startswith(("pyiceberg", "sqlalchemy", "requests")):
                reason = shown(str(error)).partition("\n")[0]
                raise RunError(f"the catalog says: {reason}", place=place) from None
            raise


def _catalog(place: Elsewhere, text: str, *, is_made: bool) -> tuple[Any, str]:
    """The catalog of a table, and the name of the table in it."""
    optional("pyiceberg", "iceberg")
    name = place.settings.get("catalog")
    if name is not None:
        load = optional("pyiceberg.catalog", "iceberg").load_catalog
        return load(name), place.path
    folder, _, table = place.path.rpartition("/")
    home = Path(folder).absolute()
    if not is_made and not (home / _CATALOG).exists():
        raise UsageError("there is no catalog of Iceberg here", place=text,
                         hint=f"it would be the file {_CATALOG} in that folder")  # fmt: skip
    home.mkdir(parents=True, exist_ok=True)
    kind = optional("pyiceberg.catalog.sql", "iceberg").SqlCatalog
    settings = {"uri": f"sqlite:///{home / _CATALOG}", "warehouse": home.as_uri()}
    return kind("default", **settings), table


class IcebergBringer:
    """Mutable: how far the snapshots of a table have been brought."""

    def __init__(self, place: Elsewhere, spool: Spool, text: str, *, is_following: bool) -> None:
        self._spool = spool
        self._text = text
        with _told(text):
            catalog, name = _catalog(place, text, is_made=False)
            if not catalog.table_exists(name):
                raise UsageError(f'there is no table "{name}" in this catalog', place=text)
            self._table = catalog.load_table(name)

    def fetch(self) -> bool:
        with _told(self._text):
            self._table.refresh()
            now = self._table.current_snapshot()
            last = _NO_SNAPSHOT if now is None else now.snapshot_id
            known = self._spool.position()
            if known is None:
                self._bring(self._table.scan().to_arrow(), last)
            elif known != last:
                self._refuse_changes(known, last)
                since = None if known == _NO_SNAPSHOT else known
                added = self._table.incremental_append_scan(
                    from_snapshot_id_exclusive=since, to_snapshot_id_inclusive=last
                )
                self._bring(added.to_arrow(), last)
        return False

    def _refuse_changes(self, known: int, last: int) -> None:
        """Snapshots since one that was read may add rows, or only write them anew."""
        by_id = {one.snapshot_id: one for one in self._table.snapshots()}
        at: int | None = last
        while at is not None and at != known:
            snapshot = by_id.get(at)
            if snapshot is None:
                break
            operation = "" if snapshot.summary is None else snapshot.summary.operation.value
            if operation not in ("append", "replace"):
                raise RunError(
                    f"snapshot {at} takes rows away or changes them", place=self._text,
                    hint="only tables that rows are added to can be an input",
                )  # fmt: skip
            at = snapshot.parent_snapshot_id
        if known not in (_NO_SNAPSHOT, at):
            hint = "--rebuild takes the table as it is from the beginning"
            message = f"snapshot {known}, which was read, is not there any more"
            raise RunError(message, place=self._text, hint=hint)

    def _bring(self, table: Any, snapshot: int) -> None:
        file = io.BytesIO()
        pq.write_table(table, file)
        self._spool.add(file.getvalue(), snapshot, ending=".parquet")

    def close(self) -> None:
        """A table holds nothing open."""


class IcebergWriter(VersionWriter):
    """Mutable: a snapshot carries the number of its batch among its properties."""

    kind = "Iceberg"

    def __init__(self, location: Location, output: str, shape: Shape) -> None:
        assert location.elsewhere is not None
        with _told(location.text):
            self._catalog, self._name = _catalog(location.elsewhere, location.text, is_made=True)
            self._table = None
            if self._catalog.table_exists(self._name):
                self._table = self._catalog.load_table(self._name)
                if self._table.properties.get("comment") != OURS:
                    raise UsageError("this table holds rows that are not results of Millstream",
                                     place=location.text, hint="choose a new one")  # fmt: skip
        super().__init__(location, output, shape)

    def _last(self, job: str) -> int | None:
        with _told(self._text):
            snapshot = None if self._table is None else self._table.refresh().current_snapshot()
            while snapshot is not None:
                summary = snapshot.summary
                if summary is not None and summary.get(_JOB) == job:
                    return int(summary[_BATCH])
                parent = snapshot.parent_snapshot_id
                snapshot = None if parent is None else self._table.snapshot_by_id(parent)  # type: ignore[union-attr]
        return None

    def _put(self, number: int, rows: Any, *, is_replacing: bool) -> None:
        assert self._job is not None
        numbered = {_JOB: self._job, _BATCH: str(number)}
        with _told(self._text):
            table = rows.read_all()
            if self._table is None:
                self._create(table.schema)
            assert self._table is not None
            if is_replacing and self._table.current_snapshot() is not None:
                self._refuse_other_columns(table.schema)
                self._table.overwrite(table, snapshot_properties=numbered)
            else:
                self._table.append(table, snapshot_properties=numbered)

    def _merge(self, number: int, changes: Any) -> None:
        """What stands of the rows that change is taken out and put in anew, in one snapshot."""
        assert self._job is not None
        assert self._table is not None
        numbered = {_JOB: self._job, _BATCH: str(number)}
        is_one = optional("pyiceberg.expressions", "iceberg").In
        with _told(self._text):
            changed = is_one(ROW, changes[ROW].to_pylist())
            there = self._table.scan(changed).to_arrow()
            if not len(there):
                self._table.append(changes, snapshot_properties=numbered)
                return
            rows = _added(there.cast(changes.schema), changes)
            self._table.overwrite(rows, changed, snapshot_properties=numbered)

    def _create(self, schema: Any) -> None:
        namespace = self._name.rpartition(".")[0]
        self._catalog.create_namespace_if_not_exists(namespace)
        self._table = self._catalog.create_table(
            self._name, schema=schema, properties={"comment": OURS}
        )

    def _refuse_other_columns(self, schema: Any) -> None:
        assert self._table is not None
        there = [field.name for field in self._table.schema().fields]
        if there != schema.names:
            raise UsageError(f"this table has the columns {', '.join(there)}, and the result "
                             f"{', '.join(schema.names)}", place=self._text,
                             hint="choose a new one")  # fmt: skip


def _added(there: Any, changes: Any) -> Any:
    """Rows that stand and their changes together, without those that have gone."""
    both = pa.concat_tables([there, changes])
    counts: dict[str, int] = {}
    first: dict[str, int] = {}
    for place, (row, count) in enumerate(
        zip(both[ROW].to_pylist(), both[COUNT].to_pylist(), strict=True)
    ):
        counts[row] = counts.get(row, 0) + count
        first.setdefault(row, place)
    left = [row for row, count in counts.items() if count]
    rows = both.take(pa.array([first[row] for row in left], pa.int64()))
    return rows.set_column(
        rows.schema.get_field_index(COUNT),
        COUNT,
        pa.array([counts[row] for row in left], pa.int64()),
    )
