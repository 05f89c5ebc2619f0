"""The rows that travel between tasks: (target, bucket, queue, blob).

`target` is a stage or the sink, `bucket` where in it, `queue` the number of a queue or one
of the negative numbers below, whose blobs are JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

SCHEMA = "target int, bucket int, queue int, blob binary"
_ARROW = pa.schema(
    [("target", pa.int32()), ("bucket", pa.int32()), ("queue", pa.int32()), ("blob", pa.binary())]
)

#: What an input has brought in this batch, told to every partition of every stage.
CONTROL = -1
#: Late rows of input n have the number LATE - n.
LATE = -1000
#: Rejected rows, as JSON.
REJECTED = -2
#: What a task has done, for the report.
DONE = -3

Wire = tuple[int, int, int, bytes]
#: Spark reads a record batch into memory as a whole; blobs are sent in runs of this size.
_RUN_BYTES = 32 << 20


def control(target: int, partition: int, facts: dict[str, Any]) -> Wire:
    return target, partition, CONTROL, json.dumps(facts).encode()


def record_batches(rows: Iterable[Wire]) -> Iterator[Any]:
    """Rows as record batches of moderate size."""
    run: list[Wire] = []
    size = 0
    for row in rows:
        run.append(row)
        size += len(row[3])
        if size >= _RUN_BYTES:
            yield _record_batch(run)
            run, size = [], 0
    if run:
        yield _record_batch(run)


def _record_batch(rows: list[Wire]) -> Any:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(c, f.type) for c, f in zip(columns, _ARROW, strict=True)]
    return pa.record_batch(arrays, schema=_ARROW)


def rows_of(batch: Any) -> Iterator[tuple[int, int, int, memoryview]]:
    """The rows of a record batch; blobs are views, not copies."""
    targets, buckets, queues = (batch.column(n).to_pylist() for n in range(3))
    blobs = batch.column(3)
    for number, (target, bucket, queue) in enumerate(zip(targets, buckets, queues, strict=True)):
        yield target, bucket, queue, memoryview(blobs[number].as_buffer())
