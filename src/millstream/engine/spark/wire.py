"""Messages as rows that Spark carries: (target, part, message).

`target` is a stage, or the driver, whose number comes after the last stage; `part` is the
Spark partition that must hear the message.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from millstream.engine.messages import Message, Sent
from millstream.engine.storage.codec import decode, encode

SCHEMA = "target int, part int, message binary"
_ARROW = pa.schema([("target", pa.int32()), ("part", pa.int32()), ("message", pa.binary())])

Wire = tuple[int, int, bytes]


def wired(sent: Iterable[Sent], driver: int, partitions: int) -> Iterator[Wire]:
    """A stage hears a message in all its partitions: who runs which bucket is not known."""
    for target, message in sent:
        data = encode(message)
        for part in range(1 if target == driver else partitions):
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
