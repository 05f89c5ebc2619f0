"""Rows as the messages of a broker: lines of JSON, or an Arrow stream, never above its limit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from millstream.connectors.texts import jsonl_lines
from millstream.connectors.write import Shape, columns_of, fields_of
from millstream.errors import RunError
from millstream.plan.batch import ARROW_TYPES, Batch

FORMATS = ("json", "arrow")


@dataclass(frozen=True, slots=True)
class CarriedRows:
    rows: int
    body: bytes


class Messages:
    """Batches of one output as messages of at most so many bytes."""

    def __init__(self, shape: Shape, format_: str, limit: int, place: str) -> None:
        fields = fields_of(shape)
        self._shape = shape
        self._names = [field.name for field in fields]
        self._schema = pa.schema([(f.name, ARROW_TYPES[f.type.kind]) for f in fields])
        self._is_arrow = format_ == "arrow"
        self._limit = limit
        self._place = place

    def of(self, batch: Batch) -> Iterator[CarriedRows]:
        """In order, as few as fit; of a batch without rows there are none."""
        if not len(batch):
            return
        body = self.body(batch)
        if len(body) <= self._limit:
            yield CarriedRows(len(batch), body)
            return
        if len(batch) == 1:
            raise RunError(
                f"a row of {len(body)} bytes does not fit into a message of {self._limit}",
                place=self._place,
            )
        step = max(1, min(len(batch) // 2, len(batch) * self._limit // len(body)))
        for first in range(0, len(batch), step):
            yield from self.of(batch.slice(first, min(first + step, len(batch))))

    def body(self, batch: Batch) -> bytes:
        vectors = columns_of(batch, self._shape)
        if not self._is_arrow:
            return bytes(jsonl_lines(self._names, vectors, "micros"))
        target = pa.BufferOutputStream()
        with pa.ipc.new_stream(target, self._schema) as writer:
            writer.write_batch(pa.record_batch([v.to_arrow() for v in vectors], self._schema))
        return bytes(target.getvalue())
