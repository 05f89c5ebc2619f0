"""Rows in memory as tables of Arrow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from millstream.calculus.types import QueueType
from millstream.connectors.standing import standing
from millstream.connectors.write import columns_of, fields_of
from millstream.plan.batch import ARROW_TYPES, Batch, concat_batches


def arrow_table(batches: Sequence[Batch], type_: QueueType, *, is_plain: bool = False) -> Any:
    """The rows of an output with their times, as timestamps or as plain microseconds."""
    batch = concat_batches(batches, type_)
    arrays = [vector.to_arrow() for vector in columns_of(batch, type_)]
    fields = fields_of(type_)
    types = [ARROW_TYPES[f.type.kind] for f in fields]
    if is_plain:
        types = [pa.int64() if pa.types.is_temporal(t) else t for t in types]
        arrays = [a.cast(t) for a, t in zip(arrays, types, strict=True)]
    names = [f.name for f in fields]
    return pa.table(arrays, schema=pa.schema(list(zip(names, types, strict=True))))


def standing_table(changes: Any, as_of: int | None) -> Any:
    """What stands after some changes, without their times."""
    return standing([changes], as_of)
