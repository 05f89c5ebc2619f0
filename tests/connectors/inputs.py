"""What the tests of connectors share: inputs to read, and batches as plain values."""

from __future__ import annotations

import io
from pathlib import Path
from typing import BinaryIO

from millstream.calculus.graph import Input
from millstream.calculus.types import (
    BOOLEAN,
    DURATION,
    INTEGER,
    NUMBER,
    TEXT,
    TIME,
    QueueType,
    Row,
    Schema,
)
from millstream.connectors.chunks import Chunk, Reader, Rejected
from millstream.connectors.location import parse_location
from millstream.connectors.read import open_reader
from millstream.plan.batch import Batch, concat_batches

TRADES = Input("Trades", QueueType(Schema.of(sym=TEXT, ts=TIME, price=NUMBER)), time="ts")
EVERYTHING = Schema.of(n=NUMBER, i=INTEGER, t=TEXT, b=BOOLEAN, at=TIME, d=DURATION)
ALL_TYPES = Input("All", QueueType(EVERYTHING))
ALL_CHANGES = Input("Changes", QueueType(EVERYTHING, is_relation=True))

Plain = tuple[list[int], list[int] | None, list[Row]]


def plain(batch: Batch) -> Plain:
    """Times, weights and rows of a batch; equal if the batches are."""
    weights = None if batch.weight is None else batch.weight.tolist()
    return batch.time.tolist(), weights, batch.rows()


def everything(chunks: list[Chunk], input_: Input) -> tuple[Plain, tuple[Rejected, ...]]:
    whole = concat_batches([c.batch for c in chunks], input_.type)
    return plain(whole), tuple(r for c in chunks for r in c.rejected)


def read_all(reader: Reader) -> list[Chunk]:
    try:
        return list(reader.chunks())
    finally:
        reader.close()


def read_text(text: str | bytes, where: str, input_: Input) -> tuple[list[Row], list[Rejected]]:
    """The rows and the rejected of a text that stands in standard input."""
    raw = text.encode() if isinstance(text, str) else text
    stdin: BinaryIO = io.BytesIO(raw)
    chunks = read_all(open_reader(parse_location(where, Path()), input_, stdin=stdin))
    (_, _, rows), rejected = everything(chunks, input_)
    assert sum(c.read for c in chunks) == len(rows) + len(rejected)
    return rows, list(rejected)
