"""An output that has what stands of a relation, not its changes: `totals.csv?state`.

The file is replaced as a whole: at the end of a run, and while a run follows its inputs after
every batch. A sink of this kind does not know which batches it has, so it is told everything from
the first one on in every run, and what it shows never depends on where an earlier one stopped.
"""

from __future__ import annotations

import pyarrow as pa

from millstream.calculus.types import TIME_COLUMN, WEIGHT_COLUMN, QueueType
from millstream.connectors.location import Location
from millstream.connectors.standing import Standing
from millstream.connectors.write import Shape, open_table
from millstream.errors import UsageError
from millstream.plan.batch import Batch, Vector, empty_batch, vector_from_arrow


class StateWriter:
    """Mutable: a relation, and the file that shows it."""

    def __init__(self, location: Location, name: str, shape: Shape, *, is_following: bool) -> None:
        if not isinstance(shape, QueueType) or not shape.is_relation:
            raise UsageError(f'"{name}" is a stream, which has no state', place=location.text,
                             hint="leave ?state out: its rows are never taken back")  # fmt: skip
        if location.is_folder:
            raise UsageError("what stands is written to one file, or to a table of PostgreSQL",
                             place=location.text)  # fmt: skip
        self._location = location
        self._schema = shape.schema
        self._is_following = is_following and location.path is not None
        self._relation = Standing()
        self._tell(empty_batch(shape))
        if self._is_following:
            self._publish()

    def write(self, batch: Batch) -> None:
        if len(batch):
            self._tell(batch)
            if self._is_following:
                self._publish()

    def close(self) -> None:
        if not self._is_following:
            self._publish()

    def abort(self) -> None:
        """What was published before stays as it is."""

    def _tell(self, batch: Batch) -> None:
        assert batch.weight is not None
        columns = [vector.to_arrow() for vector in batch.columns]
        named = dict(zip(self._schema.names, columns, strict=True))
        head = {TIME_COLUMN: pa.array(batch.time), WEIGHT_COLUMN: pa.array(batch.weight)}
        self._relation.tell(pa.table(head | named))

    def _publish(self) -> None:
        table = open_table(self._location, tuple(self._schema))
        try:
            rows = self._relation.rows()
            vectors: list[Vector] = [vector_from_arrow(f.type, rows[f.name]) for f in self._schema]
            if rows.num_rows:
                table.write(vectors)
        except BaseException:
            table.abort()
            raise
        table.close()
