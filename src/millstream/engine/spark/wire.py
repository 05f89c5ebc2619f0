"""The rows that travel between tasks: (target, part, message).

`target` is a stage, or the driver, whose number comes after the last stage; `part` is the
Spark partition that must hear the message. A message is a small record; rows travel in it
as parcels, and large parcels only by name (see `parcels`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from millstream.engine.storage.codec import decode, encode

SCHEMA = "target int, part int, message binary"
_ARROW = pa.schema([("target", pa.int32()), ("part", pa.int32()), ("message", pa.binary())])

Wire = tuple[int, int, bytes]
Message = dict[str, Any]


def to_all(target: int, parts: int, message: Message) -> Iterator[Wire]:
    """The same message for every partition of a stage: who runs which bucket is not known."""
    data = encode(message)
    for part in range(parts):
        yield target, part, data


def record_batch(rows: Iterable[Wire]) -> Any:
    """Rows as one record batch; they are few and small."""
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    arrays = [pa.array(c, f.type) for c, f in zip(columns, _ARROW, strict=True)]
    return pa.record_batch(arrays, schema=_ARROW)


def rows_of(batch: Any) -> Iterator[Wire]:
    yield from zip(*(batch.column(n).to_pylist() for n in range(3)), strict=True)


def message_of(data: bytes) -> Message:
    message: Message = decode(data)
    return message
