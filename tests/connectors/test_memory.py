from __future__ import annotations

from millstream.calculus.graph import Input
from millstream.calculus.types import NUMBER, QueueType, Row, Schema
from millstream.connectors.memory import MemoryReader, MemoryWriter

STREAM = Input("X", QueueType(Schema.of(x=NUMBER)))
RELATION = Input("X", QueueType(Schema.of(x=NUMBER), is_relation=True))


def test_rows_in_memory_come_in_chunks() -> None:
    rows: list[tuple[int, Row]] = [(3, (1.0,)), (1, (None,)), (2, (2.0,))]
    chunks = list(MemoryReader(STREAM, iter(rows), chunk_rows=2).chunks())
    assert [2, 1] == [c.read for c in chunks]
    assert [3, 1] == chunks[0].batch.time.tolist()
    assert [(1.0,), (None,)] == chunks[0].batch.rows()


def test_changes_without_a_weight_are_insertions() -> None:
    reader = MemoryReader(RELATION, [(1, (1.0,)), (2, (1.0,), -1)])
    weights = next(reader.chunks()).batch.weight
    assert weights is not None
    assert [1, -1] == weights.tolist()


def test_what_is_written_is_kept() -> None:
    writer = MemoryWriter()
    assert [] == writer.items()
    for chunk in MemoryReader(STREAM, [(1, (1.0,)), (2, (2.0,))], chunk_rows=1).chunks():
        writer.write(chunk.batch)
    writer.close()
    assert 2 == len(writer.batches)
    assert [(1, (1.0,)), (2, (2.0,))] == writer.items()
    writer.abort()
    assert [] == writer.batches
