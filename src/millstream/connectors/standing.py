"""A relation as it stands, from the changes that have been written of it.

A change log has a row `(_time, _weight, columns)` for everything that comes (+1) and goes (-1).
What is there at a moment is every row whose weights up to then add up to more than nothing, as
often as they say.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.calculus.types import TIME_COLUMN, WEIGHT_COLUMN
from millstream.connectors.results import times_in
from millstream.errors import RunError, UsageError

_COUNT = "_count"


class Standing:
    """Mutable: a relation as it stands after the changes it has been told."""

    def __init__(self) -> None:
        self._kept: Any = None

    def tell(self, changes: Any) -> None:
        """A table of changes; columns other than `_time` and `_weight` are those of the rows."""
        columns = [n for n in changes.column_names if n not in (TIME_COLUMN, WEIGHT_COLUMN)]
        counts = pc.cast(changes[WEIGHT_COLUMN], pa.int64())
        counted = changes.select(columns).append_column(_COUNT, counts)
        kept = counted if self._kept is None else pa.concat_tables([self._kept, counted])
        self._kept = _summed(kept, columns)

    def rows(self) -> Any:
        """What is there, as a table in the order in which rows first came; None before any."""
        return None if self._kept is None else _repeated(self._kept)


def standing(tables: Iterable[Any], as_of: int | None = None) -> Any:
    """The rows that are there after all changes, or after those up to a time, without `_time`.

    Rows stand in the order in which they first came. Tables are in the order of time.
    """
    relation = Standing()
    for table in tables:
        if WEIGHT_COLUMN not in table.column_names:
            raise UsageError("these are the rows of a stream, which has no state",
                             hint="only relations, whose rows have a _weight, stand")  # fmt: skip
        relation.tell(table if as_of is None else table.filter(_is_known(table, as_of)))
    return relation.rows()


def _is_known(table: Any, as_of: int) -> Any:
    times = times_in(table)
    if times is None:
        raise UsageError("these rows have no _time", hint="leave --as-of out")
    return pa.array(times <= as_of)


def _summed(counted: Any, columns: list[str]) -> Any:
    grouped = counted.group_by(columns, use_threads=False).aggregate([(_COUNT, "sum")])
    grouped = grouped.rename_columns([*columns, _COUNT])
    return grouped.filter(pc.not_equal(grouped[_COUNT], 0))


def _repeated(kept: Any) -> Any:
    counts = kept[_COUNT].to_numpy()
    if (counts < 0).any():
        raise RunError("more rows have gone than have come: some of these changes are missing")
    return kept.drop_columns([_COUNT]).take(np.repeat(np.arange(len(counts)), counts))
